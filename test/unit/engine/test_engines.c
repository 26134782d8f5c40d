/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/engines.c: two engines of a device, each with a queue of the port. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "engine/engines.h"
#include "engine_rig.h"
#include "engine_poll.h"
#include "test.h"
#include "wire/headers.h"

#define FRAME_LEN 64
#define BTH_AT \
	(sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))
#define FIRSTS_QPN 4 /* its number is even */
#define OTHERS_QPN 5

static struct engine *further;

static int set_up(TEST_STATE)
{
	if (rig_set_up(state) != 0)
		return -1;
	further = rig_add_engine();
	return further ? 0 : -1;
}

static int tear_down(TEST_STATE)
{
	struct engines *engines = engine->engines;

	port_destroy(&further->link->port);
	free(further);
	free(engines);
	return rig_tear_down(state);
}

TEST_GROUP(rig_group_set_up, NULL);
TEST_FIXTURE(set_up, tear_down);

static struct rte_mbuf *make_frame(const struct port *port, uint32_t qpn, bool to_group)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(port->pool);
	uint8_t frame[FRAME_LEN] = {to_group ? 1 : 2};
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)(void *)frame;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct bth *bth = (struct bth *)(udp + 1);

	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->next_proto_id = IPPROTO_UDP;
	udp->dst_port = rte_cpu_to_be_16(WIRE_UDP_PORT);
	wire_put24(bth->dest_qpn, qpn);
	assert_non_null(mbuf);
	memcpy(rte_pktmbuf_mtod(mbuf, void *), frame, sizeof(frame));
	mbuf->data_len = FRAME_LEN;
	mbuf->pkt_len = FRAME_LEN;
	return mbuf;
}

static bool give(struct rte_mbuf *mbuf)
{
	return engines_give(engine, rte_pktmbuf_mtod(mbuf, const uint8_t *), FRAME_LEN, mbuf);
}

/* The further engine's queue has received a frame that is not its engine's. Return true if the
 * frame was passed on. */
static bool give_stray(struct rte_mbuf *mbuf)
{
	mbuf->port = PORT_STRAY;
	return engines_give(further, rte_pktmbuf_mtod(mbuf, const uint8_t *), FRAME_LEN, mbuf);
}

/* Return the frame that waits for the further engine, or NULL. */
static struct rte_mbuf *arrived(void)
{
	struct rte_mbuf *mbuf;

	return engines_take(further, &mbuf, 1) == 1 ? mbuf : NULL;
}

TEST(engines_give__frames_go_to_the_engine_of_their_queue_pair)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, OTHERS_QPN, false);

	assert_true(give(mbuf));
	assert_ptr_equal(arrived(), mbuf);
	rte_pktmbuf_free(mbuf);
	mbuf = make_frame(&engine->link->port, FIRSTS_QPN, false);
	assert_false(give(mbuf));
	rte_pktmbuf_free(mbuf);
	/* The connection manager's. */
	mbuf = make_frame(&engine->link->port, 1, false);
	assert_false(give(mbuf));
	assert_null(arrived());
	rte_pktmbuf_free(mbuf);
}

/* A run was received by the queue of the wrong engine. */
TEST(engines_give__strays_of_a_queue_are_passed_on)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, FIRSTS_QPN, false), *taken;

	/* Only those that the queue has marked: nobody else looks at the number. */
	assert_false(
		engines_give(further, rte_pktmbuf_mtod(mbuf, const uint8_t *), FRAME_LEN, mbuf));
	assert_true(give_stray(mbuf));
	assert_int_equal(counters_get(&further->home->counters, COUNTER_rx_crossed), 1);
	assert_int_equal(engines_take(engine, &taken, 1), 1);
	assert_ptr_equal(taken, mbuf);
	/* It comes from a network, so its ICRC is checked. */
	assert_int_not_equal(mbuf->port, PORT_HANDED_OVER);
	rte_pktmbuf_free(mbuf);
	/* It has arrived where it belongs. */
	mbuf = make_frame(&engine->link->port, OTHERS_QPN, false);
	assert_false(give_stray(mbuf));
	rte_pktmbuf_free(mbuf);
	/* A message of the connection manager is the first engine's. */
	mbuf = make_frame(&engine->link->port, 1, false);
	assert_true(give_stray(mbuf));
	assert_int_equal(engines_take(engine, &taken, 1), 1);
	rte_pktmbuf_free(taken);
}

