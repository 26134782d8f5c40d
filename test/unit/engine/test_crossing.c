/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/crossing.c: two engines of a device, of which the first has the port. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "engine/crossing.h"
#include "engine_rig.h"
#include "engine_poll.h"
#include "test.h"
#include "wire/headers.h"

#define FRAME_LEN 64
#define BTH_AT \
	(sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))
#define FIRSTS_QPN 4 /* its number is even */
#define OTHERS_QPN 5
#define MANY	   5000 /* more than the port's ring holds */

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
	struct crossing *crossing = engine->crossing;

	port_destroy(&further->link->port);
	free(further);
	free(crossing);
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
	return crossing_give(engine, rte_pktmbuf_mtod(mbuf, const uint8_t *), FRAME_LEN, mbuf);
}

/* The further engine's queue has received a frame that is not its engine's. Return true if the
 * frame was passed on. */
static bool give_stray(struct rte_mbuf *mbuf)
{
	mbuf->port = PORT_STRAY;
	return crossing_give(further, rte_pktmbuf_mtod(mbuf, const uint8_t *), FRAME_LEN, mbuf);
}

/* Return the frame that waits for the further engine, or NULL. */
static struct rte_mbuf *arrived(void)
{
	struct rte_mbuf *mbuf;

	return port_rx_burst(&further->link->port, &mbuf, 1) == 1 ? mbuf : NULL;
}

TEST(crossing_give__frames_go_to_the_engine_of_their_queue_pair)
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
TEST(crossing_give__strays_of_a_queue_are_passed_on)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, FIRSTS_QPN, false), *taken;

	/* Only those that the queue has marked: nobody else looks at the number. */
	assert_false(
		crossing_give(further, rte_pktmbuf_mtod(mbuf, const uint8_t *), FRAME_LEN, mbuf));
	assert_true(give_stray(mbuf));
	assert_int_equal(counters_get(&further->home->counters, COUNTER_rx_crossed), 1);
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
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
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
	rte_pktmbuf_free(taken);
}

TEST(crossing_give__frames_to_a_group_go_to_all)
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
TEST(crossing_give__a_stray_that_is_not_roce_goes_to_the_first_engine)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, OTHERS_QPN, false), *taken;

	rte_pktmbuf_mtod(mbuf, struct rte_ether_hdr *)->ether_type =
		rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP);
	assert_true(give_stray(mbuf));
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
	assert_ptr_equal(taken, mbuf);
	/* The engine has looked for its own frames already. */
	assert_false(give(mbuf));
	rte_pktmbuf_free(mbuf);
}

TEST(crossing_give__a_stray_to_a_group_goes_to_all)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, WIRE_QPN_MULTICAST, true), *copy;

	assert_false(give_stray(mbuf));
	assert_int_equal(crossing_take(engine->crossing, &copy, 1), 0);
	engine->device->group_count = 1;
	assert_false(give_stray(mbuf));
	assert_int_equal(crossing_take(engine->crossing, &copy, 1), 1);
	assert_ptr_not_equal(copy, mbuf);
	/* The copy has come from a network, too, and nobody copies it again. */
	assert_int_not_equal(copy->port, PORT_HANDED_OVER);
	assert_int_not_equal(copy->port, PORT_STRAY);
	rte_pktmbuf_free(copy);
	rte_pktmbuf_free(mbuf);
	engine->device->group_count = 0;
}

/* The queue of one more engine cannot be opened, and the engines before it give up their packet
 * sockets. */
static int give_up_sockets(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	(void)arg, (void)number, (void)count, (void)queue;
	engine->link->port.kernel_beyond = further->link->port.kernel_beyond = false;
	return -ENOMEM;
}

/* Packets to other hosts do not pass the kernel any more, so acknowledgements need not wait for
 * others as long. */
TEST(crossing_add__all_engines_hold_acknowledgements_as_the_port_needs)
{
	static struct device_engine third;
	struct port *port = &engine->link->port;
	const struct port_ops *before = port->ops;
	struct port_ops refusing_ops = *before;
	struct engine *last;

	refusing_ops.open_queue = give_up_sockets;
	port->ops = &refusing_ops;
	port->kernel_beyond = further->link->port.kernel_beyond = true;
	engine_set_holds(engine);
	engine_set_holds(further);
	assert_true(engine->ack_hold_beyond_ns > engine->ack_hold_ns);
	third = (struct device_engine){.device = engine->device, .number = 2};
	engine->device->engines[2] = &third;
	engine->device->engine_count = 3;
	assert_int_equal(crossing_add(engine, 2), 0);
	last = third.driver;
	assert_int_equal(engine->ack_hold_beyond_ns, engine->ack_hold_ns);
	assert_int_equal(further->ack_hold_beyond_ns, further->ack_hold_ns);
	assert_int_equal(last->ack_hold_beyond_ns, last->ack_hold_ns);
	port_destroy(&last->link->port);
	free(last);
	engine->device->engine_count = 2;
	port->ops = before;
}

