/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/engine.c, on a port whose transmit side is its receive side: what the port
 * takes, gives and keeps. */
#include <string.h>

#include <rte_lcore.h>

#include "engine_rig.h"
#include "net/arp.h"
#include "net/tag.h"
#include "test.h"
#include "wire/opcode.h"

TEST_GROUP(rig_group_set_up, NULL);
TEST_FIXTURE(rig_set_up, rig_tear_down);

/* A port that processes share has one address for all of them. */
TEST(engine_poll__what_goes_to_others_of_our_address_leaves)
{
	struct port *port;

	port = &engine->link->port;
	fake_receiver = &other;
	fake_qp_init(&qp, port->mac);
	/* The frames are to queue pair 0. */
	port->own_qpn_first = 1;
	port->own_qpn_count = 1;
	rig_send(&qp, 1);
	rig_polls(2);
	assert_int_equal(rig_count(COUNTER_tx_packets), 1);
	assert_int_equal(fake_looped, 0);
	port->own_qpn_first = 0;
	rig_send(&qp, 1);
	rig_polls(2);
	port->own_qpn_count = 0;
	assert_int_equal(rig_count(COUNTER_tx_packets), 1);
	assert_int_equal(fake_looped, 1);
}

/* The port's ring holds fewer than that: nothing may be lost, and everything goes in the end. */
TEST(engine_poll__what_the_port_does_not_take_waits)
{
	unsigned int n = 0;

	fake_receiver = &other;
	rig_send(&qp, 5000);
	/* Send without receiving until the port is full. */
	for (int i = 0; i < 200; i++)
		engine_transmit(engine);
	assert_true(qp.to_send > 0);
	assert_true(rig_count(COUNTER_tx_no_buffer) > 0);
	while (other.received < 5000 && n++ < 2000)
		rig_polls(1);
	assert_int_equal(other.received, 5000);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(rig_count(COUNTER_tx_packets), 5000);
}

/* The tail of a message, that waits for nothing but the port. */
TEST(engine_poll__sending_what_was_left_is_work)
{
	struct rte_mbuf *mbufs[32];
	uint16_t n;

	engine->tx.connected = true;
	engine->link_due_ns = UINT64_MAX;
	rig_send(&qp, 5000);
	while (qp.to_send > 0 && engine_transmit(engine) > 0 && !engine->tx.stuck)
		;
	assert_int_equal(engine->tx.count, TX_BATCH);
	engine_forget(engine, &qp);
	assert_int_equal(engine_transmit(engine), 0);
	n = port_rx_burst(&engine->link->port, mbufs, 32);
	assert_true(n > 0);
	rte_pktmbuf_free_bulk(mbufs, n);
	assert_true(engine_transmit(engine) > 0);
	rig_empty_port();
	engine_transmit(engine);
	rig_empty_port();
	assert_int_equal(engine->tx.count, 0);
}

/* A port that holds packets to the queue pair `full_qpn` back. */
static uint32_t full_qpn, held_sent;

static bool full_waits(void *arg, uint32_t qpn)
{
	assert_ptr_equal(arg, engine->link->port.ops_arg);
	return qpn == full_qpn;
}

static void full_send_held(void *arg)
{
	(void)arg;
	held_sent++;
}

/* A process of this host has no CPU: queue pairs that send to it keep their packets, and the others
 * send. */
TEST(engine_poll__who_sends_to_a_full_process_waits)
{
	struct port *port = &engine->link->port;
	const struct port_ops *const before = port->ops;
	struct port_ops holding = *before;
	unsigned int runs;

	holding.waits = full_waits;
	holding.send_held = full_send_held;
	port->ops = &holding;
	port->own_qpn_first = 1;
	port->own_qpn_count = 1;
	fake_qp_init(&qp, port->mac);
	full_qpn = fake_peer_qpn = 7;
	port->tx_held = 3;
	held_sent = 0;
	rig_send(&qp, 2);
	rig_send(&other, 2);
	runs = qp.runs;
	rig_polls(2);
	assert_int_equal(qp.runs, runs);
	assert_int_equal(qp.to_send, 2);
	assert_int_equal(other.to_send, 0);
	assert_in_range(held_sent, 2, UINT32_MAX);
	/* The helper must not sleep for long. */
	assert_in_range(engine_idle_ns(engine, engine->now_ns, UINT64_MAX), 0, 10000);
	/* A queue pair of another host has the same number. */
	fake_qp_init(&other, peer_mac);
	rig_send(&other, 1);
	rig_polls(1);
	assert_int_equal(other.to_send, 0);
	/* So does one that sends the rest of its messages. */
	qp.state = IBV_QPS_SQD;
	rig_polls(1);
	assert_int_equal(qp.runs, runs);
	/* One that has failed flushes its requests. */
	qp.state = IBV_QPS_ERR;
	rig_polls(1);
	assert_true(qp.runs > runs);
	qp.state = IBV_QPS_RTS;
	rig_send(&qp, 2);
	port->tx_held = 0;
	rig_polls(1);
	assert_int_equal(qp.to_send, 0);
	port->own_qpn_count = 0;
	port->ops = before;
}

