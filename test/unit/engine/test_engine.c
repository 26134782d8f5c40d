/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/engine.c, on a port whose transmit side is its receive side. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_lcore.h>

#include "base/own.h"
#include "net/arp.h"
#include "net/tag.h"
#include "queue/cq.h"
#include "report/order.h"
#include "report/read.h"
#include "report/write.h"
#include "device/gsi.h"
#include "engine_rig.h"
#include "test.h"
#include "wire/opcode.h"

TEST_GROUP(rig_group_set_up, NULL);
TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(engine_turn__answers_who_watches)
{
	struct report *report;
	uint32_t asked;
	int fd;

	assert_int_equal(report_create(&fd, &report), 0);
	engine->report = report;
	rig_turns(1);
	assert_int_equal(report->sequence, 0);
	asked = report_ask(report);
	assert_false(report_answered(report, asked));
	engine->link_due_ns = 0;
	rig_turns(1);
	assert_true(report_answered(report, asked));
	engine->report = NULL;
	report_unmap(report);
	close(fd);
}

/* Let the engine's clock stand, or advance by so much. */
static void set_clock(uint64_t passed_ns)
{
	engine->clock.ns_per_tsc = 0;
	engine->clock.start_ns += passed_ns;
}

static bool looks_after_device(void)
{
	rig_turns(1);
	return engine->link_due_ns != 0;
}

/* After a sleep a look at the device is due, and would take longer than the answer to the packet
 * that has woken the process. */
TEST(engine_turn__answers_before_it_looks_after_the_device)
{
	fake_receiver = &other;
	set_clock(1000000000);
	engine->link_due_ns = 0;
	rig_send(&qp, 1);
	assert_false(looks_after_device());
	rig_send(&other, 1);
	assert_false(looks_after_device());
	assert_false(looks_after_device());
	assert_int_equal(other.received, 2);
	set_clock(300000);
	assert_true(looks_after_device());
}

/* The thread that posts polls for the answer next. */
TEST(engine_turn__waits_for_an_answer_before_it_looks_after_the_device)
{
	set_clock(1000000000);
	engine->link_due_ns = 0;
	qp.to_send = 1;
	ops->kick(engine, &qp);
	rig_empty_port();
	assert_false(looks_after_device());
	set_clock(300000);
	assert_true(looks_after_device());
}

TEST(engine_turn__looks_after_the_device_also_if_there_is_always_work)
{
	fake_receiver = &other;
	set_clock(1000000000);
	engine->link_due_ns = 0;
	for (int i = 0; i < 20; i++) {
		rig_send(&qp, 1);
		assert_false(looks_after_device());
	}
	set_clock(2000000);
	rig_send(&qp, 1);
	assert_true(looks_after_device());
}

static unsigned int roused; /* times the port's other end was woken */

static void count_rousings(void *arg)
{
	(void)arg;
	/* The packet is not built yet. */
	assert_int_equal(qp.to_send, 1);
	roused++;
}

TEST(engine_transmit__wakes_the_other_end_first_if_the_process_has_slept)
{
	struct port *port = &engine->link->port;
	const struct port_ops *before = port->ops;
	struct port_ops rousing = *before;
	const struct {
		bool slept, to_self;
	} cases[] = {{true, false}, {false, false}, {true, true}};

	rousing.rouse = count_rousings;
	port->ops = &rousing;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		fake_qp_init(&qp, cases[i].to_self ? port->mac : peer_mac);
		roused = 0;
		engine->busy_ns = cases[i].slept ? 0 : clock_ns(&engine->clock);
		rig_send(&qp, 1);
		engine_transmit(engine);
		assert_int_equal(roused, cases[i].slept && !cases[i].to_self);
		assert_int_equal(qp.to_send, 0);
		/* Nothing is left to send. */
		engine->busy_ns = 0;
		engine_transmit(engine);
		assert_int_equal(roused, cases[i].slept && !cases[i].to_self);
		rig_turns(2);
	}
	port->ops = before;
	rig_empty_port();
}

static void *give_order(void *arg)
{
	struct report_order *order = arg;

	order->word = (uint64_t)-order_give(engine->report, order, 10000);
	return NULL;
}

