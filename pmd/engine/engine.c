/* SPDX-License-Identifier: BSD-3-Clause */
/* The poll of an engine: send what is posted and due, receive what has arrived. */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_lcore.h>

#include "base/guard.h"
#include "base/tuning.h"
#include "device/device.h"
#include "device/gsi.h"
#include "engine/engines.h"
#include "helper.h"
#include "paging.h"
#include "qp/qp.h"
#include "rx.h"
#include "engine_poll.h"

#define RX_BURST		32
#define FEW_QPS			64
#define RUN_BUDGET_PKTS		32		  /* of one queue pair, before the next one runs */
#define WAITS_MAX		64		  /* queue pairs that cannot send, in one pass */
#define ACK_HOLD_NS		UINT64_C(1000)	  /* time in which a polling program answers */
#define ACK_HOLD_KERNEL_NS	UINT64_C(5000)	  /* interval between two packets over a veth */
#define WAKE_OTHER_END_AFTER_NS UINT64_C(5000000) /* without packets: the process has slept */
#define HOUSEKEEPING_QUIET_NS \
	UINT64_C(200000) /* longer than the first answer after a sleep takes */
#define HOUSEKEEPING_PUT_OFF_NS	   UINT64_C(1000000)
#define HOUSEKEEPING_PUT_OFF_TIMES 4  /* with sleeps between them */
#define CLEANUP_FRAMES		   32 /* some hardware reports sent packets in groups this large */
#define LEFT_NS			   UINT64_C(10000) /* not longer than a short sleep of the helper */
#define CLOCKS_APART_NS		   UINT64_C(1000) /* two readings of the time, one after the other */

static_assert(COUNTER_impair_overflowed - COUNTER_impair_lost == IMPAIR_OVERFLOWED - IMPAIR_LOST,
	      "counters of damage have the order of their kinds");

/*
 * The packet pool keeps one stack of free buffers per lcore, and drivers select it by the caller's
 * lcore. So the engine's owner acts as the lcore of the engine's number while it is the owner.
 */
struct lcore {
	unsigned int *place; /* of this thread's number: each look for it is a call */
	unsigned int before;
};

static struct lcore lcore_enter(const struct engine *engine)
{
	unsigned int *place = &RTE_PER_LCORE(_lcore_id);
	struct lcore lcore;

	/* Otherwise the compiler looks for it anew in lcore_leave. */
	__asm__("" : "+r"(place));
	lcore = (struct lcore){.place = place, .before = *place};
	/* An application that runs DPDK itself has lcores of its own; their stacks are not ours. */
	if (!engine->link->port.lcores_are_others)
		*place = engine->home->number;
	return lcore;
}

static void lcore_leave(struct lcore lcore)
{
	*lcore.place = lcore.before;
}

void engine_mark_ready(struct engine *engine, struct qp *qp)
{
	struct qp_sched *sched = qp_sched(qp);

	if (sched->is_ready)
		return;
	sched->is_ready = true;
	sched->ready_ns = engine->now_ns;
	QP_LIST_INSERT_TAIL(&engine->ready, qp, ready_link);
}

void engine_forget(struct engine *engine, struct qp *qp)
{
	struct qp_sched *sched = qp_sched(qp);

	engine_drain_kicks(engine);
	if (sched->is_ready)
		QP_LIST_REMOVE(&engine->ready, qp, ready_link);
	sched->is_ready = false;
	wheel_remove(&engine->wheel, qp);
}

static unsigned int engine_fire_timers(struct engine *engine)
{
	unsigned int fired = 0;
	struct qp *qp;

	while ((qp = wheel_fire(&engine->wheel, engine->now_ns)) != NULL) {
		const uint64_t deadline_ns = qp_deadline_ns(qp);

		if (deadline_ns > engine->now_ns) {
			wheel_set(&engine->wheel, qp, deadline_ns);
			continue;
		}
		qp_timeout(qp, engine->now_ns, &engine->tx.sink);
		engine_mark_ready(engine, qp);
		fired++;
	}
	return fired;
}

/* Return how long an acknowledgement of a queue pair may wait. */
static uint64_t engine_hold_ns(const struct engine *engine, const struct qp *qp)
{
	if (likely(engine->ack_hold_ns == engine->ack_hold_beyond_ns) ||
	    qp_sends_to(qp, engine->link->port.mac))
		return engine->ack_hold_ns;
	return engine->ack_hold_beyond_ns;
}

