/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/netdev/rtnl.c, on the tables of a namespace of their own. */
#include <errno.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>

#include "netdev/rtnl.h"
#include "netns.h"
#include "skipped.h"
#include "test.h"

static const uint8_t near4[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 0, 9};
static const uint8_t far4[GID_LEN] = {[10] = 0xff, 0xff, 10, 8, 0, 9};
static const uint8_t router4[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 0, 254};
static const uint8_t near6[GID_LEN] = {0xfd, 0x07, [15] = 9};
static const uint8_t far6[GID_LEN] = {0xfd, 0x08, [15] = 9};
static const uint8_t router6[GID_LEN] = {0xfd, 0x07, [14] = 0xff, 0xff};

static bool have_network;
static unsigned int left;
static uint8_t next_hop[GID_LEN];

static int group_set_up(TEST_STATE)
{
	have_network =
		netns_enter() && netns_run("ip route add 10.8.0.0/16 via 10.7.0.254 dev left && "
					   "ip -6 route add fd08::/16 via fd07::ffff dev left");
	left = if_nametoindex("left");
	return 0;
}

TEST_GROUP(group_set_up, NULL);

TEST(rtnl_route__neighbours_are_their_own_next_hop)
{
	if (!have_network)
		skip();
	assert_int_equal(rtnl_route(left, near4, next_hop), 0);
	assert_memory_equal(next_hop, near4, GID_LEN);
	assert_int_equal(rtnl_route(left, near6, next_hop), 0);
	assert_memory_equal(next_hop, near6, GID_LEN);
}

TEST(rtnl_route__others_are_behind_the_router)
{
	if (!have_network)
		skip();
	assert_int_equal(rtnl_route(left, far4, next_hop), 0);
	assert_memory_equal(next_hop, router4, GID_LEN);
	assert_int_equal(rtnl_route(left, far6, next_hop), 0);
	assert_memory_equal(next_hop, router6, GID_LEN);
}

/* The route must leave by this interface, even where the host prefers another one. */
TEST(rtnl_route__stays_on_the_interface)
{
	const uint8_t other[GID_LEN] = {[10] = 0xff, 0xff, 10, 9, 0, 1};

	if (!have_network)
		skip();
	assert_true(netns_run("ip route add 10.9.0.0/16 via 10.7.0.77 dev right && "
			      "ip route add 10.9.0.0/16 via 10.7.0.254 dev left metric 99"));
	assert_int_equal(rtnl_route(left, other, next_hop), 0);
	assert_memory_equal(next_hop, router4, GID_LEN);
}

TEST(rtnl_route__unreachable_is_said_so)
{
	const uint8_t blocked[GID_LEN] = {[10] = 0xff, 0xff, 10, 99, 0, 1};

	if (!have_network)
		skip();
	assert_true(netns_run("ip route add prohibit 10.99.0.0/16"));
	assert_int_equal(rtnl_route(left, blocked, next_hop), -ENETUNREACH);
}

TEST(rtnl_neigh__tells_what_the_kernel_knows)
{
	uint8_t mac[6];
	bool confirmed;

	if (!have_network)
		skip();
	assert_int_equal(rtnl_neigh(left, near4, mac, &confirmed), -ENOENT);
	assert_true(
		netns_run("ip neigh add 10.7.0.9 lladdr 02:00:00:00:00:09 dev left nud permanent"));
	assert_int_equal(rtnl_neigh(left, near4, mac, &confirmed), 0);
	assert_true(confirmed);
	assert_memory_equal(mac, ((uint8_t[]){2, 0, 0, 0, 0, 9}), 6);
	assert_true(
		netns_run("ip -6 neigh add fd07::9 lladdr 02:00:00:00:00:0a dev left nud stale"));
	assert_int_equal(rtnl_neigh(left, near6, mac, &confirmed), 0);
	assert_false(confirmed);
	assert_int_equal(mac[5], 0x0a);
}

TEST(rtnl_neigh__a_failed_one_is_not_known)
{
	uint8_t mac[6];
	bool confirmed;

	if (!have_network)
		skip();
	assert_true(netns_run("ip neigh replace 10.7.0.10 dev left nud failed"));
	assert_int_equal(rtnl_neigh(left,
				    ((const uint8_t[GID_LEN]){[10] = 0xff, 0xff, 10, 7, 0, 10}),
				    mac, &confirmed),
			 -ENOENT);
}

TEST(rtnl_vlan__knows_a_vlan_from_others)
{
	unsigned int lower = 0;
	int32_t vlan = 0;

	if (!have_network)
		skip();
	/* A veth's other end is no interface below it. */
	assert_int_equal(rtnl_vlan(left, &lower, &vlan), -ENOENT);
	assert_int_equal(rtnl_vlan(99999, &lower, &vlan), -ENOENT);
	/* Not every kernel has VLANs. */
	if (!netns_run("ip link add link left name left.5 type vlan id 5 2> /dev/null")) {
		skipped_for("this kernel has no VLANs (8021q)");
		skip();
	}
	assert_int_equal(rtnl_vlan(if_nametoindex("left.5"), &lower, &vlan), 0);
	assert_int_equal(lower, left);
	assert_int_equal(vlan, 5);
	assert_true(netns_run("ip link add link left name left.ad type vlan proto 802.1ad id 6"));
	assert_int_equal(rtnl_vlan(if_nametoindex("left.ad"), &lower, &vlan), -ENOENT);
}
