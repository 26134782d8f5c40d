/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines of a device that has several: their inboxes, and what is done to all of them. */
#include "engine/engines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_ether.h>

#include "base/log.h"
#include "device/device.h"
#include "engine/engine.h"
#include "port/inbox.h"
#include "wire/headers.h"
#include "wire/packet.h"

struct engines {
	/* as many as the device has, before any of them runs */
	struct engine *all[DEVICE_ENGINES_MAX];
	struct link links[DEVICE_ENGINES_MAX]; /* of all but the first */
	struct inbox inboxes[DEVICE_ENGINES_MAX];
	/* Packets that cross are copied into it, because the buffers of each queue belong to the
	 * thread of its engine; NULL: all engines use one pool. */
	struct rte_mempool *pool;
	uint32_t stopped; /* bits of engines that engines_stop_others has taken; its thread */
};

/* Return the number of engines; 1 if there is no set. */
static uint32_t engines_count(const struct engines *engines)
{
	return engines ? engines->all[0]->device->engine_count : 1;
}

/* Make the pool of packets that cross, if the port needs one. */
static int engines_make_pool(struct engines *engines)
{
	const struct engine *first = engines->all[0];
	const struct port *main = &first->link->port;
	struct port maker;
	int rc;

	if (!main->make_pool)
		return 0;
	port_fill_queue(main, &maker);
	maker.mbufs = PORT_MBUFS_SOFTWARE * (first->device->engine_count - 1);
	rc = port_make_pool(&maker, "uroce_engines");
	engines->pool = maker.pool;
	return rc;
}

int engines_create(struct engine *first)
{
	struct engines *engines = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*engines));

	if (!engines)
		return -ENOMEM;
	memset(engines, 0, sizeof(*engines));
	engines->all[0] = first;
	first->engines = engines;
	return engines_make_pool(engines);
}

int engines_add(struct engine *first, uint32_t number)
{
	struct engines *engines = first->engines;
	const uint32_t count = first->device->engine_count;
	struct link *link = &engines->links[number];
	struct engine *engine;
	int rc = port_open_queue(&first->link->port, number, count, &link->port);

	if (rc != 0) {
		log_error("engine %u of %u of '%s' has no queue of the port: %s: use fewer engines",
			  number + 1, count, first->device->config.name, strerror(-rc));
		return rc;
	}
	rc = engine_create(first->device->engines[number], link, first->progress, &engine);
	if (rc != 0)
		return rc;
	engine->engines = engines;
	engines->all[number] = engine;
	/* If this engine has no packet socket, the engines before it have given up theirs. */
	for (uint32_t i = 0; i < number; i++)
		engine_set_holds(engines->all[i]);
	return 0;
}

void engines_destroy(struct engines *engines)
{
	if (!engines)
		return;
	for (uint32_t i = 1; i < DEVICE_ENGINES_MAX; i++) {
		if (engines->all[i])
			engine_destroy(engines->all[i]);
		port_destroy(&engines->links[i].port);
	}
	free(engines);
}

/* Return the packet in a buffer that another engine may free. NULL: there is none, and the packet
 * is freed. */
static struct rte_mbuf *engines_move(const struct engines *engines, struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy;

	if (likely(!engines->pool) || mbuf->pool == engines->pool)
		return mbuf;
	copy = rte_pktmbuf_copy(mbuf, engines->pool, 0, UINT32_MAX);
	rte_pktmbuf_free(mbuf);
	return copy;
}

/* Put a packet into another engine's inbox. Returns false if there was no buffer for it; the packet
 * is freed then. Sender's thread. */
static bool engines_put(struct engines *engines, uint32_t to, struct rte_mbuf *mbuf)
{
	struct engine *engine = engines->all[to];

	mbuf = engines_move(engines, mbuf);
	if (unlikely(!mbuf))
		return false;
	inbox_put(&engines->inboxes[to], mbuf);
	/* A helper that falls asleep looks into the inbox after it has said so: either it sees the
	 * packet, or this call sees that it sleeps. */
	handover_call(engine, CALL_TO_LOOK);
	return true;
}

