/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between the engines of a device: what the first engine does for the others, and how they
 * call it. */
#include "engine/crossing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_ether.h>

#include "device/device.h"
#include "engine/engine.h"
#include "port/inbox.h"
#include "port/relay.h"
#include "wire/headers.h"
#include "wire/packet.h"

#define BURST	    32
#define ROOM_PASSES 64
#define BURSTS_MAX  4 /* of one engine in one engine poll, so that no engine waits for long */
/* Packets that the port has not taken yet. */
struct waiting {
	uint16_t count;
	struct rte_mbuf *mbufs[BURST];
};

struct crossing {
	/* as many as the device has, before any of them runs */
	struct engine *engines[DEVICE_ENGINES_MAX];
	struct relay *relays[DEVICE_ENGINES_MAX]; /* of all but the first */
	struct link links[DEVICE_ENGINES_MAX];
	struct inbox to_first;			    /* packets to the first engine's queue pairs */
	bool called;				    /* atomic: packets wait for the first engine */
	struct waiting waiting[DEVICE_ENGINES_MAX]; /* first engine's thread */
	/* first engine's thread */
	bool sends;	   /* others have, or may have, packets that the port has not taken */
	bool others_first; /* in this pass their packets go first */
	/* of each engine: bits of the engines whose queues receive its packets, besides its own;
	 * atomic */
	uint32_t sources[DEVICE_ENGINES_MAX];
	uint32_t stopped; /* bits of engines that crossing_stop_others has taken; its thread */
};

/* Return the number of engines; 1 if there is no crossing. */
static uint32_t crossing_count(const struct crossing *crossing)
{
	return crossing ? crossing->engines[0]->device->engine_count : 1;
}

/* Make sure that the first engine's owner sees packets that were just left for it. */
static void crossing_call(void *arg)
{
	struct engine *first = arg;

	engine_call(first, &first->crossing->called);
}

int crossing_create(struct engine *first)
{
	struct crossing *crossing = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*crossing));

	if (!crossing)
		return -ENOMEM;
	memset(crossing, 0, sizeof(*crossing));
	crossing->engines[0] = first;
	first->crossing = crossing;
	return 0;
}

static int crossing_open_relay(struct engine *first, uint32_t number)
{
	const struct relay_carrier carrier = {
		.port = &first->link->port,
		.engines = first->device->engine_count,
		.lost = &first->lost,
		.sent = crossing_call,
		.sent_arg = first,
	};
	struct crossing *crossing = first->crossing;

	return relay_open(&carrier, number, &crossing->links[number].port,
			  &crossing->relays[number]);
}

int crossing_add(struct engine *first, uint32_t number)
{
	struct crossing *crossing = first->crossing;
	struct engine *engine;
	int rc = crossing_open_relay(first, number);

	if (rc == 0)
		rc = engine_create(first->device->engines[number], &crossing->links[number],
				   first->progress, &engine);
	if (rc != 0)
		return rc;
	engine->crossing = crossing;
	crossing->engines[number] = engine;
	/* If this engine has no packet socket, the engines before it have given up theirs. */
	for (uint32_t i = 0; i < number; i++)
		engine_set_holds(crossing->engines[i]);
	return 0;
}

void crossing_destroy(struct crossing *crossing)
{
	if (!crossing)
		return;
	for (uint32_t i = 1; i < DEVICE_ENGINES_MAX; i++) {
		if (crossing->engines[i])
			engine_destroy(crossing->engines[i]);
		port_destroy(&crossing->links[i].port);
	}
	free(crossing);
}

/* Give a further engine a packet. Returns false if there was no buffer for it; the packet is freed
 * then. Sender's thread. */
static bool crossing_relay(struct crossing *crossing, uint32_t to, struct rte_mbuf *mbuf,
			   bool received)
{
	const bool given = relay_give(crossing->relays[to], mbuf, received);

	/* Its helper does not listen to the relay's doorbell, and may sleep for long. */
	if (unlikely(port_wake_fd(&crossing->links[to].port) < 0))
		handover_call(crossing->engines[to], CALL_TO_LOOK);
	return given;
}

/* Give another engine a packet. Returns false if there was no buffer for it; the packet is freed
 * then. Sender's thread. */
static bool crossing_put(struct engine *from, uint32_t to, struct rte_mbuf *mbuf)
{
	struct crossing *crossing = from->crossing;

	if (!engine_is_first(from))
		mbuf = relay_hand_out(crossing->relays[from->home->number], mbuf);
	if (unlikely(!mbuf))
		return false;
	if (to > 0)
		return crossing_relay(crossing, to, mbuf, false);
	inbox_put(&crossing->to_first, mbuf);
	crossing_call(crossing->engines[0]);
	return true;
}

