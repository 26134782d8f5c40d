/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/memif_port.c: bursts between two memif ports of this process. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memif_port.h"
#include "port/memif_caller.h"
#include "engine_rig.h"
#include "test.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

#define BURST  32
#define ROUNDS 40

static char dir[] = "/tmp/uroce-memif-XXXXXX";
static char path[64];
static struct port server, client;

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

TEST_GROUP(group_set_up, group_tear_down);

static int use_engine_pool(struct port *port)
{
	port->pool = engine->link->port.pool;
	return 0;
}

static void open_port(struct port *port, const char *role, const char *more)
{
	char text[256];

	memset(port, 0, sizeof(*port));
	snprintf(text, sizeof(text), "net_memif0,role=%s,socket=%s%s", role, path, more);
	/* The ICRC is looked at on the way, as in a port that makes its pool itself. */
	assert_int_equal(port_prepare(port, text, 0), 0);
	port->make_pool = use_engine_pool;
	assert_int_equal(port_open(port), 0);
}

/* Look as often as two ends need for all their messages, and a few times more. */
static void run_conns(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		port_conn_run(&client);
		port_conn_run(&server);
	}
}

static void open_both(const char *more)
{
	open_port(&server, "server", "");
	open_port(&client, "client", more);
	run_conns();
	assert_true(port_connected(&server) && port_connected(&client));
}

static void close_port(struct port *port)
{
	port_close(port);
	port_destroy(port);
}

static void close_both(void)
{
	close_port(&client);
	close_port(&server);
}

static struct rte_mbuf *make(uint16_t len)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server.pool);

	assert_non_null(mbuf);
	memset(rte_pktmbuf_append(mbuf, len), 0x91, len);
	return mbuf;
}

static void send_by(struct port *port, uint16_t len, int count)
{
	while (count-- > 0) {
		struct rte_mbuf *mbuf = make(len);

		assert_int_equal(port_tx_burst(port, &mbuf, 1), 1);
	}
}

/* Receive one burst and return its length; each packet must be this long. */
static uint16_t receive_by(struct port *port, uint16_t len)
{
	struct rte_mbuf *mbufs[BURST];
	const uint16_t received = port_rx_burst(port, mbufs, BURST);

	for (uint16_t i = 0; i < received; i++)
		assert_int_equal(mbufs[i]->data_len, len);
	rte_pktmbuf_free_bulk(mbufs, received);
	return received;
}

static bool is_alarmed(const struct port *port)
{
	const struct memif_port *memif = port->ops_arg;
	struct pollfd alarm = {.fd = memif->alarm_fd, .events = POLLIN};

	return poll(&alarm, 1, 0) == 1;
}

/* Packets go both ways, in one buffer of the ring and in several. */
TEST(memif_port__bursts_arrive)
{
	static const char *const arguments[] = {"", ",bsize=256"};

	for (int i = 0; i < 2; i++) {
		open_both(arguments[i]);
		for (int k = 0; k < 40; k++) {
			send_by(&client, 600, 10);
			send_by(&server, 600, 10);
			assert_int_equal(receive_by(&server, 600), 10);
			assert_int_equal(receive_by(&client, 600), 10);
			assert_false(server.rx_cut || client.rx_cut);
		}
		assert_int_equal(receive_by(&server, 600), 0);
		close_both();
	}
}

/* A burst is limited so that it stays in the cache; the caller learns that there is more. */
TEST(memif_port__tells_where_a_burst_is_cut)
{
	struct port *ends[] = {&server, &client};

	open_both("");
	for (int i = 0; i < 2; i++) {
		int received = 0;

		send_by(ends[!i], 4096, 20);
		do {
			const uint16_t n = receive_by(ends[i], 4096);

			assert_true(n > 0 && n < BURST);
			received += n;
			assert_true(ends[i]->rx_cut || received == 20);
		} while (received < 20);
		assert_int_equal(receive_by(ends[i], 4096), 0);
		assert_false(ends[i]->rx_cut);
		send_by(ends[!i], 64, 2 * BURST);
		assert_int_equal(receive_by(ends[i], 64), BURST);
		assert_true(ends[i]->rx_cut);
		assert_int_equal(receive_by(ends[i], 64), BURST);
		assert_int_equal(receive_by(ends[i], 64), 0);
		assert_false(ends[i]->rx_cut);
	}
	close_both();
}

/* Longer than any buffer of ours; `count` of them, to the server. */
static void send_long(int count)
{
	struct memif_port *memif = client.ops_arg;
	static uint8_t frame[8192];

	while (count-- > 0)
		assert_int_equal(memif_end_send(&memif->client.end, frame, sizeof(frame)), 0);
	client.ops->push(memif);
}

