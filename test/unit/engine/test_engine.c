/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine: engine.c, tx.c, ops.c and helper.c, on a port whose transmit side is its
 * receive side. */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"
#include "fake.h"
#include "helper.h"
#include "link/arp.h"
#include "wire/opcode.h"
#include "link/tag.h"
#include "report/read.h"
#include "report/write.h"
#include "telemetry/counters.h"

#define PATIENCE_MS 20000 /* for things that happen at once on an idle machine */

static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 0x99};
static const struct engine_ops *const ops = &engine_ops_pmd;

static bool have_port;
static struct engine *engine;
static struct qp qp, other;

static int group_set_up(void **state)
{
	(void)state;
	have_port = fake_start();
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	if (!have_port)
		return 0;
	engine = fake_engine(SETTINGS_PROGRESS_INLINE);
	fake_qp_init(&qp, peer_mac);
	fake_qp_init(&other, peer_mac);
	return engine ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	if (have_port)
		fake_engine_end(engine);
	return 0;
}

static uint64_t count(enum counter counter)
{
	return counters_get(&engine->device->counters, counter);
}

static void turns(int n)
{
	while (n-- > 0) {
		assert_true(engine_try(engine));
		engine_turn(engine);
		engine_release(engine);
	}
}

static void engine_turn__answers_who_watches(void **state)
{
	struct report *report;
	uint32_t asked;
	int fd;

	(void)state;
	if (!have_port)
		skip();
	assert_int_equal(report_create(&fd, &report), 0);
	engine->report = report;
	turns(1);
	assert_int_equal(report->sequence, 0);
	asked = report_ask(report);
	assert_false(report_answered(report, asked));
	engine->link_due_ns = 0;
	turns(1);
	assert_true(report_answered(report, asked));
	engine->report = NULL;
	report_unmap(report);
	close(fd);
}

static void engine_turn__sends_and_receives(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	fake_receiver = &other;
	qp.to_send = 3;
	engine_mark_ready(engine, &qp);
	turns(1);
	assert_int_equal(other.received, 3);
	assert_int_equal(count(COUNTER_tx_packets), 3);
	assert_int_equal(count(COUNTER_tx_bytes), 3 * FAKE_FRAME_LEN);
	/* What asked for an answer runs in the next turn. */
	assert_int_equal(other.runs, 0);
	turns(1);
	assert_int_equal(other.runs, 1);
}

static void engine_turn__a_lone_acknowledgement_waits_for_company(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	engine->ack_hold_ns = UINT64_MAX;
	qp.only_ack = true;
	qp.to_send = 1;
	engine_mark_ready(engine, &qp);
	turns(3);
	assert_int_equal(qp.runs, 0);
	/* What the program posts takes it along. */
	engine_transmit(engine);
	assert_int_equal(qp.runs, 1);
	qp.to_send = 1;
	engine_mark_ready(engine, &qp);
	engine->ack_hold_ns = 1;
	turns(2);
	assert_int_equal(qp.runs, 2);
}

/* Where processes share a port, its address is that of other processes as well. */
static void engine_turn__what_goes_to_others_of_our_address_leaves(void **state)
{
	struct port *port;

	(void)state;
	if (!have_port)
		skip();
	port = &engine->link->port;
	fake_receiver = &other;
	fake_qp_init(&qp, port->mac);
	/* The frames are to queue pair 0. */
	port->own_qpn_first = 1;
	port->own_qpn_count = 1;
	qp.to_send = 1;
	engine_mark_ready(engine, &qp);
	turns(2);
	assert_int_equal(count(COUNTER_tx_packets), 1);
	assert_int_equal(fake_looped, 0);
	port->own_qpn_first = 0;
	qp.to_send = 1;
	engine_mark_ready(engine, &qp);
	turns(2);
	port->own_qpn_count = 0;
	assert_int_equal(count(COUNTER_tx_packets), 1);
	assert_int_equal(fake_looped, 1);
}

static bool lost_says_no(void *arg)
{
	(void)arg;
	return false;
}

static bool lost_says_yes(void *arg)
{
	(void)arg;
	return true;
}

static void engine_check_link__a_lost_port_ends_everything(void **state)
{
	const struct port_ops lost = {
		.lost = lost_says_yes, .link_up = lost_says_no, .connected = lost_says_no};
	struct port *port;

	(void)state;
	if (!have_port)
		skip();
	port = &engine->link->port;
	fake_receiver = &qp;
	engine->device->link_up = false;
	port->ops = &lost;
	engine_check_link(engine);
	assert_int_equal(fake_last_event, IBV_EVENT_DEVICE_FATAL);
	assert_true(qp.failed);
	/* Once: nothing is left to lose. */
	fake_last_event = 0;
	engine_check_link(engine);
	port->ops = NULL;
	port->started = true;
	assert_int_equal(fake_last_event, 0);
	turns(1);
	assert_int_equal(qp.runs, 1);
}

/* A port that packets are built in. */
static struct {
	uint8_t places[4][256];
	uint32_t room; /* places that are free */
	uint32_t placed, pushed, burst;
} wire;

