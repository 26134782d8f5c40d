/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/netdev/netdev.c, on interfaces of a namespace of their own. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>

#include <unistd.h>

#include "netdev/netdev.h"
#include "netns.h"
#include "skipped.h"
#include "test.h"

#define TIMEOUT_MS 20000

static bool have_network;
static struct netdev netdev;
static int lists; /* of all interfaces that were asked for */

int __real_getifaddrs(struct ifaddrs **list);
int __wrap_getifaddrs(struct ifaddrs **list);

int __wrap_getifaddrs(struct ifaddrs **list)
{
	lists++;
	return __real_getifaddrs(list);
}

static int group_set_up(TEST_STATE)
{
	have_network = netns_enter();
	return 0;
}

TEST_GROUP(group_set_up, NULL);

TEST(netdev_query__tells_mac_mtu_and_addresses)
{
	const uint8_t v4[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 0, 1};
	const uint8_t v6[GID_LEN] = {0xfd, 0x07, [15] = 1};

	if (!have_network)
		skip();
	assert_true(netns_run("ip link set left address 02:00:00:00:00:77"));
	assert_int_equal(netdev_query("left", &netdev), 0);
	assert_int_equal(netdev.ifindex, if_nametoindex("left"));
	assert_memory_equal(netdev.mac, ((uint8_t[]){2, 0, 0, 0, 0, 0x77}), 6);
	assert_int_equal(netdev.mtu_bytes, 9000);
	assert_true(gid_is_link_local(netdev.addresses.list[0].gid));
	assert_true(addresses_have(&netdev.addresses, VLAN_NONE, v4));
	assert_true(addresses_have(&netdev.addresses, VLAN_NONE, v6));
	assert_int_equal(netdev.addresses.count, 3);
	assert_int_equal(netdev.addresses.list[1].prefix_len, 24);
	assert_int_equal(netdev.addresses.list[2].prefix_len, 64);
}

TEST(netdev_query__makes_a_link_local_address_where_there_is_none)
{
	uint8_t want[GID_LEN];

	if (!have_network)
		skip();
	assert_true(netns_run("ip -6 addr flush dev left"));
	assert_int_equal(netdev_query("left", &netdev), 0);
	address_link_local(netdev.mac, want);
	assert_int_equal(netdev.addresses.count, 2);
	assert_memory_equal(netdev.addresses.list[0].gid, want, GID_LEN);
	assert_true(gid_is_ipv4(netdev.addresses.list[1].gid));
}

TEST(netdev_query__refuses_what_is_no_ethernet_interface)
{
	assert_int_equal(netdev_query("nosuchdev", &netdev), -ENODEV);
	assert_int_equal(netdev_query("a-name-that-is-too-long-for-one", &netdev), -ENODEV);
	assert_int_equal(netdev_query("lo", &netdev), -EINVAL);
}

/* The kernel tells of a carrier a moment later, at most once a second. */
static bool running_becomes(const char *name, bool running)
{
	for (int i = 0; i < TIMEOUT_MS && netdev_running(name) != running; i++)
		usleep(1000);
	return netdev_running(name) == running;
}

/* The kernel routes to an address of its own a moment after the address is there. */
static bool mac_becomes_known(const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	for (int i = 0; i < TIMEOUT_MS && netdev_mac_of(gid, mac); i++)
		usleep(1000);
	return !netdev_mac_of(gid, mac);
}

TEST(netdev_running__follows_the_carrier)
{
	if (!have_network)
		skip();
	assert_true(running_becomes("left", true));
	assert_true(netns_run("ip link set right down"));
	assert_true(running_becomes("left", false));
	assert_true(netns_run("ip link set right up"));
	assert_false(netdev_running("nosuchdev"));
}

TEST(netdev_query__adds_the_addresses_of_vlans)
{
	const uint8_t v4[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 5, 1};
	const struct address *last;

	if (!have_network)
		skip();
	/* Not every kernel has VLANs. */
	if (!netns_run("ip link add link left name left.5 type vlan id 5 2> /dev/null")) {
		skipped_for("this kernel has no VLANs (8021q)");
		skip();
	}
	assert_true(netns_run("ip addr add 10.7.5.1/24 dev left.5 && ip link set left.5 up"));
	assert_int_equal(netdev_query("left", &netdev), 0);
	last = &netdev.addresses.list[netdev.addresses.count - 1];
	assert_memory_equal(last->gid, v4, GID_LEN);
	assert_int_equal(last->vlan, 5);
	assert_int_equal(last->ifindex, if_nametoindex("left.5"));
	assert_int_equal(netdev.addresses.list[0].vlan, VLAN_NONE);
	assert_int_equal(netdev.addresses.list[0].ifindex, if_nametoindex("left"));
	/* Each interface has those of its own VLANs only. */
	assert_int_equal(netdev_query("right", &netdev), 0);
	assert_false(addresses_have(&netdev.addresses, 5, v4));
	assert_true(netns_run("ip link del left.5"));
}

TEST(netdev_mac_of__finds_who_has_an_address)
{
	const uint8_t right[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 0, 2};
	const uint8_t nobody[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 0, 3};
	const uint8_t loopback[GID_LEN] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	uint8_t mac[6];

	if (!have_network)
		skip();
	assert_int_equal(netdev_query("right", &netdev), 0);
	assert_int_equal(netdev_mac_of(right, mac), 0);
	assert_memory_equal(mac, netdev.mac, 6);
	assert_int_equal(netdev_mac_of(nobody, mac), -ENOENT);
	assert_int_equal(netdev_mac_of(loopback, mac), -ENOENT);
}

TEST(netdev_mac_of__finds_ipv6_addresses)
{
	const uint8_t global[GID_LEN] = {0xfd, 0x07, [13] = 2, [15] = 1};
	const uint8_t nobody[GID_LEN] = {0xfd, 0x07, [13] = 2, [15] = 2};
	const uint8_t local[GID_LEN] = {0xfe, 0x80, [13] = 2, [15] = 1};
	uint8_t mac[6];

	if (!have_network)
		skip();
	assert_true(running_becomes("right", true));
	assert_true(netns_run("ip -6 addr add fd07::2:1/64 dev right nodad && "
			      "ip -6 addr add fe80::2:1/64 dev right nodad"));
	assert_int_equal(netdev_query("right", &netdev), 0);
	assert_true(mac_becomes_known(global, mac));
	assert_memory_equal(mac, netdev.mac, 6);
	assert_true(mac_becomes_known(local, mac));
	assert_memory_equal(mac, netdev.mac, 6);
	assert_int_equal(netdev_mac_of(nobody, mac), -ENOENT);
}

/* Each packet of an owner's neighbours waits for the answer: a host has thousands of interfaces. */
TEST(netdev_mac_of__asks_for_no_list)
{
	const uint8_t right[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 0, 2};
	uint8_t mac[6];

	if (!have_network)
		skip();
	lists = 0;
	assert_int_equal(netdev_mac_of(right, mac), 0);
	assert_int_equal(lists, 0);
}
