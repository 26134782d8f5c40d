/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device asks of its engine: the table of operations of device/device.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "device/device.h"
#include "engine/engine.h"
#include "helper.h"
#include "link/cpu.h"

#define RESOLVE_TIMEOUT_NS UINT64_C(3000000000)
#define RESOLVE_STALE_NS   UINT64_C(500000000) /* then an old answer is better than none */
#define RESOLVE_PAUSE_NS   20000
#define UNMAP_WAIT_NS	   UINT64_C(100000000)
#define UNMAP_PAUSE_NS	   20000
#define FOUND_A_TURN	   8 /* polls that find all they ask for */
#define LONG_TURN_NS	   UINT64_C(100000)
#define OWNER_PAUSE_NS	   50000
#define YIELD_AFTER_NS \
	UINT64_C(20000) /* of polling for nothing; longer than a round trip on a fast link */
#define NAP_AFTER_NS UINT64_C(2000000) /* of polling for nothing, and between two naps */
#define NAP_NS	     50000

/* Programs do not expect a thread to be cancelled in a verb. */
static void pause_ns(long ns)
{
	const struct timespec time = {.tv_nsec = ns};
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	nanosleep(&time, NULL);
	pthread_setcancelstate(cancel_state, NULL);
}

static bool engine_has_ended(const struct engine *engine)
{
	return __atomic_load_n(&engine->ended, __ATOMIC_ACQUIRE);
}

static void ops_lock(void *arg)
{
	struct engine *engine = arg;

	/* At the end of the process nobody runs it any more. */
	if (engine_has_ended(engine))
		return;
	engine_lock(engine);
	/* The control call may end a queue pair that still owes its peer an acknowledgement. */
	engine_transmit(engine);
}

static void ops_unlock(void *arg)
{
	struct engine *engine = arg;

	if (!engine_has_ended(engine))
		engine_release(engine);
}

static void ops_attach(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	engine_mark_ready(engine, qp);
}

static void ops_detach(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	/* What it owes goes out now or never. A port that has taken nothing since the last such
	 * wait is not waited for again: many queue pairs may end at once. */
	if (unlikely(engine->tx.stuck && !engine->tx.given_up && qp_sched(qp)->is_ready))
		engine_wait_for_room(engine);
	engine_forget(engine, qp);
}

static void ops_kick(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	if (!engine_has_ended(engine))
		engine_kick(engine, qp);
}

/*
 * The peer, or the helper, may be waiting for this very CPU. While they are, each poll that finds
 * nothing gives it up; where nobody was, the call is for nothing, and is not made again so soon.
 */
static void ops_yield(struct engine *engine, uint64_t now_ns)
{
	uint64_t after_ns;

	if (now_ns < __atomic_load_n(&engine->yield_due_ns, __ATOMIC_RELAXED))
		return;
	sched_yield();
	after_ns = clock_ns(&engine->clock);
	if (after_ns - now_ns < YIELD_AFTER_NS)
		__atomic_store_n(&engine->yield_due_ns, after_ns + YIELD_AFTER_NS,
				 __ATOMIC_RELAXED);
}

/*
 * sched_yield leaves the CPU to threads of the caller's own group alone, and Linux makes a group of
 * each session. So a peer, or uroced, may wait behind a thread that polls until its retries are
 * used up: 540 ms were seen. Where more threads want to run than there are CPUs, a poll that has
 * found nothing for long sleeps now and then.
 */