TEST(engines_give__frames_to_a_group_go_to_all)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, WIRE_QPN_MULTICAST, true);
	struct rte_mbuf *copy;

	assert_false(give(mbuf));
	assert_null(arrived());
	engine->device->group_count = 1;
	assert_false(give(mbuf));
	copy = arrived();
	assert_non_null(copy);
	assert_ptr_not_equal(copy, mbuf);
	rte_pktmbuf_free(copy);
	rte_pktmbuf_free(mbuf);
	/* Not to a group's link address: it costs no copy. */
	mbuf = make_frame(&engine->link->port, WIRE_QPN_MULTICAST, false);
	assert_false(give(mbuf));
	assert_null(arrived());
	rte_pktmbuf_free(mbuf);
	engine->device->group_count = 0;
}

/* The first engine alone answers ARP, for example. */
TEST(engines_give__a_stray_that_is_not_roce_goes_to_the_first_engine)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, OTHERS_QPN, false), *taken;

	rte_pktmbuf_mtod(mbuf, struct rte_ether_hdr *)->ether_type =
		rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP);
	assert_true(give_stray(mbuf));
	assert_int_equal(engines_take(engine, &taken, 1), 1);
	assert_ptr_equal(taken, mbuf);
	/* The engine has looked for its own frames already. */
	assert_false(give(mbuf));
	rte_pktmbuf_free(mbuf);
}

TEST(engines_give__a_stray_to_a_group_goes_to_all)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, WIRE_QPN_MULTICAST, true), *copy;

	assert_false(give_stray(mbuf));
	assert_int_equal(engines_take(engine, &copy, 1), 0);
	engine->device->group_count = 1;
	assert_false(give_stray(mbuf));
	assert_int_equal(engines_take(engine, &copy, 1), 1);
	assert_ptr_not_equal(copy, mbuf);
	/* The copy has come from a network, too, and nobody copies it again. */
	assert_int_not_equal(copy->port, PORT_HANDED_OVER);
	assert_int_not_equal(copy->port, PORT_STRAY);
	rte_pktmbuf_free(copy);
	rte_pktmbuf_free(mbuf);
	engine->device->group_count = 0;
}

static int rc_of_queue;

/* Open the queue of one more engine, which has no packet socket: the engines before it give up
 * theirs. */
static int open_without_socket(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	(void)arg, (void)number, (void)count;
	engine->link->port.kernel_beyond = further->link->port.kernel_beyond = false;
	queue->kernel_beyond = false;
	queue->ops = further->link->port.ops;
	return rc_of_queue;
}

/* Add a third engine. */
static int add_third(struct device_engine *third)
{
	struct port *port = &engine->link->port;
	const struct port_ops *before = port->ops;
	struct port_ops opening_ops = *before;
	int rc;

	opening_ops.open_queue = open_without_socket;
	port->ops = &opening_ops;
	*third = (struct device_engine){.device = engine->device, .number = 2};
	engine->device->engines[2] = third;
	engine->device->engine_count = 3;
	rc = engines_add(engine, 2);
	engine->device->engine_count = 2;
	port->ops = before;
	return rc;
}

/* Packets to other hosts do not pass the kernel any more, so acknowledgements need not wait for
 * others as long. */
TEST(engines_add__all_engines_hold_acknowledgements_as_the_port_needs)
{
	static struct device_engine third;
	struct engine *last;

	engine->link->port.kernel_beyond = further->link->port.kernel_beyond = true;
	engine_set_holds(engine);
	engine_set_holds(further);
	assert_true(engine->ack_hold_beyond_ns > engine->ack_hold_ns);
	rc_of_queue = 0;
	assert_int_equal(add_third(&third), 0);
	last = third.driver;
	assert_int_equal(engine->ack_hold_beyond_ns, engine->ack_hold_ns);
	assert_int_equal(further->ack_hold_beyond_ns, further->ack_hold_ns);
	assert_int_equal(last->ack_hold_beyond_ns, last->ack_hold_ns);
	free(last);
}