/*
 * Return true if a queue pair that owes only an acknowledgement should wait a moment. Usually the
 * program soon answers the acknowledged message, and both leave together, which saves a packet. It
 * also helps a peer that stops polling once its work is acknowledged and then watches its memory
 * for the answer (as ib_write_lat does): the answer has arrived by then, so the peer need not wait
 * for its helper.
 */
static bool engine_holds(const struct engine *engine, struct qp *qp)
{
	return !qp_sched(qp)->acks_at_once &&
	       engine->now_ns - qp_sched(qp)->ready_ns < engine_hold_ns(engine, qp) &&
	       qp_owes_ack_only(qp);
}

/* Return true if queue pairs should be prefetched. FEW_QPS or fewer stay in the caches by
 * themselves, and prefetching them would only cost time. */
bool engine_prefetches(const struct engine *engine)
{
	return __atomic_load_n(&engine->device->qps, __ATOMIC_RELAXED) > FEW_QPS && tuning.prefetch;
}

/* Prefetch the second ready queue pair. Then prefetch what the first one points to; the first one
 * itself was prefetched one step before. */
static void engine_prefetch_next(const struct engine *engine, bool prefetches)
{
	struct qp *next = TAILQ_FIRST(&engine->ready), *second;

	if (likely(!prefetches) || !next)
		return;
	second = TAILQ_NEXT(qp_sched(next), ready_link);
	if (second)
		qp_prefetch_run(second);
	qp_prefetch_work(next);
}

/*
 * Return true if no queue pair can send, because the engine poll's packets to ourselves are not
 * received yet. A queue pair that runs in vain would be requeued behind all others. Posting threads
 * make many such passes for each engine poll, so that with hundreds of queue pairs some waited for
 * a second.
 */
static bool engine_loop_is_full(struct engine *engine)
{
	if (likely(!tx_loop_full(&engine->tx)))
		return false;
	engine->tx.stuck = true;
	return true;
}

/* Only a queue pair in these states sends much. Others flush what is posted. */
static bool engine_sends(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD;
}

bool engine_must_wait(const struct engine *engine, const struct qp *qp)
{
	return unlikely(engine->link->port.tx_held > 0) &&
	       qp_sends_to(qp, engine->link->port.mac) && engine_sends(qp_state(qp)) &&
	       tx_must_wait(&engine->tx, qp_peer_qpn(qp));
}

unsigned int engine_run_ready(struct engine *engine, bool hold)
{
	const bool prefetches = engine_prefetches(engine);
	struct qp *last = NULL;
	unsigned int runs = 0, waits = 0;
	struct qp *qp;

	while ((qp = TAILQ_FIRST(&engine->ready)) != NULL && waits < WAITS_MAX) {
		const bool must_wait = engine_must_wait(engine, qp);

		if (engine_loop_is_full(engine))
			break;
		QP_LIST_REMOVE(&engine->ready, qp, ready_link);
		engine_prefetch_next(engine, prefetches);
		if (must_wait || (hold && engine_holds(engine, qp))) {
			QP_LIST_INSERT_TAIL(&engine->ready, qp, ready_link);
			waits += must_wait;
			if (!last)
				last = qp;
			if (TAILQ_FIRST(&engine->ready) == last)
				break;
			continue;
		}
		qp_sched(qp)->is_ready = false;
		if (qp_run(qp, engine->now_ns, &engine->tx.sink, RUN_BUDGET_PKTS)) {
			engine_mark_ready(engine, qp);
			/* The first queue pair that is requeued marks the beginning of the next
			 * round. */
			if (!last)
				last = qp;
		}
		wheel_set(&engine->wheel, qp, qp_deadline_ns(qp));
		/* A queue pair that waits for transmit room does not count as work: the process
		 * that makes room may need this CPU. */
		if (engine->tx.stuck)
			break;
		runs++;
		if (TAILQ_FIRST(&engine->ready) == last)
			break;
	}
	return runs;
}

/*
 * Wake the port's other end before the packet is built. After a sleep this code and its data are
 * not in the caches, so building the packet takes tens of microseconds, and so does waking the
 * other end.
 */