/* Give an order from another thread while the engine runs. Return the positive errno. */
static int obeyed(enum order_kind kind, uint8_t index, uint32_t value)
{
	struct report_order order = {.kind = kind, .index = index, .value = value};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, give_order, &order), 0);
	while (__atomic_load_n(&engine->report->order, __ATOMIC_RELAXED) == 0)
		usleep(100);
	engine->link_due_ns = 0;
	engine->busy_ns = 0;
	rig_turns(1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return (int)order.word;
}

TEST(engine_turn__obeys_orders_that_are_allowed)
{
	struct report *report;
	int fd;

	assert_int_equal(report_create(&fd, &report), 0);
	engine->report = report;
	fake_receiver = &other;
	engine->device->cc_params = cc_params_normal;
	rig_turns(1);
	assert_int_equal(obeyed(ORDER_PARAM, (uint8_t)cc_param_find("rpg_ai_rate"), 123), 0);
	assert_int_equal(engine->device->cc_params.rpg_ai_rate, 123);
	assert_int_equal(obeyed(ORDER_PARAM, (uint8_t)cc_param_find("rpg_ai_rate"), 0), ERANGE);
	assert_int_equal(obeyed(ORDER_PARAM, 255, 1), ENOENT);
	assert_int_equal(engine->device->cc_params.rpg_ai_rate, 123);
	assert_int_equal(other.runs, 0);
	assert_int_equal(obeyed(ORDER_ALGORITHM, CC_SWIFT, FAKE_QPN), 0);
	assert_int_equal(fake_kind, CC_SWIFT);
	/* The queue pair runs: what was held may be allowed now. */
	rig_turns(1);
	assert_int_equal(other.runs, 1);
	assert_int_equal(obeyed(ORDER_ALGORITHM, CC_SWIFT, FAKE_QPN + 1), ENOENT);
	assert_int_equal(obeyed(ORDER_KINDS, 0, 0), EINVAL);
	engine->report = NULL;
	report_unmap(report);
	close(fd);
}

TEST(engine_turn__sends_and_receives)
{
	fake_receiver = &other;
	rig_send(&qp, 3);
	rig_turns(1);
	assert_int_equal(other.received, 3);
	assert_int_equal(rig_count(COUNTER_tx_packets), 3);
	assert_int_equal(rig_count(COUNTER_tx_bytes), 3 * FAKE_FRAME_LEN);
	/* A queue pair that a request for an acknowledgement woke runs in the next turn. */
	assert_int_equal(other.runs, 0);
	rig_turns(1);
	assert_int_equal(other.runs, 1);
}

TEST(engine_turn__a_lone_acknowledgement_waits_for_company)
{
	engine->ack_hold_ns = engine->ack_hold_beyond_ns = UINT64_MAX;
	qp.only_ack = true;
	rig_send(&qp, 1);
	rig_turns(3);
	assert_int_equal(qp.runs, 0);
	/* A post runs the other queue pairs that are due too. */
	engine_transmit(engine);
	assert_int_equal(qp.runs, 1);
	rig_send(&qp, 1);
	engine->ack_hold_ns = engine->ack_hold_beyond_ns = 1;
	rig_turns(2);
	assert_int_equal(qp.runs, 2);
}

/* The thread that wakes may end the process at once. */
TEST(engine_turn__acknowledges_before_it_wakes_a_thread)
{
	struct channel channel;
	const struct cq_attr attr = {.cqe = 8,
				     .channel = &channel,
				     .moderator = &device_first(engine->device)->moderator};

	assert_int_equal(channel_init(&channel), 0);
	assert_int_equal(cq_create_in(&attr, &fake_cq), 0);
	engine->ack_hold_ns = engine->ack_hold_beyond_ns = UINT64_MAX;
	fake_receiver = &other;
	other.only_ack = true;
	/* Nobody sleeps: the acknowledgement waits for company. */
	rig_send(&qp, 1);
	rig_turns(2);
	assert_int_equal(other.received, 1);
	assert_int_equal(other.runs, 0);
	cq_arm(fake_cq, false);
	rig_send(&qp, 1);
	rig_turns(1);
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
	bool told_early; /* while an answer was owed */
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
	manager->told++;
	manager->told_early |= manager->owed > 0;
}

