/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/port.c: what is settled before there is a port. */
#include <stdint.h>

#include <rte_ether.h>

#include "port/port.h"
#include "test.h"
#include "wire/build.h"

static struct port port;

TEST(port_prepare__makes_buffers_for_the_longest_of_our_frames)
{
	assert_int_equal(port_prepare(&port, "net_ring0", 352), 0);
	assert_true(port.mbuf_bytes >= PACKET_FRAME_MAX);
	port_destroy(&port);
	assert_int_equal(port_prepare(&port, "net_ring0", 9000), 0);
	assert_true(port.mbuf_bytes >= 9000 + RTE_ETHER_HDR_LEN);
	port_destroy(&port);
}

/* DPDK counts a buffer's bytes in 16 bits. */
TEST(port_prepare__makes_no_longer_buffers_than_there_are)
{
	for (uint32_t mtu = 65000; mtu <= 65535; mtu++) {
		assert_int_equal(port_prepare(&port, "net_ring0", mtu), 0);
		assert_in_range(port.mbuf_bytes + RTE_PKTMBUF_HEADROOM, 65000, UINT16_MAX);
		port_destroy(&port);
	}
}

/* The port has not started: were it asked again, it would tell that there is no link. */
TEST(port_link_up__goes_by_what_was_told)
{
	assert_int_equal(port_prepare(&port, "net_ring0", 0), 0);
	assert_true(port_link_up(&port, true));
	assert_false(port_link_up(&port, false));
	port_destroy(&port);
}

TEST(port_link_up__is_up_before_the_first_peer)
{
	assert_int_equal(port_prepare(&port, "net_vhost0,iface=/tmp/none.sock", 0), 0);
	assert_true(port_link_up(&port, false));
	assert_true(port_link_up(&port, true));
	assert_false(port_link_up(&port, false));
	port_destroy(&port);
}

static int closes;

static void count_close(void *arg)
{
	closes += arg == &closes;
}

static bool is_connected(void *arg)
{
	return arg == &closes;
}

/* A port that is not started is asked nothing of its connection, and closed by its own kind. */
TEST(port_close__is_the_kind_s_own)
{
	static const struct port_ops ops = {.connected = is_connected, .close = count_close};
	struct port own = {.ops = &ops, .ops_arg = &closes};

	assert_false(port_connected(&own));
	own.started = true;
	assert_true(port_connected(&own));
	port_close(&own);
	assert_int_equal(closes, 1);
	assert_false(port_connected(&own));
	/* The argument of this table belongs to the test, so nothing is freed. */
	port_destroy(&own);
	assert_null(own.ops);
}