static bool wire_has_room(void *arg)
{
	(void)arg;
	return wire.room > wire.placed - wire.pushed;
}

static uint8_t *wire_place(void *arg, uint32_t len)
{
	return wire_has_room(arg) && len <= sizeof(wire.places[0]) ? wire.places[wire.placed % 4]
								   : NULL;
}

static void wire_placed(void *arg, uint32_t len)
{
	(void)arg;
	assert_int_equal(len, FAKE_FRAME_LEN);
	assert_int_equal(wire.places[wire.placed % 4][FAKE_FRAME_LEN - 1], 0x91);
	wire.placed++;
}

static void wire_push(void *arg)
{
	(void)arg;
	wire.room -= wire.placed - wire.pushed;
	wire.pushed = wire.placed;
}

static uint16_t wire_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg;
	rte_pktmbuf_free_bulk(mbufs, n);
	wire.burst += n;
	return n;
}

static uint16_t wire_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg, (void)mbufs, (void)n;
	return 0;
}

static bool wire_connected(void *arg)
{
	(void)arg;
	return true;
}

static const struct port_ops wire_ops = {
	.rx_burst = wire_rx_burst,
	.tx_burst = wire_tx_burst,
	.has_room = wire_has_room,
	.place = wire_place,
	.placed = wire_placed,
	.push = wire_push,
	.link_up = wire_connected,
	.connected = wire_connected,
	.lost = lost_says_no,
};

static void engine_transmit__builds_in_the_ports_places(void **state)
{
	struct port *port;

	(void)state;
	if (!have_port)
		skip();
	port = &engine->link->port;
	port->ops = &wire_ops;
	memset(&wire, 0, sizeof(wire));
	wire.room = 3;
	qp.to_send = 5;
	memset(qp.dst_mac, 2, sizeof(qp.dst_mac));
	engine_mark_ready(engine, &qp);
	engine_transmit(engine);
	/* What has no place waits for one. */
	assert_int_equal(wire.pushed, 3);
	assert_int_equal(count(COUNTER_tx_packets), 3);
	assert_int_equal(count(COUNTER_tx_bytes), 3 * FAKE_FRAME_LEN);
	assert_true(tx_waits_for_port(&engine->tx));
	wire.room = 4;
	engine_transmit(engine);
	assert_int_equal(wire.pushed, 5);
	/* To ourselves nothing goes that others see. */
	qp.to_send = 1;
	memcpy(qp.dst_mac, port->mac, sizeof(qp.dst_mac));
	engine_mark_ready(engine, &qp);
	engine_transmit(engine);
	assert_int_equal(wire.placed, 5);
	assert_int_equal(wire.burst, 0);
	assert_int_equal(engine->tx.loop_tail - engine->tx.loop_head, 1);
	turns(1);
	port->ops = NULL;
}

static void engine_transmit__goes_without_a_payload_that_is_gone(void **state)
{
	struct port *port;

	(void)state;
	if (!have_port)
		skip();
	port = &engine->link->port;
	port->ops = &wire_ops;
	memset(&wire, 0, sizeof(wire));
	wire.room = 4;
	qp.to_send = 1;
	memset(qp.dst_mac, FAKE_UNREADABLE, sizeof(qp.dst_mac));
	engine_mark_ready(engine, &qp);
	engine_transmit(engine);
	assert_int_equal(qp.faults, 1);
	assert_int_equal(wire.placed, 0);
	/* The packet may be built anew: not where others see it. */
	assert_ptr_equal(engine->tx.out.frame, rte_pktmbuf_mtod(engine->tx.current, uint8_t *));
	port->ops = NULL;
}

static void engine_turn__queue_pairs_take_turns(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	qp.to_send = 100;
	other.to_send = 5;
	engine_mark_ready(engine, &qp);
	engine_mark_ready(engine, &other);
	turns(1);
	assert_true(qp.to_send > 0);
	assert_int_equal(other.to_send, 0);
	assert_int_equal(qp.runs, 1);
	turns(10);
	assert_int_equal(qp.to_send, 0);
}

/* The port's ring holds fewer than that: nothing may be lost, and everything goes in the end. */
static void engine_turn__what_the_port_does_not_take_waits(void **state)
{
	unsigned int n = 0;

	(void)state;
	if (!have_port)
		skip();
	fake_receiver = &other;
	qp.to_send = 5000;
	engine_mark_ready(engine, &qp);
	/* Without receiving, until the port is full. */
	for (int i = 0; i < 200; i++)
		engine_transmit(engine);
	assert_true(qp.to_send > 0);
	assert_true(count(COUNTER_tx_no_buffer) > 0);
	while (other.received < 5000 && n++ < 2000)
		turns(1);
	assert_int_equal(other.received, 5000);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(count(COUNTER_tx_packets), 5000);
}

/* The port's other end is this one: what was sent is there to be received. */
static void empty_port(void)
{
	struct rte_mbuf *mbufs[32];
	uint16_t n;

	while ((n = port_rx_burst(&engine->link->port, mbufs, 32)) > 0)
		rte_pktmbuf_free_bulk(mbufs, n);
}

