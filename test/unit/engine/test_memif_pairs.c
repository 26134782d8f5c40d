/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/memif_pairs.c: two memif ports of this process, each with queues for several
 * engines. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "engine_rig.h"
#include "memif/socket.h"
#include "memif_port.h"
#include "open_fds.h"
#include "port/impair.h"
#include "test.h"
#include "wire/headers.h"

#define ENGINES	  MEMIF_QUEUES_MAX
#define BURST	  32
#define ROUNDS	  300 /* more than the ends need for all their messages */
#define FRAME_LEN 64
#define QPN	  48 /* divisible by each number of engines of these tests */

/* A device's port, and the queues of its further engines. */
struct side {
	struct port ports[ENGINES];
	uint32_t count;
};

static char dir[] = "/tmp/uroce-memif-XXXXXX";
static char path[64];
static struct side server, client;

static int group_set_up(void **state)
{
	if (rig_group_set_up(state) != 0 || !mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/wire", dir);
	return 0;
}

static int group_tear_down(TEST_STATE)
{
	return rmdir(dir);
}

TEST_FIXTURE(rig_set_up, rig_tear_down);
TEST_GROUP(group_set_up, group_tear_down);

static int use_engine_pool(struct port *port)
{
	port->pool = engine->link->port.pool;
	return 0;
}

static int open_queue(struct side *side, uint32_t number, uint32_t count)
{
	struct port *first = side->ports, *port = &side->ports[number];

	memset(port, 0, sizeof(*port));
	port->pool = first->pool;
	port->started = true;
	return first->ops->open_queue(first->ops_arg, number, count, port);
}

static void open_first(struct side *side, const char *role, const char *impair)
{
	struct port *port = side->ports;
	char text[256];

	memset(side, 0, sizeof(*side));
	snprintf(text, sizeof(text), "net_memif0,role=%s,socket=%s", role, path);
	assert_int_equal(port_prepare(port, text, 0), 0);
	port->make_pool = use_engine_pool;
	assert_int_equal(impair_prepare(port, impair), 0);
	assert_int_equal(port_open(port), 0);
	side->count = 1;
}

static void open_side(struct side *side, const char *role, uint32_t engines)
{
	open_first(side, role, "");
	for (uint32_t i = 1; i < engines; i++)
		assert_int_equal(open_queue(side, i, engines), 0);
	side->count = engines;
}

static void close_side(struct side *side)
{
	for (uint32_t i = side->count; i-- > 0;)
		port_close(&side->ports[i]);
	for (uint32_t i = side->count; i-- > 0;)
		port_destroy(&side->ports[i]);
}

static void run_conns(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		port_conn_run(client.ports);
		port_conn_run(server.ports);
	}
}

/* Look as often for one side, whose other end has gone. */
static void run_conns_of(struct side *side)
{
	for (int i = 0; i < ROUNDS; i++)
		port_conn_run(side->ports);
}

static void open_both(uint32_t servers, uint32_t clients)
{
	open_side(&server, "server", servers);
	open_side(&client, "client", clients);
	run_conns();
	assert_true(port_connected(server.ports) && port_connected(client.ports));
}

static void close_both(void)
{
	close_side(&client);
	close_side(&server);
}

/* Write a frame to a queue pair; UINT32_MAX: one that is not RoCE. `mark` is found in the frame
 * that arrives. */
static void write_frame(uint8_t frame[FRAME_LEN], uint32_t qpn, uint8_t mark)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)(void *)frame;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct bth *bth = (struct bth *)(udp + 1);

	memset(frame, 0, FRAME_LEN);
	frame[FRAME_LEN - 1] = mark;
	if (qpn == UINT32_MAX)
		return;
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->next_proto_id = IPPROTO_UDP;
	udp->dst_port = rte_cpu_to_be_16(WIRE_UDP_PORT);
	wire_put24(bth->dest_qpn, qpn);
}

static struct rte_mbuf *make_frame(uint32_t qpn, uint8_t mark)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(engine->link->port.pool);

	assert_non_null(mbuf);
	write_frame((uint8_t *)rte_pktmbuf_append(mbuf, FRAME_LEN), qpn, mark);
	return mbuf;
}

static void send_mbuf(struct port *port, uint32_t qpn, uint8_t mark)
{
	struct rte_mbuf *mbuf = make_frame(qpn, mark);

	assert_int_equal(port_tx_burst(port, &mbuf, 1), 1);
}

