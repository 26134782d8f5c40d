/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that packets are built in, and that does what a test tells it. */
#include <stddef.h>
#include <string.h>

#include "places.h"
#include "engine_rig.h"
#include "test.h"

struct places places;
static const struct port_ops *places_before;

static bool places_has_room(void *arg)
{
	(void)arg;
	return places.room > places.placed - places.pushed;
}

static void places_expect(void *arg, uint32_t ahead, uint32_t len)
{
	(void)arg;
	assert_true(len > 0);
	places.expected = RTE_MAX(places.expected, ahead);
}

static uint8_t *places_place(void *arg, uint32_t len)
{
	const uint32_t longest = places.longest > 0 ? places.longest : sizeof(places.frames[0]);

	return places_has_room(arg) && len <= longest ? places.frames[places.placed % PLACES]
						      : NULL;
}

static uint8_t *places_offer(void *arg, uint32_t qpn)
{
	(void)arg, (void)qpn;
	return places.suits && places.placed - places.pushed < places.offers
		       ? places.frames[places.placed % PLACES]
		       : NULL;
}

static void places_placed(void *arg, uint32_t len)
{
	(void)arg;
	assert_int_equal(len, FAKE_FRAME_LEN);
	assert_int_equal(places.frames[places.placed % PLACES][FAKE_FRAME_LEN - 1], 0x91);
	places.placed++;
}

static void places_push(void *arg)
{
	(void)arg;
	places.room -= places.placed - places.pushed;
	places.pushed = places.placed;
}

static uint16_t places_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct port_drops *too_long = &engine->link->port.tx_too_long;

	(void)arg;
	n = places.takes > 0 ? RTE_MIN(n, (uint16_t)places.takes) : n;
	for (uint16_t i = 0; i < n; i++)
		assert_int_equal(*rte_pktmbuf_mtod_offset(mbufs[i], uint8_t *, FAKE_FRAME_LEN - 1),
				 0x91);
	rte_pktmbuf_free_bulk(mbufs, n);
	places.burst += n;
	too_long->packets += places.drops;
	too_long->bytes += places.drops * FAKE_FRAME_LEN;
	places.drops = 0;
	engine->link->port.tx_refused.packets += places.refuses;
	engine->link->port.tx_refused.bytes += places.refuses * FAKE_FRAME_LEN;
	places.refuses = 0;
	engine->link->port.tx_unconnected.packets += places.loses;
	engine->link->port.tx_unconnected.bytes += places.loses * FAKE_FRAME_LEN;
	places.loses = 0;
	return n;
}

static uint16_t places_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct port *port = &engine->link->port;
	const uint16_t taken = (uint16_t)RTE_MIN(n, RTE_MIN(places.rx_max, places.waiting));

	(void)arg;
	for (uint16_t i = 0; i < taken; i++) {
		mbufs[i] = tx_alloc(&engine->tx);
		memset(rte_pktmbuf_append(mbufs[i], FAKE_FRAME_LEN), 0x91, FAKE_FRAME_LEN);
	}
	places.waiting -= taken;
	port->rx_too_long += RTE_MIN(places.rx_drops, places.waiting);
	places.waiting -= RTE_MIN(places.rx_drops, places.waiting);
	port->rx_cut = places.waiting > 0;
	return taken;
}

static bool places_connected(void *arg)
{
	(void)arg;
	return true;
}

static bool places_link_up(void *arg, bool connected)
{
	(void)arg;
	return connected;
}

static bool places_lost(void *arg)
{
	(void)arg;
	return false;
}

void places_begin(void)
{
	static const uint8_t payload[PLACES_PAYLOAD];
	static const struct port_ops port_ops = {
		.rx_burst = places_rx_burst,
		.tx_burst = places_tx_burst,
		.expect = places_expect,
		.has_room = places_has_room,
		.place = places_place,
		.offer = places_offer,
		.placed = places_placed,
		.push = places_push,
		.link_up = places_link_up,
		.connected = places_connected,
		.lost = places_lost,
	};
	places_before = engine->link->port.ops;
	engine->link->port.ops = &port_ops;
	memset(&places, 0, sizeof(places));
	places.room = PLACES;
	memset(qp.dst_mac, 2, sizeof(qp.dst_mac));
	qp.payload = payload;
	qp.payload_len = sizeof(payload);
}

void places_end(void)
{
	engine->link->port.ops = places_before;
	engine->link->port.spares_icrc = false;
	engine->link->port.own_qpn_count = 0;
	engine->link->port.rx_cut = false;
}