/* The tail of a message, that waits for nothing but the port. */
static void engine_turn__sending_what_was_left_is_work(void **state)
{
	struct rte_mbuf *mbufs[32];
	uint16_t n;

	(void)state;
	if (!have_port)
		skip();
	engine->tx.connected = true;
	engine->link_due_ns = UINT64_MAX;
	qp.to_send = 5000;
	engine_mark_ready(engine, &qp);
	while (qp.to_send > 0 && engine_transmit(engine) > 0 && !engine->tx.stuck)
		;
	assert_int_equal(engine->tx.count, TX_BATCH);
	engine_forget(engine, &qp);
	assert_int_equal(engine_transmit(engine), 0);
	n = port_rx_burst(&engine->link->port, mbufs, 32);
	assert_true(n > 0);
	rte_pktmbuf_free_bulk(mbufs, n);
	assert_true(engine_transmit(engine) > 0);
	empty_port();
	engine_transmit(engine);
	empty_port();
	assert_int_equal(engine->tx.count, 0);
}

static void engine_turn__own_address_goes_round_inside(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	fake_qp_init(&qp, engine->link->port.mac);
	fake_receiver = &other;
	qp.to_send = 2000;
	engine_mark_ready(engine, &qp);
	turns(200);
	assert_int_equal(other.received, 2000);
	assert_int_equal(fake_looped, 2000);
	assert_int_equal(count(COUNTER_tx_packets), 0);
}

/* Each of many queue pairs that end may owe something. */
static void ops_detach__waits_for_a_full_port_once(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	qp.to_send = 1000000;
	engine_mark_ready(engine, &qp);
	while (engine_transmit(engine) > 0 && !engine->tx.stuck)
		;
	assert_true(tx_waits_for_port(&engine->tx));
	ops->lock(engine);
	ops->detach(engine, &qp);
	ops->unlock(engine);
	assert_true(engine->tx.given_up);
	empty_port();
	engine_transmit(engine);
	assert_false(engine->tx.given_up);
	empty_port();
}

static void ops_detach__does_not_wait_for_what_goes_round_inside(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	fake_qp_init(&qp, engine->link->port.mac);
	fake_receiver = &other;
	qp.to_send = 2000;
	engine_mark_ready(engine, &qp);
	ops->lock(engine);
	while (engine_transmit(engine) > 0 && !engine->tx.stuck)
		;
	assert_true(engine->tx.stuck);
	ops->detach(engine, &qp);
	assert_false(engine->tx.given_up);
	ops->unlock(engine);
	turns(200);
}

static void engine_turn__nothing_leaves_without_a_link(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	engine->tx.connected = false;
	engine->link_due_ns = UINT64_MAX;
	fake_receiver = &other;
	qp.to_send = 100;
	engine_mark_ready(engine, &qp);
	turns(10);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(other.received, 0);
	assert_int_equal(count(COUNTER_tx_packets), 0);
}

static void engine_turn__unreadable_payload_is_not_sent(void **state)
{
	const uint8_t bad_mac[6] = {FAKE_UNREADABLE};

	(void)state;
	if (!have_port)
		skip();
	fake_qp_init(&qp, bad_mac);
	fake_receiver = &other;
	qp.to_send = 3;
	engine_mark_ready(engine, &qp);
	turns(2);
	assert_int_equal(qp.faults, 3);
	assert_int_equal(other.received, 0);
	assert_int_equal(count(COUNTER_tx_packets), 0);
}

static void engine_turn__timers_fire_once(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	qp.deadline_ns = clock_ns(&engine->clock) + UINT64_C(3600000000000);
	engine_mark_ready(engine, &qp);
	turns(3);
	assert_int_equal(qp.timeouts, 0);
	assert_int_equal(qp.runs, 1);
	qp.deadline_ns = 1;
	engine_mark_ready(engine, &qp);
	for (int i = 0; i < PATIENCE_MS && qp.timeouts == 0; i++) {
		usleep(20);
		turns(1);
	}
	assert_int_equal(qp.timeouts, 1);
	turns(3);
	assert_int_equal(qp.timeouts, 1);
	assert_int_equal(qp.runs, 3);
}

/* A thread that was away finds the answer in the port beside the timer that it should have stopped.
 */
static void engine_turn__what_has_come_goes_before_timers(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	fake_receiver = &other;
	qp.to_send = 100;
	other.deadline_ns = 1;
	wheel_set(&engine->wheel, &other, 1);
	engine_mark_ready(engine, &qp);
	for (int i = 0; i < 10; i++)
		engine_transmit(engine);
	turns(1);
	assert_true(other.received > 0 && other.received < 100);
	assert_int_equal(other.timeouts, 0);
	turns(10);
	assert_int_equal(other.received, 100);
	/* The wheel looks at a slot when its time is over. */
	for (int i = 0; i < PATIENCE_MS && other.timeouts == 0; i++) {
		usleep(20);
		turns(1);
	}
	assert_int_equal(other.timeouts, 1);
}

