/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/ethdev_queue.c, on a port of the test's own. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "ethdev.h"
#include "test.h"
#include "wire/headers.h"

#define PORT_ID	  3
#define FRAME_LEN 64
#define ENGINES	  4
#define NUMBER	  1 /* of the queue's engine */

static struct {
	struct port main, port;
	struct ethdev dev;
	struct ethdev_queue *queue;
	/* the driver's queues are told apart by the addresses of these numbers */
	int numbers[ENGINES];
	void *queues[ENGINES], *callbacks[ENGINES];
	struct rte_mbuf mbufs[8];
	uint8_t frames[8][FRAME_LEN];
	uint16_t waits; /* frames that the driver has received */
	uint16_t room;	/* for frames that it sends */
	unsigned int freed;
} env;

/* Replace DPDK's function: the program's own definition takes precedence when it links. */
void rte_pktmbuf_free_bulk(struct rte_mbuf **mbufs, unsigned int count)
{
	assert_ptr_equal(mbufs[0], &env.mbufs[0]);
	env.freed += count;
}

static uint16_t driver_receives(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	assert_ptr_equal(queue, &env.numbers[NUMBER]);
	assert_true(n >= env.waits);
	for (uint16_t i = 0; i < env.waits; i++)
		mbufs[i] = &env.mbufs[i];
	return env.waits;
}

static uint16_t driver_sends(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	assert_ptr_equal(queue, &env.numbers[NUMBER]);
	assert_non_null(mbufs);
	return RTE_MIN(n, env.room);
}

static int set_up(TEST_STATE)
{
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[PORT_ID];

	memset(&env, 0, sizeof(env));
	for (int i = 0; i < ENGINES; i++)
		env.queues[i] = &env.numbers[i];
	ops->rx_pkt_burst = driver_receives;
	ops->tx_pkt_burst = driver_sends;
	ops->rxq.data = ops->txq.data = env.queues;
	ops->rxq.clbk = ops->txq.clbk = env.callbacks;
	env.dev = (struct ethdev){.port = &env.main,
				  .id = PORT_ID,
				  .queues = ENGINES,
				  .wake_fds = {5, 7},
				  .connected = true};
	if (ethdev_queue_open(&env.dev, NUMBER, ENGINES, &env.port) != 0)
		return -1;
	env.port.started = true;
	env.queue = env.port.ops_arg;
	return 0;
}

static int tear_down(TEST_STATE)
{
	port_destroy(&env.port);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Let the driver receive a RoCE packet to a queue pair. */
static void arrive(uint32_t qpn)
{
	struct rte_mbuf *mbuf = &env.mbufs[env.waits];
	uint8_t *frame = env.frames[env.waits++];
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)(void *)frame;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct bth *bth = (struct bth *)(udp + 1);

	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->next_proto_id = IPPROTO_UDP;
	udp->dst_port = rte_cpu_to_be_16(WIRE_UDP_PORT);
	wire_put24(bth->dest_qpn, qpn);
	*mbuf = (struct rte_mbuf){
		.buf_addr = frame, .data_len = FRAME_LEN, .pkt_len = FRAME_LEN, .port = PORT_ID};
}

TEST(queue_open__has_the_drivers_queue)
{
	struct port ports[2] = {0};

	assert_int_equal(port_wake_fd(&env.port), 7);
	assert_false(port_interrupts(&env.port));
	env.dev.arms = true;
	assert_int_equal(ethdev_queue_open(&env.dev, NUMBER, ENGINES, &ports[0]), 0);
	/* An interrupt of a NIC. */
	assert_true(port_interrupts(&ports[0]) && ports[0].arms_once);
	assert_int_equal(env.dev.further, 2);
	port_close(&ports[0]);
	assert_int_equal(env.dev.further, 1);
	port_destroy(&ports[0]);
	/* The rules divide packets among ENGINES queues. */
	assert_int_equal(ethdev_queue_open(&env.dev, 2, ENGINES - 1, &ports[1]), -EOPNOTSUPP);
	assert_int_equal(ethdev_queue_open(&env.dev, ENGINES, ENGINES, &ports[1]), -EOPNOTSUPP);
}

TEST(queue_rx_burst__marks_what_is_not_its_engines)
{
	struct rte_mbuf *taken[8];

	arrive(NUMBER + 5 * ENGINES);
	arrive(NUMBER + 5 * ENGINES + 1);
	arrive(NUMBER); /* the connection manager's */
	arrive(WIRE_QPN_MULTICAST);
	arrive(NUMBER + ENGINES);
	env.frames[4][12] = 0x86; /* another protocol */
	arrive(NUMBER + ENGINES);
	assert_int_equal(port_rx_burst(&env.port, taken, 8), 6);
	assert_int_equal(taken[0]->port, PORT_ID);
	for (int i = 1; i < 5; i++)
		assert_int_equal(taken[i]->port, PORT_STRAY);
	assert_int_equal(taken[5]->port, PORT_ID);
}

TEST(queue_rx_burst__nothing_from_a_port_that_is_given_up)
{
	struct rte_mbuf *taken[8];

	arrive(NUMBER + ENGINES);
	env.dev.given_up = true;
	assert_int_equal(port_rx_burst(&env.port, taken, 8), 0);
}

/* The driver may be asked by one thread only, which is the first engine's. */
TEST(queue_connected__is_what_the_first_engine_has_heard)
{
	assert_true(port_connected(&env.port));
	env.dev.connected = false;
	assert_false(port_connected(&env.port));
}

TEST(queue_tx_burst__drops_and_counts_without_a_link)
{
	struct rte_mbuf *mbufs[2] = {&env.mbufs[0], &env.mbufs[1]};

	env.mbufs[0].pkt_len = 100;
	env.mbufs[1].pkt_len = 50;
	env.room = 2;
	env.dev.connected = false;
	assert_int_equal(port_tx_burst(&env.port, mbufs, 2), 2);
	assert_int_equal(env.freed, 2);
	assert_int_equal(env.port.tx_unconnected.packets, 2);
	assert_int_equal(env.port.tx_unconnected.bytes, 150);
	env.dev.connected = true;
	assert_int_equal(port_tx_burst(&env.port, mbufs, 2), 2);
	assert_int_equal(env.freed, 2);
	assert_int_equal(env.port.tx_unconnected.packets, 2);
}
