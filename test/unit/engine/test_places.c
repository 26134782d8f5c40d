/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/engine.c, on a port with places that packets are built in. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "places.h"
#include "engine_rig.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);

static int set_up(void **state)
{
	const int rc = rig_set_up(state);

	if (rc == 0)
		places_begin();
	return rc;
}

static int tear_down(void **state)
{
	places_end();
	return rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

TEST(engine_transmit__builds_in_the_ports_places)
{
	places.room = 3;
	rig_send(&qp, 5);
	engine_transmit(engine);
	/* A packet without a place waits for one. */
	assert_int_equal(places.pushed, 3);
	assert_int_equal(rig_count(COUNTER_tx_packets), 3);
	assert_int_equal(rig_count(COUNTER_tx_bytes), 3 * FAKE_FRAME_LEN);
	assert_true(tx_waits_for_port(&engine->tx));
	places.room = 4;
	engine_transmit(engine);
	assert_int_equal(places.pushed, 5);
	/* A packet to this host's own address never takes a shared place. */
	memcpy(qp.dst_mac, engine->link->port.mac, sizeof(qp.dst_mac));
	rig_send(&qp, 1);
	engine_transmit(engine);
	assert_int_equal(places.placed, 5);
	assert_int_equal(places.burst, 0);
	assert_int_equal(engine->tx.loop_tail - engine->tx.loop_head, 1);
	rig_polls(1);
}

/* Short ones go in buffers, and keep their place in the row. */
TEST(engine_transmit__copies_short_ones)
{
	places.room = 8;
	qp.payload_len = PLACES_PAYLOAD - 1;
	rig_send(&qp, 5);
	engine_transmit(engine);
	assert_int_equal(places.placed, 0);
	assert_int_equal(places.burst, 5);
	/* Each was told of while it was made. */
	assert_int_equal(places.expected, 4);
	/* While the port is full, a long packet waits behind the short ones. */
	places.takes = 1;
	rig_send(&qp, 2);
	qp_run(&qp, 0, &engine->tx.sink, 2);
	assert_int_equal(engine->tx.count, 2);
	qp.payload_len = PLACES_PAYLOAD;
	rig_send(&qp, 1);
	qp_run(&qp, 0, &engine->tx.sink, 1);
	assert_int_equal(places.burst, 6);
	assert_int_equal(places.placed, 0);
	assert_int_equal(engine->tx.count, 2);
	/* Otherwise the short packets leave before it. */
	places.takes = 0;
	rig_send(&qp, 1);
	qp_run(&qp, 0, &engine->tx.sink, 1);
	assert_int_equal(places.burst, 8);
	assert_int_equal(places.placed, 1);
	engine_transmit(engine);
	assert_int_equal(places.pushed, 1);
	assert_int_equal(rig_count(COUNTER_tx_packets), 9);
}

/* Places that are too short for it: it goes in a buffer, and what comes next waits behind. */
TEST(engine_transmit__what_fits_no_place_goes_another_way)
{
	places.longest = 63;
	places.takes = 2;
	rig_send(&qp, 5);
	engine_transmit(engine);
	assert_int_equal(places.placed, 0);
	assert_int_equal(places.burst, 2);
	assert_int_equal(rig_count(COUNTER_tx_packets), 2);
	assert_int_equal(rig_count(COUNTER_tx_bytes), 2 * FAKE_FRAME_LEN);
	places.longest = 0;
	engine_transmit(engine);
	engine_transmit(engine);
	assert_int_equal(places.burst, 5);
	assert_int_equal(rig_count(COUNTER_tx_packets), 5);
	assert_int_equal(rig_count(COUNTER_tx_bytes), 5 * FAKE_FRAME_LEN);
}

/* The packets that are for another process of this host. */
static void send_to_neighbours(uint32_t n)
{
	rig_send(&qp, n);
	engine_transmit(engine);
}

static void begin_neighbours(void)
{
	struct port *port = &engine->link->port;

	port->spares_icrc = true;
	port->own_qpn_first = 1; /* not that of the packets */
	port->own_qpn_count = 1;
	memcpy(qp.dst_mac, port->mac, sizeof(qp.dst_mac));
	qp.payload_len = 8;
	places.offers = PLACES;
	places.room = UINT32_MAX;
	places.suits = true;
}

TEST(engine_transmit__takes_offers_for_short_ones_to_this_host)
{
	begin_neighbours();
	send_to_neighbours(4);
	assert_int_equal(places.pushed, 4);
	assert_int_equal(places.burst, 0);
	assert_int_equal(rig_count(COUNTER_tx_packets), 4);
	assert_int_equal(rig_count(COUNTER_tx_bytes), 4 * FAKE_FRAME_LEN);
	/* Long ones go another way. */
	qp.payload_len = PORT_OFFER_BYTES - FAKE_FRAME_LEN + 1;
	send_to_neighbours(4);
	assert_int_equal(places.pushed, 4);
	assert_int_equal(places.burst, 4);
	qp.payload_len = PORT_OFFER_BYTES - FAKE_FRAME_LEN;
	send_to_neighbours(4);
	assert_int_equal(places.pushed, 8);
	assert_int_equal(places.burst, 4);
	qp.payload_len = 8;
	/* A packet for another destination takes the copying path too. */
	places.suits = false;
	send_to_neighbours(4);
	assert_int_equal(places.pushed, 8);
	assert_int_equal(places.burst, 8);
	/* The engine takes no more places than are offered; the rest follows by copy. */
	places.suits = true;
	places.offers = 3;
	send_to_neighbours(4);
	assert_int_equal(places.pushed, 11);
	assert_int_equal(places.burst, 9);
	/* A single packet takes one, too. */
	send_to_neighbours(1);
	assert_int_equal(places.pushed, 12);
	assert_int_equal(places.burst, 9);
	assert_int_equal(rig_count(COUNTER_tx_packets), 21);
}

TEST(engine_transmit__takes_no_offers_for_what_is_sealed)
{
	begin_neighbours();
	engine->link->port.spares_icrc = false;
	send_to_neighbours(4);
	send_to_neighbours(4);
	assert_int_equal(places.placed, 0);
	assert_int_equal(places.burst, 8);
	/* A packet that leaves this host does not qualify either. */
	engine->link->port.spares_icrc = true;
	memset(qp.dst_mac, 2, sizeof(qp.dst_mac));
	send_to_neighbours(4);
	send_to_neighbours(4);
	assert_int_equal(places.placed, 0);
	assert_int_equal(places.burst, 16);
}

TEST(engine_transmit__goes_without_what_cannot_be_read_in_an_offer)
{
	struct port *port = &engine->link->port;
	const uint8_t first = port->mac[0];

	begin_neighbours();
	send_to_neighbours(4);
	assert_int_equal(places.pushed, 4);
	port->mac[0] = qp.dst_mac[0] = FAKE_UNREADABLE;
	send_to_neighbours(1);
	assert_int_equal(qp.faults, 1);
	assert_int_equal(places.placed, 4);
	port->mac[0] = qp.dst_mac[0] = first;
	send_to_neighbours(1);
	assert_int_equal(places.pushed, 5);
	assert_int_equal(places.burst, 0);
}

TEST(engine_transmit__what_the_port_drops_was_not_sent)
{
	places.longest = 63;
	places.drops = 2;
	places.refuses = 1;
	places.loses = 3;
	rig_send(&qp, 8);
	engine_transmit(engine);
	assert_int_equal(places.burst, 8);
	assert_int_equal(rig_count(COUNTER_tx_packets), 2);
	assert_int_equal(rig_count(COUNTER_tx_bytes), 2 * FAKE_FRAME_LEN);
	assert_int_equal(rig_count(COUNTER_tx_too_long), 2);
	assert_int_equal(rig_count(COUNTER_tx_refused), 1);
	assert_int_equal(rig_count(COUNTER_tx_unconnected), 3);
}

TEST(engine_transmit__goes_without_a_payload_that_is_gone)
{
	memset(qp.dst_mac, FAKE_UNREADABLE, sizeof(qp.dst_mac));
	rig_send(&qp, 1);
	engine_transmit(engine);
	assert_int_equal(qp.faults, 1);
	assert_int_equal(places.placed, 0);
	/* The packet may be built anew: not where others see it. */
	assert_ptr_equal(engine->tx.out.frame, rte_pktmbuf_mtod(engine->tx.current, uint8_t *));
}

/* A burst that is short because the port has cut it is not the last. */
TEST(engine_poll__what_a_short_burst_leaves_goes_before_timers)
{
	fake_receiver = &other;
	places.waiting = 10;
	places.rx_max = 4;
	other.deadline_ns = 1;
	wheel_set(&engine->wheel, &other, 1);
	/* The wheel looks at a slot when its time is over. */
	usleep(1000);
	for (uint32_t received = 4; received <= 8; received += 4) {
		rig_polls(1);
		assert_int_equal(other.received, received);
		assert_int_equal(other.timeouts, 0);
	}
	for (int i = 0; i < TIMEOUT_MS && other.timeouts == 0; i++) {
		rig_polls(1);
		usleep(20);
	}
	assert_int_equal(other.timeouts, 1);
	assert_int_equal(other.received, 10);
}

/* Dropped packets do not end it either; a flood of them keeps no timer running. */
TEST(engine_poll__counts_what_is_too_long)
{
	places.waiting = UINT32_MAX;
	places.rx_drops = 32;
	other.deadline_ns = 1;
	wheel_set(&engine->wheel, &other, 1);
	usleep(1000);
	rig_polls(1);
	assert_int_equal(rig_count(COUNTER_rx_too_long), 32);
	rig_polls(ENGINE_FULL_FRAMES / 32 - 2);
	assert_int_equal(other.timeouts, 0);
	for (int i = 0; i < 100 * ENGINE_FULL_FRAMES && other.timeouts == 0; i++)
		rig_polls(1);
	assert_int_equal(other.timeouts, 1);
}

TEST(engine_empty_port__takes_all_that_waits)
{
	fake_receiver = &other;
	places.waiting = 1000;
	places.rx_max = 1;
	assert_true(engine_try(engine));
	engine_empty_port(engine);
	assert_int_equal(other.received, 1000);
	/* An endless stream fills one ring's worth of frames an engine poll. */
	places.waiting = UINT32_MAX;
	places.rx_max = 32;
	engine_empty_port(engine);
	assert_int_equal(UINT32_MAX - places.waiting, ENGINE_FULL_FRAMES);
	/* A program that always has something to send makes no difference. */
	places.waiting = 0;
	places.room = UINT32_MAX;
	rig_send(&qp, UINT32_MAX);
	engine_empty_port(engine);
	qp.to_send = 0;
	engine_release(engine);
}
