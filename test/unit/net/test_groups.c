/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/groups.c: when reports go out, and what the kernel joins. */
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net/groups.h"
#include "net/membership.h"
#include "netns.h"
#include "test.h"

#define S UINT64_C(1000000000)

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t group4[GID_LEN] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
static const uint8_t other4[GID_LEN] = {[10] = 0xff, 0xff, 239, 1, 2, 4};
static const uint8_t group6[GID_LEN] = {0xff, 0x0e, [15] = 7};
static const uint8_t hosts4[GID_LEN] = {[10] = 0xff, 0xff, 224, 0, 0, 1};
static const uint8_t host6[GID_LEN] = {0xff, 0x01, [15] = 7};
static const uint8_t nodes6[GID_LEN] = {0xff, 0x02, [15] = 1};

static bool have_network;
static unsigned int left; /* an interface of the kernel's */
static struct groups groups;
static struct addresses own;
static uint8_t frame[GROUPS_FRAME_MAX];
static uint64_t now_ns;

static int add(struct addresses *addresses, const uint8_t gid[GID_LEN], uint8_t prefix_len)
{
	struct address address = {.prefix_len = prefix_len, .vlan = VLAN_NONE};

	memcpy(address.gid, gid, GID_LEN);
	return addresses_add(addresses, &address);
}

static int group_set_up(TEST_STATE)
{
	static const uint8_t ipv4[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	static const uint8_t ipv6[GID_LEN] = {0xfe, 0x80, [15] = 1};
	const struct address vlan5 = {
		.gid = {[10] = 0xff, 0xff, 10, 0, 5, 1}, .prefix_len = 24, .vlan = 5};

	have_network = netns_enter();
	left = if_nametoindex("left");
	add(&own, ipv6, 64);
	add(&own, ipv4, 24);
	addresses_add(&own, &vlan5);
	return 0;
}

TEST_GROUP(group_set_up, NULL);

static int set_up(TEST_STATE)
{
	now_ns = 5 * S;
	groups_init(&groups);
	return 0;
}

static size_t leave(const uint8_t gid[GID_LEN])
{
	size_t len;

	groups_leave(&groups, gid, now_ns, mac, &own, frame, &len);
	return len;
}

static int tear_down(TEST_STATE)
{
	while (!LIST_EMPTY(&groups.list)) {
		uint8_t gid[GID_LEN];

		memcpy(gid, LIST_FIRST(&groups.list)->gid, GID_LEN);
		leave(gid);
	}
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Count the reports that are sent until a time. */
static unsigned int reports_until(uint64_t until_ns)
{
	unsigned int count = 0;

	for (; now_ns <= until_ns; now_ns += S / 100) {
		while (groups_report(&groups, now_ns, mac, &own, frame) > 0)
			count++;
	}
	return count;
}

/* Type of the message in `frame`. */
static uint8_t type4(void)
{
	return frame[14 + 24];
}

static uint8_t type6(void)
{
	return frame[14 + 48];
}

TEST(join__is_told_twice_unasked)
{
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group4, now_ns), 0);
	assert_true(groups_report(&groups, now_ns, mac, &own, frame) > 0);
	assert_int_equal(type4(), 0x22);
	assert_int_equal(frame[14 + 24 + 8], 4);
	assert_int_equal(groups_report(&groups, now_ns, mac, &own, frame), 0);
	assert_int_equal(reports_until(now_ns + S), 1);
	assert_int_equal(reports_until(now_ns + 1000 * S), 0);
}

TEST(join__all_hosts_are_in_some_groups_anyway)
{
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, hosts4, now_ns), 0);
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, nodes6, now_ns), 0);
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, host6, now_ns), 0);
	assert_int_equal(reports_until(now_ns + 10 * S), 0);
	assert_int_equal(leave(hosts4), 0);
	assert_int_equal(leave(nodes6), 0);
	assert_int_equal(leave(host6), 0);
}

TEST(leave__says_so)
{
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group4, now_ns), 0);
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group6, now_ns), 0);
	assert_true(leave(group4) > 0);
	assert_int_equal(type4(), 0x22);
	assert_int_equal(frame[14 + 24 + 8], 3);
	assert_true(leave(group6) > 0);
	assert_int_equal(type6(), 143);
	assert_int_equal(leave(group6), 0);
	assert_int_equal(reports_until(now_ns + 10 * S), 0);
}