static void engine_wake_other_end(const struct engine *engine)
{
	const struct qp *first = TAILQ_FIRST(&engine->ready);

	/* If packets wait for room in the port, the other end has been rung for them already. */
	if (first && engine->tx.count == 0 && !qp_sends_to(first, engine->link->port.mac))
		port_wake_other_end(&engine->link->port);
}

/* Owner, as the engine's lcore. */
static unsigned int engine_send(struct engine *engine, bool hold)
{
	const uint32_t left = tx_left(&engine->tx);
	unsigned int work = 0;

	engine->now_ns = clock_ns(&engine->clock);
	/* This thread may have blocked all signals since its last poll. */
	guard_refresh(engine->now_ns);
	tx_begin(&engine->tx);
	engine_drain_kicks(engine);
	if (unlikely(engine->now_ns - engine->busy_ns > WAKE_OTHER_END_AFTER_NS))
		engine_wake_other_end(engine);
	if (unlikely(__atomic_load_n(&engine->pages_came, __ATOMIC_RELAXED)))
		paging_wake(engine);
	if (!TAILQ_EMPTY(&engine->ready))
		work += engine_run_ready(engine, hold && likely(tuning.batch_ack));
	if (unlikely(engine->device->gsi) && engine_is_first(engine))
		work += gsi_run(engine->device, engine->now_ns, &engine->tx.sink);
	tx_flush(&engine->tx);
	/* The port had been full: count packets that it takes now as work. */
	return work + (tx_left(&engine->tx) < left);
}

unsigned int engine_transmit(struct engine *engine)
{
	const struct lcore lcore = lcore_enter(engine);
	const unsigned int work = engine_send(engine, false);

	if (work > 0)
		engine->busy_ns = engine->now_ns;
	lcore_leave(lcore);
	return work;
}

/*
 * Fire timers only when no frame waits any more that may have come in time: this thread may just
 * have got its CPU back. If the port stays full, all frames that came in time have been received
 * after ENGINE_FULL_FRAMES frames.
 */
static bool engine_may_fire(struct engine *engine, bool full, uint32_t frames)
{
	engine->full_frames += frames;
	if (full && engine->full_frames < ENGINE_FULL_FRAMES)
		return false;
	engine->full_frames = 0;
	return true;
}

/* Add to a counter what the port has lost since `*counted`. Returns that number of frames. */
static uint32_t engine_count_lost(struct engine *engine, enum counter counter, uint64_t now,
				  uint64_t *counted)
{
	const uint64_t lost = now - *counted;

	counters_add(&engine->home->counters, counter, lost);
	*counted = now;
	return (uint32_t)lost;
}

/* Count what the port has lost. Returns the frames among it that it had taken. */
static __rte_noinline uint32_t engine_count_losses(struct engine *engine)
{
	const struct port *port = &engine->link->port;

	engine_count_lost(engine, COUNTER_rx_missed, port->rx_missed, &engine->rx_missed);
	return engine_count_lost(engine, COUNTER_rx_too_long, port->rx_too_long,
				 &engine->rx_too_long) +
	       engine_count_lost(engine, COUNTER_rx_refused, port->rx_refused, &engine->rx_refused);
}

/* Return true if the port has lost frames that are not counted yet. */
static bool engine_has_losses(const struct engine *engine)
{
	const struct port *port = &engine->link->port;

	return ((port->rx_missed ^ engine->rx_missed) | (port->rx_too_long ^ engine->rx_too_long) |
		(port->rx_refused ^ engine->rx_refused)) != 0;
}

/* Set the counters of damage that the port does on purpose. */
static void engine_count_damage(struct engine *engine)
{
	const struct impair_counts *counts = engine->link->port.impaired;
	struct counters *counters = &engine->home->counters;

	for (int kind = 0; kind < IMPAIR_KINDS; kind++) {
		const enum counter counter = (enum counter)(COUNTER_impair_lost + kind);

		counters_add(counters, counter, counts->of[kind] - counters_get(counters, counter));
	}
}

