/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/query.c. */
#include <errno.h>
#include <string.h>

#include "agent_rig.h"
#include "device/gsi.h"
#include "test.h"
#include "wire/gid.h"

#define MS	UINT64_C(1000000)
#define IFINDEX 7

static int set_up(TEST_STATE)
{
	agent_rig_init();
	return 0;
}

static int tear_down(TEST_STATE)
{
	agent_rig_fini();
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct agent_query query;

static int find(const uint8_t *gid, uint8_t version, uint32_t ifindex)
{
	struct device_gid found;
	const int index = agent_find_gid(agent_rig.agent, gid, version, ifindex, &found);

	if (index >= 0)
		assert_memory_equal(&found, &agent_rig.device->gids[index], sizeof(found));
	return index;
}

TEST(agent_find_gid__by_address_version_and_interface)
{
	const uint8_t nobody[GID_LEN] = {0xfd, [15] = 9};

	assert_int_equal(find(agent_rig_gid(AGENT_RIG_IPV6), 0, 0), AGENT_RIG_IPV6);
	assert_int_equal(find(agent_rig_gid(AGENT_RIG_IPV4), 0, IFINDEX + 1), AGENT_RIG_VLAN);
	assert_int_equal(find(nobody, 0, 0), -EADDRNOTAVAIL);
	assert_int_equal(find(NULL, 4, 0), AGENT_RIG_IPV4);
	assert_int_equal(find(NULL, 6, 0), AGENT_RIG_LINK_LOCAL);
	assert_int_equal(find(NULL, 0, IFINDEX + 1), AGENT_RIG_VLAN);
	assert_int_equal(find(NULL, 6, IFINDEX + 1), -EADDRNOTAVAIL);
	/* An address whose interface nobody knows is every interface's. */
	agent_rig.device->gids[AGENT_RIG_IPV6].ndev_ifindex = 0;
	assert_int_equal(find(NULL, 6, IFINDEX + 1), AGENT_RIG_IPV6);
}

TEST(agent_find_own__in_its_vlan)
{
	struct gsi_address address = {.vlan_id = 5};
	struct device_gid found;

	memcpy(address.local, agent_rig_gid(AGENT_RIG_IPV4), GID_LEN);
	assert_int_equal(agent_find_own(agent_rig.agent, &address, &found), AGENT_RIG_VLAN);
	assert_memory_equal(&found, &agent_rig.device->gids[AGENT_RIG_VLAN], sizeof(found));
	address.vlan_id = -1;
	assert_int_equal(agent_find_own(agent_rig.agent, &address, &found), AGENT_RIG_IPV4);
	address.vlan_id = 6;
	assert_int_equal(agent_find_own(agent_rig.agent, &address, &found), -EADDRNOTAVAIL);
}

static int choose(const char *raw, uint32_t ifindex)
{
	struct device_gid found;
	uint8_t gid[GID_LEN];
	int index;

	memcpy(gid, raw, GID_LEN);
	index = agent_choose_source(agent_rig.agent, gid, ifindex, &found);
	if (index >= 0) {
		assert_memory_equal(&found, &agent_rig.device->gids[index], sizeof(found));
		assert_memory_equal(agent_rig.routed_to, gid, sizeof(gid));
	}
	return index;
}

#define TO_IPV6	     "\xfd\x00\0\0\0\0\0\0\0\0\0\0\0\0\0\x09"
#define TO_IPV6_FAR  "\xfd\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x09"
#define TO_LOCAL     "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x09"
#define TO_IPV4	     "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x09"
#define TO_GROUP     "\xff\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\x09"
#define TO_LOCAL_OFF "\xfe\x81\0\0\0\0\0\0\0\0\0\0\0\0\0\x09"

TEST(agent_choose_source__has_most_in_common)
{
	assert_int_equal(choose(TO_IPV6, 0), AGENT_RIG_IPV6);
	assert_int_equal(choose(TO_IPV6_FAR, 0), AGENT_RIG_IPV6_FAR);
	assert_int_equal(choose(TO_IPV4, 0), AGENT_RIG_IPV4);
	assert_int_equal(choose(TO_IPV4, IFINDEX + 1), AGENT_RIG_VLAN);
	assert_true(choose(TO_GROUP, 0) >= 0);
}

/* A group of the link is reached from any address, also if no link-local one is left. */
TEST(agent_choose_source__group_from_any_address)
{
	agent_rig.device->gids[AGENT_RIG_LINK_LOCAL] = (struct device_gid){0};
	assert_true(choose(TO_GROUP, 0) >= 0);
	assert_int_equal(choose(TO_LOCAL, 0), -EADDRNOTAVAIL);
}

/* All bits count. The own address has all of them in common. */
TEST(agent_choose_source__compares_all_bits)
{
	struct device_gid *gids = agent_rig.device->gids;
	char to[GID_LEN] = TO_IPV6;

	gids[AGENT_RIG_IPV6_FAR].gid = gids[AGENT_RIG_IPV6].gid;
	gids[AGENT_RIG_IPV6_FAR].gid.raw[15] = 8;
	assert_int_equal(choose(to, 0), AGENT_RIG_IPV6_FAR);
	to[15] = 3;
	assert_int_equal(choose(to, 0), AGENT_RIG_IPV6);
	to[15] = 1;
	assert_int_equal(choose(to, 0), AGENT_RIG_IPV6);
	to[15] = 8;
	assert_int_equal(choose(to, 0), AGENT_RIG_IPV6_FAR);
}

/* An address that suits better, and has no route, is left. */
TEST(agent_choose_source__needs_a_route)
{
	agent_rig.unrouted = 1u << AGENT_RIG_IPV6_FAR;
	assert_int_equal(choose(TO_IPV6_FAR, 0), AGENT_RIG_IPV6);
	agent_rig.unrouted = 1u << AGENT_RIG_IPV6;
	assert_int_equal(choose(TO_IPV6, 0), AGENT_RIG_IPV6_FAR);
	agent_rig.unrouted |= 1u << AGENT_RIG_IPV6_FAR;
	assert_int_equal(choose(TO_IPV6, 0), -ENETUNREACH);
}

/* The first address of the table stays the choice, too. */
TEST(agent_choose_source__leaves_a_better_one_without_a_route)
{
	struct device_gid *gids = agent_rig.device->gids;

	gids[AGENT_RIG_IPV6_FAR] = gids[AGENT_RIG_LINK_LOCAL];
	gids[AGENT_RIG_IPV6_FAR].gid.raw[15] = 8;
	assert_int_equal(choose(TO_LOCAL, 0), AGENT_RIG_IPV6_FAR);
	agent_rig.unrouted = 1u << AGENT_RIG_IPV6_FAR;
	assert_int_equal(choose(TO_LOCAL, 0), AGENT_RIG_LINK_LOCAL);
}

/* RFC 4007: link-local addresses talk to each other, in their own link. */
TEST(agent_choose_source__link_local_for_its_like)
{
	assert_int_equal(choose(TO_LOCAL, 0), AGENT_RIG_LINK_LOCAL);
	assert_int_equal(choose(TO_LOCAL, IFINDEX), AGENT_RIG_LINK_LOCAL);
	assert_int_equal(choose(TO_LOCAL, IFINDEX + 1), -EADDRNOTAVAIL);
	assert_int_equal(choose(TO_LOCAL_OFF, 0), AGENT_RIG_LINK_LOCAL);
}

TEST(agent_choose_source__no_way)
{
	agent_rig.route_result = -ENETUNREACH;
	assert_int_equal(choose(TO_IPV6, 0), -ENETUNREACH);
	agent_rig.device->gids[AGENT_RIG_IPV4] = (struct device_gid){0};
	agent_rig.device->gids[AGENT_RIG_VLAN] = (struct device_gid){0};
	assert_int_equal(choose(TO_IPV4, 0), -EADDRNOTAVAIL);
}

static int resolve(uint64_t timeout_ns)
{
	memset(&query, 0, sizeof(query));
	return agent_resolve(agent_rig.agent, &query, AGENT_RIG_IPV6, (const uint8_t *)TO_IPV6,
			     timeout_ns);
}

static void assert_address(uint8_t mac)
{
	const uint8_t macs[6] = {mac, mac, mac, mac, mac, mac};

	assert_true(query.address.mac_known);
	assert_memory_equal(query.address.mac, macs, sizeof(macs));
	assert_memory_equal(query.address.local, agent_rig_gid(AGENT_RIG_IPV6), GID_LEN);
	assert_memory_equal(query.address.remote, TO_IPV6, GID_LEN);
	assert_int_equal(query.address.vlan_id, -1);
}

TEST(agent_resolve__known_at_once)
{
	agent_rig.hop.known = true;
	memset(agent_rig.hop.mac, 0x33, sizeof(agent_rig.hop.mac));
	assert_int_equal(resolve(MS), 0);
	assert_address(0x33);
	assert_memory_equal(agent_rig.routed_to, TO_IPV6, GID_LEN);
	assert_int_equal(agent_rig.looks, 0);
	agent_rig.hop.known = false;
	agent_rig.answers = true;
	assert_int_equal(resolve(MS), 0);
	assert_address(0x22);
	assert_int_equal(agent_rig.resolved, 0);
}

TEST(agent_resolve__no_way)
{
	agent_rig.route_result = -ENETUNREACH;
	assert_int_equal(resolve(MS), -ENETUNREACH);
	assert_true(gsi_deadline_ns(agent_rig.device) == UINT64_MAX);
}

/* Looked for soon, then ever more seldom. */
TEST(agent_resolve__neighbour_answers_later)
{
	assert_int_equal(resolve(100 * MS), -EINPROGRESS);
	agent_rig_pass(MS / 4);
	assert_int_equal(agent_rig.looks, 1);
	agent_rig_pass(MS / 4);
	assert_int_equal(agent_rig.looks, 2);
	for (int i = 0; i < 80; i++) {
		agent_rig.now_ns += MS;
		assert_int_equal(agent_rig_run(), 0);
	}
	assert_in_range(agent_rig.looks, 5, 15);
	assert_int_equal(agent_rig.resolved, 0);
	agent_rig.answers = true;
	agent_rig.now_ns += 16 * MS;
	assert_int_equal(agent_rig_run(), 1);
	assert_int_equal(agent_rig.resolved, 1);
	assert_int_equal(agent_rig.status, 0);
	assert_address(0x22);
	assert_true(gsi_deadline_ns(agent_rig.device) == UINT64_MAX);
}

TEST(agent_resolve__neighbour_is_silent)
{
	assert_int_equal(resolve(50 * MS), -EINPROGRESS);
	for (int i = 0; i < 49; i++)
		agent_rig_pass(MS);
	assert_int_equal(agent_rig.resolved, 0);
	agent_rig.now_ns += 17 * MS;
	assert_int_equal(agent_rig_run(), 1);
	assert_int_equal(agent_rig.resolved, 1);
	assert_int_equal(agent_rig.status, -ETIMEDOUT);
}

/* The kernel's old entry is better than none. */
TEST(agent_resolve__silent_neighbour_with_an_old_entry)
{
	agent_rig.hop.has_stale = true;
	memset(agent_rig.hop.mac, 0x44, sizeof(agent_rig.hop.mac));
	assert_int_equal(resolve(MS), -EINPROGRESS);
	agent_rig_pass(20 * MS);
	assert_int_equal(agent_rig.resolved, 1);
	assert_int_equal(agent_rig.status, 0);
	assert_address(0x44);
}

TEST(agent_forget__nothing_is_told_any_more)
{
	uint64_t now_ns;

	assert_int_equal(resolve(MS), -EINPROGRESS);
	agent_enter(agent_rig.agent, &now_ns);
	agent_forget(&query);
	agent_forget(&query);
	agent_leave(agent_rig.agent);
	agent_rig_pass(100 * MS);
	assert_int_equal(agent_rig.resolved, 0);
	assert_true(gsi_deadline_ns(agent_rig.device) == UINT64_MAX);
}

/* A query that has ended, in either way, is not in the agent's list any more. */
TEST(agent_forget__after_the_end)
{
	struct agent_query first;
	uint64_t now_ns;

	for (int answers = 0; answers < 2; answers++) {
		agent_rig.answers = false;
		assert_int_equal(resolve(MS), -EINPROGRESS);
		assert_true(query.pending);
		agent_rig.answers = answers == 1;
		agent_rig_pass(20 * MS);
		assert_false(query.pending);
		agent_rig.answers = true;
		memset(&first, 0xff, sizeof(first));
		assert_int_equal(agent_resolve(agent_rig.agent, &first, AGENT_RIG_IPV6,
					       (const uint8_t *)TO_IPV6, MS),
				 0);
		assert_false(first.pending);
		agent_enter(agent_rig.agent, &now_ns);
		agent_forget(&query);
		agent_forget(&first);
		agent_leave(agent_rig.agent);
	}
	assert_int_equal(agent_rig.resolved, 2);
}

TEST(agent_forget__leaves_the_others)
{
	struct agent_query other = {0};
	uint64_t now_ns;

	assert_int_equal(resolve(MS), -EINPROGRESS);
	assert_int_equal(agent_resolve(agent_rig.agent, &other, AGENT_RIG_IPV6,
				       (const uint8_t *)TO_IPV6, 100 * MS),
			 -EINPROGRESS);
	agent_enter(agent_rig.agent, &now_ns);
	agent_forget(&other);
	assert_false(other.pending);
	agent_leave(agent_rig.agent);
	agent_rig_pass(20 * MS);
	assert_int_equal(agent_rig.resolved, 1);
	assert_int_equal(agent_rig.status, -ETIMEDOUT);
}

/* Make the engine run the agent. */
static void send_mad(void)
{
	struct cm_connect_attr attr = {.to = {.vlan_id = -1, .mac_known = true},
				       .qpn = 5,
				       .mtu = 3,
				       .response_timeout = 20};
	struct cm_conn *conn;
	uint64_t now_ns;
	struct cm *cm;

	memcpy(attr.to.local, agent_rig_gid(AGENT_RIG_IPV6), GID_LEN);
	memcpy(attr.to.remote, TO_IPV6, GID_LEN);
	cm = agent_enter(agent_rig.agent, &now_ns);
	assert_int_equal(cm_connect(cm, &attr, now_ns, &conn), 0);
	agent_leave(agent_rig.agent);
}

/* The engine runs the agent for many reasons, and each look may ask the network. */
TEST(agent_resolve__looks_only_when_it_is_time)
{
	assert_int_equal(resolve(100 * MS), -EINPROGRESS);
	assert_int_equal(agent_rig.looked_from, AGENT_RIG_IPV6);
	assert_true(gsi_deadline_ns(agent_rig.device) == agent_rig.now_ns + MS / 2);
	for (int i = 0; i < 10; i++) {
		send_mad();
		agent_rig_pass(1);
	}
	assert_int_equal(agent_rig.frames, 10);
	assert_int_equal(agent_rig.looks, 1);
	agent_rig_pass(MS / 2);
	assert_int_equal(agent_rig.looks, 2);
	assert_true(gsi_deadline_ns(agent_rig.device) == agent_rig.now_ns + MS / 2);
	agent_rig_pass(MS / 2);
	assert_int_equal(agent_rig.looks, 3);
	assert_true(gsi_deadline_ns(agent_rig.device) == agent_rig.now_ns + MS);
}
