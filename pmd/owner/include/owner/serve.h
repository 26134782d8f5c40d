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
 * (slot_engine.h). */
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
	uid_t socket_owner;		     /* (uid_t)-1: the process's own */
	gid_t socket_group;		     /* (gid_t)-1: the process's own */
	struct serve_passed *passed;	     /* NULL: none */
	const struct serve_tenants *tenants; /* until serve_destroy; NULL: all have a weight of 1,
						and no limits */
	struct report_set *reports;	     /* gets the reports of processes and the owner's own */
};

/** The state of an attached process. */
struct serve_slot {
	uint16_t slot;
	uint32_t generation;
	pid_t pid;
	uid_t uid;
	uint32_t qpn_first;
	uint32_t qpn_count;
	uint32_t held;	     /* buffers that it holds */
	uint64_t tx_packets; /* taken from it */
	uint64_t rx_packets; /* given to it */
	uint64_t rx_dropped; /* dropped because it did not take them in time */
	bool isolated;	     /* it shares no memory */
	bool has_psock; /* it has a packet socket, and most of its packets do not pass through us */
	bool attached;	/* false: it hung up or broke a rule; its slot ends when it ends */
	uint32_t engine; /* of the process's device: the one whose slot it is */
};

/** The state of the owner, and its counters. */
struct serve_totals {
	uint32_t buffers;
	uint32_t buffers_held; /* by processes */
	uint32_t buffers_free; /* in the pool; the others are in the port and in bursts being
				  forwarded */
	uint32_t blocks_used;  /* of queue pair numbers */
	uint32_t groups;       /* multicast memberships of processes */
	uint32_t processes;
	uint32_t psocks;	/* packet sockets of processes */
	uint64_t attached;	/* processes that have attached so far */
	uint64_t ended;		/* those of them that have ended */
	uint64_t rx_packets;	/* from the port */
	uint64_t tx_packets;	/* to the port */
	uint64_t handed_over;	/* from process to process, through the owner */
	uint64_t lanes;		/* made between processes so far */
	uint64_t directs;	/* direct memifs made between isolated processes so far */
	uint64_t lane_packets;	/* through the open lanes, as the processes say */
	uint64_t rx_dropped;	/* frames from the port: in too many segments, or without room
				   for their tag */
	uint64_t unknown_qpn;	/* packets whose queue pair number no process has */
	uint64_t unknown_group; /* from the port: packets to a group without members */
	uint64_t own_source;	/* packets from the port with an address of the port as source */
	uint64_t no_buffer;	/* copies and own frames that were not made: no buffer */
	uint64_t own_dropped;	/* own frames: the port had no room */
	uint32_t cm_ports;	/* of processes */
	uint64_t mads;		/* for QP 1, given to a process */
	uint64_t mads_answered; /* by the owner: they were for no process */
	uint64_t mads_dropped;	/* malformed, or for no process and without an answer, or not
				   taken in time by their process */
	uint64_t mads_farewell; /* sent by the owner for processes that have ended */
	uint64_t tx_dropped;	/* the link was down, or the port did not send them */
	uint64_t kernel_rx_packets; /* from the port to the kernel's interface */
	uint64_t kernel_tx_packets; /* from that interface to the port */
	uint64_t kernel_dropped;    /* frames that the kernel's interface did not take */
	uint64_t refused;	    /* ring words and messages that broke a rule */
};

/**
 * Open the port and listen. Starts EAL if it does not run. Removes a socket that nobody listens on
 * any more.
 *
 * @return
 *   0 or -errno (logged).
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

/** Return true if the port was unplugged: the processes have been told, and no process can attach.
 * MT-safe. */
bool serve_is_lost(const struct server *server);

/** Get the owner's state. */
void serve_totals(const struct server *server, struct serve_totals *totals);

/** Get the state of the first process from `slot` on. Return false if there is none. */
bool serve_next_slot(const struct server *server, uint16_t slot, struct serve_slot *status);

/** Write the owner's and all processes' state as JSON, the answer to SHARE_STATUS. Returns its
 * length, or -ENOSPC. */
int serve_status(const struct server *server, char *text, size_t size);

/** End all slots, close the port and remove the socket. */
void serve_destroy(struct server *server);

#endif
