/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner's side of a shared port. One thread calls all functions, except those that are MT-safe.
 */
#ifndef OWNER_SERVE_H
#define OWNER_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "owner/tenants.h"

/* Slots at once: one for each attached process, and one for each further engine that has one
 * (slot_engine.c). */
#define SERVE_SLOTS_MAX 256
#define SERVE_SLOTS_DMA 32 /* the same on a port that does DMA: their buffers are pinned memory */
#define SERVE_PASSED	32 /* two sockets for each port that one process may share */

/* The limits of a user's isolated processes. */
struct serve_tenant {
	user_t user;
	struct tenants_limits limits;
};

/* The limits of all tenants (owner/tenants.h). */
struct serve_tenants {
	struct tenants_limits attached; /* of all attached processes together */
	struct tenants_limits others;	/* of each user or container that is not in `users` */
	const struct serve_tenant *users;
	size_t count;
};

struct guest;
struct link;
struct report_set;
struct server;
struct settings;

/* Listening sockets that this process got when it was started (socket activation). A server whose
 * path is that of such a socket uses it, and sets its entry to -1. */
struct serve_passed {
	int fds[SERVE_PASSED];
	bool removes[SERVE_PASSED]; /* this process removes its file at the end */
	size_t count;
};

struct serve_config {
	const struct settings *settings; /* of all ports; this port's are at index `number` */
	struct guest *guest; /* a port of an application that runs DPDK itself; NULL: the port of
				the settings */
	uint32_t ports;	     /* that this process shares; 0: one */
	uint32_t number;     /* this port's index among them; the first is 0 */
	const char *socket_path; /* of the first port; the others append ".1" and so on */
	mode_t socket_mode;
	uid_t socket_owner;	     /* (uid_t)-1: the process's own */
	gid_t socket_group;	     /* (gid_t)-1: the process's own */
	struct serve_passed *passed; /* NULL: none */
	/* By port: the resume table of the last owner, or -1; set to -1 if it is used. NULL:
	 * processes do not survive the end of this one. */
	int *tables;
	bool tables_are_kept;		     /* somebody keeps the tables when this process ends */
	const struct serve_tenants *tenants; /* until serve_destroy; NULL: all have a weight of 1,
						and no limits */
	struct report_set *reports;	     /* gets the reports of processes and the owner's own */
};

/** The state of the owner, and its counters. */
struct serve_totals {
#define OWNER_STAT(name, metric, kind, meaning) uint64_t name;
#include "report/owner_stats.def"
#undef OWNER_STAT
};

#define SERVE_SLOW_FDS 2

/* When ports need DPDK's EAL, whose start takes most of a second. */
enum serve_dpdk {
	SERVE_DPDK_NEVER, /* no port has a network: packets are only copied between processes */
	SERVE_DPDK_LATER, /* for telemetry alone, because the ports are our own, not DPDK's */
	SERVE_DPDK_FIRST, /* a port is a driver of DPDK's, or its packets may be captured */
};

/** Return when the ports of these settings need DPDK. MT-safe. */
enum serve_dpdk serve_dpdk(const struct settings *settings, size_t count);

/** Return the prefix of the names of DPDK's files. MT-safe. */
const char *serve_file_prefix(const struct settings *settings);

/**
 * Do all that the last owner of the port need not leave for: look at the port, start EAL if the
 * port needs it and it does not run, and listen. Removes a socket that nobody listens on any more.
 *
 * @return
 *   0; -errno (logged): there is no server.
 */
int serve_prepare(const struct serve_config *config, struct server **server);

/** The last owner has left its sockets to a server that is prepared: the server's processes see its
 * credentials, and it removes the files at its end. 0 or -errno. */
int serve_take_sockets(struct server *server);

/** Open the port of a server that is prepared: the last owner has left. 0; -errno (logged): the
 * server can only be destroyed. */
int serve_open(struct server *server, const struct serve_config *config);

/** Call serve_prepare, serve_take_sockets and serve_open. 0; -errno (logged): there is no server.
 */
int serve_create(const struct serve_config *config, struct server **server);

/** Make the calling thread the server's thread. Only needed if another thread created the server;
 * call once, before the functions below. */
void serve_begin(const struct server *server);

/** Run one poll: move packets of all processes, in both directions. Returns the amount of work
 * done. */
unsigned int serve_poll(struct server *server);

/** Sleep until there is work, but not longer than `ms`; then handle descriptors' events. */
void serve_sleep(struct server *server, int ms);

/** Make serve_sleep return. MT-safe, and safe in a signal handler. */
void serve_wake(struct server *server);

/**
 * Change the settings of a running server, between two of its polls: limits of programs that attach
 * from then on, congestion control of these, tenants, and the addresses of a port that is not a
 * kernel interface. All other settings stay as they are. Copies all. MT-safe.
 *
 * @return
 *   0 or -ENOMEM.
 */
int serve_change(struct server *server, const struct settings *settings,
		 const struct serve_tenants *tenants);

/** Return true if the next owner waits for the port (uroced --replace). MT-safe. */
bool serve_must_leave(const struct server *server);

/** Return the descriptor of the resume table, which somebody may keep for the next owner; -1: there
 * is none. */
int serve_table(const struct server *server);

/** Return true if the port was unplugged: the processes have been told, and no process can attach.
 * MT-safe. */
bool serve_is_lost(const struct server *server);

/** Write the owner's and all processes' state as JSON, the answer to SHARE_STATUS. Returns its
 * length, or -ENOSPC. */
int serve_status(const struct server *server, char *text, size_t size);

/**
 * Find descriptors that the kernel takes long to close, and that do not keep the next owner from
 * opening the port.
 *
 * @return
 *   How many there are, of SERVE_SLOW_FDS at most.
 */
size_t serve_slow_fds(const struct server *server, int fds[SERVE_SLOW_FDS]);

/** Let the next owner be the connection manager of the kernel's interface. For a process that ends
 * without serve_destroy: the end closes descriptors in any order, and the next owner begins when it
 * sees the end of one. */
void serve_release_manager(struct server *server);

/** End all slots, close the port and remove the socket. */
void serve_destroy(struct server *server);

#endif
