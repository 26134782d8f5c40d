/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine: the queue pairs of a device, its port and its timers. One thread at a time runs it. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/cancel.h"
#include "config/settings.h"
#include "device/device_engine.h"
#include "engine/clock.h"
#include "engine/handover.h"
#include "engine/owner.h"
#include "engine/polling.h"
#include "engine/qp_list.h"
#include "engine/tx.h"
#include "engine/wheel.h"
#include "net/link.h"
#include "port/dma.h"

struct engines;
struct device;
struct publication;
struct report;

/* Timers fire after this many frames even if the port still delivers full bursts. No port's ring
 * holds more frames. */
#define ENGINE_FULL_FRAMES 16384

struct engine {
	struct owner owner __rte_cache_aligned;

	/* Queue pairs that were kicked while another thread ran the engine: a stack linked through
	 * kick_next. Atomic. */
	struct qp *kicks __rte_cache_aligned;
	bool pages_came; /* queue pairs that wait for pages must run (paging.c); atomic */

	struct polling polling __rte_cache_aligned;

	bool ended __rte_cache_aligned; /* atomic: the process ends, or it is the child of a fork */
	bool cancel_points; /* of an engine poll: its owner must not be cancelled there */
	enum settings_progress progress;
	struct device_engine *home; /* the same engine, as the rooms below see it */
	struct device *device;
	struct engines *engines; /* NULL: the device has one engine */
	struct link *link;
	struct engine_clock clock;

	/* owner's */
	bool uncancelled; /* the owner has disabled its cancellation, and restores `cancel_state`
			     when it releases the engine */
	int cancel_state;
	uint64_t taken_times; /* number of times the engine was taken; other threads read it,
				 relaxed */
	uint64_t now_ns;
	uint64_t waits_since_ns, waited_ns; /* engine_wait_for_peer */
	uint64_t busy_ns;     /* time of the last engine poll, or call to transmit, that had work */
	uint32_t full_frames; /* received in consecutive bursts after which more frames waited */
	uint32_t taken; /* frames that the last engine poll took from the port, or dropped there */
	uint64_t watch_due_ns; /* next look for what waits in vain; only while reasons are wanted */
	/* packets reach others again, after a time in which none could: queue pairs probe at once
	 */
	bool hastens;	      /* when that is due */
	uint32_t connections; /* port.connections, when it was looked at last */
	uint64_t hastened_ns; /* when they did so last */
	uint64_t link_due_ns; /* next check of the link's state, and what else engine_housekeeping
				 does */
	/* what the port has lost, as counted (port/port.h) */
	uint64_t rx_missed, rx_too_long, rx_refused;
	/* how long an acknowledgement may wait for other packets to send: to this host, and to
	 * others */
	uint64_t ack_hold_ns;
	uint64_t ack_hold_beyond_ns;
	bool acks_at_once;    /* this engine poll has received a packet that must be acknowledged at
				 once */
	struct qp_list ready; /* queue pairs that want qp_run */
	struct tx tx;
	struct dma dma;
	struct wheel wheel;

	uint8_t linear[PACKET_FRAME_MAX]; /* a received frame in one piece; only rx.c uses it */
	bool lost;			  /* the port is lost for ever; atomic */
	struct publication *publication;  /* what files show of the device; NULL: no view */
	struct report *report;		  /* what monitoring programs read; NULL: no report */

	/* engine_housekeeping is put off for packets */
	uint64_t put_off_ns;	  /* since when, without a sleep of the process */
	uint64_t put_off_last_ns; /* the last engine poll that did so */
	uint32_t put_off_times;	  /* such stretches; 0: it is not put off */

	int canary_fd; /* the report's descriptor, checked periodically; or -1 */
	bool lost_fds; /* the program has closed descriptors of ours; atomic */

	struct helper helper __rte_cache_aligned;
};

/** Return true if the engine has the device's port, addresses and connection manager. MT-safe. */
static inline bool engine_is_first(const struct engine *engine)
{
	return engine->home->number == 0;
}

/** Make the driver of a device's engine and its link, which is up. Not MT-safe. 0 or -errno. */
int engine_create(struct device_engine *home, struct link *link, enum settings_progress progress,
		  struct engine **engine);

/** Free an engine that no thread runs any more, or ever has. Its link stays. Not MT-safe. */
void engine_destroy(struct engine *engine);

/** Set how long an acknowledgement may wait, by what a packet of the port costs. Not MT-safe;
 * before the engine runs. */
void engine_set_holds(struct engine *engine);

/** Change the progress mode of a device by its first engine, and with it the threads that run its
 * engines. Not MT-safe; no thread may sleep on a channel. Returns 0 or -errno. */
int engine_set_progress(struct engine *first, enum settings_progress progress);

/** Run one engine poll: send, then receive. Owner. Returns the amount of work done; 0: none. */
unsigned int engine_poll(struct engine *engine);

