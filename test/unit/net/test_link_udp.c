/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/link.c with a UDP socket as the port: the kernel has routes, neighbours and
 * VLANs. */
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "link_internal.h"
#include "netns.h"
#include "port/udp_port.h"
#include "test.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, gateway[6] = {2, 0, 0, 0, 0, 0};

static bool have_network;
static struct link link;
static struct link_hop hop;

static int group_set_up(TEST_STATE)
{
	have_network = netns_enter();
	return 0;
}

TEST_GROUP(group_set_up, NULL);

static int set_up(TEST_STATE)
{
	memset(&link, 0, sizeof(link));
	link_init(&link);
	memcpy(link.port.mac, mac, sizeof(mac));
	link.by_udp = true;
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static int route(const uint8_t from_ip[4], const uint8_t to_ip[4])
{
	struct address from = {.vlan = VLAN_NONE, .ifindex = if_nametoindex("left")};
	uint8_t to[GID_LEN];

	gid_from_ipv4(from_ip, from.gid);
	gid_from_ipv4(to_ip, to);
	return link_route(&link, &from, to, &hop);
}

TEST(link_route__leaves_next_hops_to_the_kernel)
{
	const uint8_t own[4] = {10, 7, 0, 1}, neighbour[4] = {10, 7, 0, 9}, far[4] = {10, 8, 0, 1};

	if (!have_network)
		skip();
	assert_int_equal(route(own, neighbour), 0);
	assert_true(hop.known);
	assert_memory_equal(hop.mac, gateway, sizeof(gateway));
	assert_int_equal(route(own, far), -ENETUNREACH);
	assert_true(netns_run("ip route add default via 10.7.0.9 dev left"));
	assert_int_equal(route(own, far), 0);
	assert_true(hop.known);
	assert_memory_equal(hop.mac, gateway, sizeof(gateway));
}

TEST(link_take_addresses__vlans_are_the_kernels)
{
	const struct address list[] = {
		{.gid = {0xfe, 0x80, [15] = 1}, .vlan = VLAN_NONE},
		{.gid = {0xfd, [15] = 1}, .vlan = VLAN_NONE},
		{.gid = {0xfe, 0x80, [15] = 1}, .vlan = 5},
		{.gid = {0xfd, 5, [15] = 1}, .vlan = 5},
	};
	struct netdev netdev = {0};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		assert_int_equal(addresses_add(&netdev.addresses, &list[i]), 0);
	link_take_addresses(&link, &netdev);
	assert_int_equal(link.addresses.count, 3);
	assert_true(addresses_have(&link.addresses, VLAN_NONE, list[3].gid));
	link.by_udp = false;
	link_take_addresses(&link, &netdev);
	assert_int_equal(link.addresses.count, 4);
	assert_true(addresses_have(&link.addresses, 5, list[3].gid));
}
