/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/local_port.c. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <rte_ether.h>

#include "open_fds.h"
#include "port/port.h"
#include "test.h"

static struct port port;

static int make_no_pool(struct port *which)
{
	which->pool = NULL;
	return 0;
}

static int refuse_pool(struct port *which)
{
	(void)which;
	return -ENOMEM;
}

static void prepare(uint32_t mtu_bytes)
{
	memset(&port, 0, sizeof(port));
	port.make_pool = make_no_pool;
	assert_int_equal(port_prepare(&port, "local0", mtu_bytes), 0);
}

TEST(local_port__is_up_and_never_wakes_its_owner)
{
	struct pollfd fd = {.events = POLLIN};
	struct rte_mbuf *mbuf;

	prepare(0);
	assert_int_equal(port_open(&port), 0);
	fd.fd = port_wake_fd(&port);
	assert_true(port_connected(&port));
	assert_true(port_link_up(&port, true));
	assert_false(port_lost(&port));
	assert_false(port_arm(&port));
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(port_rx_burst(&port, &mbuf, 1), 0);
	port_close(&port);
	assert_int_equal(port_wake_fd(&port), -1);
	port_destroy(&port);
}

/* A step after port_open may fail. */
TEST(local_port__leaves_no_descriptor)
{
	unsigned int before;

	prepare(0);
	before = fds_count();
	assert_int_equal(port_open(&port), 0);
	port_destroy(&port);
	assert_int_equal(fds_count(), before);
}

TEST(local_port__has_a_local_unicast_mac)
{
	prepare(0);
	assert_int_equal(port_open(&port), 0);
	assert_int_equal(port.mac[0] & 3, RTE_ETHER_LOCAL_ADMIN_ADDR);
	port_close(&port);
	port_destroy(&port);
}

/* Two networks on one host: programs tell devices apart by MAC and GUID. */
TEST(local_port__has_the_mac_of_its_network)
{
	uint8_t macs[3][6];

	for (int i = 0; i < 3; i++) {
		prepare(0);
		port.unique = i == 1 ? "/run/two.sock" : "/run/one.sock";
		assert_int_equal(port_open(&port), 0);
		memcpy(macs[i], port.mac, sizeof(macs[i]));
		port_close(&port);
		port_destroy(&port);
	}
	assert_memory_equal(macs[0], macs[2], 6);
	assert_memory_not_equal(macs[0], macs[1], 6);
}

TEST(local_port__takes_the_users_mtu)
{
	prepare(0);
	assert_true(port.mtu_bytes >= 4200);
	port_destroy(&port);
	prepare(1500);
	assert_int_equal(port.mtu_bytes, 1500);
	port_destroy(&port);
}

TEST(local_port__without_memory_stays_closed)
{
	unsigned int before;

	prepare(0);
	before = fds_count();
	port.make_pool = refuse_pool;
	assert_int_equal(port_open(&port), -ENOMEM);
	assert_int_equal(port_wake_fd(&port), -1);
	port_destroy(&port);
	assert_int_equal(fds_count(), before);
}