/* Receive what other engines have for this one. Returns the number of frames. */
static __rte_noinline uint16_t engine_receive_crossed(struct engine *engine)
{
	struct rte_mbuf *mbufs[RX_BURST];
	const uint16_t crossed = engines_take(engine, mbufs, RX_BURST);

	rx_input_burst(engine, mbufs, crossed, RX_CROSSED);
	return crossed;
}

/* Receive packets that this engine has sent to itself. Returns their number. */
static __rte_noinline uint16_t engine_receive_looped(struct engine *engine)
{
	struct rte_mbuf *mbufs[RX_BURST];
	const uint16_t looped = tx_loop_burst(&engine->tx, mbufs, RX_BURST);

	rx_input_burst(engine, mbufs, looped, RX_LOOPED);
	return looped;
}

/* Owner, as the engine's lcore. */
static unsigned int engine_receive(struct engine *engine)
{
	const struct port *port = &engine->link->port;
	struct rte_mbuf *mbufs[RX_BURST];
	uint16_t received, looped = 0, crossed = 0;
	unsigned int fired = 0;
	bool full;

	received = port_rx_burst(port, mbufs, RX_BURST);
	engine->taken = received + port->rx_kept;
	if (unlikely(engine_has_losses(engine)))
		engine->taken += engine_count_losses(engine);
	if (unlikely(port->impaired)) {
		engine_count_damage(engine);
		/* A bad network sends when it is polled. */
		tx_count_late_drops(&engine->tx);
	}
	if (received > 0)
		rx_input_burst(engine, mbufs, received, RX_PORT);
	if (unlikely(engine->engines))
		crossed = engine_receive_crossed(engine);
	if (tx_loop_count(&engine->tx) > 0)
		looped = engine_receive_looped(engine);
	full = received == RX_BURST || looped == RX_BURST || crossed == RX_BURST || port->rx_cut;
	if (engine_may_fire(engine, full, engine->taken + looped + crossed) &&
	    wheel_has_passed(&engine->wheel, engine->now_ns))
		fired = engine_fire_timers(engine);
	return fired + engine->taken + looped + crossed;
}

void engine_send_frame(struct engine *engine, const uint8_t *frame, size_t len)
{
	struct rte_mbuf *mbuf = tx_alloc(&engine->tx);

	if (!mbuf)
		return;
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), frame, len);
	tx_send(&engine->tx, mbuf, (uint32_t)len);
}

void engine_tx_cleanup(struct engine *engine)
{
	const struct lcore lcore = lcore_enter(engine);

	tx_flush(&engine->tx);
	for (int i = 0; i < CLEANUP_FRAMES; i++)
		tx_send_dummy(&engine->tx);
	lcore_leave(lcore);
}

/* Receive. Leave the events of completions to moderator_expire, and those of connections to
 * gsi_tell, until the caller resets device.gsi_holds. Returns the work. */
static unsigned int engine_receive_held(struct engine *engine)
{
	struct moderator *moderator = &engine->home->moderator;
	unsigned int work;

	moderator->holds = true;
	if (engine_is_first(engine))
		engine->device->gsi_holds = true;
	work = engine_receive(engine);
	moderator->holds = false;
	return work;
}

void engine_receive_now(struct engine *engine)
{
	const struct lcore lcore = lcore_enter(engine);

	if (engine_receive_held(engine) > 0)
		engine->busy_ns = engine->now_ns;
	if (engine_is_first(engine))
		engine->device->gsi_holds = false;
	lcore_leave(lcore);
}

/* Frames that may come before a MAD is told. Answers wait meanwhile. */
#define REST_FRAMES 256

/*
 * Receive what peers sent before a MAD that has just come: acknowledgements, before the end of
 * their connection. It may have come by another way. For example, acknowledgements come by a direct
 * channel to this process, and MADs through the owner of the port; the burst with the MAD may have
 * looked at the channel before.
 */
static unsigned int engine_receive_rest(struct engine *engine)
{
	unsigned int work = 0;
	uint32_t frames = 0;

	do {
		work += engine_receive_held(engine);
		frames += engine->taken;
	} while (engine->taken >= RX_BURST && frames < REST_FRAMES);
	return work;
}

/*
 * Receive, and then raise the events of completions and connections. Before that, send what is
 * owed: an event wakes a thread that may need this CPU, and may end the process without any further
 * call (_exit), and then nobody would acknowledge the message that it has got, or answer the end of
 * its connection.
 */
