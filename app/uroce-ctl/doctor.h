/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of this host: findings, and what to change. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl_output.h"

enum doctor_offload {
	OFFLOAD_UNKNOWN,
	OFFLOAD_MISSING, /* its driver does not have it */
	OFFLOAD_OFF,
	OFFLOAD_ON,
};

/* The facts about a host. Tests make their own. */
struct doctor_host {
	const char *root;		    /* in front of /proc, /sys and /run; "": this host */
	const char *drivers;		    /* directory of DPDK's drivers */
	unsigned int cpus;		    /* that this process may use */
	uint64_t memlock_bytes;		    /* RLIMIT_MEMLOCK; UINT64_MAX: no limit */
	bool locks_freely;		    /* CAP_IPC_LOCK: that limit does not apply */
	uint64_t shm_bytes, shm_free_bytes; /* /dev/shm; 0: it is not there */
	/* Results of attempts: 0 or an errno. */
	int shm_error;	 /* to make a file in /dev/shm */
	int memfd_error; /* to seal a memory file */
	int raw_error;	 /* to open a packet socket */
	int user_error;	 /* to make a user and a mount namespace */
	/* Tell if the interface segments UDP packets. */
	enum doctor_offload (*segments_udp)(const char *iface);
	/* Return true if this process may write to the file. */
	bool (*may_write)(const char *path);
};

struct finding {
	const char *check;
	char subject[128]; /* the device or file that it is about, or "" */
	bool ok;
	char found[256];
	char change[256]; /* what to change, and how; "" if nothing needs to be */
};

struct doctor {
	const struct doctor_host *host;
	void (*tell)(void *arg, const struct finding *finding);
	void *arg;
};

/** Ask the kernel about this host. Makes a child process, so not MT-safe. */
void doctor_ask_host(struct doctor_host *host);

/** Tell a finding. `change` is NULL if all is well; else it says what to change and how. */
void doctor_tell(const struct doctor *doctor, const char *check, const char *subject,
		 const char *change, const char *found, ...) __attribute__((format(printf, 5, 6)));

/** Read the first line of a file under the host's root, without newline; "" if it cannot be read.
 * Returns false then. */
bool doctor_read(const struct doctor *doctor, char *line, size_t size, const char *path, ...)
	__attribute__((format(printf, 4, 5)));

/** Read a number from a file; `missing` if there is none. */
uint64_t doctor_number(const struct doctor *doctor, uint64_t missing, const char *path, ...)
	__attribute__((format(printf, 3, 4)));

/** Read the last part of a symbolic link's target; "" and false if there is no such link. */
bool doctor_link(const struct doctor *doctor, char *name, size_t size, const char *path, ...)
	__attribute__((format(printf, 4, 5)));

/** Open a file under the host's root; NULL if it cannot be read. */
FILE *doctor_open(const struct doctor *doctor, const char *path);

/**
 * List a directory under the host's root, sorted as by strverscmp, without entries that begin with
 * '.'. Returns the number of entries, 0 also if it cannot be read; free each name and the list.
 */
size_t doctor_list(const struct doctor *doctor, const char *path, char ***names);
void doctor_list_free(char **names, size_t count);

/** Make all checks, and tell the findings. */
void doctor_run(const struct doctor *doctor);

/** Show all findings about a host. */
void doctor_show(const struct doctor_host *host, struct output *output);

/** Check the NICs: doctor_run calls it. */
void doctor_nics(const struct doctor *doctor);

#endif