/* Build a frame in the port's own buffers. */
static void send_placed(struct port *port, uint32_t qpn, uint8_t mark)
{
	uint8_t *place;

	if (port->ops->aim) {
		assert_true(port->ops->steers);
		assert_true(port->ops->aim(port->ops_arg, qpn));
	}
	assert_true(port->ops->has_room(port->ops_arg));
	place = port->ops->place(port->ops_arg, FRAME_LEN);
	assert_non_null(place);
	write_frame(place, qpn, mark);
	port->ops->placed(port->ops_arg, FRAME_LEN);
}

/* Receive the one frame that waits. Returns how the port has marked it. */
static uint16_t receive_one(struct port *port, uint8_t mark)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t said;

	assert_int_equal(port_rx_burst(port, mbufs, BURST), 1);
	said = mbufs[0]->port;
	assert_int_equal(mbufs[0]->data_len, FRAME_LEN);
	assert_int_equal(*rte_pktmbuf_mtod_offset(mbufs[0], uint8_t *, FRAME_LEN - 1), mark);
	rte_pktmbuf_free(mbufs[0]);
	return said;
}

static void expect_nothing(struct side *side)
{
	struct rte_mbuf *mbufs[BURST];

	for (uint32_t i = 0; i < side->count; i++)
		assert_int_equal(port_rx_burst(&side->ports[i], mbufs, BURST), 0);
}

/* Each engine sends to each, and only the right one receives it, unmarked. */
static void expect_traffic_one_way(struct side *from, struct side *to)
{
	for (uint32_t i = 0; i < from->count; i++) {
		for (uint32_t k = 0; k < to->count; k++) {
			struct port *port = &from->ports[i];

			send_mbuf(port, QPN + k, (uint8_t)(i + k));
			assert_int_not_equal(receive_one(&to->ports[k], (uint8_t)(i + k)),
					     PORT_STRAY);
			send_placed(port, QPN + k, 7);
			expect_nothing(to);
			port->ops->push(port->ops_arg);
			receive_one(&to->ports[k], 7);
			expect_nothing(to);
		}
		/* What is no queue pair's is the first engine's. */
		for (uint32_t qpn = 0; qpn < 2; qpn++) {
			send_mbuf(&from->ports[i], qpn, 1);
			receive_one(to->ports, 1);
		}
		send_mbuf(&from->ports[i], WIRE_QPN_MULTICAST, 2);
		receive_one(to->ports, 2);
		send_mbuf(&from->ports[i], UINT32_MAX, 3);
		receive_one(to->ports, 3);
	}
}

static void expect_traffic(void)
{
	expect_traffic_one_way(&client, &server);
	expect_traffic_one_way(&server, &client);
}

TEST(memif_pairs__packets_find_their_engine)
{
	static const uint32_t counts[][2] = {{1, 1}, {2, 2}, {2, 1}, {1, 2}, {4, 3}, {8, 8}};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		open_both(counts[i][0], counts[i][1]);
		expect_traffic();
		close_both();
	}
}

/* A port of one engine pays for several pairs only while it has them. */
TEST(memif_pairs__one_pair_is_as_before)
{
	open_side(&server, "server", 1);
	for (uint32_t engines = 1; engines <= 2; engines++) {
		open_side(&client, "client", engines);
		run_conns();
		assert_ptr_equal(server.ports->ops,
				 engines == 1 ? &memif_port_ops : &memif_pairs_ops);
		expect_traffic();
		close_side(&client);
		run_conns_of(&server);
		assert_ptr_equal(server.ports->ops, &memif_port_ops);
	}
	close_side(&server);
}

/* Either side restarts, with another number of engines; the queues stay. */
TEST(memif_pairs__connections_come_and_go)
{
	const unsigned int before = fds_count();

	open_side(&server, "server", 3);
	for (uint32_t i = 0; i < 12; i++) {
		open_side(&client, "client", 1 + i % 4);
		run_conns();
		expect_traffic();
		close_side(&client);
		run_conns_of(&server);
		for (uint32_t k = 0; k < server.count; k++) {
			assert_false(port_connected(&server.ports[k]));
			send_mbuf(&server.ports[k], QPN, 1);
			assert_int_equal(server.ports[k].tx_unconnected.packets, i + 1);
			assert_false(server.ports[k].ops->aim &&
				     server.ports[k].ops->aim(server.ports[k].ops_arg, QPN));
		}
		expect_nothing(&server);
	}
	close_side(&server);
	for (int i = 0; fds_count() > before; i++) {
		assert_true(i < TIMEOUT_MS);
		usleep(1000);
	}
}

