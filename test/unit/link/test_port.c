/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/link/port.c: what is settled before there is a port. */
#include <stdint.h>

#include "link/port.h"
#include "wire/build.h"
#include "test.h"

static struct port port;

TEST(port_prepare__makes_buffers_for_the_longest_of_our_frames)
{
	assert_int_equal(port_prepare(&port, "net_ring0", 352), 0);
	assert_true(port.mbuf_bytes >= PACKET_FRAME_MAX);
	assert_int_equal(port_prepare(&port, "net_ring0", 9000), 0);
	assert_true(port.mbuf_bytes >= 9000 + RTE_ETHER_HDR_LEN);
}

/* DPDK counts a buffer's bytes in 16 bits. */
TEST(port_prepare__makes_no_longer_buffers_than_there_are)
{
	for (uint32_t mtu = 65000; mtu <= 65535; mtu++) {
		assert_int_equal(port_prepare(&port, "net_ring0", mtu), 0);
		assert_in_range(port.mbuf_bytes + RTE_PKTMBUF_HEADROOM, 65000, UINT16_MAX);
	}
}

/* The port has not started: were it asked again, it would tell that there is no link. */
TEST(port_link_up__goes_by_what_was_told)
{
	struct port stopped = {0};

	assert_true(port_link_up(&stopped, true));
	assert_false(port_link_up(&stopped, false));
}

TEST(port_link_up__is_up_before_the_first_peer)
{
	struct port wire = {.waits_for_peer = true};

	assert_true(port_link_up(&wire, false));
	assert_true(port_link_up(&wire, true));
	assert_false(port_link_up(&wire, false));
}
