/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/gid.c. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/device.h"
#include "test.h"

static const union ibv_gid no_gid;
static const union ibv_gid ipv4_a = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}};
static const union ibv_gid ipv4_b = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 2}};
static const union ibv_gid ipv6_a = {.raw = {0xfd, [15] = 1}};
static const union ibv_gid ipv6_b = {.raw = {0xfd, [15] = 2}};
static const uint8_t dst_mac[6] = {2, 0, 0, 0, 0, 2};

static struct device *device;

static int set_up(TEST_STATE)
{
	const struct device_config config = {
		.name = "uroce0", .mac = {2, 0, 0, 0, 0, 1}, .port_mtu_bytes = 1500};

	return device_create(&config, &device);
}

static int tear_down(TEST_STATE)
{
	device_destroy(device);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

TEST(device_add_gid__fills_the_table_from_the_front)
{
	assert_int_equal(device_add_gid(device, &ipv4_a, -1, 7), 0);
	assert_int_equal(device_add_gid(device, &ipv6_a, -1, 0), 1);
	assert_memory_equal(&device->gids[0].gid, &ipv4_a, sizeof(ipv4_a));
	assert_int_equal(device->gids[0].ndev_ifindex, 7);
	assert_int_equal(device->gids[0].vlan_id, -1);
	/* A freed entry is taken first. */
	device->gids[0].gid = no_gid;
	assert_int_equal(device_add_gid(device, &ipv4_b, -1, 0), 0);
}

static int changes;

static void count_change(void *user, enum ibv_event_type type)
{
	(void)user;
	assert_int_equal(type, IBV_EVENT_GID_CHANGE);
	changes++;
}

TEST(device_sync_gids__changes_only_what_has_changed)
{
	const struct device_gid first[] = {{.gid = ipv6_a, .ndev_ifindex = 3, .vlan_id = -1},
					   {.gid = ipv4_a, .ndev_ifindex = 3, .vlan_id = -1},
					   {.gid = ipv4_a, .ndev_ifindex = 4, .vlan_id = 5}};
	const struct device_gid second[] = {{.gid = ipv4_b, .ndev_ifindex = 3, .vlan_id = -1},
					    {.gid = ipv4_a, .ndev_ifindex = 4, .vlan_id = 5},
					    {.gid = ipv6_a, .ndev_ifindex = 3, .vlan_id = -1}};

	changes = 0;
	device->event = count_change;
	device_sync_gids(device, first, 3);
	assert_int_equal(changes, 1);
	device_sync_gids(device, first, 3);
	assert_int_equal(changes, 1);
	/* One address is removed and another one takes its entry. The order of the list does not
	 * matter. */
	device_sync_gids(device, second, 3);
	assert_int_equal(changes, 2);
	assert_memory_equal(&device->gids[0].gid, &ipv6_a, sizeof(ipv6_a));
	assert_memory_equal(&device->gids[1].gid, &ipv4_b, sizeof(ipv4_b));
	assert_int_equal(device->gids[1].ndev_ifindex, 3);
	assert_memory_equal(&device->gids[2].gid, &ipv4_a, sizeof(ipv4_a));
	assert_int_equal(device->gids[2].vlan_id, 5);
	device_sync_gids(device, second, 2);
	assert_int_equal(changes, 3);
	assert_memory_equal(&device->gids[0].gid, &no_gid, sizeof(no_gid));
	assert_int_equal(device->gids[0].ndev_ifindex, 0);
	device_sync_gids(device, NULL, 0);
	assert_int_equal(changes, 4);
	for (int i = 0; i < DEVICE_GIDS_MAX; i++)
		assert_memory_equal(&device->gids[i].gid, &no_gid, sizeof(no_gid));
}

TEST(device_add_gid__one_address_stands_once_a_vlan)
{
	assert_int_equal(device_add_gid(device, &ipv4_a, -1, 0), 0);
	assert_int_equal(device_add_gid(device, &ipv4_a, -1, 0), -EEXIST);
	assert_int_equal(device_add_gid(device, &ipv4_a, 5, 0), 1);
	assert_int_equal(device_add_gid(device, &ipv4_a, 5, 0), -EEXIST);
	assert_int_equal(device_add_gid(device, &ipv4_a, 6, 0), 2);
}

TEST(device_add_gid__nonsense_is_refused)
{
	static const union ibv_gid ipv6_group = {.raw = {0xff, 0x02, [15] = 1}};
	static const union ibv_gid ipv4_group = {.raw = {[10] = 0xff, 0xff, 239, 1, 1, 1}};

	assert_int_equal(device_add_gid(device, &no_gid, -1, 0), -EINVAL);
	assert_int_equal(device_add_gid(device, &ipv6_group, -1, 0), -EINVAL);
	assert_int_equal(device_add_gid(device, &ipv4_group, -1, 0), -EINVAL);
	assert_int_equal(device_add_gid(device, &ipv4_a, -2, 0), -EINVAL);
	assert_int_equal(device_add_gid(device, &ipv4_a, 4095, 0), -EINVAL);
	assert_int_equal(device_add_gid(device, &ipv4_a, 4094, 0), 0);
}

TEST(device_add_gid__a_full_table_is_enospc)
{
	union ibv_gid gid = ipv6_a;

	for (int i = 0; i < DEVICE_GIDS_MAX; i++) {
		gid.raw[1] = (uint8_t)i;
		assert_int_equal(device_add_gid(device, &gid, -1, 0), i);
	}
	assert_int_equal(device_add_gid(device, &gid, -1, 0), -EEXIST);
	gid.raw[1] = DEVICE_GIDS_MAX;
	assert_int_equal(device_add_gid(device, &gid, -1, 0), -ENOSPC);
}

TEST(device_find_gid__finds_what_was_added)
{
	assert_int_equal(device_find_gid(device, ipv4_a.raw, DEVICE_ANY_VLAN), -ENOENT);
	assert_int_equal(device_find_gid(device, no_gid.raw, DEVICE_ANY_VLAN), -ENOENT);
	assert_int_equal(device_add_gid(device, &ipv4_a, -1, 0), 0);
	assert_int_equal(device_add_gid(device, &ipv6_a, -1, 0), 1);
	assert_int_equal(device_find_gid(device, ipv4_a.raw, DEVICE_ANY_VLAN), 0);
	assert_int_equal(device_find_gid(device, ipv6_a.raw, DEVICE_ANY_VLAN), 1);
	assert_int_equal(device_find_gid(device, ipv6_b.raw, DEVICE_ANY_VLAN), -ENOENT);
	assert_int_equal(device_find_gid(device, no_gid.raw, DEVICE_ANY_VLAN), -ENOENT);
}

TEST(device_find_gid__in_a_vlan)
{
	assert_int_equal(device_add_gid(device, &ipv4_a, 5, 0), 0);
	assert_int_equal(device_add_gid(device, &ipv4_a, -1, 0), 1);
	assert_int_equal(device_find_gid(device, ipv4_a.raw, DEVICE_ANY_VLAN), 0);
	assert_int_equal(device_find_gid(device, ipv4_a.raw, 5), 0);
	assert_int_equal(device_find_gid(device, ipv4_a.raw, -1), 1);
	assert_int_equal(device_find_gid(device, ipv4_a.raw, 6), -ENOENT);
	assert_int_equal(device_find_gid(device, no_gid.raw, -1), -ENOENT);
}

static struct ibv_ah_attr ah_to(const union ibv_gid *dgid, uint8_t sgid_index)
{
	return (struct ibv_ah_attr){.is_global = 1,
				    .port_num = 1,
				    .grh = {.dgid = *dgid,
					    .sgid_index = sgid_index,
					    .traffic_class = 0x68,
					    .flow_label = 0xabcde,
					    .hop_limit = 3}};
}

TEST(device_make_path__ipv4_headers)
{
	static const uint8_t expected[] = {
		2,    0,    0,	  0,	0,  2, 2,    0, 0, 0,  0, 1, 0x08, 0x00, /* Ethernet */
		0x45, 0x68, 0,	  0,	0,  0, 0x40, 0, 3, 17, 0, 0, /* IPv4: length and checksum
									open */
		10,   0,    0,	  1,	10, 0, 0,    2,		     /* addresses */
		0xc1, 0x23, 0x12, 0xb7,				     /* UDP ports */
	};
	struct ibv_ah_attr ah = ah_to(&ipv4_b, 0);
	struct path path;

	assert_int_equal(device_add_gid(device, &ipv4_a, -1, 0), 0);
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), 0);
	assert_false(path.ipv6);
	assert_int_equal(path.len, 14 + 20 + 8);
	assert_memory_equal(path.hdr, expected, sizeof(expected));
}