static unsigned int engine_receive_and_tell(struct engine *engine)
{
	struct device *device = engine->device;
	struct moderator *moderator = &engine->home->moderator;
	const bool has_gsi = engine_is_first(engine);
	unsigned int work = engine_receive_held(engine);

	if (unlikely((has_gsi && device->gsi_untold) ||
		     moderator_has_due(moderator, engine->now_ns))) {
		if (has_gsi && device->gsi_untold)
			work += engine_receive_rest(engine);
		work += engine_transmit(engine);
		moderator_expire(moderator, engine->now_ns);
		if (has_gsi)
			gsi_tell(device, engine->now_ns);
	}
	if (has_gsi)
		device->gsi_holds = false;
	return work;
}

/*
 * Return true if this engine poll may look after the device, which is due and takes 20 us if the
 * process has slept. Packets go first: after a sleep the look is mostly due, and would delay the
 * first message and the answer to it. So put it off until no packet has come or gone for a while.
 * But not for long, because an engine may always have work, and not after many sleeps, because each
 * may end with a packet.
 */
static bool engine_may_do_housekeeping(struct engine *engine)
{
	const uint64_t now_ns = engine->now_ns;
	const bool slept = now_ns - engine->put_off_last_ns > HOUSEKEEPING_PUT_OFF_NS;

	if (engine->put_off_times == 0 || slept) {
		engine->put_off_times++;
		engine->put_off_ns = now_ns;
	}
	engine->put_off_last_ns = now_ns;
	if (now_ns - engine->busy_ns < HOUSEKEEPING_QUIET_NS &&
	    now_ns - engine->put_off_ns < HOUSEKEEPING_PUT_OFF_NS &&
	    engine->put_off_times <= HOUSEKEEPING_PUT_OFF_TIMES)
		return false;
	engine->put_off_times = 0;
	return true;
}

/*
 * Send first. A response to a received packet is then sent in the next engine poll. Between the two
 * engine polls a program that polls sees the received message, and its answer leaves in one burst
 * with the acknowledgement. To a peer that has had no receive for an answer before, the
 * acknowledgement leaves first.
 */
unsigned int engine_poll(struct engine *engine)
{
	const struct lcore lcore = lcore_enter(engine);
	unsigned int work = engine_send(engine, true);

	work += engine_receive_and_tell(engine);
	if (unlikely(engine->acks_at_once)) {
		engine->acks_at_once = false;
		work += engine_send(engine, true);
	}
	if (work > 0)
		engine->busy_ns = engine->now_ns;
	if (unlikely(engine->now_ns >= engine->link_due_ns) && engine_may_do_housekeeping(engine))
		engine_housekeeping(engine);
	lcore_leave(lcore);
	return work;
}

void engine_empty_port(struct engine *engine)
{
	uint32_t frames = 0;

	/* Use the port's own count, not the amount of work: a program that continues to post
	 * creates new work each engine poll. */
	do {
		engine_poll(engine);
		frames += engine->taken;
	} while (engine->taken > 0 && frames < ENGINE_FULL_FRAMES);
}

/* Return true if work is left that waits for no timer: packets that one engine poll or the port
 * could not take, packets to ourselves, held acknowledgements, and events that were not told. */
static bool engine_has_left(const struct engine *engine)
{
	return tx_left(&engine->tx) > 0 || engine->tx.stuck || tx_loop_count(&engine->tx) > 0 ||
	       !TAILQ_EMPTY(&engine->ready) ||
	       (engine_is_first(engine) && engine->device->gsi_untold) ||
	       (unlikely(engine->engines) && engines_has_more(engine));
}

uint64_t engine_gsi_deadline_ns(const struct engine *engine)
{
	return engine_is_first(engine) ? gsi_deadline_ns(engine->device) : UINT64_MAX;
}

/* Return how long the connection manager has nothing to do. A packet that waits because the port is
 * full is tried again soon. */
static uint64_t engine_gsi_ns(const struct engine *engine, uint64_t now_ns)
{
	const uint64_t at_ns = engine_gsi_deadline_ns(engine);

	return at_ns > now_ns ? at_ns - now_ns : LEFT_NS;
}