TEST(asked__each_group_answers_in_time)
{
	const struct membership_query query = {.ipv4 = true, .max_delay_ns = 3 * S};

	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group4, now_ns), 0);
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, other4, now_ns), 0);
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group6, now_ns), 0);
	assert_int_equal(reports_until(now_ns + 2 * S), 6);
	groups_asked(&groups, VLAN_NONE, &query, now_ns);
	assert_int_equal(reports_until(now_ns + 3 * S), 2);
	assert_int_equal(type4(), 0x22);
	assert_int_equal(frame[14 + 24 + 8], 2);
	assert_int_equal(reports_until(now_ns + 100 * S), 0);
}

TEST(asked__for_one_group_others_are_silent)
{
	struct membership_query query = {.max_delay_ns = S};

	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group4, now_ns), 0);
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group6, now_ns), 0);
	assert_int_equal(reports_until(now_ns + 2 * S), 4);
	memcpy(query.group, group6, GID_LEN);
	groups_asked(&groups, VLAN_NONE, &query, now_ns);
	assert_int_equal(reports_until(now_ns + 2 * S), 1);
	assert_int_equal(type6(), 143);
	query.group[15]++;
	groups_asked(&groups, VLAN_NONE, &query, now_ns);
	assert_int_equal(reports_until(now_ns + 2 * S), 0);
}

TEST(asked__by_an_old_router_answers_in_its_form)
{
	const struct membership_query old = {.ipv4 = true, .old = true, .max_delay_ns = S};

	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group4, now_ns), 0);
	reports_until(now_ns + 2 * S);
	groups_asked(&groups, VLAN_NONE, &old, now_ns);
	assert_int_equal(reports_until(now_ns + 2 * S), 1);
	assert_int_equal(type4(), 0x16);
	/* The old router counts for its address family only, and not for ever. */
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group6, now_ns), 0);
	assert_true(groups_report(&groups, now_ns, mac, &own, frame) > 0);
	assert_int_equal(type6(), 143);
	reports_until(now_ns + 2 * S);
	now_ns += 300 * S;
	assert_true(leave(group4) > 0);
	assert_int_equal(type4(), 0x22);
}

TEST(join__in_a_vlan_is_told_there)
{
	const struct membership_query query = {.ipv4 = true, .max_delay_ns = S};
	const uint8_t tag[4] = {0x81, 0x00, 0x00, 0x05};
	size_t len;

	assert_int_equal(groups_join(&groups, 5, 0, group4, now_ns), 0);
	assert_int_equal(groups_report(&groups, now_ns, mac, &own, frame), 14 + 4 + 24 + 16);
	assert_memory_equal(frame + 12, tag, sizeof(tag));
	assert_int_equal(frame[16] << 8 | frame[17], 0x0800);
	/* The report's source is our address in that VLAN. */
	assert_memory_equal(frame + 18 + 12, ((uint8_t[]){10, 0, 5, 1}), 4);
	reports_until(now_ns + 2 * S);
	/* A router of another network asks. */
	groups_asked(&groups, VLAN_NONE, &query, now_ns);
	assert_int_equal(reports_until(now_ns + 2 * S), 0);
	groups_asked(&groups, 5, &query, now_ns);
	assert_int_equal(reports_until(now_ns + 2 * S), 1);
	/* Left in each network by itself. */
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group4, now_ns), 0);
	assert_true(groups_leave(&groups, group4, now_ns, mac, &own, frame, &len));
	assert_true(groups_leave(&groups, group4, now_ns, mac, &own, frame, &len));
	assert_memory_equal(frame + 12, tag, sizeof(tag));
	assert_false(groups_leave(&groups, group4, now_ns, mac, &own, frame, &len));
}

/* The kernel lists its groups with users; a group in hexadecimal, in host order for IPv4. */
static bool kernel_has(bool ipv4)
{
	return netns_run(ipv4 ? "grep -q '^\t*030201EF' /proc/self/net/igmp"
			      : "grep -q 'left  *ff0e0000000000000000000000000007' "
				"/proc/self/net/igmp6");
}

TEST(join__the_kernel_joins_on_its_interface)
{
	if (!have_network)
		skip();
	groups_init(&groups);
	assert_false(kernel_has(true));
	assert_int_equal(groups_join(&groups, VLAN_NONE, left, group4, now_ns), 0);
	assert_int_equal(groups_join(&groups, VLAN_NONE, left, group6, now_ns), 0);
	assert_true(kernel_has(true));
	assert_true(kernel_has(false));
	assert_int_equal(reports_until(now_ns + 10 * S), 0);
	assert_int_equal(leave(group4), 0);
	assert_int_equal(leave(group6), 0);
	assert_false(kernel_has(true));
	assert_false(kernel_has(false));
	groups_init(&groups);
	assert_int_equal(groups_join(&groups, VLAN_NONE, 99999, group4, now_ns), -ENODEV);
}