static uint64_t manager_deadline_ns(void *user)
{
	const struct manager *manager = user;

	return manager->owed > 0 ? 0 : UINT64_MAX;
}

TEST(engine_turn__answers_a_mad_before_it_tells_the_event)
{
	static const struct gsi_ops manager_ops = {
		.receive = manager_receive,
		.run = manager_run,
		.tell = manager_tell,
		.deadline_ns = manager_deadline_ns,
	};
	struct manager manager = {.owed = 0};

	engine->device->gsi_user = &manager;
	engine->device->gsi = &manager_ops;
	rig_send(&qp, 1);
	rig_turns(1);
	assert_int_equal(manager.owed, 0);
	assert_int_equal(manager.told, 1);
	assert_false(manager.told_early);
	rig_turns(2);
	assert_int_equal(manager.told, 1);
	engine->device->gsi = NULL;
}

/* A packet to another host costs more than one to this host, so it pays to wait longer. */
TEST(engine_turn__waits_as_long_as_the_way_is_worth)
{
	struct qp local;

	fake_qp_init(&local, engine->link->port.mac);
	engine->ack_hold_ns = 1;
	engine->ack_hold_beyond_ns = UINT64_MAX;
	qp.only_ack = local.only_ack = true;
	rig_send(&qp, 1);
	rig_send(&local, 1);
	rig_turns(3);
	assert_int_equal(qp.runs, 0);
	assert_int_equal(local.runs, 1);
	engine_transmit(engine);
	assert_int_equal(qp.runs, 1);
}

/* A port that processes share has one address for all of them. */
TEST(engine_turn__what_goes_to_others_of_our_address_leaves)
{
	struct port *port;

	port = &engine->link->port;
	fake_receiver = &other;
	fake_qp_init(&qp, port->mac);
	/* The frames are to queue pair 0. */
	port->own_qpn_first = 1;
	port->own_qpn_count = 1;
	rig_send(&qp, 1);
	rig_turns(2);
	assert_int_equal(rig_count(COUNTER_tx_packets), 1);
	assert_int_equal(fake_looped, 0);
	port->own_qpn_first = 0;
	rig_send(&qp, 1);
	rig_turns(2);
	port->own_qpn_count = 0;
	assert_int_equal(rig_count(COUNTER_tx_packets), 1);
	assert_int_equal(fake_looped, 1);
}

static bool lost_says_no(void *arg)
{
	(void)arg;
	return false;
}

static bool link_says_no(void *arg, bool connected)
{
	(void)arg;
	(void)connected;
	return false;
}

static bool lost_says_yes(void *arg)
{
	(void)arg;
	return true;
}

TEST(engine_check_link__a_lost_port_ends_everything)
{
	const struct port_ops lost = {
		.lost = lost_says_yes, .link_up = link_says_no, .connected = lost_says_no};
	const struct port_ops *before;
	struct port *port;

	port = &engine->link->port;
	before = port->ops;
	fake_receiver = &qp;
	engine->device->link_up = false;
	port->ops = &lost;
	engine_check_link(engine);
	assert_int_equal(fake_last_event, IBV_EVENT_DEVICE_FATAL);
	assert_true(qp.failed);
	/* The link's loss is reported once: after it there is nothing left to lose. */
	fake_last_event = 0;
	engine_check_link(engine);
	port->ops = before;
	port->started = true;
	assert_int_equal(fake_last_event, 0);
	rig_turns(1);
	assert_int_equal(qp.runs, 1);
}