uint64_t engine_idle_ns(struct engine *engine, uint64_t now_ns, uint64_t limit_ns)
{
	wheel_watch(&engine->wheel);
	if (engine_has_left(engine))
		limit_ns = RTE_MIN(limit_ns, LEFT_NS);
	limit_ns = wheel_next_ns(&engine->wheel, now_ns, limit_ns);
	limit_ns = RTE_MIN(limit_ns, engine_gsi_ns(engine, now_ns));
	limit_ns = RTE_MIN(limit_ns, port_due_ns(&engine->link->port));
	return moderator_next_ns(&engine->home->moderator, now_ns, limit_ns);
}

/* Return when the port wants to be asked for packets that it holds back. A packet about which a
 * sleeping helper knows must not count as earlier than the helper's alarm. */
static uint64_t engine_port_due_ns(const struct engine *engine)
{
	const uint64_t in_ns = port_due_ns(&engine->link->port);

	return likely(in_ns == UINT64_MAX) ? UINT64_MAX
					   : clock_ns(&engine->clock) + in_ns + CLOCKS_APART_NS;
}

uint64_t engine_due_ns(const struct engine *engine)
{
	const uint64_t event_ns = moderator_next_ns(&engine->home->moderator, 0, UINT64_MAX);
	uint64_t due_ns;

	if (engine_has_left(engine))
		return 0;
	due_ns = RTE_MIN(wheel_watched_ns(&engine->wheel), engine_port_due_ns(engine));
	return RTE_MIN(RTE_MIN(due_ns, event_ns), engine_gsi_deadline_ns(engine));
}

void engine_set_holds(struct engine *engine)
{
	const struct port *port = &engine->link->port;

	engine->ack_hold_ns = port->through_kernel ? ACK_HOLD_KERNEL_NS : ACK_HOLD_NS;
	engine->ack_hold_beyond_ns = port->kernel_beyond ? ACK_HOLD_KERNEL_NS : engine->ack_hold_ns;
}

int engine_create(struct device_engine *home, struct link *link, enum settings_progress progress,
		  struct engine **out)
{
	struct device *device = home->device;
	struct engine *engine = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*engine));

	if (!engine)
		return -ENOMEM;
	memset(engine, 0, sizeof(*engine));
	engine->home = home;
	engine->device = device;
	engine->link = link;
	engine->progress = progress;
	engine->cancel_points = !link->port.no_cancel_points;
	engine->canary_fd = -1;
	polling_init(&engine->polling);
	engine_set_holds(engine);
	clock_init(&engine->clock, link->port.tsc_hz);
	engine->now_ns = clock_ns(&engine->clock);
	TAILQ_INIT(&engine->ready);
	wheel_init(&engine->wheel, engine->now_ns);
	tx_init(&engine->tx, &link->port, &home->counters);
	dma_init(&engine->dma, &link->port);
	engine->tx.dma = &engine->dma;
	engine->tx.groups = &device->group_count;
	engine->tx.engine = engine;
	engine->tx.connected = port_connected(&link->port);
	engine->rx_missed = link->port.rx_missed;
	engine->rx_too_long = link->port.rx_too_long;
	engine->rx_refused = link->port.rx_refused;
	if (engine_is_first(engine)) {
		device->link_up = port_link_up(&link->port, engine->tx.connected);
		device->net = &engine_net_ops;
		device->net_user = engine;
		device->dma = dma_is_possible(&engine->dma) ? &engine_dma_ops : NULL;
		device->dma_user = engine;
	}
	home->driver = engine;
	home->now_ns = &engine->now_ns;
	home->ops = &engine_ops_pmd;
	*out = engine;
	return 0;
}

void engine_destroy(struct engine *engine)
{
	tx_give_back(&engine->tx);
	dma_fini(&engine->dma);
	free(engine);
}

static int engine_set_one(struct engine *engine, void *arg)
{
	const enum settings_progress *progress = arg;
	const int rc = helper_stop(engine);

	engine_lock(engine);
	engine->progress = *progress;
	engine_release(engine);
	return rc == 0 ? helper_start(engine) : rc;
}

int engine_set_progress(struct engine *first, enum settings_progress progress)
{
	int rc = engine_set_one(first, &progress);

	if (rc == 0)
		rc = engines_each_other(first->engines, engine_set_one, &progress);
	return rc;
}
