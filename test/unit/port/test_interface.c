/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/interface.c. */
#include <errno.h>
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
#include "port/interface.h"
#include "port/port.h"
#include "psock/psock.h"
#include "test.h"

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
	uint32_t ifindex = 0;
	struct port port;
	int fd, sender;

	if (!have_network)
		skip();
	memset(&port, 0, sizeof(port));
	assert_int_equal(interface_prepare(&port, "left", 0), 0);
	assert_int_equal(port_open(&port), 0);
	fd = port.ops->lend(port.ops_arg, first, SHIFT, &ifindex);
	assert_true(fd >= 0);
	assert_int_equal(ifindex, if_nametoindex("left"));
	assert_int_equal(port.ops->leave_out(port.ops_arg, &blocks), 0);
	assert_int_equal(psock_adopt(&psock, port.pool, fd), 0);
	assert_int_equal(psock_start(psock, ifindex), 0);
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
	uint32_t ifindex;
	struct port port;

	if (!have_network)
		skip();
	memset(&port, 0, sizeof(port));
	assert_int_equal(interface_prepare(&port, "left", 0), 0);
	port.watched = true;
	assert_int_equal(port.ops->lend(port.ops_arg, 1u << SHIFT, SHIFT, &ifindex), -EOPNOTSUPP);
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
