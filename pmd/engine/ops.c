/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's operations for a device: the table of device/device.h. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "device/device.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "engine/polling.h"
#include "helper.h"

#define RESOLVE_TIMEOUT_NS UINT64_C(3000000000)
#define RESOLVE_STALE_NS   UINT64_C(500000000) /* after this, an old answer is better than none */
#define RESOLVE_PAUSE_NS   20000
#define UNMAP_WAIT_NS	   UINT64_C(100000000)
#define UNMAP_PAUSE_NS	   20000

static bool engine_has_ended(const struct engine *engine)
{
	return __atomic_load_n(&engine->ended, __ATOMIC_ACQUIRE);
}

static void ops_lock(void *arg)
{
	struct engine *engine = arg;

	/* At the end of the process no thread runs the engine any more. The thread that ends it
	 * never releases it, and this thread may hold the device's first engine. */
	if (!engine_lock_unless_ended(engine))
		return;
	/* The control call may end a queue pair that still owes its peer an acknowledgement. */
	engine_transmit(engine);
}

static void ops_unlock(void *arg)
{
	struct engine *engine = arg;

	if (engine_has_ended(engine))
		return;
	/* Send this call's MADs now: no other thread may send them soon. */
	if (engine_gsi_deadline_ns(engine) == 0)
		engine_transmit(engine);
	engine_release(engine);
}

static void ops_receive(void *arg)
{
	struct engine *engine = arg;

	if (!engine_has_ended(engine))
		engine_receive_now(engine);
}

static void ops_attach(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	engine_mark_ready(engine, qp);
}

static void ops_detach(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	/* Send what this queue pair owes: later is too late. If the port has taken nothing since
	 * the last such wait, do not wait again, because many queue pairs may end at once. */
	if (unlikely(engine->tx.stuck && !engine->tx.given_up && qp_sched(qp)->is_ready))
		engine_wait_for_room(engine);
	if (unlikely(engine->link->port.tx_held > 0))
		engine_wait_for_peer(engine, qp);
	engine_forget(engine, qp);
}

static void ops_kick(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	if (!engine_has_ended(engine))
		engine_kick(engine, qp);
}

static void ops_poll(void *arg)
{
	struct engine *engine = arg;
	uint64_t now_ns, idle_ns, vain_ns;
	unsigned int work;

	if (engine->progress == SETTINGS_PROGRESS_DEDICATED)
		return;
	polling_count(&engine->polling);
	if (!engine_try(engine)) {
		if (!engine_has_ended(engine))
			polling_wait_for_owner(
				&engine->polling, &engine->clock,
				__atomic_load_n(&engine->taken_times, __ATOMIC_RELAXED));
		return;
	}
	polling_count_engine_poll(&engine->polling);
	work = engine_poll(engine);
	/* A helper in idle sleep would have to wake for an acknowledgement that is held back. */
	if (!TAILQ_EMPTY(&engine->ready) && handover_is_idle(engine))
		engine_transmit(engine);
	now_ns = engine->now_ns;
	idle_ns = now_ns - engine->busy_ns;
	engine_release(engine);
	if (unlikely(engine->engines) && work == 0 && engine->progress == SETTINGS_PROGRESS_INLINE)
		engines_poll_others(engine);
	if (unlikely(polling_make_way(&engine->clock, now_ns)))
		return;
	vain_ns = polling_vain_ns(&engine->polling, now_ns);
	if (idle_ns > POLLING_YIELD_AFTER_NS && vain_ns > POLLING_YIELD_AFTER_NS)
		polling_yield(&engine->polling, &engine->clock, now_ns);
	if (idle_ns > POLLING_SHORT_SLEEP_AFTER_NS)
		polling_short_sleep(now_ns);
}

/* Count a poll that found completions. A program that processes a backlog of completions polls as
 * well: the helper must not take the engine, because its polls would add more completions. */
static void ops_polled(void *arg, int n)
{
	struct engine *engine = arg;

	if (engine->progress == SETTINGS_PROGRESS_DEDICATED)
		return;
	if (polling_count_found(&engine->polling, (unsigned int)n))
		ops_poll(engine);
}

/*
 * The thread that is about to sleep no longer runs the engine polls that its polls ran. Other
 * engines, such as the first one, which has the addresses and the connection manager, are not told.
 * If nobody runs them, the helper notices that by itself.
 */