/* Whoever floods the port must not keep queue pairs from giving up. */
static void engine_turn__timers_fire_on_a_full_port_too(void **state)
{
	int turn = 0;

	(void)state;
	if (!have_port)
		skip();
	qp.to_send = UINT32_MAX;
	qp.deadline_ns = UINT64_MAX;
	other.deadline_ns = 1;
	wheel_set(&engine->wheel, &other, 1);
	engine_mark_ready(engine, &qp);
	engine_transmit(engine);
	for (; turn < 100 * ENGINE_FULL_BURSTS && other.timeouts == 0; turn++)
		turns(1);
	assert_int_equal(other.timeouts, 1);
	assert_true(turn + 1 >= ENGINE_FULL_BURSTS);
	qp.to_send = 0;
	turns(3);
}

static void add_address(const uint8_t gid[GID_LEN])
{
	struct address address = {.prefix_len = 24, .vlan = VLAN_NONE};

	memcpy(address.gid, gid, GID_LEN);
	addresses_add(&engine->link->addresses, &address);
}

static void engine_turn__answers_arp(void **state)
{
	const uint8_t ip[4] = {10, 0, 0, 2}, own_ip[4] = {10, 0, 0, 1};
	uint8_t gid[GID_LEN];
	struct rte_mbuf *mbuf;
	struct arp arp;

	(void)state;
	if (!have_port)
		skip();
	gid_from_ipv4(own_ip, gid);
	add_address(gid);
	mbuf = tx_alloc(&engine->tx);
	tx_send(&engine->tx, mbuf,
		(uint32_t)arp_build_request(rte_pktmbuf_mtod(mbuf, uint8_t *), peer_mac, ip,
					    own_ip));
	turns(1);
	/* The answer is on the wire now, which leads back to us. */
	assert_int_equal(port_rx_burst(&engine->link->port, &mbuf, 1), 1);
	assert_true(arp_parse(rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len, &arp));
	assert_false(arp.request);
	assert_memory_equal(arp.sender_mac, engine->link->port.mac, 6);
	rte_pktmbuf_free(mbuf);
}

static void engine_forget__leaves_no_trace(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	qp.deadline_ns = 1;
	wheel_set(&engine->wheel, &qp, 1);
	engine_mark_ready(engine, &qp);
	engine_push_kick(engine, &qp);
	engine_push_kick(engine, &other);
	engine_forget(engine, &qp);
	turns(2);
	assert_int_equal(qp.runs, 0);
	assert_int_equal(qp.timeouts, 0);
	assert_int_equal(other.runs, 1);
}

static void engine_check_link__tells_of_changes_once(void **state)
{
	struct port *port;

	(void)state;
	if (!have_port)
		skip();
	port = &engine->link->port;
	assert_true(engine->device->link_up);
	port->started = false;
	engine_check_link(engine);
	port->started = true;
	assert_int_equal(fake_last_event, IBV_EVENT_PORT_ERR);
	assert_false(engine->device->link_up);
	engine_check_link(engine);
	assert_int_equal(fake_last_event, IBV_EVENT_PORT_ACTIVE);
	assert_true(engine->device->link_up);
	fake_last_event = 0;
	engine_check_link(engine);
	assert_int_equal(fake_last_event, 0);
}

static void ops_kick__sends_at_once(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	qp.to_send = 1;
	ops->kick(engine, &qp);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(count(COUNTER_tx_packets), 1);
}

static void ops_kick__of_a_taken_engine_is_served_by_its_owner(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	assert_true(engine_try(engine));
	qp.to_send = 1;
	ops->kick(engine, &qp);
	ops->kick(engine, &qp);
	assert_int_equal(qp.to_send, 1);
	engine_release(engine);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(qp.runs, 1);
}

static void ops_lock__pays_what_is_owed_first(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	qp.to_send = 1;
	engine_mark_ready(engine, &qp);
	ops->lock(engine);
	assert_int_equal(qp.to_send, 0);
	assert_false(engine_try(engine));
	ops->unlock(engine);
	assert_true(engine_try(engine));
}

/* A driver that takes tags off says so in the packet's metadata. */
static void engine_turn__puts_a_stripped_tag_back(void **state)
{
	const uint8_t ip[4] = {10, 0, 0, 2}, own_ip[4] = {10, 0, 0, 1};
	struct address address = {.prefix_len = 24, .vlan = 5};
	struct rte_mbuf *mbuf;

	(void)state;
	if (!have_port)
		skip();
	gid_from_ipv4(own_ip, address.gid);
	addresses_add(&engine->link->addresses, &address);
	mbuf = tx_alloc(&engine->tx);
	mbuf->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	mbuf->vlan_tci = 5;
	tx_send(&engine->tx, mbuf,
		(uint32_t)arp_build_request(rte_pktmbuf_mtod(mbuf, uint8_t *), peer_mac, ip,
					    own_ip));
	turns(1);
	/* The answer has the tag in the frame. */
	assert_int_equal(port_rx_burst(&engine->link->port, &mbuf, 1), 1);
	assert_int_equal(mbuf->data_len, ARP_FRAME_LEN + TAG_LEN);
	assert_memory_equal(rte_pktmbuf_mtod_offset(mbuf, uint8_t *, 12),
			    ((uint8_t[]){0x81, 0, 0, 5}), 4);
	rte_pktmbuf_free(mbuf);
}

