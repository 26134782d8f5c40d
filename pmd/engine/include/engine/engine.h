/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine: the queue pairs of a device, its port, its timers, run by one thread at a time. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "config/settings.h"
#include "engine/clock.h"
#include "engine/handover.h"
#include "engine/owner.h"
#include "engine/polling.h"
#include "engine/qp_list.h"
#include "engine/tx.h"
#include "engine/wheel.h"
#include "net/link.h"
#include "port/dma.h"

struct device;
struct report;

/* Frames that came in bursts without end, after which timers fire all the same: as many as any
 * port's ring holds. */
#define ENGINE_FULL_FRAMES 16384

struct engine {
	struct owner owner __rte_cache_aligned;

	/* Queue pairs that were kicked while somebody else ran the engine: a stack through
	 * kick_next. Atomic. */
	struct qp *kicks __rte_cache_aligned;
	bool pages_came; /* queue pairs that wait for pages are to be run (paging.c); atomic */

	struct polling polling __rte_cache_aligned;

	bool ended __rte_cache_aligned; /* atomic: the process ends, or is a fork's child */
	enum settings_progress progress;
	struct device *device;
	struct link *link;
	struct engine_clock clock;

	/* owner's */
	int cancel_state;     /* the owner's own, while it is not to be cancelled */
	uint64_t taken_times; /* how often the engine was taken; others read it, relaxed */
	uint64_t now_ns;
	uint64_t busy_ns;     /* when there was something to do last */
	uint32_t full_frames; /* in bursts that left some behind, in a row */
	uint32_t taken;	      /* frames that the last turn took from the port, or dropped there */
	uint64_t link_due_ns; /* when the link's state is looked at next */
	uint64_t ack_hold_ns; /* how long a lone acknowledgement may wait for company */
	struct qp_list ready; /* queue pairs that want qp_run */
	struct tx tx;
	struct dma dma;
	struct wheel wheel;

	uint8_t linear[PACKET_FRAME_MAX]; /* a received frame in one piece; for the time of
					     rx.c */
	bool lost;			  /* the port has gone for good */
	struct report *report;		  /* what is shown to who watches; NULL: nothing */

	int canary_fd; /* the report's: looked at now and then; or -1 */
	bool robbed;   /* the program has closed descriptors of ours; atomic */

	struct helper helper __rte_cache_aligned;
};

/** Make an engine of a device and its link, which is up. Not MT-safe. 0 or -errno. */
int engine_create(struct device *device, struct link *link, enum settings_progress progress,
		  struct engine **engine);

/** Have another run the engine from here on. Not MT-safe; nobody sleeps on a channel. 0 or -errno.
 */
int engine_set_progress(struct engine *engine, enum settings_progress progress);

/** Run one turn: send, then receive. Owner. Returns how much there was to do; 0: nothing. */
unsigned int engine_turn(struct engine *engine);

/** Take what waits in the port, as much as any ring holds. Owner. */
void engine_empty_port(struct engine *engine);

/**
 * Return how long nothing has to be done, at most `limit_ns`; hardly any time where something is
 * left that waits for no timer. From here on engine_due_ns tells of what comes up. Owner.
 */
uint64_t engine_idle_ns(struct engine *engine, uint64_t now_ns, uint64_t limit_ns);

/** Return when the first of what has come up since engine_idle_ns has to be done; 0: already.
 * Owner. */
uint64_t engine_due_ns(const struct engine *engine);

/** The transmitting half of a turn. Owner. Returns how much there was to do. */
unsigned int engine_transmit(struct engine *engine);

/** Where the port is full, wait a while until it has taken what is owed: who asks will not be there
 * to send it later. Owner. */
void engine_wait_for_room(struct engine *engine);

/** Put a queue pair on the ready list. Owner. */
void engine_mark_ready(struct engine *engine, struct qp *qp);

/** Take a queue pair off every list; nobody kicks it any more. Owner. */
void engine_forget(struct engine *engine, struct qp *qp);

/** Send a frame that is no RoCE packet; it is dropped where there is no room. Owner. */
void engine_send_frame(struct engine *engine, const uint8_t *frame, size_t len);

/** Make the port return the buffers of packets that it has sent. Owner. */
void engine_tx_cleanup(struct engine *engine);

/** Look at the link's state, and tell the program of changes. Owner. */
void engine_check_link(struct engine *engine);

/*
 * A turn makes system calls, and the program may cancel the thread that makes them: a thread that
 * ended there would leave the engine taken for ever. So owners are not cancelled, nor threads that
 * wait to be the owner: turns would stand back for such a thread for ever.
 */

static inline void engine_taken(struct engine *engine, int cancel_state)
{
	__atomic_store_n(&engine->taken_times, engine->taken_times + 1, __ATOMIC_RELAXED);
	engine->cancel_state = cancel_state;
}

/** Take the engine for a turn. MT-safe. */
static inline bool engine_try(struct engine *engine)
{
	int cancel_state;

	if (__atomic_load_n(&engine->ended, __ATOMIC_RELAXED) || !owner_try(&engine->owner))
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	engine_taken(engine, cancel_state);
	return true;
}

/** Take the engine for a control call. MT-safe; may not nest. */
static inline void engine_lock(struct engine *engine)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	owner_lock(&engine->owner);
	engine_taken(engine, cancel_state);
}

/** Stop for good, at the end of the process: send what is ready, close the port. MT-safe. */
void engine_end(struct engine *engine);

/** In a child of fork(): the engine is the parent's. Everything asked of it from here on does
 * nothing. */
void engine_disown(struct engine *engine);

/** The table that a device calls its engine by. */
extern const struct engine_ops engine_ops_pmd;

#endif