/* A port with a bad network in front, that takes frames and returns none. */
static uint32_t kept_left;
static struct impair_counts no_damage;

static uint16_t keep_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct port *port = &engine->link->port;

	(void)arg, (void)mbufs;
	port->rx_kept = (uint16_t)RTE_MIN(n, kept_left);
	kept_left -= port->rx_kept;
	port->rx_cut = port->rx_kept == n;
	return 0;
}

static void keep_frames(uint32_t frames, struct port_ops *ops_of_port)
{
	struct port *port = &engine->link->port;

	*ops_of_port = *port->ops;
	ops_of_port->rx_burst = keep_rx_burst;
	port->ops = ops_of_port;
	port->impaired = &no_damage;
	kept_left = frames;
}

/* The rings of a peer that has gone are unmapped after this. */
TEST(engine_empty_port__takes_all_frames_that_a_bad_network_keeps)
{
	const struct port_ops *const before = engine->link->port.ops;
	struct port_ops keeping;

	keep_frames(1000, &keeping);
	engine_empty_port(engine);
	assert_int_equal(kept_left, 0);
	/* A peer that sends all the time does not keep the engine here. */
	kept_left = UINT32_MAX;
	engine_empty_port(engine);
	assert_in_range(kept_left, UINT32_MAX - 2 * ENGINE_FULL_FRAMES, UINT32_MAX - 1);
	engine->link->port.ops = before;
	engine->link->port.impaired = NULL;
	engine->link->port.rx_kept = 0;
}

/* A bad network sends later, while the engine receives. What the port drops then was not sent. */
TEST(engine_poll__counts_late_drops_of_a_bad_network)
{
	struct port *port = &engine->link->port;
	const struct port_ops *const before = port->ops;
	struct port_ops keeping;

	rig_send(&qp, 3);
	rig_polls(1);
	keep_frames(0, &keeping);
	port->tx_refused = (struct port_drops){.packets = 2, .bytes = 2 * FAKE_FRAME_LEN};
	rig_polls(1);
	assert_int_equal(rig_count(COUNTER_tx_refused), 2);
	assert_int_equal(rig_count(COUNTER_tx_packets), 1);
	assert_int_equal(rig_count(COUNTER_tx_bytes), FAKE_FRAME_LEN);
	port->ops = before;
	port->impaired = NULL;
}

TEST(engine_poll__counts_damage_done_on_purpose)
{
	static const struct impair_counts counts = {.of = {1, 2, 3, 4, 5, 6}};
	struct port *port = &engine->link->port;

	port->impaired = &counts;
	rig_polls(2);
	port->impaired = NULL;
	for (int kind = 0; kind < IMPAIR_KINDS; kind++) {
		const enum counter counter = (enum counter)(COUNTER_impair_lost + kind);

		assert_int_equal(rig_count(counter), counts.of[kind]);
		assert_string_equal(counter_name(counter),
				    impair_count_name((enum impair_kind)kind));
	}
}

TEST(engine_poll__own_address_goes_round_inside)
{
	fake_qp_init(&qp, engine->link->port.mac);
	fake_receiver = &other;
	rig_send(&qp, 2000);
	rig_polls(200);
	assert_int_equal(other.received, 2000);
	assert_int_equal(fake_looped, 2000);
	assert_int_equal(rig_count(COUNTER_tx_packets), 0);
}

/* Posting threads make many passes for each engine poll. A queue pair that ran in such a pass,
 * without room for any packet, would be behind all others again. */