/* A chain of buffers with one RoCE frame, `part_len` bytes in each; enough for the fake. */
static struct rte_mbuf *make_chain(size_t len, size_t part_len)
{
	struct rte_mbuf *head = NULL;

	for (size_t at = 0; at < len; at += part_len) {
		const uint16_t n = (uint16_t)RTE_MIN(part_len, len - at);
		struct rte_mbuf *part = tx_alloc(&engine->tx);

		memset(rte_pktmbuf_append(part, n), 0x91, n);
		if (!head)
			head = part;
		else
			assert_int_equal(rte_pktmbuf_chain(head, part), 0);
	}
	return head;
}

static void engine_turn__takes_frames_over_several_buffers(void **state)
{
	struct rte_mbuf *mbuf;

	(void)state;
	if (!have_port)
		skip();
	fake_receiver = &qp;
	for (size_t part_len = 1; part_len <= FAKE_FRAME_LEN; part_len += 21) {
		mbuf = make_chain(FAKE_FRAME_LEN, part_len);
		qp.received = 0;
		assert_int_equal(port_tx_burst(&engine->link->port, &mbuf, 1), 1);
		turns(1);
		assert_int_equal(qp.received, 1);
	}
	/* longer than any of RoCE: dropped */
	mbuf = make_chain(2 * PACKET_FRAME_MAX, PACKET_FRAME_MAX - 1);
	assert_int_equal(port_tx_burst(&engine->link->port, &mbuf, 1), 1);
	turns(1);
	assert_int_equal(qp.received, 1);
}

static void engine_turn__believes_the_port_of_checksums(void **state)
{
	static const struct {
		uint64_t flags;
		unsigned int good;
	} cases[] = {
		{0, 0},
		{RTE_MBUF_F_RX_L4_CKSUM_GOOD, 0},
		{RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD, 1},
		{RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD, 0},
		{RTE_MBUF_F_RX_L4_CKSUM_NONE, 1}, /* from a virtual machine: not computed yet */
	};

	(void)state;
	if (!have_port)
		skip();
	fake_receiver = &qp;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *mbuf = make_chain(FAKE_FRAME_LEN, FAKE_FRAME_LEN);

		mbuf->ol_flags = cases[i].flags;
		fake_known_good = 0;
		assert_int_equal(port_tx_burst(&engine->link->port, &mbuf, 1), 1);
		turns(1);
		assert_int_equal(fake_known_good, cases[i].good);
	}
}

/* What a port with DMA would have made of a HUGETLB region. */
static void make_region(struct dma_region *region, const void *addr, size_t length)
{
	static struct rte_mempool *parts;

	if (!parts)
		parts = rte_pktmbuf_pool_create("parts", 64, 0, 0, 0, SOCKET_ID_ANY);
	assert_non_null(parts);
	memset(region, 0, sizeof(*region));
	region->addr = (uintptr_t)addr;
	region->length = length;
	region->iova = UINT64_C(1) << 40;
	rte_mbuf_ext_refcnt_set(&region->shared, 1);
	engine->dma.parts = parts;
	LIST_INSERT_HEAD(&engine->dma.regions, region, link);
}

static struct rte_mbuf *send_payload(const uint8_t *payload, uint32_t len)
{
	struct rte_mbuf *mbuf;

	qp.payload = payload;
	qp.payload_len = len;
	qp.to_send = 1;
	ops->kick(engine, &qp);
	assert_int_equal(port_rx_burst(&engine->link->port, &mbuf, 1), 1);
	return mbuf;
}

static void tx__huge_payload_stays_in_its_place(void **state)
{
	static uint8_t memory[8192];
	struct dma_region region;
	struct rte_mbuf *mbuf, *body;

	(void)state;
	if (!have_port)
		skip();
	make_region(&region, memory, sizeof(memory));
	mbuf = send_payload(memory + 4096, 4096);
	assert_int_equal(mbuf->nb_segs, 3);
	assert_int_equal(mbuf->pkt_len, FAKE_FRAME_LEN + 4096 + 4);
	body = mbuf->next;
	assert_ptr_equal(rte_pktmbuf_mtod(body, uint8_t *), memory + 4096);
	assert_int_equal(rte_pktmbuf_iova(body), region.iova + 4096);
	assert_int_equal(body->data_len, 4096);
	assert_int_equal(body->next->data_len, 4);
	assert_int_equal(*rte_pktmbuf_mtod(body->next, uint8_t *), FAKE_TAIL);
	/* as the port will have it */
	assert_int_equal(rte_pktmbuf_iova(body->next) - rte_pktmbuf_iova(mbuf),
			 rte_pktmbuf_mtod(body->next, uint8_t *) -
				 rte_pktmbuf_mtod(mbuf, uint8_t *));
	assert_true(dma_is_busy(&region));
	rte_pktmbuf_free(mbuf);
	assert_false(dma_is_busy(&region));
	assert_int_equal(count(COUNTER_tx_in_place_packets), 1);
	assert_int_equal(count(COUNTER_tx_bytes), FAKE_FRAME_LEN + 4096 + 4);
}