/** Receive the frames that wait in the port, at most as many as any ring holds. Owner. */
void engine_empty_port(struct engine *engine);

/** Receive a burst, and leave its events to the next engine poll. Owner. */
void engine_receive_now(struct engine *engine);

/**
 * Return how long the engine has nothing to do, at most `limit_ns`; a very short time if work is
 * left that waits for no timer. After this call engine_due_ns reports new work. Owner.
 */
uint64_t engine_idle_ns(struct engine *engine, uint64_t now_ns, uint64_t limit_ns);

/** Return when the first work that appeared since engine_idle_ns is due; 0: it is due now. Owner.
 */
uint64_t engine_due_ns(const struct engine *engine);

/** Return when the connection manager has something to do; UINT64_MAX: never, or in another engine.
 * Owner. */
uint64_t engine_gsi_deadline_ns(const struct engine *engine);

/** Run the transmitting half of an engine poll. Owner. Returns the amount of work done. */
unsigned int engine_transmit(struct engine *engine);

/** If the port is full, wait a limited time until it has taken the owed packets: the caller will
 * not be there to send them later. Owner. */
void engine_wait_for_room(struct engine *engine);

/** Return true if a queue pair sends to a process of this host that has no room. Owner. */
bool engine_must_wait(const struct engine *engine, const struct qp *qp);

/** Send until the process to which a queue pair sends has room for what it owes, or the time is up
 * that all such waits have together. Owner. */
void engine_wait_for_peer(struct engine *engine, struct qp *qp);

/** Put a queue pair on the ready list. Owner. */
void engine_mark_ready(struct engine *engine, struct qp *qp);

/** Remove a queue pair from every list. No thread may kick it any more. Owner. */
void engine_forget(struct engine *engine, struct qp *qp);

/** Send a frame that is not a RoCE packet. It is dropped if there is no room. Owner. */
void engine_send_frame(struct engine *engine, const uint8_t *frame, size_t len);

/** Make the port return the buffers of packets that it has sent. Owner. */
void engine_tx_cleanup(struct engine *engine);

/** Look at the link's state, and tell the program of changes. Owner. */
void engine_check_link(struct engine *engine);

/*
 * The program may cancel a thread that runs the engine. A thread that is cancelled at a
 * cancellation point (pthreads(7) lists them) within an engine poll would never release the engine.
 * To disable cancellation and to enable it costs one atomic operation each, as much as the engine's
 * own lock. So an owner does that for its whole poll only if the port's bursts may have
 * cancellation points (port.no_cancel_points). Whatever else in an engine poll has one disables
 * cancellation there: doorbells, events, pages that may be absent, MADs, frames that are not RoCE,
 * messages, engine_housekeeping.
 *
 * A control call may have any cancellation point. A thread that waits to become the owner cannot be
 * cancelled either: engine polls let waiting threads go first, and would do so for ever.
 */

static inline void engine_taken(struct engine *engine, bool uncancelled, int cancel_state)
{
	__atomic_store_n(&engine->taken_times, engine->taken_times + 1, __ATOMIC_RELAXED);
	engine->uncancelled = uncancelled;
	engine->cancel_state = cancel_state;
}

/** Take the engine for an engine poll. MT-safe. */
static inline bool engine_try(struct engine *engine)
{
	const bool disables = engine->cancel_points;

	if (__atomic_load_n(&engine->ended, __ATOMIC_RELAXED) || !owner_try(&engine->owner))
		return false;
	engine_taken(engine, disables, unlikely(disables) ? cancel_disable() : 0);
	return true;
}

/** Take the engine for a control call. MT-safe; must not nest. */
static inline void engine_lock(struct engine *engine)
{
	const int cancel_state = cancel_disable();

	owner_lock(&engine->owner);
	engine_taken(engine, true, cancel_state);
}

/** Take the engine as engine_lock does, unless it has ended. MT-safe. Returns whether it was taken.
 */
static inline bool engine_lock_unless_ended(struct engine *engine)
{
	const int cancel_state = cancel_disable();

	if (!owner_lock_unless(&engine->owner, &engine->ended)) {
		cancel_restore(cancel_state);
		return false;
	}
	engine_taken(engine, true, cancel_state);
	return true;
}

/** Stop for good, at the end of the process: send what is ready, close the port. MT-safe. */
void engine_end(struct engine *engine);

/** Disown the engine in a child of fork(): it belongs to the parent. Later calls to it do nothing.
 */
void engine_disown(struct engine *engine);

/** Return true if the engine has ended: no thread runs it any more. MT-safe. */
static inline bool engine_has_ended(const struct engine *engine)
{
	return __atomic_load_n(&engine->ended, __ATOMIC_ACQUIRE);
}

/** The operations through which a device calls its engine. */
extern const struct engine_ops engine_ops_pmd;

/** What the first engine does for its device's network, and for regions that its port reads. */
extern const struct device_net_ops engine_net_ops;
extern const struct device_dma_ops engine_dma_ops;

#endif