/* The program has closed all its descriptors, and another file has the number. */
TEST(engine_check_link__a_closed_descriptor_ends_everything)
{
	const struct port_ops good = {
		.lost = lost_says_no, .link_up = link_says_no, .connected = lost_says_no};
	const int ours = eventfd(0, EFD_CLOEXEC), theirs = eventfd(0, EFD_CLOEXEC);
	const struct port_ops *before;
	struct port *port;

	port = &engine->link->port;
	before = port->ops;
	fake_receiver = &qp;
	engine->device->link_up = false;
	port->ops = &good;
	own_mark(ours);
	engine->canary_fd = ours;
	engine_check_link(engine);
	assert_int_equal(fake_last_event, 0);
	assert_int_equal(dup2(theirs, ours), ours);
	engine_check_link(engine);
	port->ops = before;
	port->started = true;
	assert_int_equal(fake_last_event, IBV_EVENT_DEVICE_FATAL);
	assert_true(qp.failed);
	close(ours);
	close(theirs);
}

TEST(engine_turn__queue_pairs_take_turns)
{
	qp.to_send = 100;
	other.to_send = 5;
	engine_mark_ready(engine, &qp);
	engine_mark_ready(engine, &other);
	rig_turns(1);
	assert_true(qp.to_send > 0);
	assert_int_equal(other.to_send, 0);
	assert_int_equal(qp.runs, 1);
	rig_turns(10);
	assert_int_equal(qp.to_send, 0);
}

/* The port's ring holds fewer than that: nothing may be lost, and everything goes in the end. */
TEST(engine_turn__what_the_port_does_not_take_waits)
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
		rig_turns(1);
	assert_int_equal(other.received, 5000);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(rig_count(COUNTER_tx_packets), 5000);
}

/* The tail of a message, that waits for nothing but the port. */
TEST(engine_turn__sending_what_was_left_is_work)
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
TEST(engine_turn__counts_late_drops_of_a_bad_network)
{
	struct port *port = &engine->link->port;
	const struct port_ops *const before = port->ops;
	struct port_ops keeping;

	rig_send(&qp, 3);
	rig_turns(1);
	keep_frames(0, &keeping);
	port->tx_refused = (struct port_drops){.packets = 2, .bytes = 2 * FAKE_FRAME_LEN};
	rig_turns(1);
	assert_int_equal(rig_count(COUNTER_tx_refused), 2);
	assert_int_equal(rig_count(COUNTER_tx_packets), 1);
	assert_int_equal(rig_count(COUNTER_tx_bytes), FAKE_FRAME_LEN);
	port->ops = before;
	port->impaired = NULL;
}

TEST(engine_turn__own_address_goes_round_inside)
{
	fake_qp_init(&qp, engine->link->port.mac);
	fake_receiver = &other;
	rig_send(&qp, 2000);
	rig_turns(200);
	assert_int_equal(other.received, 2000);
	assert_int_equal(fake_looped, 2000);
	assert_int_equal(rig_count(COUNTER_tx_packets), 0);
}

/* Posting threads make many passes for each turn. A queue pair that ran in such a pass, without
 * room for any packet, would be behind all others again. */
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
	/* The rest waits for a turn, and the helper must not sleep for long. */
	assert_true(engine->tx.stuck);
	rig_turns(2);
	assert_true(to_self.runs > runs);
	to_self.to_send = 0;
	rig_turns(100);
	engine_forget(engine, &to_self);
}

TEST(engine_turn__nothing_leaves_without_a_link)
{
	engine->tx.connected = false;
	engine->link_due_ns = UINT64_MAX;
	fake_receiver = &other;
	rig_send(&qp, 100);
	rig_turns(10);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(other.received, 0);
	assert_int_equal(rig_count(COUNTER_tx_packets), 0);
	assert_int_equal(rig_count(COUNTER_tx_unconnected), 100);
	engine_send_frame(engine, peer_mac, sizeof(peer_mac));
	assert_int_equal(rig_count(COUNTER_tx_other_dropped), 1);
}

TEST(engine_turn__unreadable_payload_is_not_sent)
{
	const uint8_t bad_mac[6] = {FAKE_UNREADABLE};

	fake_qp_init(&qp, bad_mac);
	fake_receiver = &other;
	rig_send(&qp, 3);
	rig_turns(2);
	assert_int_equal(qp.faults, 3);
	assert_int_equal(other.received, 0);
	assert_int_equal(rig_count(COUNTER_tx_packets), 0);
}