static void tx__what_may_change_under_way_is_copied(void **state)
{
	static uint8_t memory[8192], other_memory[4096];
	struct dma_region region;
	const struct {
		const uint8_t *payload;
		uint32_t len;
		uint8_t opcode;
		bool again;
	} cases[] = {
		{memory, 512, OPCODE_RC | OPCODE_SEND_ONLY, false}, /* short */
		{memory + 4097, 4096, OPCODE_RC | OPCODE_SEND_ONLY,
		 false}, /* not all of it is in the region */
		{other_memory, 4096, OPCODE_RC | OPCODE_SEND_ONLY, false},
		{memory, 4096, OPCODE_RC | OPCODE_READ_RESPONSE_ONLY, false},
		{memory, 4096, OPCODE_UC | OPCODE_SEND_ONLY,
		 false}, /* completes before it is read */
		{memory, 4096, OPCODE_UD | OPCODE_SEND_ONLY, false},
		{memory, 4096, OPCODE_RC | OPCODE_SEND_ONLY,
		 true}, /* maybe it did not fit its ICRC */
	};

	(void)state;
	if (!have_port)
		skip();
	make_region(&region, memory, sizeof(memory));
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *mbuf;

		qp.opcode = cases[i].opcode;
		qp.again = cases[i].again;
		mbuf = send_payload(cases[i].payload, cases[i].len);
		assert_int_equal(mbuf->nb_segs, 1);
		rte_pktmbuf_free(mbuf);
	}
	/* to ourselves: what comes round would be looked for in one piece */
	qp.opcode = OPCODE_RC | OPCODE_SEND_ONLY;
	qp.again = false;
	memcpy(qp.dst_mac, engine->link->port.mac, sizeof(qp.dst_mac));
	qp.to_send = 1;
	qp.payload = memory;
	qp.payload_len = 4096;
	ops->kick(engine, &qp);
	assert_int_equal(count(COUNTER_tx_in_place_packets), 0);
	assert_false(dma_is_busy(&region));
}

static void tx__unreadable_payload_in_place_is_a_fault(void **state)
{
	static uint8_t memory[4096];
	struct dma_region region;

	(void)state;
	if (!have_port)
		skip();
	make_region(&region, memory, sizeof(memory));
	qp.payload = memory;
	qp.payload_len = sizeof(memory);
	qp.dst_mac[0] = FAKE_UNREADABLE;
	qp.to_send = 1;
	ops->kick(engine, &qp);
	assert_int_equal(qp.faults, 1);
	assert_false(dma_is_busy(&region));
	assert_int_equal(rte_mempool_in_use_count(engine->dma.parts), 0);
}

static void ops_resolve__finds_ourselves_and_nobody_far(void **state)
{
	const uint8_t own_ip[4] = {10, 0, 0, 1}, far_ip[4] = {192, 0, 2, 1};
	union ibv_gid gid;
	uint8_t mac[6];

	(void)state;
	if (!have_port)
		skip();
	gid_from_ipv4(own_ip, gid.raw);
	add_address(gid.raw);
	assert_int_equal(ops->resolve(engine, 0, &gid, mac), 0);
	assert_memory_equal(mac, engine->link->port.mac, 6);
	gid_from_ipv4(far_ip, gid.raw);
	assert_int_equal(ops->resolve(engine, 0, &gid, mac), -ENETUNREACH);
}

/* An engine that has ended, or belongs to a fork's parent, does nothing and blocks nobody. */
static void engine_disown__makes_every_call_return(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	assert_true(engine_try(engine));
	engine_disown(engine);
	ops->lock(engine);
	ops->unlock(engine);
	qp.to_send = 1;
	ops->kick(engine, &qp);
	ops->poll(engine);
	ops->wait(engine);
	assert_int_equal(qp.runs, 0);
}

static bool eventually(const unsigned int *value, unsigned int want)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (__atomic_load_n(value, __ATOMIC_ACQUIRE) == want)
			return true;
		usleep(1000);
	}
	return false;
}

static int set_up_hybrid(void **state)
{
	(void)state;
	if (!have_port)
		return 0;
	engine = fake_engine(SETTINGS_PROGRESS_HYBRID);
	fake_qp_init(&qp, peer_mac);
	fake_qp_init(&other, peer_mac);
	return engine ? helper_start(engine) : -1;
}

static void helper__takes_over_when_nobody_polls(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	fake_receiver = &other;
	qp.to_send = 1000;
	ops->kick(engine, &qp);
	assert_true(eventually(&other.received, 1000));
}

