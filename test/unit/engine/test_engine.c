/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/engine.c, on a port whose transmit side is its receive side: what an engine
 * poll does, and in which order. */
#include <string.h>
#include <unistd.h>

#include "device/gsi.h"
#include "engine_rig.h"
#include "net/arp.h"
#include "queue/cq.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);
TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(engine_poll__sends_and_receives)
{
	fake_receiver = &other;
	rig_send(&qp, 3);
	rig_polls(1);
	assert_int_equal(other.received, 3);
	assert_int_equal(rig_count(COUNTER_tx_packets), 3);
	assert_int_equal(rig_count(COUNTER_tx_bytes), 3 * FAKE_FRAME_LEN);
	/* A queue pair that a request for an acknowledgement woke runs in the next engine poll. */
	assert_int_equal(other.runs, 0);
	rig_polls(1);
	assert_int_equal(other.runs, 1);
}

TEST(engine_poll__a_lone_acknowledgement_waits_for_company)
{
	engine->ack_hold_ns = engine->ack_hold_beyond_ns = UINT64_MAX;
	qp.only_ack = true;
	rig_send(&qp, 1);
	rig_polls(3);
	assert_int_equal(qp.runs, 0);
	/* A post runs the other queue pairs that are due too. */
	engine_transmit(engine);
	assert_int_equal(qp.runs, 1);
	rig_send(&qp, 1);
	engine->ack_hold_ns = engine->ack_hold_beyond_ns = 1;
	rig_polls(2);
	assert_int_equal(qp.runs, 2);
}

/* The peer's program posts its receive when its request is acknowledged, so our program must not
 * answer before. */
TEST(engine_poll__acknowledges_at_once_where_the_peer_had_no_receive)
{
	engine->ack_hold_ns = engine->ack_hold_beyond_ns = UINT64_MAX;
	fake_receiver = &other;
	other.only_ack = true;
	rig_send(&qp, 1);
	rig_polls(1);
	assert_int_equal(other.runs, 0);
	other.sched.acks_at_once = true;
	rig_polls(1);
	for (unsigned int i = 1; i <= 2; i++) {
		assert_int_equal(other.runs, i);
		rig_send(&qp, 1);
		rig_polls(1);
	}
	assert_int_equal(other.runs, 3);
	/* An acknowledgement of another queue pair still waits for company. */
	fake_receiver = &qp;
	qp.only_ack = true;
	qp.runs = 0;
	rig_send(&other, 1);
	rig_polls(3);
	assert_int_equal(qp.runs, 0);
}

/* A packet to another host costs more than one to this host, so it pays to wait longer. */
TEST(engine_poll__waits_as_long_as_the_way_is_worth)
{
	struct qp local;

	fake_qp_init(&local, engine->link->port.mac);
	engine->ack_hold_ns = 1;
	engine->ack_hold_beyond_ns = UINT64_MAX;
	qp.only_ack = local.only_ack = true;
	rig_send(&qp, 1);
	rig_send(&local, 1);
	rig_polls(3);
	assert_int_equal(qp.runs, 0);
	assert_int_equal(local.runs, 1);
	engine_transmit(engine);
	assert_int_equal(qp.runs, 1);
}

/* The thread that wakes may end the process at once. */
TEST(engine_poll__acknowledges_before_it_wakes_a_thread)
{
	struct channel channel;
	const struct cq_attr attr = {.cqe = 8,
				     .channel = &channel,
				     .moderator = &device_first(engine->device)->moderator};
	struct ibv_wc wc;

	assert_int_equal(channel_init(&channel), 0);
	assert_int_equal(cq_create_in(&attr, &fake_cq), 0);
	engine->ack_hold_ns = engine->ack_hold_beyond_ns = UINT64_MAX;
	fake_receiver = &other;
	other.only_ack = true;
	/* Nobody sleeps: the acknowledgement waits for company. */
	rig_send(&qp, 1);
	rig_polls(2);
	assert_int_equal(other.received, 1);
	assert_int_equal(other.runs, 0);
	while (cq_poll(fake_cq, 1, &wc) == 1)
		;
	cq_arm(fake_cq, false);
	assert_int_equal(fake_cq->source.pending, 0);
	rig_send(&qp, 1);
	rig_polls(1);
	assert_int_equal(other.received, 2);
	assert_int_equal(other.runs, 1);
	assert_true(other.ran_untold);
	assert_int_equal(fake_cq->source.pending, 1);
	cq_destroy(fake_cq);
	fake_cq = NULL;
	channel_fini(&channel);
}