TEST(engine_turn__timers_fire_once)
{
	qp.deadline_ns = clock_ns(&engine->clock) + UINT64_C(3600000000000);
	engine_mark_ready(engine, &qp);
	rig_turns(3);
	assert_int_equal(qp.timeouts, 0);
	assert_int_equal(qp.runs, 1);
	qp.deadline_ns = 1;
	engine_mark_ready(engine, &qp);
	for (int i = 0; i < PATIENCE_MS && qp.timeouts == 0; i++) {
		usleep(20);
		rig_turns(1);
	}
	assert_int_equal(qp.timeouts, 1);
	rig_turns(3);
	assert_int_equal(qp.timeouts, 1);
	assert_int_equal(qp.runs, 3);
}

/* A thread that was away finds the answer in the port beside the timer that it should have stopped.
 */
TEST(engine_turn__what_has_come_goes_before_timers)
{
	fake_receiver = &other;
	qp.to_send = 100;
	other.deadline_ns = 1;
	wheel_set(&engine->wheel, &other, 1);
	engine_mark_ready(engine, &qp);
	for (int i = 0; i < 10; i++)
		engine_transmit(engine);
	rig_turns(1);
	assert_true(other.received > 0 && other.received < 100);
	assert_int_equal(other.timeouts, 0);
	rig_turns(10);
	assert_int_equal(other.received, 100);
	/* The wheel looks at a slot when its time is over. */
	for (int i = 0; i < PATIENCE_MS && other.timeouts == 0; i++) {
		usleep(20);
		rig_turns(1);
	}
	assert_int_equal(other.timeouts, 1);
}

/* Whoever floods the port must not keep queue pairs from giving up. */
TEST(engine_turn__timers_fire_on_a_full_port_too)
{
	int turn = 0;

	qp.to_send = UINT32_MAX;
	qp.deadline_ns = UINT64_MAX;
	other.deadline_ns = 1;
	wheel_set(&engine->wheel, &other, 1);
	engine_mark_ready(engine, &qp);
	engine_transmit(engine);
	for (; turn < 100 * ENGINE_FULL_FRAMES && other.timeouts == 0; turn++)
		rig_turns(1);
	assert_int_equal(other.timeouts, 1);
	assert_true(turn + 1 >= ENGINE_FULL_FRAMES / 64);
	qp.to_send = 0;
	rig_turns(3);
}

TEST(engine_turn__answers_arp)
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
	rig_turns(1);
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
	rig_turns(2);
	assert_int_equal(qp.runs, 0);
	assert_int_equal(qp.timeouts, 0);
	assert_int_equal(other.runs, 1);
}

TEST(engine_check_link__tells_of_changes_once)
{
	struct port *port;

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

/* A driver that takes tags off says so in the packet's metadata. */
TEST(engine_turn__puts_a_stripped_tag_back)
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
	rig_turns(1);
	/* The answer has the tag in the frame. */
	assert_int_equal(port_rx_burst(&engine->link->port, &mbuf, 1), 1);
	assert_int_equal(mbuf->data_len, ARP_FRAME_LEN + TAG_LEN);
	assert_memory_equal(rte_pktmbuf_mtod_offset(mbuf, uint8_t *, 12),
			    ((uint8_t[]){0x81, 0, 0, 5}), 4);
	rte_pktmbuf_free(mbuf);
}

TEST(engine_turn__counts_a_frame_without_room_for_its_tag)
{
	struct rte_mbuf *mbuf = tx_alloc(&engine->tx);

	fake_receiver = &other;
	mbuf->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	mbuf->data_off = 0;
	memset(rte_pktmbuf_mtod(mbuf, uint8_t *), 0x91, FAKE_FRAME_LEN);
	tx_send(&engine->tx, mbuf, FAKE_FRAME_LEN);
	rig_turns(1);
	assert_int_equal(other.received, 0);
	assert_int_equal(rig_count(COUNTER_rx_vlan_errors), 1);
}

/* The pool does not even have one buffer for the copy of a multicast datagram to this host. */
TEST(engine_turn__counts_what_is_lost_for_want_of_a_buffer)
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
	rig_turns(1);
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

