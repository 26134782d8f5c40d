/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of wire/gid.h. */
#include <stddef.h>
#include <stdint.h>

#include "wire/gid.h"
#include "test.h"

TEST(gid_is_zero__looks_at_every_byte)
{
	uint8_t gid[GID_LEN] = {0};

	assert_true(gid_is_zero(gid));
	for (size_t i = 0; i < GID_LEN; i++) {
		gid[i] = 1;
		assert_false(gid_is_zero(gid));
		gid[i] = 0;
	}
}

TEST(gid_from_ipv4__writes_every_byte)
{
	const uint8_t want[GID_LEN] = {[10] = 0xff, 0xff, 10, 1, 2, 3};
	const uint8_t ipv4[4] = {10, 1, 2, 3};
	uint8_t gid[GID_LEN];

	memset(gid, 0x5a, sizeof(gid));
	gid_from_ipv4(ipv4, gid);
	assert_memory_equal(gid, want, GID_LEN);
	assert_true(gid_is_ipv4(gid));
	for (size_t i = 0; i < GID_IPV4_OFFSET; i++) {
		gid[i] ^= 1;
		assert_false(gid_is_ipv4(gid));
		gid[i] ^= 1;
	}
}

TEST(gid_text__as_people_write_it)
{
	const uint8_t ipv6[GID_LEN] = {0xfd, [15] = 1};
	char text[GID_TEXT_MAX];
	uint8_t gid[GID_LEN];

	gid_from_ipv4("\x0a\x01\x02\x03", gid);
	gid_text(gid, text);
	assert_string_equal(text, "10.1.2.3");
	gid_text(ipv6, text);
	assert_string_equal(text, "fd00::1");
}

TEST(gid_is_link_local__fe80_with_ten_bits)
{
	uint8_t gid[GID_LEN] = {0xfe, 0x80, [15] = 1};

	assert_true(gid_is_link_local(gid));
	gid[1] = 0xbf;
	assert_true(gid_is_link_local(gid));
	gid[1] = 0xc0;
	assert_false(gid_is_link_local(gid));
	gid[0] = 0xff;
	gid[1] = 0x80;
	assert_false(gid_is_link_local(gid));
}

TEST(gid_is_multicast__by_family)
{
	static const struct {
		uint8_t gid[GID_LEN];
		bool group;
	} cases[] = {
		{{0xff, 0x02, [15] = 1}, true},
		{{0xfe, 0x80, [15] = 1}, false},
		{{[10] = 0xff, 0xff, 224, 0, 0, 1}, true},
		{{[10] = 0xff, 0xff, 239, 255, 255, 255}, true},
		{{[10] = 0xff, 0xff, 223, 0, 0, 1}, false},
		{{[10] = 0xff, 0xff, 240, 0, 0, 1}, false},
		{{[12] = 224, 0, 0, 1}, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(gid_is_multicast(cases[i].gid), cases[i].group);
}
