/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/interface.c. */
#include <errno.h>
#include <limits.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_mempool.h>

#include "eal/runtime.h"
#include "frames.h"
#include "netdev/divide.h"
#include "netns.h"
#include "open_fds.h"
#include "port/interface.h"
#include "port/port.h"
#include "psock/psock.h"
#include "test.h"
#include "wire/packet.h"

#define MEMORY	 (16 << 20)
#define SHIFT	 14
#define BURST	 8
#define DEADLINE 10000 /* ms */

static bool have_network;

static int group_set_up(TEST_STATE)
{
	const struct runtime_config config = {.memory_bytes = MEMORY};

	have_network = netns_enter();
	return have_network ? runtime_start(&config) : 0;
}

TEST_GROUP(group_set_up, NULL);

/* Destroy the port, and the pool, whose name the next port's pool has. */
static void destroy(struct port *port)
{
	port_destroy(port);
	rte_mempool_free(port->pool);
}

/* The helper thread, when it gets its CPU back late. */
TEST(interface_arm__may_be_called_after_the_end)
{
	struct port port;

	if (!have_network)
		skip();
	memset(&port, 0, sizeof(port));
	assert_int_equal(interface_prepare(&port, "left", 0), 0);
	assert_int_equal(port_open(&port), 0);
	assert_false(port_arm(&port));
	port_close(&port);
	assert_int_equal(port_wake_fd(&port), -1);
	assert_false(port_arm(&port));
	destroy(&port);
}

static void put_frame(int sender, uint32_t qpn, struct frame frame)
{
	uint8_t at[FRAME_MAX];
	uint32_t len;

	frame.qpn = qpn;
	frame.len = 64;
	len = frame_make(&frame, at);
	assert_int_equal(send(sender, at, len, 0), len);
}

/* Another process has the socket; the port receives what is not for that one. */
TEST(interface_lend__divides_packets)
{
	const uint32_t first = 5u << SHIFT;
	struct divide_blocks blocks = {.shift = SHIFT, .count = 1, .first = {first}};
	struct pollfd pfd = {.events = POLLIN};
	struct rte_mbuf *mbufs[BURST];
	struct psock *psock;
	const struct divide_part part = {.first = first, .shift = SHIFT};
	struct port port;
	int fd, sender;

	if (!have_network)
		skip();
	memset(&port, 0, sizeof(port));
	assert_int_equal(interface_prepare(&port, "left", 0), 0);
	assert_int_equal(port_open(&port), 0);
	fd = port.ops->lend(port.ops_arg, &part);
	assert_true(fd >= 0);
	assert_int_equal(port.ops->leave_out(port.ops_arg, &blocks), 0);
	assert_int_equal(psock_adopt(&psock, port.pool, fd), 0);
	/* It stays on the interface. */
	assert_int_equal(psock_start(psock, if_nametoindex("right")), -EINVAL);
	sender = socket(AF_PACKET, SOCK_RAW, 0);
	assert_int_equal(
		bind(sender,
		     (const struct sockaddr *)&(const struct sockaddr_ll){
			     .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("right")},
		     sizeof(struct sockaddr_ll)),
		0);
	put_frame(sender, first + 1, (struct frame){.id = 1});
	put_frame(sender, first - 1, (struct frame){.id = 2});
	put_frame(sender, first + 2, (struct frame){.id = 3});
	pfd.fd = psock_fd(psock);
	assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
	assert_int_equal(psock_rx_burst(psock, mbufs, BURST), 2);
	rte_pktmbuf_free_bulk(mbufs, 2);
	assert_int_equal(port_rx_burst(&port, mbufs, BURST), 1);
	rte_pktmbuf_free_bulk(mbufs, 1);
	/* That one has ended. */
	psock_close(psock);
	blocks.count = 0;
	assert_int_equal(port.ops->leave_out(port.ops_arg, &blocks), 0);
	put_frame(sender, first + 1, (struct frame){.id = 4});
	pfd.fd = port_wake_fd(&port);
	assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
	assert_int_equal(port_rx_burst(&port, mbufs, BURST), 1);
	rte_pktmbuf_free_bulk(mbufs, 1);
	close(sender);
	port_close(&port);
	destroy(&port);
}

/* A capture must see all packets. */
TEST(interface_lend__refuses_while_captures_may_come)
{
	const struct divide_part part = {.first = 1u << SHIFT, .shift = SHIFT};
	struct port port;

	if (!have_network)
		skip();
	memset(&port, 0, sizeof(port));
	assert_int_equal(interface_prepare(&port, "left", 0), 0);
	port.watched = true;
	assert_int_equal(port.ops->lend(port.ops_arg, &part), -EOPNOTSUPP);
	port_destroy(&port);
}

