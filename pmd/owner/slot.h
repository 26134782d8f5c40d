/* SPDX-License-Identifier: BSD-3-Clause */
/* A process's time in a slot. */
#ifndef OWNER_SLOT_H
#define OWNER_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "owner/budget.h"
#include "owner/patience.h"
#include "owner/serve.h"
#include "share/blocks.h"
#include "share/layout.h"
#include "share/ring.h"
#include "share/user.h"

struct isolated;
struct report;
struct server;

#define SERVER_ISOLATED_MAX	 16 /* of the slots: those who are trusted always find some */
#define SERVER_ISOLATED_USER_MAX 8  /* of those; of one user, but for the superuser */

/*
 * A slot goes from one state to the next in this order, and may leave one out (slot_advance). What
 * happens to a process is only noted in its slot; in a turn the slot advances after packets were
 * taken from it, so nothing that a slot's end does can be in the middle of a burst of its packets.
 */
enum slot_state {
	SLOT_FREE,
	SLOT_LIVE,
	/* It hung up: nothing goes to it, and what it sent before is still taken, turn by turn, as
	 * far as SLOT_DRAIN_NS and its rings go. */
	SLOT_DRAINING,
	/* It is drained, or broke the rules: nothing goes to it or is taken from it. It may still
	 * write into the buffers it has, so they come back only when the process has ended. */
	SLOT_CONDEMNED,
};

struct slot {
	enum slot_state state;
	struct isolated *isolated; /* its memif connection; NULL: it shares memory with us,
				      and has a page, rings and lanes */
	bool hung_up;		   /* noted: its socket has no other end any more */
	bool broke_rule;	   /* noted */
	bool ended;		   /* noted: the process, or all there was of an isolated one */
	uint32_t drain_left;	   /* SLOT_DRAINING: packets that are still taken */
	uint64_t drain_end_ns;	   /* SLOT_DRAINING: until then */
	uint32_t generation;
	pid_t pid;
	uid_t uid;
	user_t user; /* isolated: whom limits of a user count it for */
	int socket;
	int pidfd;	       /* readable when the process has ended */
	struct report *report; /* what it shows of itself, in the set; or NULL */
	uint32_t qpn_first;
	uint32_t qpn_count;
	uint32_t id_value; /* of its communication ids */
	struct share_page *page;
	int process_fd; /* eventfd that wakes it */
	int bell_fd;	/* eventfd by which it wakes us: it can make no other's useless */
	struct share_ring rings[SHARE_RINGS];
	bool touched;		  /* in this turn something was put into its rings */
	bool addresses_due;	  /* it has not been told of them yet */
	struct patience patience; /* its rx ring had no room */
	struct budget budget;	  /* isolated: what its messages took */
	bool rests;		  /* isolated: its sockets are not watched (rest.c) */
	uint64_t tx_packets, rx_packets, rx_dropped;
};

struct slots {
	struct slot all[SERVE_SLOTS_MAX];
	uint16_t live[SERVE_SLOTS_MAX]; /* slots that are SLOT_LIVE or SLOT_DRAINING */
	uint16_t live_count;
	uint16_t first;		 /* of live: whose turn it is to be the first */
	uint16_t isolated_count; /* slots of those who are not trusted */
	struct blocks blocks;	 /* of queue pair numbers */
	uint32_t max_qp;	 /* of a process; 0: no limit but that of its numbers */
	uint64_t max_memory;	 /* bytes that it registers; 0: no limit */
};

/**
 * Give a process a slot, and tell it so.
 *
 * @param report_fd
 *   What it shows of itself, or -1. Still the caller's.
 * @param isolated
 *   It is not trusted with shared memory.
 * @return
 *   0 or -errno: then it has been told, and the socket is still the caller's.
 */
int slot_begin(struct server *server, int socket, int report_fd, bool isolated);

/** The slot whose a queue pair's number is, or BLOCK_NONE. */
uint16_t slot_of(const struct server *server, uint32_t qpn);

/** Go on to the state that follows from what has been noted, and from what is left to be drained.
 * Not while packets are taken from the slot. */
void slot_advance(struct server *server, uint16_t number);

/** Have no more to do with a process that is still there. Not while packets are taken from it. */
void slot_condemn(struct server *server, uint16_t number);

/** The same of one that has hung up, once what it sent before has been taken. */
void slot_hang_up(struct server *server, uint16_t number);

/** The process has ended: the same, and then take everything back. */
void slot_end(struct server *server, uint16_t number);

/** The same at the owner's end, of a process that goes on. No buffer is used any more. */
void slot_abandon(struct server *server, uint16_t number);

/** Return true if packets are taken from a slot. */
static inline bool slot_is_served(const struct slot *slot)
{
	return slot->state == SLOT_LIVE || slot->state == SLOT_DRAINING;
}

#endif