TEST(engine_transmit__runs_no_queue_pair_in_vain)
{
	struct qp to_self;
	unsigned int runs;

	fake_qp_init(&to_self, engine->link->port.mac);
	rig_send(&to_self, 10000);
	for (int pass = 0; pass < 100 && !tx_loop_full(&engine->tx); pass++)
		engine_transmit(engine);
	assert_true(tx_loop_full(&engine->tx));
	runs = to_self.runs;
	for (int pass = 0; pass < 10; pass++)
		engine_transmit(engine);
	assert_int_equal(to_self.runs, runs);
	/* The rest waits for an engine poll, and the helper must not sleep for long. */
	assert_true(engine->tx.stuck);
	rig_polls(2);
	assert_true(to_self.runs > runs);
	to_self.to_send = 0;
	rig_polls(100);
	engine_forget(engine, &to_self);
}

static unsigned int woken; /* times the port's other end was woken */

static void count_wakes(void *arg)
{
	(void)arg;
	/* The packet is not built yet. */
	assert_int_equal(qp.to_send, 1);
	woken++;
}

TEST(engine_transmit__wakes_the_other_end_first_if_the_process_has_slept)
{
	struct port *port = &engine->link->port;
	const struct port_ops *before = port->ops;
	struct port_ops waking = *before;
	const struct {
		bool slept, to_self;
	} cases[] = {{true, false}, {false, false}, {true, true}};

	waking.wake_other_end = count_wakes;
	port->ops = &waking;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		fake_qp_init(&qp, cases[i].to_self ? port->mac : peer_mac);
		woken = 0;
		engine->clock.ns_per_tsc = 0;
		engine->busy_ns = cases[i].slept ? 0 : clock_ns(&engine->clock);
		rig_send(&qp, 1);
		engine_transmit(engine);
		assert_int_equal(woken, cases[i].slept && !cases[i].to_self);
		assert_int_equal(qp.to_send, 0);
		/* Nothing is left to send. */
		engine->busy_ns = 0;
		engine_transmit(engine);
		assert_int_equal(woken, cases[i].slept && !cases[i].to_self);
		rig_polls(2);
	}
	port->ops = before;
	rig_empty_port();
}

TEST(engine_poll__nothing_leaves_without_a_link)
{
	engine->tx.connected = false;
	engine->link_due_ns = UINT64_MAX;
	fake_receiver = &other;
	rig_send(&qp, 100);
	rig_polls(10);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(other.received, 0);
	assert_int_equal(rig_count(COUNTER_tx_packets), 0);
	assert_int_equal(rig_count(COUNTER_tx_unconnected), 100);
	engine_send_frame(engine, peer_mac, sizeof(peer_mac));
	assert_int_equal(rig_count(COUNTER_tx_other_dropped), 1);
}

TEST(engine_poll__unreadable_payload_is_not_sent)
{
	const uint8_t bad_mac[6] = {FAKE_UNREADABLE};

	fake_qp_init(&qp, bad_mac);
	fake_receiver = &other;
	rig_send(&qp, 3);
	rig_polls(2);
	assert_int_equal(qp.faults, 3);
	assert_int_equal(other.received, 0);
	assert_int_equal(rig_count(COUNTER_tx_packets), 0);
}

/* A driver that takes tags off says so in the packet's metadata. */
TEST(engine_poll__puts_a_stripped_tag_back)
{
	const uint8_t ip[4] = {10, 0, 0, 2}, own_ip[4] = {10, 0, 0, 1};
	struct address address = {.prefix_len = 24, .vlan = 5};
	struct rte_mbuf *mbuf;

	gid_from_ipv4(own_ip, address.gid);
	addresses_add(&engine->link->addresses, &address);
	mbuf = tx_alloc(&engine->tx);
	mbuf->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	mbuf->vlan_tci = 5;
	tx_send(&engine->tx, mbuf,
		(uint32_t)arp_build_request(rte_pktmbuf_mtod(mbuf, uint8_t *), peer_mac, ip,
					    own_ip));
	rig_polls(1);
	/* The answer has the tag in the frame. */
	assert_int_equal(port_rx_burst(&engine->link->port, &mbuf, 1), 1);
	assert_int_equal(mbuf->data_len, ARP_FRAME_LEN + TAG_LEN);
	assert_memory_equal(rte_pktmbuf_mtod_offset(mbuf, uint8_t *, 12),
			    ((uint8_t[]){0x81, 0, 0, 5}), 4);
	rte_pktmbuf_free(mbuf);
}

TEST(engine_poll__counts_a_frame_without_room_for_its_tag)
{
	struct rte_mbuf *mbuf = tx_alloc(&engine->tx);

	fake_receiver = &other;
	mbuf->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	mbuf->data_off = 0;
	memset(rte_pktmbuf_mtod(mbuf, uint8_t *), 0x91, FAKE_FRAME_LEN);
	tx_send(&engine->tx, mbuf, FAKE_FRAME_LEN);
	rig_polls(1);
	assert_int_equal(other.received, 0);
	assert_int_equal(rig_count(COUNTER_rx_vlan_errors), 1);
}