/* The device is not opened then. */
TEST(engines_add__needs_a_queue)
{
	static struct device_engine third;

	rc_of_queue = -ENOMEM;
	assert_int_equal(add_third(&third), -ENOMEM);
	assert_null(third.driver);
}

/* Return true if a poll of `polled` that finds nothing runs an engine poll of `other`. */
static bool serves(struct engine *polled, const struct engine *second)
{
	const uint64_t before = second->taken_times;

	ops->poll(polled);
	return second->taken_times != before;
}

/* Without helpers nobody else runs an engine whose queue pairs no thread polls. */
TEST(ops_poll__serves_the_other_engines_if_there_are_no_helpers)
{
	assert_true(serves(further, engine));
	assert_true(serves(engine, further));
	engine->progress = further->progress = SETTINGS_PROGRESS_HYBRID;
	assert_false(serves(further, engine));
	assert_false(serves(engine, further));
}

static bool has_stopped;

static void note_stopped(void)
{
	has_stopped = owner_is_taken(&further->owner);
}

/* It may destroy queue pairs at which other engines look. */
TEST(engine_housekeeping__stops_other_engines_while_it_follows_xrc_domains)
{
	fake_follow_xrc = note_stopped;
	engine_housekeeping(engine);
	fake_follow_xrc = NULL;
	assert_true(has_stopped);
	assert_false(owner_is_taken(&further->owner));
}

/* Return true if a call for `asked` touches `second`: that a thread is about to sleep until the
 * first one raises an event. */
static bool wakes(struct engine *asked, const struct engine *second)
{
	const uint64_t waits = second->polling.waits, taken_times = second->taken_times;
	const uint64_t own = asked->polling.waits;

	ops->wait(asked);
	assert_int_equal(asked->polling.waits, own + 1);
	/* No engine is taken. */
	assert_int_equal(second->taken_times, taken_times);
	return second->polling.waits != waits;
}

/* The threads that poll the other engines are not disturbed. */
TEST(ops_wait__wakes_no_other_engine)
{
	engine->progress = further->progress = SETTINGS_PROGRESS_HYBRID;
	assert_false(wakes(further, engine));
	assert_false(wakes(engine, further));
}

TEST(engines_pass__between_engines_of_the_device)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, OTHERS_QPN, false), *taken;

	assert_false(engines_pass(engine, FIRSTS_QPN, mbuf));
	assert_true(engines_pass(engine, OTHERS_QPN, mbuf));
	assert_ptr_equal(arrived(), mbuf);
	assert_int_equal(mbuf->port, PORT_HANDED_OVER);
	assert_false(engines_pass(further, OTHERS_QPN, mbuf));
	assert_true(engines_pass(further, FIRSTS_QPN, mbuf));
	assert_true(engines_has_more(engine));
	assert_false(engines_has_more(further));
	assert_int_equal(engines_take(engine, &taken, 1), 1);
	assert_ptr_equal(taken, mbuf);
	assert_false(engines_has_more(engine));
	rte_pktmbuf_free(mbuf);
}

/* Nobody polls the engine of the queue pair. */
TEST(engines_pass__calls_a_helper_that_sleeps)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, OTHERS_QPN, false);

	engine->progress = further->progress = SETTINGS_PROGRESS_HYBRID;
	handover_idle_sleep(further, further->now_ns, UINT64_C(20000000));
	assert_true(handover_is_idle(further));
	assert_true(engines_pass(engine, OTHERS_QPN, mbuf));
	assert_true(handover_is_called(further));
	/* It does not fall asleep before it has taken the packet. */
	assert_int_equal(engine_due_ns(further), 0);
	assert_ptr_equal(arrived(), mbuf);
	assert_int_not_equal(engine_due_ns(further), 0);
	rte_pktmbuf_free(mbuf);
}

static struct rte_mempool *common;