TEST(device_make_path__ipv6_headers_on_a_vlan)
{
	static const uint8_t expected[] = {
		2,    0,    0,	  0,	0,    2,    2,	0, 0, 0, 0, 1, /* Ethernet */
		0x81, 0x00, 0x60, 0x05, 0x86, 0xdd,		       /* priority 3, VLAN 5 */
		0x66, 0x8a, 0xbc, 0xde, 0,    0,    17, 3, /* traffic class 0x68, flow label 0xabcde
							    */
		0xfd, 0,    0,	  0,	0,    0,    0,	0, 0, 0, 0, 0, 0, 0, 0, 1, /* source */
		0xfd, 0,    0,	  0,	0,    0,    0,	0, 0, 0, 0, 0, 0, 0, 0, 2, /* destination */
		0xc1, 0x23, 0x12, 0xb7,						   /* UDP ports */
	};
	struct ibv_ah_attr ah = ah_to(&ipv6_b, 0);
	struct path path;

	ah.sl = 3;
	ah.grh.flow_label |= 0xfff00000; /* only 20 bits are meant */
	assert_int_equal(device_add_gid(device, &ipv6_a, 5, 0), 0);
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), 0);
	assert_true(path.ipv6);
	assert_int_equal(path.len, 18 + 40 + 8);
	assert_memory_equal(path.hdr, expected, sizeof(expected));
}

TEST(device_make_path__hop_limit_0_becomes_64)
{
	struct ibv_ah_attr ah = ah_to(&ipv4_b, 0);
	struct path path;

	ah.grh.hop_limit = 0;
	assert_int_equal(device_add_gid(device, &ipv4_a, -1, 0), 0);
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), 0);
	assert_int_equal(path.hdr[14 + 8], 64);
}

TEST(device_make_path__needs_a_grh_and_addresses_that_go_together)
{
	struct ibv_ah_attr ah;
	struct path path;

	assert_int_equal(device_add_gid(device, &ipv4_a, -1, 0), 0);
	ah = ah_to(&ipv4_b, 0);
	ah.is_global = 0;
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), -EINVAL);
	ah = ah_to(&ipv4_b, 0);
	ah.port_num = 2;
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), -EINVAL);
	ah.port_num = 0;
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), -EINVAL);
	ah = ah_to(&ipv4_b, 1); /* an empty entry */
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), -EINVAL);
	ah = ah_to(&ipv4_b, DEVICE_GIDS_MAX);
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), -EINVAL);
	ah = ah_to(&ipv6_b, 0);
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), -EINVAL);
	ah = ah_to(&no_gid, 0);
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), -EINVAL);
	ah = ah_to(&ipv4_b, 0);
	assert_int_equal(device_make_path(device, &ah, dst_mac, 0xc123, &path), 0);
}