bool crossing_pass(struct engine *from, uint32_t qpn, struct rte_mbuf *mbuf)
{
	const uint32_t to = device_engine_of_qpn(from->device, qpn);

	if (to == from->home->number)
		return false;
	mbuf->port = PORT_HANDED_OVER;
	if (unlikely(!crossing_put(from, to, mbuf)))
		counters_add(&from->home->counters, COUNTER_tx_loopback_no_buffer, 1);
	return true;
}

void crossing_spread(struct engine *from, const struct rte_mbuf *mbuf, bool received)
{
	const enum counter no_buffer = received ? COUNTER_rx_missed : COUNTER_tx_loopback_no_buffer;

	for (uint32_t to = 0; to < from->device->engine_count; to++) {
		struct rte_mbuf *copy;

		if (to == from->home->number)
			continue;
		copy = rte_pktmbuf_copy(mbuf, from->link->port.pool, 0, UINT32_MAX);
		if (copy && !received)
			copy->port = PORT_HANDED_OVER;
		if (!copy || !crossing_put(from, to, copy))
			counters_add(&from->home->counters, no_buffer, 1);
	}
}

/* Note whose queue receives packets to an engine's queue pairs, so that polls of that engine serve
 * this queue too. */
static void crossing_note_source(struct crossing *crossing, uint32_t to, uint32_t from)
{
	uint32_t *sources = &crossing->sources[to];

	if (!(__atomic_load_n(sources, __ATOMIC_RELAXED) & 1u << from))
		__atomic_fetch_or(sources, 1u << from, __ATOMIC_RELAXED);
}

/* Give a received frame to the engine of its queue pair. Returns false if that is `from`. */
static bool crossing_forward(struct engine *from, uint32_t to, struct rte_mbuf *mbuf)
{
	struct counters *counters = &from->home->counters;

	if (to == from->home->number)
		return false;
	counters_add(counters, COUNTER_rx_crossed, 1);
	if (unlikely(to == 0 ? !crossing_put(from, 0, mbuf)
			     : !crossing_relay(from->crossing, to, mbuf, true)))
		counters_add(counters, COUNTER_rx_missed, 1);
	return true;
}

bool crossing_give(struct engine *from, const uint8_t *frame, size_t len, struct rte_mbuf *mbuf)
{
	uint32_t qpn, to;

	/* Other frames are this engine's: its queue or another engine has looked. */
	if (!engine_is_first(from) && likely(mbuf->port != PORT_STRAY))
		return false;
	/* Only the first engine is the host to others. */
	if (!packet_peek_qpn(frame, len, &qpn))
		return crossing_forward(from, 0, mbuf);
	if (unlikely(qpn == WIRE_QPN_MULTICAST)) {
		/* The copies are no strays. */
		if (mbuf->port == PORT_STRAY)
			mbuf->port = 0;
		if ((frame[0] & RTE_ETHER_GROUP_ADDR) && from->device->group_count > 0)
			crossing_spread(from, mbuf, true);
		return false;
	}
	to = device_engine_of_qpn(from->device, qpn);
	if (from->link->port.rx_mixed && likely(qpn > GSI_QPN))
		crossing_note_source(from->crossing, to, from->home->number);
	return crossing_forward(from, to, mbuf);
}

uint16_t crossing_take(struct crossing *crossing, struct rte_mbuf **mbufs, uint16_t n)
{
	return inbox_take(&crossing->to_first, mbufs, n);
}

/* Drop packets that reach nobody. Their engine has counted them as sent. */
static void crossing_drop(struct engine *first, struct rte_mbuf **mbufs, uint16_t n)
{
	struct counters *counters = &first->home->counters;

	counters_add(counters, COUNTER_tx_unconnected, n);
	counters_add(counters, COUNTER_tx_packets, -(uint64_t)n);
	for (uint16_t i = 0; i < n; i++)
		counters_add(counters, COUNTER_tx_bytes, -(uint64_t)mbufs[i]->pkt_len);
	rte_pktmbuf_free_bulk(mbufs, n);
}

/* Send a burst of one engine. Returns how many packets left; sets `more` if it has more to send and
 * the port has room. */
static unsigned int crossing_send_burst(struct engine *first, uint32_t number, bool *more)
{
	struct waiting *waiting = &first->crossing->waiting[number];
	uint16_t sent;

	*more = false;
	if (waiting->count == 0)
		waiting->count =
			relay_fetch(first->crossing->relays[number], waiting->mbufs, BURST);
	if (waiting->count == 0)
		return 0;
	if (likely(first->tx.connected)) {
		sent = port_tx_burst(&first->link->port, waiting->mbufs, waiting->count);
	} else {
		sent = waiting->count;
		crossing_drop(first, waiting->mbufs, sent);
	}
	waiting->count = (uint16_t)(waiting->count - sent);
	memmove(waiting->mbufs, waiting->mbufs + sent, waiting->count * sizeof(waiting->mbufs[0]));
	counters_add(&first->home->counters, COUNTER_tx_crossed, sent);
	*more = sent == BURST;
	return sent;
}