/* The pool does not even have one buffer for the copy of a multicast datagram to this host. */
TEST(engine_poll__counts_what_is_lost_for_want_of_a_buffer)
{
	static struct rte_mbuf *taken[1 << 16];
	const uint32_t groups = 1;
	const uint8_t group_mac[6] = {1, 0, 0x5e, 0, 0, 1};
	const unsigned int lcore = RTE_PER_LCORE(_lcore_id);
	uint32_t n = 0;

	/* The pool keeps free buffers for each lcore: those of the engine's are to be taken. */
	RTE_PER_LCORE(_lcore_id) = 0;
	engine->tx.groups = &groups;
	fake_qp_init(&qp, group_mac);
	while (n < RTE_DIM(taken) && (taken[n] = tx_alloc(&engine->tx)) != NULL)
		n++;
	assert_in_range(n, 2, RTE_DIM(taken) - 1);
	assert_int_equal(rig_count(COUNTER_tx_other_dropped), 1);
	engine_send_frame(engine, peer_mac, sizeof(peer_mac));
	assert_int_equal(rig_count(COUNTER_tx_other_dropped), 2);
	rte_pktmbuf_free(taken[--n]);
	rig_send(&qp, 1);
	rig_polls(1);
	rte_pktmbuf_free_bulk(taken, n);
	RTE_PER_LCORE(_lcore_id) = lcore;
	assert_int_equal(rig_count(COUNTER_tx_packets), 1);
	assert_int_equal(rig_count(COUNTER_tx_loopback_no_buffer), 1);
	engine->tx.groups = &engine->device->group_count;
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

TEST(engine_poll__takes_frames_over_several_buffers)
{
	struct rte_mbuf *mbuf;

	fake_receiver = &qp;
	for (size_t part_len = 1; part_len <= FAKE_FRAME_LEN; part_len += 21) {
		mbuf = make_chain(FAKE_FRAME_LEN, part_len);
		qp.received = 0;
		assert_int_equal(port_tx_burst(&engine->link->port, &mbuf, 1), 1);
		rig_polls(1);
		assert_int_equal(qp.received, 1);
	}
	/* longer than any of RoCE: dropped */
	mbuf = make_chain(2 * PACKET_FRAME_MAX, PACKET_FRAME_MAX - 1);
	assert_int_equal(port_tx_burst(&engine->link->port, &mbuf, 1), 1);
	rig_polls(1);
	assert_int_equal(qp.received, 1);
}

static const struct port_ops *ring;
static uint16_t mark;

/* A port marks what it has received, whatever its driver has left there. */
static uint16_t mark_received(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint16_t received = ring->rx_burst(arg, mbufs, n);

	for (uint16_t i = 0; i < received; i++)
		mbufs[i]->port = mark;
	return received;
}

/* Only what has not come straight from the network may have our address as its source. */
TEST(engine_poll__believes_the_owner_of_sources)
{
	struct port_ops marking;

	ring = engine->link->port.ops;
	marking = *ring;
	marking.rx_burst = mark_received;
	engine->link->port.ops = &marking;
	fake_receiver = &qp;
	for (int passed_on = 0; passed_on < 3; passed_on++) {
		struct rte_mbuf *mbuf = make_chain(FAKE_FRAME_LEN, FAKE_FRAME_LEN);

		mark = passed_on == 1 ? PORT_PASSED_ON : PORT_VERIFIED;
		engine->link->port.passed_on = passed_on == 2;
		fake_source_good = 0;
		assert_int_equal(port_tx_burst(&engine->link->port, &mbuf, 1), 1);
		rig_polls(1);
		assert_int_equal(fake_source_good, passed_on != 0);
	}
	engine->link->port.passed_on = false;
	engine->link->port.ops = ring;
}

TEST(engine_poll__believes_the_port_of_checksums)
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

	fake_receiver = &qp;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *mbuf = make_chain(FAKE_FRAME_LEN, FAKE_FRAME_LEN);

		mbuf->ol_flags = cases[i].flags;
		fake_known_good = 0;
		assert_int_equal(port_tx_burst(&engine->link->port, &mbuf, 1), 1);
		rig_polls(1);
		assert_int_equal(fake_known_good, cases[i].good);
	}
}