/* A receiver of MADs that answers each one, and has an event for it. */
struct manager {
	unsigned int owed, told;
	unsigned int received; /* frames of `other` when the first event was told */
	bool told_early;       /* while an answer was owed */
};

static void manager_receive(void *user, const struct gsi_address *from, const uint8_t *mad,
			    size_t len, uint64_t now_ns)
{
	struct manager *manager = user;

	(void)from, (void)mad, (void)len, (void)now_ns;
	manager->owed++;
	engine->device->gsi_untold = engine->device->gsi_holds;
}

static unsigned int manager_run(void *user, uint64_t now_ns, struct packet_sink *sink)
{
	struct manager *manager = user;
	const unsigned int sent = manager->owed;

	(void)now_ns, (void)sink;
	manager->owed = 0;
	return sent;
}

static void manager_tell(void *user, uint64_t now_ns)
{
	struct manager *manager = user;

	(void)now_ns;
	if (manager->told++ == 0)
		manager->received = other.received;
	manager->told_early |= manager->owed > 0;
}

static uint64_t manager_deadline_ns(void *user)
{
	const struct manager *manager = user;

	return manager->owed > 0 ? 0 : UINT64_MAX;
}

static const struct gsi_ops manager_ops = {
	.receive = manager_receive,
	.run = manager_run,
	.tell = manager_tell,
	.deadline_ns = manager_deadline_ns,
};

TEST(engine_poll__answers_a_mad_before_it_tells_the_event)
{
	struct manager manager = {.owed = 0};

	engine->device->gsi_user = &manager;
	engine->device->gsi = &manager_ops;
	rig_send(&qp, 1);
	rig_polls(1);
	assert_int_equal(manager.owed, 0);
	assert_int_equal(manager.told, 1);
	assert_false(manager.told_early);
	rig_polls(2);
	assert_int_equal(manager.told, 1);
	engine->device->gsi = NULL;
}

static const struct port_ops *ring;

static uint16_t receive_one(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	return ring->rx_burst(arg, mbufs, RTE_MIN(n, 1));
}

/* The burst with the end of a connection has looked too early where its last acknowledgement came.
 */
TEST(engine_poll__receives_what_came_before_a_mad_before_it_tells_the_event)
{
	struct manager manager = {.owed = 0};
	static struct port_ops one_by_one;

	ring = engine->link->port.ops;
	one_by_one = *ring;
	one_by_one.rx_burst = receive_one;
	engine->link->port.ops = &one_by_one;
	engine->device->gsi_user = &manager;
	engine->device->gsi = &manager_ops;
	fake_receiver = &other;
	rig_send(&qp, 3);
	rig_polls(1);
	assert_int_equal(manager.told, 1);
	assert_int_equal(manager.received, 2);
	engine->device->gsi = NULL;
	engine->link->port.ops = ring;
	rig_empty_port();
}

TEST(engine_poll__queue_pairs_take_turns)
{
	qp.to_send = 100;
	other.to_send = 5;
	engine_mark_ready(engine, &qp);
	engine_mark_ready(engine, &other);
	rig_polls(1);
	assert_true(qp.to_send > 0);
	assert_int_equal(other.to_send, 0);
	assert_int_equal(qp.runs, 1);
	rig_polls(10);
	assert_int_equal(qp.to_send, 0);
}

TEST(engine_poll__timers_fire_once)
{
	qp.deadline_ns = clock_ns(&engine->clock) + UINT64_C(3600000000000);
	engine_mark_ready(engine, &qp);
	rig_polls(3);
	assert_int_equal(qp.timeouts, 0);
	assert_int_equal(qp.runs, 1);
	qp.deadline_ns = 1;
	engine_mark_ready(engine, &qp);
	for (int i = 0; i < TIMEOUT_MS && qp.timeouts == 0; i++) {
		usleep(20);
		rig_polls(1);
	}
	assert_int_equal(qp.timeouts, 1);
	rig_polls(3);
	assert_int_equal(qp.timeouts, 1);
	assert_int_equal(qp.runs, 3);
}

