/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts DPDK's runtime (EAL) inside a program, or joins the EAL of a program that uses DPDK
 * itself. */
#ifndef EAL_RUNTIME_H
#define EAL_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/devargs.h"

struct runtime_config {
	/* Devices to be found while EAL starts (PCI and other hardware); nothing else is probed. */
	const struct devargs *devices;
	size_t device_count;
	size_t memory_bytes; /* memory that will be needed */
	bool telemetry; /* EAL's telemetry: a socket file until the process exits, and threads */
	const char *file_prefix; /* of EAL's files; NULL: EAL's default */
	const char *eal;	 /* further options, separated by blanks; NULL: none */
	bool secondary;		 /* attach to the primary process with that prefix and its memory */
	bool shared;		 /* other processes may attach as secondaries: memory is in files */
};

/**
 * Start EAL, once in a process. Not MT-safe. An error is logged in one line, with its remedy. The
 * program's visible state is preserved (footprint.h). If the program has started EAL itself, use
 * that one, whatever the configuration.
 *
 * @return
 *   0; -EALREADY: a secondary was asked for in a program that runs EAL itself; -ECHILD: EAL was
 *   started in a parent process, and fork does not copy its shared memory; or another -errno.
 */
int runtime_start(const struct runtime_config *config);

/**
 * Wait until EAL's interrupt thread has handled all registrations; it opens a descriptor for each.
 * Then make it drop its privileges. Do nothing if EAL was not started, or is the program's. Not
 * MT-safe.
 */
void runtime_settle(void);

/** Write the path of the directory in which EAL keeps files that other processes read, and make it
 * if it is missing. Return false if there is none. MT-safe if nobody changes the environment. */
bool runtime_make_directory(char *path, size_t size);

/** Remove the files of EAL's shared memory. The memory itself exists as long as a process maps it.
 * Not MT-safe. */
void runtime_remove_files(const char *file_prefix);

/** Begin to measure the frequency of the time stamp counter: runtime_tsc_hz, if it is called some
 * milliseconds later, does not wait. Not MT-safe. */
void runtime_begin_tsc(void);

/** Return the frequency of the time stamp counter. Without EAL measure it, for some milliseconds,
 * at the first call. Not MT-safe. */
uint64_t runtime_tsc_hz(void);

/** Return true if EAL's memory is in huge pages. Call after runtime_start. */
bool runtime_has_huge_pages(void);

#endif