/* The other end has one pair of rings: its packets must pass one place. */
TEST(memif_pairs__an_end_with_too_few_rings_is_refused)
{
	for (int is_client = 0; is_client < 2; is_client++) {
		struct side *many = is_client ? &client : &server,
			    *one = is_client ? &server : &client;
		const struct memif_port *memif;

		open_side(many, is_client ? "client" : "server", 3);
		open_first(one, is_client ? "server" : "client", "loss=0.0");
		run_conns();
		assert_false(port_connected(many->ports) || port_connected(one->ports));
		memif = many->ports->ops_arg;
		assert_int_equal(memif->complaints, UINT32_C(1) << MEMIF_FEW_RINGS);
		close_side(one);
		/* Another one is taken. */
		open_side(one, is_client ? "server" : "client", 1);
		run_conns();
		expect_traffic();
		close_both();
	}
}

/* Make the client look like another program, which sends what it likes in any ring. */
static void hide_name(uint32_t servers, uint32_t clients)
{
	struct memif_port *memif;

	open_side(&server, "server", servers);
	open_side(&client, "client", clients);
	memif = server.ports->ops_arg;
	for (int i = 0; i < ROUNDS; i++) {
		port_conn_run(client.ports);
		port_conn_run(server.ports);
		if (!port_connected(server.ports))
			memif->server.client_tells = false;
	}
	assert_true(port_connected(server.ports) && port_connected(client.ports));
}

TEST(memif_pairs__strays_of_others_are_marked)
{
	static const struct {
		uint32_t qpn;
		bool stray;
	} cases[] = {{QPN, true}, {QPN + 1, false},	      {0, true},
		     {1, true},	  {WIRE_QPN_MULTICAST, true}, {UINT32_MAX, true}};
	struct memif_port *memif;

	hide_name(2, 1);
	memif = client.ports->ops_arg;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct memif_end *end = memif_port_pair(memif, 1);
		uint8_t frame[FRAME_LEN];

		write_frame(frame, cases[i].qpn, 5);
		assert_int_equal(memif_end_send(end, frame, sizeof(frame)), 0);
		memif_end_push(end);
		assert_int_equal(receive_one(&server.ports[1], 5) == PORT_STRAY, cases[i].stray);
	}
	/* The first engine looks at each frame itself. */
	send_mbuf(client.ports, QPN, 5);
	assert_int_not_equal(receive_one(server.ports, 5), PORT_STRAY);
	close_both();
}

/* No ring keeps another one waiting, and no burst is too long. */
TEST(memif_pairs__all_rings_have_their_turn)
{
	struct rte_mbuf *mbufs[BURST];
	uint32_t from[3] = {0}, bursts = 0;

	open_both(1, 3);
	for (uint32_t i = 0; i < 3; i++) {
		for (int k = 0; k < 2 * BURST; k++)
			send_mbuf(&client.ports[i], QPN, (uint8_t)i);
	}
	for (; bursts < 6; bursts++) {
		assert_int_equal(port_rx_burst(server.ports, mbufs, BURST), BURST);
		assert_true(server.ports->rx_cut);
		for (int k = 0; k < BURST; k++)
			from[*rte_pktmbuf_mtod_offset(mbufs[k], uint8_t *, FRAME_LEN - 1)]++;
		rte_pktmbuf_free_bulk(mbufs, BURST);
		if (bursts == 2)
			assert_true(from[0] > 0 && from[1] > 0 && from[2] > 0);
	}
	assert_true(from[0] == 2 * BURST && from[1] == 2 * BURST && from[2] == 2 * BURST);
	expect_nothing(&server);
	assert_false(server.ports->rx_cut);
	close_both();
}

/* A full ring keeps all packets of its sender, in their order, but not those of another engine. */
TEST(memif_pairs__a_full_ring_stops_its_sender)
{
	struct rte_mbuf *mbufs[3];
	uint32_t sent = 0;

	open_both(2, 2);
	while (client.ports->ops->has_room(client.ports->ops_arg)) {
		send_mbuf(client.ports, QPN + 1, 1);
		sent++;
	}
	assert_int_equal(sent, 512);
	mbufs[0] = make_frame(QPN + 1, 2);
	mbufs[1] = make_frame(QPN, 3);
	assert_int_equal(port_tx_burst(client.ports, mbufs, 2), 0);
	assert_int_equal(port_rx_burst(server.ports, mbufs + 2, 1), 0);
	send_mbuf(&client.ports[1], QPN, 4);
	receive_one(&server.ports[0], 4);
	while (sent > 0) {
		struct rte_mbuf *taken[BURST];
		const uint16_t n = port_rx_burst(&server.ports[1], taken, BURST);

		assert_true(n > 0);
		rte_pktmbuf_free_bulk(taken, n);
		sent -= n;
	}
	assert_int_equal(port_tx_burst(client.ports, mbufs, 2), 2);
	receive_one(&server.ports[1], 2);
	receive_one(&server.ports[0], 3);
	close_both();
}