/* The kernel joins with several sockets, but fewer than groups: a process may have only 1024
 * descriptors. */
TEST(join__the_kernel_joins_many)
{
	const struct member_socket *by;
	unsigned int sockets = 0;
	uint8_t gid[GID_LEN];

	if (!have_network)
		skip();
	for (int i = 0; i < 2000; i++) {
		memcpy(gid, i % 2 ? group4 : group6, GID_LEN);
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		assert_int_equal(groups_join(&groups, VLAN_NONE, left, gid, now_ns), 0);
	}
	LIST_FOREACH (by, &groups.members.sockets, link)
		sockets++;
	assert_in_range(sockets, 2, 200);
	/* A place that is left is taken again. */
	for (int i = 0; i < 100; i++) {
		assert_int_equal(leave(gid), 0);
		assert_int_equal(groups_join(&groups, VLAN_NONE, left, gid, now_ns), 0);
	}
	LIST_FOREACH (by, &groups.members.sockets, link)
		sockets--;
	assert_int_equal(sockets, 0);
}

/* Make an interface with an address of ours that stands for the kernel's VLAN interface; not every
 * kernel has VLANs. */
static void make_vlan(struct addresses *addresses)
{
	const uint8_t ipv4[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 5, 1};
	struct address address = {.prefix_len = 24, .vlan = 5};

	assert_true(netns_run("ip link add later type veth peer name other && "
			      "ip addr add 10.7.5.1/24 dev later && ip link set later up"));
	memcpy(address.gid, ipv4, GID_LEN);
	address.ifindex = if_nametoindex("later");
	assert_int_equal(addresses_add(addresses, &address), 0);
}

/* Return true if the kernel is in the group; in /proc, the group's line follows its interface's. */
static bool kernel_has_in_vlan(void)
{
	return netns_run("awk '/later/ {on = 1; next} /^[0-9]/ {on = 0} "
			 "on && /030201EF/ {found = 1} END {exit !found}' /proc/self/net/igmp");
}

TEST(follow__networks_that_come_later)
{
	const uint8_t ipv4[GID_LEN] = {[10] = 0xff, 0xff, 10, 7, 0, 1};
	const struct address untagged = {.prefix_len = 24, .vlan = VLAN_NONE, .ifindex = left};
	struct addresses before = {.count = 0}, now;

	if (!have_network)
		skip();
	before.list[before.count++] = untagged;
	memcpy(before.list[0].gid, ipv4, GID_LEN);
	assert_int_equal(groups_join(&groups, VLAN_NONE, left, group4, now_ns), 0);
	for (int round = 0; round < 2; round++) {
		now = before;
		make_vlan(&now);
		assert_false(kernel_has_in_vlan());
		groups_follow(&groups, &now, now_ns);
		assert_true(kernel_has_in_vlan());
		groups_follow(&groups, &now, now_ns);
		assert_int_equal(groups.memberships, 2);
		/* The interface is removed, and made again under the same name. */
		assert_true(netns_run("ip link del later"));
		groups_follow(&groups, &before, now_ns);
	}
	assert_true(kernel_has(true));
	assert_int_equal(leave(group4), 0);
	assert_int_equal(leave(group4), 0);
	assert_false(kernel_has(true));
	assert_true(LIST_EMPTY(&groups.list));
	assert_true(LIST_EMPTY(&groups.members.sockets));
}

/* A network of a port of ours. */
TEST(follow__says_so_in_the_new_network)
{
	const struct address vlan6 = {.gid = {[10] = 0xff, 0xff, 10, 0, 6, 1}, .vlan = 6};
	struct addresses more = own;

	addresses_add(&more, &vlan6);
	assert_int_equal(groups_join(&groups, VLAN_NONE, 0, group4, now_ns), 0);
	assert_int_equal(groups_join(&groups, 5, 0, group4, now_ns), 0);
	assert_int_equal(reports_until(now_ns + 2 * S), 4);
	groups_follow(&groups, &own, now_ns);
	assert_int_equal(groups_report(&groups, now_ns, mac, &own, frame), 0);
	groups_follow(&groups, &more, now_ns);
	assert_int_equal(groups_report(&groups, now_ns, mac, &more, frame), 14 + 4 + 24 + 16);
	assert_int_equal(frame[15], 6);
}
