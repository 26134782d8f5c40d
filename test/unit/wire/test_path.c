/* SPDX-License-Identifier: BSD-3-Clause */
/* Prebuilt headers, byte for byte. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/build.h"
#include "wire/packet.h"
#include "test.h"

/* clang-format off */
static const struct path_attr ipv4_attr = {
	.src_mac = {2, 0, 0, 0, 0, 1},
	.dst_mac = {2, 0, 0, 0, 0, 2},
	.vlan_tci = -1,
	.sgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 1},
	.dgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 2},
	.tclass = 0x6a,
	.hop_limit = 64,
	.flow_label = 0x12345,
	.udp_sport = 0xc123,
};

static const struct path_attr ipv6_attr = {
	.src_mac = {2, 0, 0, 0, 0, 1},
	.dst_mac = {2, 0, 0, 0, 0, 2},
	.vlan_tci = -1,
	.sgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
	.dgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2},
	.tclass = 0x6a,
	.hop_limit = 255,
	.flow_label = 0xfff12345,
	.udp_sport = 0xc123,
};

#define MACS 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1
#define IPV4 0x45, 0x6a, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2
#define IPV6 0x66, 0xa1, 0x23, 0x45, 0, 0, 17, 255, \
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, \
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define UDP 0xc1, 0x23, 0x12, 0xb7, 0, 0, 0, 0
/* clang-format on */

TEST(path_init__ipv4)
{
	static const uint8_t expected[] = {MACS, 0x08, 0x00, IPV4, UDP};
	struct path path;

	assert_int_equal(path_init(&path, &ipv4_attr), 0);
	assert_false(path.ipv6);
	assert_int_equal(path.len, sizeof(expected));
	assert_int_equal(path.l3_off, 14);
	assert_int_equal(path.l4_off, 34);
	assert_memory_equal(path.hdr, expected, sizeof(expected));
}

TEST(path_init__ipv4_sum_is_of_the_header)
{
	struct path path;
	uint32_t sum = 0;
	uint16_t word;
	int i;

	assert_int_equal(path_init(&path, &ipv4_attr), 0);
	for (i = 0; i < 20; i += 2) {
		memcpy(&word, path.hdr + 14 + i, 2);
		sum += word;
	}
	assert_int_equal(path.ipv4_sum % 0xffff, sum % 0xffff);
}

TEST(path_init__ipv6)
{
	static const uint8_t expected[] = {MACS, 0x86, 0xdd, IPV6, UDP};
	struct path path;

	assert_int_equal(path_init(&path, &ipv6_attr), 0);
	assert_true(path.ipv6);
	assert_int_equal(path.len, sizeof(expected));
	assert_int_equal(path.l3_off, 14);
	assert_int_equal(path.l4_off, 54);
	assert_memory_equal(path.hdr, expected, sizeof(expected));
}

TEST(path_init__vlan)
{
	static const uint8_t expected4[] = {MACS, 0x81, 0x00, 0x60, 0x05, 0x08, 0x00, IPV4, UDP};
	static const uint8_t expected6[] = {MACS, 0x81, 0x00, 0x60, 0x05, 0x86, 0xdd, IPV6, UDP};
	struct path_attr attr = ipv4_attr;
	struct path path;

	attr.vlan_tci = 0x6005;
	assert_int_equal(path_init(&path, &attr), 0);
	assert_int_equal(path.len, sizeof(expected4));
	assert_int_equal(path.l3_off, 18);
	assert_memory_equal(path.hdr, expected4, sizeof(expected4));
	attr = ipv6_attr;
	attr.vlan_tci = 0x6005;
	assert_int_equal(path_init(&path, &attr), 0);
	assert_int_equal(path.len, sizeof(expected6));
	assert_int_equal(path.len, sizeof(path.hdr));
	assert_int_equal(path.l4_off, 58);
	assert_memory_equal(path.hdr, expected6, sizeof(expected6));
}

TEST(path_init__vlan_zero_is_a_priority_tag)
{
	struct path_attr attr = ipv4_attr;
	struct path path;

	attr.vlan_tci = 0;
	assert_int_equal(path_init(&path, &attr), 0);
	assert_int_equal(path.l3_off, 18);
}

TEST(path_init__refuses_gids_of_two_families)
{
	struct path_attr attr = ipv4_attr;
	struct path path;

	memcpy(attr.sgid, ipv6_attr.sgid, sizeof(attr.sgid));
	assert_int_equal(path_init(&path, &attr), -EINVAL);
	attr = ipv4_attr;
	memcpy(attr.dgid, ipv6_attr.dgid, sizeof(attr.dgid));
	assert_int_equal(path_init(&path, &attr), -EINVAL);
}