static bool is_awake(const struct port *port)
{
	struct pollfd wake = {.fd = port_wake_fd(port), .events = POLLIN};

	return poll(&wake, 1, 0) == 1;
}

/* A packet wakes the engine that it is for, from whichever engine it comes, and no other. */
TEST(memif_pairs__wakes_the_right_engine)
{
	open_both(2, 3);
	for (uint32_t from = 0; from < client.count; from++) {
		for (uint32_t to = 0; to < server.count; to++) {
			for (uint32_t i = 0; i < server.count; i++) {
				assert_false(port_arm(&server.ports[i]));
				assert_false(is_awake(&server.ports[i]));
			}
			send_mbuf(&client.ports[from], QPN + to, 1);
			for (uint32_t i = 0; i < server.count; i++)
				assert_int_equal(is_awake(&server.ports[i]), i == to);
			assert_true(port_arm(&server.ports[to]));
			assert_false(is_awake(&server.ports[to]));
			for (uint32_t i = 0; i < server.count; i++)
				port_disarm(&server.ports[i]);
			receive_one(&server.ports[to], 1);
		}
	}
	close_both();
}

TEST(memif_pairs__wakes_who_slept_before)
{
	open_side(&server, "server", 2);
	assert_false(port_arm(&server.ports[0]) || port_arm(&server.ports[1]));
	open_side(&client, "client", 2);
	run_conns();
	assert_false(is_awake(&server.ports[0]) || is_awake(&server.ports[1]));
	send_mbuf(client.ports, QPN + 1, 1);
	assert_true(is_awake(&server.ports[1]) && !is_awake(&server.ports[0]));
	close_both();
}

/* Whoever finds it, the whole connection ends, and the next one is as good as the first. */
TEST(memif_pairs__a_rule_broken_in_any_ring_ends_the_connection)
{
	for (uint32_t pair = 0; pair < 4; pair++) {
		for (int way = 0; way < 3; way++) {
			struct memif_port *memif;
			struct port *port;
			struct rte_mbuf *mbuf;

			open_both(2, 2);
			memif = client.ports->ops_arg;
			/* Announce more than the ring has. */
			(way == 0 ? memif_port_pair(memif, pair)->tx.memory
				  : memif_port_pair(memif, pair)->rx.memory)
				->head = 0x8000;
			memif = server.ports->ops_arg;
			memif_port_pair(memif, pair)->tx.seen =
				memif_port_pair(memif, pair)->tx.own;
			port = &server.ports[pair % 2];
			if (way == 0)
				assert_int_equal(port_rx_burst(port, &mbuf, 1), 0);
			else if (way == 1)
				assert_false(port->ops->has_room(port->ops_arg));
			else
				send_mbuf(port, QPN + pair / 2, 1);
			assert_true(memif_port_is_broken(memif));
			run_conns();
			expect_traffic();
			close_both();
		}
	}
}

TEST(memif_pairs__packets_too_long_are_counted)
{
	struct memif_port *memif;
	uint8_t frame[8192] = {0};

	open_both(2, 2);
	memif = client.ports->ops_arg;
	for (uint32_t pair = 0; pair < 4; pair++) {
		assert_int_equal(memif_end_send(memif_port_pair(memif, pair), frame, sizeof(frame)),
				 0);
		memif_end_push(memif_port_pair(memif, pair));
	}
	expect_nothing(&server);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(server.ports[i].rx_too_long, 2);
	expect_traffic();
	close_both();
}

/* All packets of the device must pass one place. */
TEST(memif_port_open_queue__not_behind_another_kind_of_port)
{
	open_first(&client, "client", "loss=0.5");
	assert_int_equal(port_queues(client.ports), 1);
	close_side(&client);
	open_first(&client, "client", "");
	assert_int_equal(port_queues(client.ports), MEMIF_QUEUES_MAX);
	/* In order. */
	assert_int_equal(open_queue(&client, 2, 3), -EOPNOTSUPP);
	assert_int_equal(open_queue(&client, 1, 3), 0);
	client.count = 2;
	close_side(&client);
}

/* At the end of the process a thread may be stuck in an engine, which uses the rings. */
TEST(memif_port_close__keeps_rings_that_are_in_use)
{
	open_both(2, 2);
	port_close(client.ports);
	send_mbuf(&client.ports[1], QPN + 1, 1);
	receive_one(&server.ports[1], 1);
	port_close(&client.ports[1]);
	port_destroy(&client.ports[1]);
	port_destroy(client.ports);
	close_side(&server);
}