TEST(engine_turn__takes_frames_over_several_buffers)
{
	struct rte_mbuf *mbuf;

	fake_receiver = &qp;
	for (size_t part_len = 1; part_len <= FAKE_FRAME_LEN; part_len += 21) {
		mbuf = make_chain(FAKE_FRAME_LEN, part_len);
		qp.received = 0;
		assert_int_equal(port_tx_burst(&engine->link->port, &mbuf, 1), 1);
		rig_turns(1);
		assert_int_equal(qp.received, 1);
	}
	/* longer than any of RoCE: dropped */
	mbuf = make_chain(2 * PACKET_FRAME_MAX, PACKET_FRAME_MAX - 1);
	assert_int_equal(port_tx_burst(&engine->link->port, &mbuf, 1), 1);
	rig_turns(1);
	assert_int_equal(qp.received, 1);
}

TEST(engine_turn__believes_the_port_of_checksums)
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
		rig_turns(1);
		assert_int_equal(fake_known_good, cases[i].good);
	}
}

/* An engine that has ended, or belongs to a fork's parent, does nothing and blocks nobody. */
TEST(engine_disown__makes_every_call_return)
{
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

TEST(engine_try__protects_the_owner_from_being_cancelled)
{
	pthread_t thread;
	bool released = false;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, cancelled_in_a_turn, &released), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	/* The cancellation waits until the thread has released the engine, and not much longer. */
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(released);
	assert_true(engine_try(engine));
	engine_release(engine);
}

static void *cancelled_as_it_waits(void *arg)
{
	pthread_cancel(pthread_self());
	engine_lock(engine);
	engine_release(engine);
	pthread_testcancel();
	return arg;
}

TEST(engine_lock__protects_who_waits_from_being_cancelled)
{
	pthread_t thread;
	void *result;

	assert_true(engine_try(engine));
	assert_int_equal(pthread_create(&thread, NULL, cancelled_as_it_waits, NULL), 0);
	/* Wait until the thread waits for the engine. It spins for some time before it sleeps, and
	 * could be cancelled only there. */
	while (__atomic_load_n(&engine->owner.waiters, __ATOMIC_SEQ_CST) == 0)
		sched_yield();
	usleep(50000);
	engine_release(engine);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	/* No thread waits any more, so turns need not yield to any. */
	assert_int_equal(engine->owner.waiters, 0);
	assert_true(engine_try(engine));
	engine_release(engine);
}

/* The next packet may be for memory that was unmapped. */
TEST(engine_turn__unblocks_the_signals_of_faults)
{
	sigset_t all, before, now;

	rig_turns(1);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	usleep(1000); /* longer than GUARD_PERIOD_NS */
	rig_turns(1);
	pthread_sigmask(SIG_SETMASK, &before, &now);
	assert_false(sigismember(&now, SIGSEGV) || sigismember(&now, SIGBUS));
	assert_true(sigismember(&now, SIGTERM));
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

	rig_turns(2);
	assert_true(engine_idle_ns(engine, engine->now_ns, 1000000) > 5000);
	assert_int_equal(engine_due_ns(engine), UINT64_MAX);
	holding.due_ns = due_in_5_us;
	port->ops = &holding;
	assert_int_equal(engine_idle_ns(engine, engine->now_ns, 1000000), 5000);
	before_ns = clock_ns(&engine->clock);
	assert_in_range(engine_due_ns(engine), before_ns + 5000, UINT64_MAX - 1);
	port->ops = own;
}

TEST(engine_turn__counts_damage_done_on_purpose)
{
	static const struct impair_counts counts = {.of = {1, 2, 3, 4, 5, 6}};
	struct port *port = &engine->link->port;

	port->impaired = &counts;
	rig_turns(2);
	port->impaired = NULL;
	for (int kind = 0; kind < IMPAIR_KINDS; kind++) {
		const enum counter counter = (enum counter)(COUNTER_impair_lost + kind);

		assert_int_equal(rig_count(counter), counts.of[kind]);
		assert_string_equal(counter_name(counter),
				    impair_count_name((enum impair_kind)kind));
	}
}