TEST(path_is_between__its_two_ends)
{
	static const struct path_attr *const attrs[] = {&ipv4_attr, &ipv6_attr};

	for (size_t i = 0; i < 2; i++) {
		for (int tci = -1; tci < 2; tci++) {
			struct path_attr attr = *attrs[i];
			struct path path;

			attr.vlan_tci = tci;
			assert_int_equal(path_init(&path, &attr), 0);
			assert_true(path_is_between(&path, attrs[i] == &ipv6_attr, attr.sgid,
						    attr.dgid));
			assert_false(path_is_between(&path, attrs[i] == &ipv6_attr, attr.dgid,
						     attr.sgid));
			assert_false(path_is_between(&path, attrs[i] == &ipv6_attr, attr.sgid,
						     attrs[1 - i]->dgid));
			assert_false(path_is_between(&path, attrs[i] == &ipv6_attr,
						     attrs[1 - i]->sgid, attr.dgid));
			assert_false(path_is_between(&path, attrs[i] != &ipv6_attr, attr.sgid,
						     attr.dgid));
			for (size_t byte = attrs[i] == &ipv6_attr ? 0 : GID_IPV4_OFFSET;
			     byte < sizeof(attr.dgid); byte++) {
				attr.dgid[byte] ^= 1;
				assert_false(path_is_between(&path, attrs[i] == &ipv6_attr,
							     attr.sgid, attr.dgid));
				attr.dgid[byte] ^= 1;
				attr.sgid[byte] ^= 1;
				assert_false(path_is_between(&path, attrs[i] == &ipv6_attr,
							     attr.sgid, attr.dgid));
				attr.sgid[byte] ^= 1;
			}
		}
	}
}

static uint8_t tclass_of(const struct path *path)
{
	const uint8_t *ip = path->hdr + path->l3_off;

	return path->ipv6 ? (uint8_t)(ip[0] << 4 | ip[1] >> 4) : ip[1];
}

/* Only the two bits change, and the sum of an IPv4 header is that of the new header. */
TEST(path_set_ecn__changes_two_bits)
{
	const struct path_attr *attrs[] = {&ipv4_attr, &ipv6_attr};
	struct path_attr with;
	struct path path, expected;

	for (size_t i = 0; i < 2; i++) {
		for (unsigned int ecn = 0; ecn <= ECN_MASK; ecn++) {
			assert_int_equal(path_init(&path, attrs[i]), 0);
			path_set_ecn(&path, (enum ecn)ecn);
			assert_int_equal(tclass_of(&path), 0x68 | ecn);
			with = *attrs[i];
			with.tclass = (uint8_t)(0x68 | ecn);
			assert_int_equal(path_init(&expected, &with), 0);
			assert_memory_equal(path.hdr, expected.hdr, sizeof(path.hdr));
			assert_int_equal(path.ipv4_sum, expected.ipv4_sum);
		}
	}
}

/* A17.9.3, byte for byte from the BTH on; and a receiver accepts it. */
TEST(packet_notify__is_a_congestion_notification)
{
	static const uint8_t bth[] = {0x81, 0x00, 0xff, 0xff, 0x40, 0x12,
				      0x34, 0x56, 0x00, 0x00, 0x00, 0x00};
	static const uint8_t reserved[CNP_RESERVED_LEN];
	const struct path_attr *attrs[] = {&ipv4_attr, &ipv6_attr};
	uint8_t frame[PACKET_FRAME_MAX];
	struct packet packet;
	struct path path;

	for (size_t i = 0; i < 2; i++) {
		struct packet_out out = {.frame = frame};
		int len;

		assert_int_equal(path_init(&path, attrs[i]), 0);
		path_set_ecn(&path, ECN_CAPABLE);
		memset(frame, 0xee, sizeof(frame));
		packet_notify(&out, &path, -1, 0xffff, 0x123456);
		len = packet_seal(&out);
		assert_int_equal(len, path.len + 12 + CNP_RESERVED_LEN + WIRE_ICRC_LEN);
		assert_memory_equal(frame + path.len, bth, sizeof(bth));
		assert_memory_equal(frame + path.len + sizeof(bth), reserved, sizeof(reserved));
		assert_int_equal(packet_parse(frame, (size_t)len, false, &packet), PACKET_OK);
		assert_true(packet_icrc_ok(&packet));
		assert_true(packet.becn);
		assert_int_equal(packet.tclass, 0x68);
	}
}