static void ops_wait(void *arg)
{
	struct engine *engine = arg;
	static bool warned;

	if (engine->progress == SETTINGS_PROGRESS_INLINE &&
	    !__atomic_exchange_n(&warned, true, __ATOMIC_RELAXED))
		log_warn("progress mode inline: nothing happens while the program sleeps on a "
			 "channel (--progress hybrid has a thread for that)");
	polling_count_wait(&engine->polling);
	helper_expect_sleep(engine);
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

/* Do one step of address resolution: look the address up, and send a request if one is due. Return
 * true if `mac` is known. */
static bool resolve_step_locked(struct engine *engine, const struct address *from,
				const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	struct rte_mbuf *mbuf = tx_alloc(&engine->tx);
	size_t len = 0;
	bool known;

	if (!mbuf)
		return false;
	known = link_resolve(engine->link, NEIGH_TRUSTED, from, gid, clock_ns(&engine->clock), mac,
			     rte_pktmbuf_mtod(mbuf, uint8_t *), &len);
	if (len > 0)
		tx_send(&engine->tx, mbuf, (uint32_t)len);
	else
		rte_pktmbuf_free(mbuf);
	return known;
}

static bool resolve_step(struct engine *engine, const struct address *from,
			 const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	bool known;

	ops_lock(engine);
	known = resolve_step_locked(engine, from, gid, mac);
	ops_unlock(engine);
	return known;
}

static struct address address_of(const struct engine *engine, uint8_t sgid_index)
{
	const struct device_gid *gid = &engine->device->gids[sgid_index];
	struct address from = {.vlan = gid->vlan_id, .ifindex = gid->ndev_ifindex};

	memcpy(from.gid, gid->gid.raw, sizeof(from.gid));
	return from;
}

/* Return the source address. It is read anew for each resolution, because addresses may change
 * meanwhile. */
static struct address resolve_from(struct engine *engine, uint8_t sgid_index)
{
	struct address from;

	ops_lock(engine);
	from = address_of(engine, sgid_index);
	ops_unlock(engine);
	return from;
}

static int ops_route(void *arg, uint8_t sgid_index, const union ibv_gid *dgid,
		     struct device_hop *hop)
{
	struct engine *engine = arg;
	struct link_hop found;
	struct address from;
	int rc;

	if (engine_has_ended(engine) || sgid_index >= DEVICE_GIDS_MAX)
		return -ENETUNREACH;
	from = resolve_from(engine, sgid_index);
	rc = link_route(engine->link, &from, dgid->raw, &found);
	if (rc != 0)
		return rc;
	*hop = (struct device_hop){.known = found.known, .has_stale = found.has_stale};
	memcpy(hop->mac, found.mac, sizeof(hop->mac));
	memcpy(hop->gid, found.gid, sizeof(hop->gid));
	return 0;
}

static bool ops_look(void *arg, uint8_t sgid_index, const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	struct engine *engine = arg;
	struct address from;

	if (engine_has_ended(engine) || sgid_index >= DEVICE_GIDS_MAX)
		return false;
	from = address_of(engine, sgid_index);
	return resolve_step_locked(engine, &from, gid, mac);
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
		/* No other thread may be there to receive the answer. */
		ops_poll(engine);
		polling_pause(RESOLVE_PAUSE_NS);
	}
	return 0;
}

static void ops_learn(void *arg, int32_t vlan_id, const uint8_t gid[GID_LEN], const uint8_t mac[6])
{
	struct engine *engine = arg;

	link_hear(engine->link, vlan_id, gid, mac, engine->now_ns);
}

static bool ops_maps(void *arg)
{
	const struct engine *engine = arg;

	return dma_is_possible(&engine->dma);
}

static void *ops_map(void *arg, const void *addr, size_t length)
{
	struct engine *engine = arg;

	return engine_has_ended(engine) ? NULL : dma_map(&engine->dma, addr, length);
}

/*
 * Give the port time to send packets from this memory and to report that, which some drivers do
 * only when they send more packets. A port without a link may never report it. Then the memory
 * stays mapped (and its pages allocated) until it does, so that the port never reads memory that is
 * in other use.
 */
static void ops_unmap(void *arg, void *mapping)
{
	struct engine *engine = arg;
	const uint64_t start_ns = clock_ns(&engine->clock);

	if (engine_has_ended(engine))
		return;
	dma_forget(&engine->dma, mapping);
	while (dma_is_busy(mapping) && clock_ns(&engine->clock) - start_ns < UNMAP_WAIT_NS) {
		engine_tx_cleanup(engine);
		if (dma_is_busy(mapping))
			polling_pause(UNMAP_PAUSE_NS);
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
	.receive = ops_receive,
	.polled = ops_polled,
	.wait = ops_wait,
	.now = ops_now,
	.join = ops_join,
	.leave = ops_leave,
	.resolve = ops_resolve,
	.route = ops_route,
	.look = ops_look,
	.learn = ops_learn,
	.maps = ops_maps,
	.map = ops_map,
	.unmap = ops_unmap,
};