bool crossing_sends(const struct crossing *crossing)
{
	for (uint32_t i = 1; i < crossing_count(crossing); i++) {
		if (crossing->waiting[i].count > 0 || relay_sends(crossing->relays[i]))
			return true;
	}
	return false;
}

/* Send what other engines want to send, as far as the port takes it. */
static unsigned int crossing_send(struct engine *first)
{
	unsigned int work = 0;

	for (uint32_t i = 1; i < crossing_count(first->crossing); i++) {
		bool more = true;

		for (int burst = 0; more && burst < BURSTS_MAX; burst++)
			work += crossing_send_burst(first, i, &more);
	}
	if (work > 0)
		tx_count_late_drops(&first->tx);
	first->crossing->sends = crossing_sends(first->crossing);
	return work;
}

unsigned int crossing_begin(struct engine *first)
{
	struct crossing *crossing = first->crossing;

	/* Most passes find no call: the exchange would cost more than all else here. Clear the call
	 * before looking: packets that come later are told of again. */
	if (unlikely(__atomic_load_n(&crossing->called, __ATOMIC_RELAXED)) &&
	    __atomic_exchange_n(&crossing->called, false, __ATOMIC_SEQ_CST))
		crossing->sends = true;
	if (likely(!crossing->sends))
		return 0;
	crossing->others_first = !crossing->others_first;
	return crossing->others_first ? crossing_send(first) : 0;
}

unsigned int crossing_finish(struct engine *first)
{
	if (likely(!first->crossing->sends))
		return 0;
	/* Packets that are left are the first engine's, for which the port has no room. */
	if (first->crossing->others_first || first->tx.count > 0)
		return 0;
	return crossing_send(first);
}

void crossing_make_room(struct crossing *crossing)
{
	struct engine *first = crossing->engines[0];

	for (int pass = 0; pass < ROOM_PASSES && engine_transmit(first) > 0; pass++)
		;
}

bool crossing_has_left(const struct crossing *crossing)
{
	return inbox_has_more(&crossing->to_first) || crossing_sends(crossing);
}

bool crossing_is_called(const struct crossing *crossing)
{
	return __atomic_load_n(&crossing->called, __ATOMIC_SEQ_CST);
}

static void crossing_poll_one(struct engine *engine)
{
	polling_count(&engine->polling);
	if (!engine_try(engine))
		return;
	polling_count_engine_poll(&engine->polling);
	engine_poll(engine);
	engine_release(engine);
}

/* Return bits of the engines whose queues receive packets for this one, besides its own. */
static uint32_t crossing_sources(const struct engine *engine)
{
	const struct crossing *crossing = engine->crossing;
	const uint32_t own = engine->home->number;
	const struct relay *relay = crossing->relays[own];
	uint32_t sources = __atomic_load_n(&crossing->sources[own], __ATOMIC_RELAXED);

	if (relay && !relay_receives(relay))
		sources |= 1; /* the first engine's */
	return sources;
}

/* Call `each` for the engines that have a bit in `engines`, except this one. */
static void crossing_each_of(struct engine *engine, uint32_t engines,
			     void (*each)(struct engine *other))
{
	for (uint32_t i = 0; i < engine->device->engine_count && engines >> i != 0; i++) {
		if (i != engine->home->number && engines & 1u << i)
			each(engine->crossing->engines[i]);
	}
}

void crossing_poll_others(struct engine *engine)
{
	crossing_each_of(engine,
			 engine->progress == SETTINGS_PROGRESS_INLINE ? UINT32_MAX
								      : crossing_sources(engine),
			 crossing_poll_one);
}

void crossing_each_source(struct engine *engine, void (*each)(struct engine *source))
{
	crossing_each_of(engine, crossing_sources(engine), each);
}

bool crossing_stop_others(struct crossing *crossing)
{
	bool all = true;

	for (uint32_t i = 1; i < crossing_count(crossing); i++) {
		if (engine_lock_unless_ended(crossing->engines[i]))
			crossing->stopped |= 1u << i;
		else
			all = false;
	}
	return all;
}

void crossing_start_others(struct crossing *crossing)
{
	for (uint32_t i = crossing_count(crossing); i-- > 1;) {
		if (crossing->stopped & 1u << i)
			engine_release(crossing->engines[i]);
	}
	if (crossing)
		crossing->stopped = 0;
}

int crossing_each_other(struct crossing *crossing, int (*each)(struct engine *engine, void *arg),
			void *arg)
{
	int rc = 0;

	for (uint32_t i = 1; i < crossing_count(crossing) && rc == 0; i++)
		rc = each(crossing->engines[i], arg);
	return rc;
}