/* Packets that are too long are dropped and counted, and the ring is free for others again. */
TEST(memif_port__goes_on_after_too_long_ones)
{
	open_both(",rsize=6,bsize=8192");
	for (int i = 0; i < 3; i++) {
		send_long(64);
		assert_false(client.ops->has_room(client.ops_arg));
		/* A receive returns no more packets than it was asked for. */
		assert_int_equal(receive_by(&server, 0), 0);
		assert_int_equal(server.rx_too_long, i * 64 + BURST);
		assert_true(server.rx_cut);
		assert_true(client.ops->has_room(client.ops_arg));
		assert_int_equal(receive_by(&server, 0), 0);
		assert_int_equal(server.rx_too_long, i * 64 + 64);
		send_by(&client, 100, 1);
		assert_int_equal(receive_by(&server, 100), 1);
		assert_false(server.rx_cut);
	}
	assert_true(port_connected(&server));
	close_both();
}

/* A packet that does not fit into the peer's buffers is dropped and counted. */
TEST(memif_port__drops_what_it_cannot_send)
{
	struct rte_mbuf *mbufs[3];
	struct memif_port *memif;

	open_both("");
	memif = client.ops_arg;
	/* Longer than 64 of these. */
	memif->client.end.buffers.bytes = 16;
	for (int i = 0; i < 3; i++)
		mbufs[i] = make(i == 1 ? 4000 : 100);
	assert_int_equal(port_tx_burst(&client, mbufs, 3), 3);
	assert_int_equal(client.tx_too_long.packets, 1);
	assert_int_equal(client.tx_too_long.bytes, 4000);
	assert_int_equal(receive_by(&server, 100), 2);
	assert_true(port_connected(&server) && port_connected(&client));
	close_both();
}

TEST(memif_port__counts_what_it_drops_without_another_end)
{
	struct rte_mbuf *mbufs[2];

	open_port(&server, "server", "");
	for (int i = 0; i < 2; i++)
		mbufs[i] = make(100);
	assert_int_equal(port_tx_burst(&server, mbufs, 2), 2);
	assert_int_equal(server.tx_unconnected.packets, 2);
	assert_int_equal(server.tx_unconnected.bytes, 200);
	close_port(&server);
}

TEST(memif_port__a_full_ring_takes_fewer)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t sent;

	open_both(",rsize=4,bsize=512");
	for (int i = 0; i < BURST; i++)
		mbufs[i] = make(64);
	sent = port_tx_burst(&client, mbufs, BURST);
	assert_int_equal(sent, 16);
	assert_false(client.ops->has_room(client.ops_arg));
	assert_int_equal(port_tx_burst(&client, mbufs + sent, 1), 0);
	assert_int_equal(receive_by(&server, 64), 16);
	assert_int_equal(port_tx_burst(&client, mbufs + sent, BURST - 16), 16);
	assert_int_equal(receive_by(&server, 64), 16);
	close_both();
}

/* Whoever sends finds out as well as who receives. */
TEST(memif_port__a_broken_rule_rings_the_alarm)
{
	for (int i = 0; i < 4; i++) {
		struct memif_port *memif;

		open_both("");
		memif = client.ops_arg;
		/* Announce more than the ring has. */
		if (i == 0)
			memif->client.end.tx.memory->head = 0x8000;
		else
			memif->client.end.rx.memory->head = 0x8000;
		assert_false(is_alarmed(&server));
		memif = server.ops_arg;
		memif->server.end.tx.seen = memif->server.end.tx.own;
		if (i == 0)
			assert_int_equal(receive_by(&server, 0), 0);
		else if (i == 1)
			assert_false(server.ops->has_room(server.ops_arg));
		else if (i == 2)
			assert_null(server.ops->place(server.ops_arg, 64));
		else
			send_by(&server, 64, 1);
		assert_true(is_alarmed(&server));
		run_conns();
		assert_true(port_connected(&server) && port_connected(&client));
		close_both();
	}
}

/* Return true if a helper that sleeps on the port would wake. */
static bool is_rung(const struct port *port)
{
	struct pollfd wake = {.fd = port->wake_fd, .events = POLLIN};

	return poll(&wake, 1, 0) == 1;
}

TEST(memif_port_wake_other_end__rings_an_end_that_sleeps)
{
	open_both("");
	port_disarm(&server);
	port_wake_other_end(&client);
	assert_false(is_rung(&server));
	assert_false(port_arm(&server));
	port_wake_other_end(&client);
	assert_true(is_rung(&server));
	/* The server has found nothing, and sleeps again. The packet rings, too. */
	assert_false(port_arm(&server));
	assert_false(is_rung(&server));
	send_by(&client, 64, 1);
	assert_true(is_rung(&server));
	assert_true(port_arm(&server));
	assert_int_equal(receive_by(&server, 64), 1);
	close_both();
	/* Without the other end there is nobody to wake. */
	open_port(&client, "client", "");
	port_wake_other_end(&client);
	close_port(&client);
}
