/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots. A slot is what the owner keeps for one attached process: its page, its rings, its numbers,
 * and its share of the buffers. A process whose device has several engines may have a slot for each
 * engine (slot_engine.c).
 */
#ifndef OWNER_SLOT_H
#define OWNER_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mads.h"
#include "owner/budget.h"
#include "owner/serve.h"
#include "owner/tenants.h"
#include "share/blocks.h"
#include "share/layout.h"
#include "share/ring.h"
#include "share/user.h"
#include "transmit_timeout.h"
#include "unread.h"

struct isolated;
struct report;
struct resume_awaited;
struct server;
struct share_engine;
struct share_message;

/* Slots of isolated processes at most, so that trusted processes always find free ones; and slots
 * of one user's, but the superuser has no limit. If a port has few slots, the limits are a half and
 * a fifth of them: a user may count twice (USER_UNKNOWN), and others must still find slots. */
#define SERVER_ISOLATED_MAX	 80u
#define SERVER_ISOLATED_USER_MAX 32u
/* Processes that may hold SHARE_HELD_MAX buffers: those that attached first. The others may hold
 * SHARE_HELD_MIN. */
#define SERVER_FULL_SHARES 32

/*
 * The states of a slot, in order. A slot may skip a state (slot_advance). While the owner takes
 * packets from a slot, it only notes events of the process there, and advances the slot after that.
 * So a slot never ends in the middle of a burst of its packets. At all other times an event
 * advances the slot at once.
 */
enum slot_state {
	SLOT_FREE,
	SLOT_LIVE,
	/* The process hung up. It gets no packets. Packets that it sent before are still taken,
	 * poll by poll, for at most SLOT_DRAIN_NS and at most what its rings hold. */
	SLOT_DRAINING,
	/* The slot is drained, or the process broke a rule, or was dismissed. No packet goes to it
	 * or is taken from it. The process may still write into its buffers, so they come back when
	 * it has ended. */
	SLOT_CLOSING,
};

struct slot {
	enum slot_state state;
	struct isolated *isolated; /* its memif connection; NULL: it shares memory with us,
				      and has a page, rings and direct channels */
	bool hung_up;		   /* noted event: its socket was closed at the other end */
	bool broke_rule;	   /* noted */
	bool dismissed;		   /* noted: its packets are not taken any more */
	bool ended; /* noted event: the process has ended. An isolated process need not end: set
		       when closing */
	uint32_t drain_left;   /* SLOT_DRAINING: packets that may still be taken */
	uint64_t drain_end_ns; /* SLOT_DRAINING: when draining stops */
	uint32_t generation;
	pid_t pid;
	uid_t uid;
	user_t user;	 /* isolated: the user whose limits it counts towards */
	uint16_t tenant; /* index in server.tenants; TENANTS_NONE: not yet */
	int socket;
	int pidfd;	       /* readable when the process has ended */
	struct report *report; /* the process's own report, in the set; or NULL */
	uint32_t qpn_first;
	uint32_t qpn_count;
	uint32_t max_qp;       /* queue pairs of its process; 0: only its numbers limit it */
	uint32_t id_value;     /* upper bits of its communication ids */
	uint16_t resume_entry; /* 1 + the index of its entry in the resume table; 0: it has none */
	bool returns; /* its process was the last owner's, and has not told all that it has */
	/* Engines of its device (slot_engine.c). */
	bool is_further;	/* the slot is that of a further engine */
	uint16_t first;		/* is_further: the slot of the first engine */
	uint32_t engine;	/* is_further: the engine's number */
	uint32_t engine_count;	/* else: engines that may have slots; up to 1: the first only */
	uint32_t engine_shares; /* full shares of the buffers that are reserved for them */
	uint16_t engine_slots[SHARE_ENGINES_MAX]; /* by engine: its slot, or BLOCK_NONE */
	struct share_page *page;
	/* Two eventfds wake the process. They are in an epoll set, which the process alone has
	 * open. The first is ours alone. The second is for the processes that have direct channels
	 * with this one, which could fill its counter and make a write to it block. */
	int process_fd, direct_fd;
	int wake_set_fd; /* until the welcome is sent; else -1 */
	int doorbell_fd; /* eventfd of this process alone, which wakes us; it cannot disturb others'
		    eventfds */
	struct share_ring rings[SHARE_RINGS];
	bool has_full_share; /* it may hold as many buffers as any process */
	bool has_psock;	     /* it has a packet socket (psocks.h) */
	bool touched;	     /* packets were put into its rings: it may have to be woken */
	bool addresses_due;  /* the port's addresses have not been sent to it yet */
	struct transmit_timeout transmit_timeout; /* its rx ring had no room */
	struct unread unread;			  /* packets of others that wait there */
	struct mad_queue mads;			  /* MADs that wait for room there */
	struct budget budget;			  /* isolated: time that its messages took */
	bool paused; /* isolated: its sockets are not watched (pause.c) */
	uint64_t tx_packets, rx_packets, rx_dropped;
	uint32_t dropped; /* packets of this process that others did not take; it is told */
};

