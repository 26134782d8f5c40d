/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the addresses of pmd/netdev/netdev.c. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "netdev/netdev.h"
#include "test.h"

static const uint8_t v4[GID_LEN] = {[10] = 0xff, 0xff, 10, 1, 2, 3};
static const uint8_t v4_near[GID_LEN] = {[10] = 0xff, 0xff, 10, 1, 2, 200};
static const uint8_t v4_far[GID_LEN] = {[10] = 0xff, 0xff, 10, 1, 3, 3};
static const uint8_t v6[GID_LEN] = {0xfd, 1, [15] = 1};
static const uint8_t v6_near[GID_LEN] = {0xfd, 1, [7] = 0x0f, [15] = 9};
static const uint8_t v6_far[GID_LEN] = {0xfd, 1, [7] = 0x10, [15] = 9};

static int add(struct addresses *addresses, const uint8_t gid[GID_LEN], uint8_t prefix_len)
{
	struct address address = {.prefix_len = prefix_len, .vlan = VLAN_NONE};

	memcpy(address.gid, gid, GID_LEN);
	return addresses_add(addresses, &address);
}

TEST(address_link_local__inverts_the_universal_bit)
{
	/* RFC 4291 appendix A's example of EUI-48 to modified EUI-64. */
	const uint8_t mac[6] = {0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde};
	const uint8_t want[GID_LEN] = {0xfe, 0x80, [8] = 0x36, 0x56, 0x78,
				       0xff, 0xfe, 0x9a,       0xbc, 0xde};
	uint8_t gid[GID_LEN];

	address_link_local(mac, gid);
	assert_memory_equal(gid, want, GID_LEN);
	assert_true(gid_is_link_local(gid));
}

TEST(address_multicast_mac__follows_the_family)
{
	const uint8_t group4[GID_LEN] = {[10] = 0xff, 0xff, 224, 0x81, 2, 3};
	const uint8_t group6[GID_LEN] = {0xff, 2, [11] = 1, 0xff, 0xaa, 0xbb, 0xcc};
	uint8_t mac[6];

	/* RFC 1112: 23 bits of the group only. */
	address_multicast_mac(group4, mac);
	assert_memory_equal(mac, ((uint8_t[]){0x01, 0x00, 0x5e, 0x01, 2, 3}), 6);
	address_multicast_mac(group6, mac);
	assert_memory_equal(mac, ((uint8_t[]){0x33, 0x33, 0xff, 0xaa, 0xbb, 0xcc}), 6);
}

TEST(addresses_add__refuses_doubles_and_more_than_fit)
{
	struct addresses own = {.count = 0};
	uint8_t gid[GID_LEN] = {0xfd};

	assert_int_equal(add(&own, v4, 24), 0);
	assert_int_equal(add(&own, v4, 16), -EEXIST);
	for (int i = 1; i < ADDRESSES_MAX; i++) {
		gid[15] = (uint8_t)i;
		assert_int_equal(add(&own, gid, 64), 0);
	}
	assert_int_equal(add(&own, v6, 64), -ENOSPC);
	assert_true(addresses_have(&own, VLAN_NONE, v4));
	assert_false(addresses_have(&own, VLAN_NONE, v6));
}

TEST(addresses_on_link__compares_whole_prefixes)
{
	struct addresses own = {.count = 0};

	add(&own, v4, 24);
	add(&own, v6, 60);
	assert_true(addresses_on_link(&own, VLAN_NONE, v4_near));
	assert_false(addresses_on_link(&own, VLAN_NONE, v4_far));
	assert_true(addresses_on_link(&own, VLAN_NONE, v6_near));
	assert_false(addresses_on_link(&own, VLAN_NONE, v6_far));
}

TEST(addresses_on_link__host_prefixes_reach_nobody_else)
{
	struct addresses own = {.count = 0};

	add(&own, v4, 32);
	add(&own, v6, 128);
	assert_false(addresses_on_link(&own, VLAN_NONE, v4_near));
	assert_true(addresses_on_link(&own, VLAN_NONE, v4));
	assert_false(addresses_on_link(&own, VLAN_NONE, v6_near));
	assert_true(addresses_on_link(&own, VLAN_NONE, v6));
}

TEST(addresses_on_link__prefix_0_takes_its_own_family_only)
{
	struct addresses own = {.count = 0};

	add(&own, v6, 0);
	assert_true(addresses_on_link(&own, VLAN_NONE, v6_far));
	assert_false(addresses_on_link(&own, VLAN_NONE, v4));
	own.count = 0;
	add(&own, v4, 0);
	assert_true(addresses_on_link(&own, VLAN_NONE, v4_far));
	assert_false(addresses_on_link(&own, VLAN_NONE, v6));
	/* A prefix longer than an address has bits matches nothing. */
	own.list[0].prefix_len = 33;
	assert_false(addresses_on_link(&own, VLAN_NONE, v4));
}

TEST(addresses_on_link__link_local_always)
{
	const struct addresses own = {.count = 0};
	const uint8_t gid[GID_LEN] = {0xfe, 0x80, [15] = 1};

	assert_true(addresses_on_link(&own, VLAN_NONE, gid));
}

TEST(addresses__are_told_apart_by_vlan)
{
	struct address tagged = {.prefix_len = 24, .vlan = 5};
	struct addresses own = {.count = 0};

	memcpy(tagged.gid, v4, GID_LEN);
	assert_int_equal(add(&own, v6, 64), 0);
	assert_int_equal(addresses_add(&own, &tagged), 0);
	assert_int_equal(addresses_add(&own, &tagged), -EEXIST);
	assert_false(addresses_have(&own, VLAN_NONE, v4));
	assert_true(addresses_have(&own, 5, v4));
	assert_false(addresses_on_link(&own, VLAN_NONE, v4_near));
	assert_true(addresses_on_link(&own, 5, v4_near));
	assert_false(addresses_on_link(&own, 6, v4_near));
	assert_int_equal(add(&own, v4, 24), 0);
	assert_true(addresses_first_of_vlan(&own, 0));
	assert_true(addresses_first_of_vlan(&own, 1));
	assert_false(addresses_first_of_vlan(&own, 2));
}
