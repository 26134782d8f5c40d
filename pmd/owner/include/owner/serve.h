/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner's half of sharing: a port, and the processes that attach to it. One thread calls all of
 * it, except where it says MT-safe.
 */
#ifndef OWNER_SERVE_H
#define OWNER_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVE_SLOTS_MAX 32 /* processes at once */

struct guest;
struct link;
struct report_set;
struct server;
struct settings;

struct serve_config {
	const struct settings *settings; /* of all ports; this one's are those at `number` */
	struct guest *guest; /* of an application that runs DPDK itself; NULL: the settings' port */
	uint32_t ports; /* that this process shares (0: one), and which of them it is; the first is
			   0 */
	uint32_t number;
	const char *socket_path; /* of the first; the others' have ".1" and so on behind it */
	mode_t socket_mode;
	uid_t socket_owner;	    /* (uid_t)-1: who runs this */
	gid_t socket_group;	    /* (gid_t)-1: of who runs this */
	struct report_set *reports; /* where those of processes, and its own, are put in */
};

/** How a process stands. */
struct serve_slot {
	uint16_t slot;
	uint32_t generation;
	pid_t pid;
	uid_t uid;
	uint32_t qpn_first;
	uint32_t qpn_count;
	uint32_t held;	     /* buffers */
	uint64_t tx_packets; /* taken from it */
	uint64_t rx_packets; /* given to it */
	uint64_t rx_dropped; /* lost because it did not take them in time */
	bool isolated;	     /* it shares no memory */
	bool attached;	     /* false: it hung up or broke the rules, and its end is awaited */
};

/** How the whole stands. */
struct serve_totals {
	uint32_t buffers;
	uint32_t buffers_held; /* by processes */
	uint32_t buffers_free; /* in the pool; the port and bursts under way have the others */
	uint32_t blocks_used;  /* of queue pair numbers */
	uint32_t groups;       /* multicast memberships of processes */
	uint32_t processes;
	uint64_t attached;	    /* ever */
	uint64_t ended;		    /* of those */
	uint64_t rx_packets;	    /* from the port */
	uint64_t tx_packets;	    /* to the port */
	uint64_t handed_over;	    /* from process to process, through the owner */
	uint64_t lanes;		    /* between processes, ever made */
	uint64_t lane_packets;	    /* through those of now, as they say themselves */
	uint64_t rx_dropped;	    /* frames from the port: in too many pieces, or without room
				       for their tag */
	uint64_t unknown_qpn;	    /* for nobody */
	uint64_t unknown_group;	    /* from the port: to a group that no process is in */
	uint64_t no_buffer;	    /* copies, and frames of the owner's own, that were not made */
	uint64_t own_dropped;	    /* frames of the owner's own: the port had no room */
	uint32_t cm_ports;	    /* of processes */
	uint64_t mads;		    /* for QP 1, given to a process */
	uint64_t mads_answered;	    /* by the owner: for nobody */
	uint64_t mads_dropped;	    /* malformed, or for nobody, and without an answer */
	uint64_t mads_farewell;	    /* by the owner, for processes that have ended */
	uint64_t tx_dropped;	    /* the link was down, or the port did not send them */
	uint64_t kernel_rx_packets; /* from the port to the kernel's interface */
	uint64_t kernel_tx_packets; /* from there */
	uint64_t kernel_dropped;    /* it did not take them */
	uint64_t refused;	    /* words and messages that broke the rules */
};

/**
 * Open the port and listen. Starts EAL where it does not run. A socket that nobody listens on any
 * more is taken away.
 *
 * @return
 *   0 or -errno (logged).
 */
int serve_create(const struct serve_config *config, struct server **server);

/** Called once by the thread that is to call the following, where it is not the one that made the
 * server. */
void serve_begin(const struct server *server);

/** One turn: packets of all, in both directions. Returns how much there was to do. */
unsigned int serve_turn(struct server *server);

/** Sleep until there is something to do, or for at most so long; then do what the socket asks. */
void serve_sleep(struct server *server, int ms);

/** Make serve_sleep return. MT-safe, and safe in a signal handler. */
void serve_wake(struct server *server);

/** Whether the port was pulled out: the processes have been told, and nobody can attach any more.
 * MT-safe. */
bool serve_is_lost(const struct server *server);

/** Look at all. */
void serve_totals(const struct server *server, struct serve_totals *totals);

/** Look at the first process from `slot` on; false where there is none. */
bool serve_next_slot(const struct server *server, uint16_t slot, struct serve_slot *status);

/** Both of these as JSON: what a message of SHARE_STATUS is answered with. Returns its length, or
 * -ENOSPC. */
int serve_status(const struct server *server, char *text, size_t size);

/** Let go of all processes, close the port and take the socket away. */
void serve_destroy(struct server *server);

#endif