struct slots {
	struct slot all[SERVE_SLOTS_MAX];
	uint16_t live[SERVE_SLOTS_MAX]; /* slots that are SLOT_LIVE or SLOT_DRAINING */
	uint16_t live_count;
	uint16_t first;		 /* index in live that is served first in this poll */
	uint16_t max;		 /* slots at once */
	uint16_t isolated_count; /* slots of untrusted processes */
	uint16_t full_shares;	 /* that slots have, or that are reserved for engines */
	struct blocks blocks;	 /* of queue pair numbers */
	uint32_t max_qp;	 /* of a process; 0: only its queue pair numbers limit it */
	uint64_t max_memory;	 /* bytes that a process may register; 0: no limit */
	char cc[8];		 /* congestion control of processes that choose none */
};

/** Return the slot that has a queue pair number, or BLOCK_NONE. */
uint16_t slot_of(const struct server *server, uint32_t qpn);

/** Advance to the state that follows from the noted events and from the packets left to drain. Not
 * while packets are taken from the slot. */
void slot_advance(struct server *server, uint16_t number);

/** Stop serving a process that is still running. Not while packets are taken from it. */
void slot_close(struct server *server, uint16_t number);

/** Stop serving a process that has done nothing wrong, at once: the port has gone. Not while
 * packets are taken from it. */
void slot_dismiss(struct server *server, uint16_t number);

/** Stop serving a process that has hung up, after its packets have been drained. */
void slot_hang_up(struct server *server, uint16_t number);

/** Free the slot of a process that has ended: stop serving it, and take back its buffers. */
void slot_end(struct server *server, uint16_t number);

/** Free a slot when the owner itself ends; its process goes on. No buffer is in use any more. */
void slot_abandon(struct server *server, uint16_t number);

/** Give the full shares that nobody has, and that nothing is reserved for, to processes that have
 * none. */
void slot_give_full_shares(struct server *server);

/** Let a process hold as many buffers as any process may. */
void slot_give_full_share(struct server *server, uint16_t number);

/** Take back the buffers that a slot's process holds, and free all that the slot has of its own.
 * Members that it does not have are -1 or NULL. */
void slot_release(struct server *server, uint16_t number);

/** Return true if packets are taken from a slot. */
static inline bool slot_is_served(const struct slot *slot)
{
	return slot->state == SLOT_LIVE || slot->state == SLOT_DRAINING;
}

/* slot_begin.c: the beginning of a process's time in a slot */

/** Return how many free slots are reserved for nobody: neither for engines of processes that have a
 * slot, nor for processes of the last owner, unless one of these asks (`returns`). */
uint32_t slot_unreserved(const struct server *server, bool returns);

/* Flags of slot_begin. */
#define SLOT_ISOLATED	   0x1 /* it is not trusted with shared memory */
#define SLOT_HOLDS_NOTHING 0x2 /* it says that it maps no memory of its earlier slots */