/* A thread that was away finds the answer in the port beside the timer that it should have stopped.
 */
TEST(engine_poll__what_has_come_goes_before_timers)
{
	fake_receiver = &other;
	qp.to_send = 100;
	other.deadline_ns = 1;
	wheel_set(&engine->wheel, &other, 1);
	engine_mark_ready(engine, &qp);
	for (int i = 0; i < 10; i++)
		engine_transmit(engine);
	rig_polls(1);
	assert_true(other.received > 0 && other.received < 100);
	assert_int_equal(other.timeouts, 0);
	rig_polls(10);
	assert_int_equal(other.received, 100);
	/* The wheel looks at a slot when its time is over. */
	for (int i = 0; i < TIMEOUT_MS && other.timeouts == 0; i++) {
		usleep(20);
		rig_polls(1);
	}
	assert_int_equal(other.timeouts, 1);
}

/* Whoever floods the port must not keep queue pairs from giving up. */
TEST(engine_poll__timers_fire_on_a_full_port_too)
{
	int poll = 0;

	qp.to_send = UINT32_MAX;
	qp.deadline_ns = UINT64_MAX;
	other.deadline_ns = 1;
	wheel_set(&engine->wheel, &other, 1);
	engine_mark_ready(engine, &qp);
	engine_transmit(engine);
	for (; poll < 100 * ENGINE_FULL_FRAMES && other.timeouts == 0; poll++)
		rig_polls(1);
	assert_int_equal(other.timeouts, 1);
	assert_true(poll + 1 >= ENGINE_FULL_FRAMES / 64);
	qp.to_send = 0;
	rig_polls(3);
}

TEST(engine_poll__answers_arp)
{
	const uint8_t ip[4] = {10, 0, 0, 2}, own_ip[4] = {10, 0, 0, 1};
	uint8_t gid[GID_LEN];
	struct rte_mbuf *mbuf;
	struct arp arp;

	gid_from_ipv4(own_ip, gid);
	rig_add_address(gid);
	mbuf = tx_alloc(&engine->tx);
	tx_send(&engine->tx, mbuf,
		(uint32_t)arp_build_request(rte_pktmbuf_mtod(mbuf, uint8_t *), peer_mac, ip,
					    own_ip));
	rig_polls(1);
	/* The answer is on the wire now, which leads back to us. */
	assert_int_equal(port_rx_burst(&engine->link->port, &mbuf, 1), 1);
	assert_true(arp_parse(rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len, &arp));
	assert_false(arp.request);
	assert_memory_equal(arp.sender_mac, engine->link->port.mac, 6);
	rte_pktmbuf_free(mbuf);
}

TEST(engine_forget__leaves_no_trace)
{
	qp.deadline_ns = 1;
	wheel_set(&engine->wheel, &qp, 1);
	engine_mark_ready(engine, &qp);
	engine_push_kick(engine, &qp);
	engine_push_kick(engine, &other);
	engine_forget(engine, &qp);
	rig_polls(2);
	assert_int_equal(qp.runs, 0);
	assert_int_equal(qp.timeouts, 0);
	assert_int_equal(other.runs, 1);
}

static uint64_t due_in_5_us(void *arg)
{
	(void)arg;
	return 5000;
}

/* No frame wakes the engine when the port releases a packet that it held back. */
TEST(engine_idle_ns__ends_when_the_port_holds_a_packet)
{
	struct port *port = &engine->link->port;
	const struct port_ops *own = port->ops;
	struct port_ops holding = *own;
	uint64_t before_ns;

	rig_polls(2);
	assert_true(engine_idle_ns(engine, engine->now_ns, 1000000) > 5000);
	assert_int_equal(engine_due_ns(engine), UINT64_MAX);
	holding.due_ns = due_in_5_us;
	port->ops = &holding;
	assert_int_equal(engine_idle_ns(engine, engine->now_ns, 1000000), 5000);
	before_ns = clock_ns(&engine->clock);
	assert_in_range(engine_due_ns(engine), before_ns + 5000, UINT64_MAX - 1);
	port->ops = own;
}