/* Return true if a poll of `polled` that finds nothing runs an engine poll of `other`. */
static bool serves(struct engine *polled, const struct engine *second)
{
	const uint64_t before = second->taken_times;

	crossing_poll_others(polled);
	return second->taken_times != before;
}

TEST(crossing_poll_others__serves_the_queues_that_have_its_packets)
{
	struct rte_mbuf *mbuf, *taken;

	engine->progress = further->progress = SETTINGS_PROGRESS_HYBRID;
	/* The first engine receives for the further one, which has no queue. */
	assert_true(serves(further, engine));
	assert_false(serves(engine, further));
	/* A single stray says nothing about those that follow. */
	mbuf = make_frame(&engine->link->port, FIRSTS_QPN, false);
	assert_true(give_stray(mbuf));
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
	assert_false(serves(engine, further));
	further->link->port.rx_mixed = true;
	/* Messages of the connection manager are rare. */
	wire_put24(rte_pktmbuf_mtod_offset(mbuf, struct bth *, BTH_AT)->dest_qpn, 1);
	assert_true(give_stray(mbuf));
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
	assert_false(serves(engine, further));
	wire_put24(rte_pktmbuf_mtod_offset(mbuf, struct bth *, BTH_AT)->dest_qpn, FIRSTS_QPN);
	assert_true(give_stray(mbuf));
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
	assert_true(serves(engine, further));
	rte_pktmbuf_free(mbuf);
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

static uint16_t receive_nothing(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg, (void)mbufs, (void)n;
	return 0;
}

static bool leads_somewhere(void *arg)
{
	(void)arg;
	return true;
}

static int open_own_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	static const struct port_ops queue_ops = {.rx_burst = receive_nothing,
						  .connected = leads_somewhere};

	(void)arg, (void)number, (void)count;
	queue->ops = &queue_ops;
	return 0;
}

/* The threads that poll the other engines are not disturbed. */
TEST(ops_wait__an_engine_with_a_queue_of_its_own_wakes_no_other)
{
	static struct device_engine third;
	struct port *port = &engine->link->port;
	const struct port_ops *before = port->ops;
	struct port_ops opening_ops = *before;
	struct engine *last;

	opening_ops.open_queue = open_own_queue;
	port->ops = &opening_ops;
	third = (struct device_engine){.device = engine->device, .number = 2};
	engine->device->engines[2] = &third;
	engine->device->engine_count = 3;
	assert_int_equal(crossing_add(engine, 2), 0);
	last = third.driver;
	engine->progress = further->progress = last->progress = SETTINGS_PROGRESS_HYBRID;
	assert_false(wakes(last, engine));
	assert_false(wakes(last, further));
	assert_false(wakes(engine, last));
	/* The queue leads nowhere now, and the first engine receives in its place. */
	__atomic_store_n(&last->link->port.relayed, true, __ATOMIC_RELAXED);
	assert_true(wakes(last, engine));
	assert_false(wakes(last, further));
	port_destroy(&last->link->port);
	free(last);
	engine->device->engine_count = 2;
	port->ops = before;
}

TEST(ops_wait__engines_that_receive_for_this_one_must_run)
{
	struct rte_mbuf *mbuf, *taken;

	engine->progress = further->progress = SETTINGS_PROGRESS_HYBRID;
	assert_true(wakes(further, engine));
	assert_false(wakes(engine, further));
	further->link->port.rx_mixed = true;
	mbuf = make_frame(&engine->link->port, FIRSTS_QPN, false);
	assert_true(give_stray(mbuf));
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
	assert_true(wakes(engine, further));
	rte_pktmbuf_free(mbuf);
	/* Without helpers nobody can be called. */
	engine->progress = further->progress = SETTINGS_PROGRESS_INLINE;
	assert_false(wakes(further, engine));
}