static void ops_nap(struct engine *engine, uint64_t now_ns)
{
	if (now_ns < __atomic_load_n(&engine->nap_due_ns, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&engine->nap_due_ns, now_ns + NAP_AFTER_NS, __ATOMIC_RELAXED);
	if (cpu_is_short())
		pause_ns(NAP_NS);
}

/*
 * The owner, or a control call that waits for it, has had the engine for longer than a turn takes.
 * It may have lost its CPU, perhaps to this very thread. Hundreds of threads that poll on meanwhile
 * use up hundreds of time slices in which nothing moves, so this thread yields. Where that does not
 * help it sleeps a while: a thread of real-time priority loses its CPU to none of less priority,
 * and sched_yield gives them none.
 */
static void ops_wait_for_owner(struct engine *engine)
{
	const uint64_t times = __atomic_load_n(&engine->taken_times, __ATOMIC_RELAXED);
	const uint64_t now_ns = clock_ns(&engine->clock);
	int64_t refused_ns;

	if (times != __atomic_load_n(&engine->refused_times, __ATOMIC_RELAXED)) {
		__atomic_store_n(&engine->refused_ns, now_ns, __ATOMIC_RELAXED);
		__atomic_store_n(&engine->refused_times, times, __ATOMIC_RELAXED);
		return;
	}
	/* Another thread may have stored a later time meanwhile. */
	refused_ns = (int64_t)(now_ns - __atomic_load_n(&engine->refused_ns, __ATOMIC_RELAXED));
	if (refused_ns > (int64_t)LONG_TURN_NS)
		pause_ns(OWNER_PAUSE_NS);
	else if (refused_ns > (int64_t)YIELD_AFTER_NS)
		sched_yield();
}

/* Only a measure for the helper: a count lost between two threads does no harm. */
static void ops_count_polls(struct engine *engine, unsigned int n)
{
	__atomic_store_n(&engine->polls, __atomic_load_n(&engine->polls, __ATOMIC_RELAXED) + n,
			 __ATOMIC_RELAXED);
}

static void ops_poll(void *arg)
{
	struct engine *engine = arg;
	uint64_t now_ns, idle_ns;

	if (engine->progress == SETTINGS_PROGRESS_DEDICATED)
		return;
	ops_count_polls(engine, 1);
	if (!engine_try(engine)) {
		if (!engine_has_ended(engine))
			ops_wait_for_owner(engine);
		return;
	}
	__atomic_store_n(&engine->app_turns, engine->app_turns + 1, __ATOMIC_RELAXED);
	engine_turn(engine);
	now_ns = engine->now_ns;
	idle_ns = now_ns - engine->busy_ns;
	engine_release(engine);
	if (idle_ns > YIELD_AFTER_NS)
		ops_yield(engine, now_ns);
	if (idle_ns > NAP_AFTER_NS)
		ops_nap(engine, now_ns);
}

/*
 * The program catches up with its completions: that is polling as well, and no reason for the
 * helper to take the engine, whose turns would add to them. But who takes them one by one may take
 * long, and peers wait: so some of these polls are turns.
 */
static void ops_polled(void *arg, int n)
{
	struct engine *engine = arg;
	const uint64_t found = __atomic_load_n(&engine->found, __ATOMIC_RELAXED) + 1;

	if (engine->progress == SETTINGS_PROGRESS_DEDICATED)
		return;
	/* Who takes many at once takes long to come back. */
	ops_count_polls(engine, (unsigned int)n);
	__atomic_store_n(&engine->found, found, __ATOMIC_RELAXED);
	if (found % FOUND_A_TURN == 0)
		ops_poll(engine);
}

static void ops_wait(void *arg)
{
	struct engine *engine = arg;
	static bool warned;

	if (engine->progress == SETTINGS_PROGRESS_INLINE &&
	    !__atomic_exchange_n(&warned, true, __ATOMIC_RELAXED))
		log_warn("progress mode inline: nothing happens while the program sleeps on a "
			 "channel (--progress hybrid has a thread for that)");
	helper_wake(engine);
}

static uint64_t ops_now(void *arg)
{
	const struct engine *engine = arg;

	return clock_ns(&engine->clock);
}

static int ops_join(void *arg, const union ibv_gid *gid)
{
	struct engine *engine = arg;

	return engine_has_ended(engine) ? 0 : link_join(engine->link, gid->raw, engine->now_ns);
}

static void ops_leave(void *arg, const union ibv_gid *gid)
{
	struct engine *engine = arg;
	uint8_t frame[LINK_REPLY_MAX];
	size_t len;

	if (engine_has_ended(engine))
		return;
	while (link_leave(engine->link, gid->raw, engine->now_ns, frame, &len)) {
		if (len > 0)
			engine_send_frame(engine, frame, len);
	}
}

/* One step of address resolution: look, ask if it is time to. Returns whether `mac` is known. */
static bool resolve_step(struct engine *engine, const struct address *from,
			 const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	struct rte_mbuf *mbuf;
	size_t len = 0;
	bool known;

	ops_lock(engine);
	mbuf = tx_alloc(&engine->tx);
	if (!mbuf) {
		ops_unlock(engine);
		return false;
	}
	known = link_resolve(engine->link, NEIGH_TRUSTED, from, gid, clock_ns(&engine->clock), mac,
			     rte_pktmbuf_mtod(mbuf, uint8_t *), &len);
	if (len > 0)
		tx_send(&engine->tx, mbuf, (uint32_t)len);
	else
		rte_pktmbuf_free(mbuf);
	ops_unlock(engine);
	return known;
}

/* Addresses may change while their neighbours are looked for. */
static struct address resolve_from(struct engine *engine, uint8_t sgid_index)
{
	const struct device_gid *gid = &engine->device->gids[sgid_index];
	struct address from;

	ops_lock(engine);
	from = (struct address){.vlan = gid->vlan_id, .ifindex = gid->ndev_ifindex};
	memcpy(from.gid, gid->gid.raw, sizeof(from.gid));
	ops_unlock(engine);
	return from;
}

static int ops_resolve(void *arg, uint8_t sgid_index, const union ibv_gid *dgid, uint8_t mac[6])
{
	struct engine *engine = arg;
	const uint64_t start_ns = clock_ns(&engine->clock);
	uint64_t waited_ns;
	struct address from;
	struct link_hop hop;
	int rc;

	if (engine_has_ended(engine) || sgid_index >= DEVICE_GIDS_MAX)
		return -ENETUNREACH;
	from = resolve_from(engine, sgid_index);
	rc = link_route(engine->link, &from, dgid->raw, &hop);
	if (rc != 0)
		return rc;
	if (hop.known) {
		memcpy(mac, hop.mac, sizeof(hop.mac));
		return 0;
	}
	while (!resolve_step(engine, &from, hop.gid, mac)) {
		waited_ns = clock_ns(&engine->clock) - start_ns;
		if (hop.has_stale && waited_ns > RESOLVE_STALE_NS) {
			memcpy(mac, hop.mac, sizeof(hop.mac));
			return 0;
		}
		if (waited_ns > RESOLVE_TIMEOUT_NS)
			return -ETIMEDOUT;
		/* Nobody else may be there to take in the answer. */
		ops_poll(engine);
		pause_ns(RESOLVE_PAUSE_NS);
	}
	return 0;
}

static void *ops_map(void *arg, const void *addr, size_t length)
{
	struct engine *engine = arg;

	return engine_has_ended(engine) ? NULL : dma_map(&engine->dma, addr, length);
}

/*
 * The port is given time to read what it was told to, and to say so, which some drivers do only
 * when they are given more to send. A port without a link may never do: then the memory stays
 * mapped (and its pages exist) until it does, so that whatever happens to the region it is no
 * stranger's memory that is read.
 */
static void ops_unmap(void *arg, void *mapping)
{
	struct engine *engine = arg;
	const uint64_t start_ns = clock_ns(&engine->clock);

	if (engine_has_ended(engine))
		return;
	dma_forget(&engine->dma, mapping);
	while (dma_is_busy(mapping) && clock_ns(&engine->clock) - start_ns < UNMAP_WAIT_NS) {
		engine_stir(engine);
		if (dma_is_busy(mapping))
			pause_ns(UNMAP_PAUSE_NS);
	}
	dma_unmap(&engine->dma, mapping);
}

const struct engine_ops engine_ops_pmd = {
	.lock = ops_lock,
	.unlock = ops_unlock,
	.attach = ops_attach,
	.detach = ops_detach,
	.kick = ops_kick,
	.poll = ops_poll,
	.polled = ops_polled,
	.wait = ops_wait,
	.now = ops_now,
	.join = ops_join,
	.leave = ops_leave,
	.resolve = ops_resolve,
	.map = ops_map,
	.unmap = ops_unmap,
};
