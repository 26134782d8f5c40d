/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/interface.c. */
#include <string.h>

#include <rte_mempool.h>

#include "eal/runtime.h"
#include "netns.h"
#include "port/interface.h"
#include "port/port.h"
#include "test.h"

#define MEMORY (16 << 20)

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