static int open_sender(void)
{
	const struct sockaddr_ll address = {.sll_family = AF_PACKET,
					    .sll_ifindex = (int)if_nametoindex("right")};
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Return the queue pair number of the only frame that waits. */
static uint32_t receive_qpn(const struct port *port)
{
	struct pollfd pfd = {.fd = port_wake_fd(port), .events = POLLIN};
	struct rte_mbuf *mbufs[BURST];
	uint32_t qpn;

	assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
	assert_int_equal(port_rx_burst(port, mbufs, BURST), 1);
	assert_true(packet_peek_qpn(rte_pktmbuf_mtod(mbufs[0], const uint8_t *), mbufs[0]->pkt_len,
				    &qpn));
	rte_pktmbuf_free(mbufs[0]);
	return qpn;
}

/* Each engine gets the packets to its queue pairs, and sends by itself. */
TEST(interface_open_queue__divides_packets_among_engines)
{
	struct port port, queues[3];
	struct rte_mbuf *mbuf;
	int sender;

	if (!have_network)
		skip();
	memset(&port, 0, sizeof(port));
	memset(queues, 0, sizeof(queues));
	assert_int_equal(interface_prepare(&port, "left", 0), 0);
	assert_int_equal(port_open(&port), 0);
	for (uint32_t i = 1; i < 3; i++) {
		queues[i].started = true;
		assert_int_equal(port.ops->open_queue(port.ops_arg, i, 4, &queues[i]), 0);
	}
	/* The owner of an interface that programs share has one engine. */
	assert_int_equal(port.ops->leave_out(port.ops_arg, &(const struct divide_blocks){0}),
			 -EOPNOTSUPP);
	sender = open_sender();
	for (uint32_t qpn = 4; qpn < 12; qpn++) {
		const uint32_t owner = qpn % 4;
		const bool is_queue = owner == 1 || owner == 2;

		put_frame(sender, qpn, (struct frame){.id = (uint16_t)qpn});
		/* Engine 3 has no queue: the first one receives its packets. */
		assert_int_equal(receive_qpn(is_queue ? &queues[owner] : &port), qpn);
		for (uint32_t i = 1; i < 3; i++)
			assert_int_equal(port_rx_burst(&queues[i], &mbuf, 1), 0);
		assert_int_equal(port_rx_burst(&port, &mbuf, 1), 0);
	}
	put_frame(sender, 1, (struct frame){.id = 1});
	assert_int_equal(receive_qpn(&port), 1);
	close(sender);
	for (uint32_t i = 1; i < 3; i++) {
		port_close(&queues[i]);
		assert_int_equal(port_wake_fd(&queues[i]), -1);
		port_destroy(&queues[i]);
	}
	port_close(&port);
	destroy(&port);
}

static bool cannot_bind;	   /* a further socket */
static int filters_left = INT_MAX; /* how often the first socket's filter can be changed */

int __real_psock_start(struct psock *psock, unsigned int ifindex);
int __wrap_psock_start(struct psock *psock, unsigned int ifindex);
int __real_divide_all_but_shares(int fd, uint32_t shares, uint32_t count);
int __wrap_divide_all_but_shares(int fd, uint32_t shares, uint32_t count);

int __wrap_psock_start(struct psock *psock, unsigned int ifindex)
{
	return cannot_bind ? -ENETDOWN : __real_psock_start(psock, ifindex);
}

int __wrap_divide_all_but_shares(int fd, uint32_t shares, uint32_t count)
{
	return filters_left-- > 0 ? __real_divide_all_but_shares(fd, shares, count) : -ENOMEM;
}

/* The port stays as it is. */
TEST(interface_open_queue__changes_nothing_if_a_step_fails)
{
	static const struct {
		bool cannot_bind;
		int filters_left, rc;
	} cases[] = {{true, 1, -ENETDOWN}, {true, INT_MAX, -ENETDOWN}, {false, 0, -ENOMEM}};
	const struct divide_blocks blocks = {.count = 0};
	struct port port, queue;
	unsigned int fds;
	int sender;

	if (!have_network)
		skip();
	memset(&port, 0, sizeof(port));
	memset(&queue, 0, sizeof(queue));
	assert_int_equal(interface_prepare(&port, "left", 0), 0);
	assert_int_equal(port_open(&port), 0);
	sender = open_sender();
	fds = fds_count();
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		cannot_bind = cases[i].cannot_bind;
		filters_left = cases[i].filters_left;
		assert_int_equal(port.ops->open_queue(port.ops_arg, 1, 2, &queue), cases[i].rc);
		cannot_bind = false;
		filters_left = INT_MAX;
		assert_null(queue.ops);
		assert_int_equal(fds_count(), fds);
		put_frame(sender, 5, (struct frame){.id = (uint16_t)i});
		assert_int_equal(receive_qpn(&port), 5);
		assert_int_equal(port.ops->leave_out(port.ops_arg, &blocks), 0);
	}
	close(sender);
	port_close(&port);
	destroy(&port);
}

/* A capture must see all packets. */
TEST(interface_open_queue__refuses_while_captures_may_come)
{
	struct port port, queue;

	if (!have_network)
		skip();
	memset(&port, 0, sizeof(port));
	memset(&queue, 0, sizeof(queue));
	port.watched = true;
	assert_int_equal(interface_prepare(&port, "left", 0), 0);
	assert_int_equal(port_queues(&port), 1);
	assert_int_equal(port.ops->open_queue(port.ops_arg, 1, 2, &queue), -EOPNOTSUPP);
	assert_null(queue.ops);
	port_destroy(&port);
	memset(&port, 0, sizeof(port));
	assert_int_equal(interface_prepare(&port, "left", 0), 0);
	assert_true(port_queues(&port) >= 16);
	port_destroy(&port);
}

TEST(interface_lost__interface_is_removed)
{
	struct port port;

	if (!have_network)
		skip();
	assert_true(
		netns_run("ip link add gone type veth peer name gonepeer && ip link set gone up"));
	memset(&port, 0, sizeof(port));
	assert_int_equal(interface_prepare(&port, "gone", 0), 0);
	assert_int_equal(port_open(&port), 0);
	assert_false(port_lost(&port));
	assert_true(netns_run("ip link set gone down"));
	assert_false(port_lost(&port));
	assert_true(netns_run("ip link del gone"));
	assert_true(port_lost(&port));
	/* A new interface with the same name is not the same interface. */
	assert_true(
		netns_run("ip link add gone type veth peer name gonepeer && ip link set gone up"));
	assert_true(port_lost(&port));
	port_lose(&port);
	port_close(&port);
	assert_false(port_lost(&port));
	destroy(&port);
	assert_true(netns_run("ip link del gone"));
}