static void helper__serves_timers_while_the_program_sleeps(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	qp.deadline_ns = clock_ns(&engine->clock) + 3000000;
	ops->kick(engine, &qp);
	ops->wait(engine);
	assert_true(eventually(&qp.timeouts, 1));
}

static void helper__lets_a_polling_program_run_the_engine(void **state)
{
	const uint64_t before = engine ? engine->app_turns : 0;

	(void)state;
	if (!have_port)
		skip();
	for (int i = 0; i < PATIENCE_MS * 100 && engine->app_turns < before + 1000; i++)
		ops->poll(engine);
	assert_true(engine->app_turns >= before + 1000);
}

static int set_up_idle_hybrid(void **state)
{
	(void)state;
	if (!have_port)
		return 0;
	engine = fake_engine(SETTINGS_PROGRESS_HYBRID);
	return engine ? 0 : -1;
}

/* A socket like the port's of an interface that went down: in error until the error is read. */
static int socket_in_error(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct pollfd poll_fd = {.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
	const int silent = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	assert_int_equal(bind(silent, (const struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *)&addr, &len), 0);
	close(silent);
	assert_int_equal(connect(poll_fd.fd, (const struct sockaddr *)&addr, len), 0);
	assert_int_equal(send(poll_fd.fd, "", 1, 0), 1);
	assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
	assert_int_equal(poll_fd.revents, POLLERR);
	return poll_fd.fd;
}

static void helper__reads_the_error_of_a_port_that_went_down(void **state)
{
	struct pollfd poll_fd = {.events = 0};
	int left = PATIENCE_MS;

	(void)state;
	if (!have_port)
		skip();
	poll_fd.fd = socket_in_error();
	engine->link->port.wake_fd = poll_fd.fd;
	assert_int_equal(helper_start(engine), 0);
	while (poll(&poll_fd, 1, 0) != 0 && left-- > 0)
		usleep(1000);
	helper_stop(engine);
	engine->link->port.wake_fd = -1;
	close(poll_fd.fd);
	assert_true(left > 0);
}

/* This port has none, which shows when they are armed. */
static void helper__arms_interrupts_as_the_owner_alone(void **state)
{
	const int fd = eventfd(0, EFD_CLOEXEC);
	struct port *port;
	bool left = true;

	(void)state;
	assert_true(fd >= 0);
	if (!have_port)
		skip();
	port = &engine->link->port;
	port->interrupts = true;
	port->wake_fd = fd;
	engine_lock(engine);
	assert_int_equal(helper_start(engine), 0);
	/* Longer than it takes to fall asleep; shorter on a busy machine, where nothing is shown.
	 */
	usleep(20000);
	assert_true(port_interrupts(port));
	engine_release(engine);
	for (int i = 0; i < PATIENCE_MS && (left = port_interrupts(port)); i++)
		usleep(1000);
	helper_stop(engine);
	assert_false(left);
	assert_int_equal(port_wake_fd(port), -1);
	close(fd);
}

static void *cancelled_in_a_turn(void *arg)
{
	assert_true(engine_try(engine));
	pthread_cancel(pthread_self());
	pthread_testcancel();
	engine_release(engine);
	*(bool *)arg = true;
	pthread_testcancel();
	*(bool *)arg = false;
	return NULL;
}

static void engine_try__protects_the_owner_from_being_cancelled(void **state)
{
	pthread_t thread;
	bool released = false;
	void *result;

	(void)state;
	if (!have_port)
		skip();
	assert_int_equal(pthread_create(&thread, NULL, cancelled_in_a_turn, &released), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	/* Not before it had given the engine back, and not much later. */
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(released);
	assert_true(engine_try(engine));
	engine_release(engine);
}

static int set_up_dedicated(void **state)
{
	(void)state;
	if (!have_port)
		return 0;
	engine = fake_engine(SETTINGS_PROGRESS_DEDICATED);
	fake_qp_init(&qp, peer_mac);
	fake_qp_init(&other, peer_mac);
	return engine ? helper_start(engine) : -1;
}

static void helper__dedicated_serves_kicks_and_the_program_no_turns(void **state)
{
	(void)state;
	if (!have_port)
		skip();
	fake_receiver = &other;
	qp.to_send = 50;
	ops->kick(engine, &qp);
	for (int i = 0; i < 100; i++)
		ops->poll(engine);
	assert_int_equal(engine->app_turns, 0);
	assert_true(eventually(&other.received, 50));
}

/* Kicks from several threads against a running helper: none is lost. */
static void *kicker(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		__atomic_fetch_add(&((struct qp *)arg)->to_send, 0, __ATOMIC_SEQ_CST);
		ops->kick(engine, arg);
	}
	return NULL;
}

static void ops_kick__none_is_lost_between_threads(void **state)
{
	struct qp qps[3];
	pthread_t threads[3];

	(void)state;
	if (!have_port)
		skip();
	for (int i = 0; i < 3; i++) {
		fake_qp_init(&qps[i], peer_mac);
		assert_int_equal(pthread_create(&threads[i], NULL, kicker, &qps[i]), 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 3; i++) {
		qps[i].to_send = 1;
		ops->kick(engine, &qps[i]);
		assert_true(eventually(&qps[i].to_send, 0));
	}
	ops->lock(engine);
	for (int i = 0; i < 3; i++)
		ops->detach(engine, &qps[i]);
	ops->unlock(engine);
}

#define INLINE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define HYBRID(test) cmocka_unit_test_setup_teardown(test, set_up_hybrid, tear_down)

/* Its next packet may be one into memory that is gone. */
static void engine_turn__unblocks_the_signals_of_faults(void **state)
{
	sigset_t all, before, now;

	(void)state;
	if (!have_port)
		skip();
	turns(1);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	usleep(1000); /* longer than GUARD_PERIOD_NS */
	turns(1);
	pthread_sigmask(SIG_SETMASK, &before, &now);
	assert_false(sigismember(&now, SIGSEGV) || sigismember(&now, SIGBUS));
	assert_true(sigismember(&now, SIGTERM));
}

#define LINE_OF(field) (offsetof(struct engine, field) / RTE_CACHE_LINE_SIZE)

/* Who only asks for the engine, or leaves work for it, slows its owner no more than that. */
static void engine__others_write_apart_from_its_owner(void **state)
{
	(void)state;
	assert_int_not_equal(LINE_OF(owner), LINE_OF(kicks));
	assert_int_not_equal(LINE_OF(kicks), LINE_OF(polls));
	assert_int_not_equal(LINE_OF(app_turns), LINE_OF(ended));
	assert_int_not_equal(LINE_OF(polls), LINE_OF(ready));
	/* Engines of a process are apart as well. */
	assert_int_equal(_Alignof(struct engine) % RTE_CACHE_LINE_SIZE, 0);
	assert_int_equal(sizeof(struct engine) % RTE_CACHE_LINE_SIZE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine__others_write_apart_from_its_owner),
		INLINE(engine_turn__answers_who_watches),
		INLINE(engine_turn__sends_and_receives),
		INLINE(engine_turn__a_lone_acknowledgement_waits_for_company),
		INLINE(engine_turn__unblocks_the_signals_of_faults),
		INLINE(engine_turn__what_goes_to_others_of_our_address_leaves),
		INLINE(engine_check_link__a_lost_port_ends_everything),
		INLINE(engine_transmit__builds_in_the_ports_places),
		INLINE(engine_transmit__goes_without_a_payload_that_is_gone),
		INLINE(engine_turn__queue_pairs_take_turns),
		INLINE(engine_turn__what_the_port_does_not_take_waits),
		INLINE(engine_turn__sending_what_was_left_is_work),
		INLINE(engine_turn__own_address_goes_round_inside),
		INLINE(ops_detach__waits_for_a_full_port_once),
		INLINE(ops_detach__does_not_wait_for_what_goes_round_inside),
		INLINE(engine_turn__nothing_leaves_without_a_link),
		INLINE(engine_turn__unreadable_payload_is_not_sent),
		INLINE(engine_turn__timers_fire_once),
		INLINE(engine_turn__what_has_come_goes_before_timers),
		INLINE(engine_turn__timers_fire_on_a_full_port_too),
		INLINE(engine_turn__answers_arp),
		INLINE(engine_turn__puts_a_stripped_tag_back),
		INLINE(engine_turn__takes_frames_over_several_buffers),
		INLINE(engine_turn__believes_the_port_of_checksums),
		INLINE(tx__huge_payload_stays_in_its_place),
		INLINE(tx__what_may_change_under_way_is_copied),
		INLINE(tx__unreadable_payload_in_place_is_a_fault),
		INLINE(engine_forget__leaves_no_trace),
		INLINE(engine_check_link__tells_of_changes_once),
		INLINE(ops_kick__sends_at_once),
		INLINE(ops_kick__of_a_taken_engine_is_served_by_its_owner),
		INLINE(ops_lock__pays_what_is_owed_first),
		INLINE(ops_resolve__finds_ourselves_and_nobody_far),
		INLINE(engine_disown__makes_every_call_return),
		INLINE(engine_try__protects_the_owner_from_being_cancelled),
		cmocka_unit_test_setup_teardown(helper__reads_the_error_of_a_port_that_went_down,
						set_up_idle_hybrid, tear_down),
		cmocka_unit_test_setup_teardown(helper__arms_interrupts_as_the_owner_alone,
						set_up_idle_hybrid, tear_down),
		HYBRID(helper__takes_over_when_nobody_polls),
		HYBRID(helper__serves_timers_while_the_program_sleeps),
		HYBRID(helper__lets_a_polling_program_run_the_engine),
		HYBRID(ops_kick__none_is_lost_between_threads),
		cmocka_unit_test_setup_teardown(
			helper__dedicated_serves_kicks_and_the_program_no_turns, set_up_dedicated,
			tear_down),
	};

	return cmocka_run_group_tests(tests, group_set_up, NULL);
}