bool engines_pass(struct engine *from, uint32_t qpn, struct rte_mbuf *mbuf)
{
	const uint32_t to = device_engine_of_qpn(from->device, qpn);

	if (to == from->home->number)
		return false;
	mbuf->port = PORT_HANDED_OVER;
	if (unlikely(!engines_put(from->engines, to, mbuf)))
		counters_add(&from->home->counters, COUNTER_tx_loopback_no_buffer, 1);
	return true;
}

void engines_spread(struct engine *from, const struct rte_mbuf *mbuf, bool received)
{
	const enum counter no_buffer = received ? COUNTER_rx_missed : COUNTER_tx_loopback_no_buffer;
	struct engines *engines = from->engines;
	struct rte_mempool *pool = engines->pool ? engines->pool : from->link->port.pool;

	for (uint32_t to = 0; to < from->device->engine_count; to++) {
		struct rte_mbuf *copy;

		if (to == from->home->number)
			continue;
		copy = rte_pktmbuf_copy(mbuf, pool, 0, UINT32_MAX);
		if (copy && !received)
			copy->port = PORT_HANDED_OVER;
		if (!copy || !engines_put(engines, to, copy))
			counters_add(&from->home->counters, no_buffer, 1);
	}
}

/* Give a received frame to the engine of its queue pair. Returns false if that is `from`. */
static bool engines_forward(struct engine *from, uint32_t to, struct rte_mbuf *mbuf)
{
	struct counters *counters = &from->home->counters;

	if (likely(to == from->home->number))
		return false;
	counters_add(counters, COUNTER_rx_crossed, 1);
	if (unlikely(!engines_put(from->engines, to, mbuf)))
		counters_add(counters, COUNTER_rx_missed, 1);
	return true;
}

bool engines_give(struct engine *from, const uint8_t *frame, size_t len, struct rte_mbuf *mbuf)
{
	uint32_t qpn;

	/* The queue of a further engine has marked what is not its engine's. */
	if (!engine_is_first(from) && likely(mbuf->port != PORT_STRAY))
		return false;
	/* Only the first engine is the host to others. */
	if (!packet_peek_qpn(frame, len, &qpn))
		return engines_forward(from, 0, mbuf);
	if (unlikely(qpn == WIRE_QPN_MULTICAST)) {
		/* The copies are no strays. */
		if (mbuf->port == PORT_STRAY)
			mbuf->port = 0;
		if ((frame[0] & RTE_ETHER_GROUP_ADDR) && from->device->group_count > 0)
			engines_spread(from, mbuf, true);
		return false;
	}
	return engines_forward(from, device_engine_of_qpn(from->device, qpn), mbuf);
}

uint16_t engines_take(struct engine *engine, struct rte_mbuf **mbufs, uint16_t n)
{
	return inbox_take(&engine->engines->inboxes[engine->home->number], mbufs, n);
}

bool engines_has_more(const struct engine *engine)
{
	return inbox_has_more(&engine->engines->inboxes[engine->home->number]);
}

bool engines_lost_port(const struct engine *engine)
{
	return engine->engines && __atomic_load_n(&engine->engines->all[0]->lost, __ATOMIC_RELAXED);
}

static int engines_poll_one(struct engine *engine, void *arg)
{
	if (engine == arg)
		return 0;
	polling_count(&engine->polling);
	if (!engine_try(engine))
		return 0;
	polling_count_engine_poll(&engine->polling);
	engine_poll(engine);
	engine_release(engine);
	return 0;
}

void engines_poll_others(struct engine *engine)
{
	engines_poll_one(engine->engines->all[0], engine);
	engines_each_other(engine->engines, engines_poll_one, engine);
}

bool engines_stop_others(struct engines *engines)
{
	bool all = true;

	for (uint32_t i = 1; i < engines_count(engines); i++) {
		if (engine_lock_unless_ended(engines->all[i]))
			engines->stopped |= 1u << i;
		else
			all = false;
	}
	return all;
}

void engines_start_others(struct engines *engines)
{
	for (uint32_t i = engines_count(engines); i-- > 1;) {
		if (engines->stopped & 1u << i)
			engine_release(engines->all[i]);
	}
	if (engines)
		engines->stopped = 0;
}

int engines_each_other(struct engines *engines, int (*each)(struct engine *engine, void *arg),
		       void *arg)
{
	int rc = 0;

	for (uint32_t i = 1; i < engines_count(engines) && rc == 0; i++)
		rc = each(engines->all[i], arg);
	return rc;
}