/**
 * Give a process a slot, and send it the welcome.
 *
 * @param report_fd
 *   The process's report, or -1. The caller keeps the descriptor.
 * @param flags
 *   SLOT_ISOLATED, SLOT_HOLDS_NOTHING.
 * @param hello
 *   The process's request. The welcome tells if each of its engines may have a slot.
 * @return
 *   0; -errno: the process has been told, and the caller keeps the socket.
 */
int slot_begin(struct server *server, int socket, int report_fd, unsigned int flags,
	       const struct share_message *hello);

/**
 * Give a process a slot for a further engine of its device, and send it the welcome.
 *
 * @return
 *   0; -errno: the process has been told, and the caller keeps the socket.
 */
int slot_begin_further(struct server *server, int socket, const struct share_message *hello);

/* slot_prepare.c: what a process gets with its slot */

/** Return the limits of a user. */
const struct tenants_limits *slot_limits_of(const struct server *server, user_t user);

/**
 * Prepare all that a slot needs before the welcome.
 *
 * @param engines
 *   Of the process's device.
 * @param kept
 *   What the process had with the last owner; NULL: it is new.
 * @param page_fd
 *   Is set to the descriptor of the slot's page, which the caller closes. It stays -1 if the
 *   process is isolated.
 * @return
 *   0; -errno: what was prepared before stays in the slot (slot_release).
 */
int slot_prepare(struct server *server, uint16_t number, int socket, bool isolated,
		 uint32_t engines, const struct resume_awaited *kept, int *page_fd);

/** The same for the slot of a further engine of a process, after slot_engine_check. */
int slot_prepare_further(struct server *server, uint16_t number, int socket,
			 const struct share_engine *engine, int *page_fd);

/*
 * slot_engine.c: slots of the further engines of a process. A process has a slot, and one more for
 * each further engine of its device: with rings, buffers and direct channels that only this
 * engine's thread uses. All that a process has once (queue pair numbers, communication ids, groups,
 * its report) belongs to the slot of the first engine.
 */

/* Slots of further engines at most, so that other processes get a full share of the buffers. If a
 * port has few slots, the limit is a quarter of them. */
#define SERVER_FURTHER_MAX 16u

/** Reserve what the further engines of a process need, if there is enough: slots and full shares of
 * the buffers. The slot is that of the first engine. A process that returns may use what is
 * reserved for those that are not back yet. */
void slot_engine_reserve(struct server *server, uint16_t number, uint32_t count, bool returns);

/**
 * Check a request for the slot of a further engine.
 *
 * @param socket
 *   The socket of the request, whose other end must be the process of the first engine.
 * @return
 *   0; -EINVAL: there is no such process, or nothing is reserved for this engine.
 */
int slot_engine_check(const struct server *server, int socket, const struct share_engine *engine);

/** Make a slot that of an engine, after slot_engine_check. Its full share is not reserved any
 * more. */
void slot_engine_add(struct server *server, uint16_t number, const struct share_engine *engine);

/** End the slots of a process together: the further ones with the first, and the first with one of
 * the others. Called when a slot is withdrawn. */
void slot_engine_withdraw(struct server *server, uint16_t number);

/** Forget the slot of a further engine, which is freed; of another slot: do nothing. */
void slot_engine_forget(struct server *server, uint16_t number);

/** Return the number of the first engine's slot, of the process that a slot belongs to. */
uint16_t slot_engine_first(const struct server *server, uint16_t number);

/** Return the slot for packets to a queue pair, of the process whose first slot is given. */
static inline uint16_t slot_engine_of(const struct slot *first, uint16_t number, uint32_t qpn)
{
	uint16_t to;

	if (likely(first->engine_count <= 1))
		return number;
	to = first->engine_slots[qpn % first->engine_count];
	return to == BLOCK_NONE ? number : to;
}

/** Return the engines whose packets go to a slot, as bits. */
uint32_t slot_engine_served(const struct server *server, uint16_t number);

#endif