TEST(crossing_pass__between_engines_of_the_device)
{
	struct rte_mbuf *mbuf = make_frame(&engine->link->port, OTHERS_QPN, false), *taken;

	assert_false(crossing_pass(engine, FIRSTS_QPN, mbuf));
	assert_true(crossing_pass(engine, OTHERS_QPN, mbuf));
	assert_ptr_equal(arrived(), mbuf);
	assert_int_equal(mbuf->port, PORT_HANDED_OVER);
	assert_false(crossing_pass(further, OTHERS_QPN, mbuf));
	assert_true(crossing_pass(further, FIRSTS_QPN, mbuf));
	assert_true(crossing_has_left(engine->crossing));
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
	assert_ptr_equal(taken, mbuf);
	assert_false(crossing_has_left(engine->crossing));
	rte_pktmbuf_free(mbuf);
}

/* The further engine has a queue whose buffers only its thread may free. */
TEST(crossing_pass__out_of_the_buffers_of_a_queue)
{
	struct port *port = &further->link->port;
	struct rte_mempool *common = port->pool;
	struct rte_mbuf *mbuf, *taken;

	port->pool = rte_pktmbuf_pool_create("queue", 63, 0, 0, 2048, SOCKET_ID_ANY);
	assert_non_null(port->pool);
	mbuf = make_frame(port, FIRSTS_QPN, false);
	assert_true(crossing_pass(further, FIRSTS_QPN, mbuf));
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
	assert_ptr_equal(taken->pool, common);
	assert_int_equal(taken->port, PORT_HANDED_OVER);
	assert_int_equal(taken->data_len, FRAME_LEN);
	rte_pktmbuf_free(taken);
	/* Copies of a packet to a group likewise. */
	mbuf = make_frame(port, WIRE_QPN_MULTICAST, true);
	crossing_spread(further, mbuf, false);
	rte_pktmbuf_free(mbuf);
	assert_int_equal(crossing_take(engine->crossing, &taken, 1), 1);
	assert_ptr_equal(taken->pool, common);
	rte_pktmbuf_free(taken);
	assert_int_equal(rte_mempool_in_use_count(port->pool), 0);
	rte_mempool_free(port->pool);
	port->pool = common;
}

/* Run the transmitting half of a poll of the first engine. */
static void transmit(void)
{
	assert_true(engine_try(engine));
	engine_transmit(engine);
	engine_release(engine);
}

TEST(crossing_begin__sends_for_the_further_engine)
{
	struct rte_mbuf *mbuf = make_frame(&further->link->port, OTHERS_QPN, false), *sent;

	/* The first engine has no owner, so the packet leaves at once. */
	assert_int_equal(port_tx_burst(&further->link->port, &mbuf, 1), 1);
	assert_false(crossing_sends(engine->crossing));
	assert_int_equal(port_rx_burst(&engine->link->port, &sent, 1), 1);
	assert_ptr_equal(sent, mbuf);
	rte_pktmbuf_free(sent);
}

TEST(crossing_begin__is_told_to_an_owner)
{
	struct rte_mbuf *mbuf = make_frame(&further->link->port, OTHERS_QPN, false), *sent;

	assert_true(engine_try(engine));
	assert_int_equal(port_tx_burst(&further->link->port, &mbuf, 1), 1);
	assert_true(crossing_is_called(engine->crossing));
	assert_int_equal(port_rx_burst(&engine->link->port, &sent, 1), 0);
	engine_release(engine);
	assert_int_equal(port_rx_burst(&engine->link->port, &sent, 1), 1);
	rte_pktmbuf_free(sent);
}

/* The first engine keeps the port full, but not for itself alone. */
TEST(crossing_finish__a_full_port_serves_both)
{
	struct rte_mbuf *mbuf;
	int polls = 0;

	rig_send(&qp, MANY);
	while (!engine->tx.stuck)
		transmit();
	mbuf = make_frame(&further->link->port, OTHERS_QPN, false);
	assert_int_equal(port_tx_burst(&further->link->port, &mbuf, 1), 1);
	assert_true(crossing_sends(engine->crossing));
	while (crossing_sends(engine->crossing)) {
		assert_int_equal(port_rx_burst(&engine->link->port, &mbuf, 1), 1);
		rte_pktmbuf_free(mbuf);
		transmit();
		assert_true(polls++ < 4);
	}
	qp.to_send = 0;
	rig_empty_port();
}

TEST(crossing_stop_others__waits_for_none_that_has_ended)
{
	assert_true(crossing_stop_others(engine->crossing));
	assert_false(engine_try(further));
	crossing_start_others(engine->crossing);
	assert_true(engine_try(further));
	/* It ends, and is never released. */
	engine_disown(further);
	assert_false(crossing_stop_others(engine->crossing));
	crossing_start_others(engine->crossing);
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
	assert_true(port_lost(&further->link->port));
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