static int make_common(struct port *port)
{
	common = port->pool = rte_pktmbuf_pool_create("common", 63, 0, 0, 2048, SOCKET_ID_ANY);
	return port->pool ? 0 : -ENOMEM;
}

/* The buffers of each queue belong to the thread of its engine: what crosses is copied. */
TEST(engines_pass__out_of_the_buffers_of_a_queue)
{
	struct engines *before = engine->engines;
	struct port *port = &engine->link->port;
	struct rte_mbuf *mbuf, *taken;

	port->make_pool = make_common;
	assert_int_equal(engines_create(engine), 0);
	port->make_pool = NULL;
	assert_int_equal(engines_add(engine, 1), 0);
	mbuf = make_frame(port, OTHERS_QPN, false);
	assert_true(engines_pass(engine, OTHERS_QPN, mbuf));
	assert_int_equal(engines_take(engine->device->engines[1]->driver, &taken, 1), 1);
	assert_ptr_equal(taken->pool, common);
	assert_int_equal(taken->port, PORT_HANDED_OVER);
	assert_int_equal(taken->data_len, FRAME_LEN);
	rte_pktmbuf_free(taken);
	/* Copies of a packet to a group likewise. */
	mbuf = make_frame(port, WIRE_QPN_MULTICAST, true);
	engines_spread(engine, mbuf, false);
	rte_pktmbuf_free(mbuf);
	assert_int_equal(engines_take(engine->device->engines[1]->driver, &taken, 1), 1);
	assert_ptr_equal(taken->pool, common);
	rte_pktmbuf_free(taken);
	assert_int_equal(rte_mempool_in_use_count(common), 0);
	engines_destroy(engine->engines);
	engine->engines = before;
	rte_mempool_free(common);
}

TEST(engines_stop_others__waits_for_none_that_has_ended)
{
	assert_true(engines_stop_others(engine->engines));
	assert_false(engine_try(further));
	engines_start_others(engine->engines);
	assert_true(engine_try(further));
	/* It ends, and is never released. */
	engine_disown(further);
	assert_false(engines_stop_others(engine->engines));
	engines_start_others(engine->engines);
}

static bool is_lost(void *arg)
{
	(void)arg;
	return true;
}

static bool lose_was_called;

/* The queues of the other engines go with the port: no thread may be in them. */
static void lose_alone(void *arg)
{
	(void)arg;
	assert_false(engine_try(further));
	lose_was_called = true;
}

TEST(engine_check_link__stops_the_others_to_give_up_a_lost_port)
{
	struct port *port = &engine->link->port;
	const struct port_ops *before = port->ops;
	struct port_ops lost_ops = *before;

	lost_ops.lost = is_lost;
	lost_ops.lose = lose_alone;
	port->ops = &lost_ops;
	assert_true(engine_try(engine));
	engine_check_link(engine);
	engine_release(engine);
	port->ops = before;
	port->started = true;
	assert_true(lose_was_called);
	assert_true(engine_try(further));
	engine_check_link(further);
	assert_true(further->lost);
	assert_false(port_connected(&further->link->port));
	engine_release(further);
}

static bool queue_is_connected;

static bool is_connected(void *arg)
{
	(void)arg;
	return queue_is_connected;
}

/* The program hears that the link is up, and uses another engine at once. */
TEST(engine_check_link__tells_the_others_of_a_change)
{
	struct port *ports[] = {&engine->link->port, &further->link->port};
	const struct port_ops *before[] = {ports[0]->ops, ports[1]->ops};
	struct port_ops asked[] = {*before[0], *before[1]};

	for (int i = 0; i < 2; i++) {
		asked[i].connected = is_connected;
		ports[i]->ops = &asked[i];
	}
	for (int i = 0; i < 2; i++) {
		queue_is_connected = i > 0;
		assert_true(engine_try(engine));
		engine_check_link(engine);
		engine_release(engine);
		assert_int_equal(further->tx.connected, queue_is_connected);
		assert_true(engine_try(further));
		engine_release(further);
	}
	for (int i = 0; i < 2; i++)
		ports[i]->ops = before[i];
}
