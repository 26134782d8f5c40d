/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/ip_text.c. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "value.h"
#include "test.h"

static void assert_refused(const char *text, const char *why)
{
	struct settings_ip ip;
	char error[256] = "";

	assert_int_equal(address_parse(text, &ip, error, sizeof(error)), -EINVAL);
	if (strstr(error, why) == NULL || strstr(error, text) == NULL)
		fail_msg("'%s': the message is '%s'", text, error);
}

TEST(address_parse__ipv4_is_mapped)
{
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	struct settings_ip ip;
	char error[256];

	assert_int_equal(address_parse("10.0.0.1/24", &ip, error, sizeof(error)), 0);
	assert_memory_equal(ip.gid, gid, sizeof(gid));
	assert_int_equal(ip.prefix_len, 24);
}

TEST(address_parse__ipv6)
{
	static const uint8_t gid[16] = {0xfd, [15] = 2};
	struct settings_ip ip;
	char error[256];

	assert_int_equal(address_parse("fd00::2/64", &ip, error, sizeof(error)), 0);
	assert_memory_equal(ip.gid, gid, sizeof(gid));
	assert_int_equal(ip.prefix_len, 64);
}

TEST(address_parse__refuses_bad_text)
{
	assert_refused("", "prefix length is missing");
	assert_refused("10.0.0.1", "prefix length is missing");
	assert_refused("/24", "not an IP address");
	assert_refused("10.0.0/24", "not an IP address");
	assert_refused("10.0.0.256/24", "not an IP address");
	assert_refused("host/24", "not an IP address");
	assert_refused("10.0.0.1 /24", "not an IP address");
	assert_refused("0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001/64",
		       "too long");
}

TEST(address_parse__refuses_bad_prefix)
{
	static const char *const prefixes[] = {"",   "0",  "33",  "+8",
					       "-1", "8x", "0x8", "4294967304"};
	char text[64];

	for (size_t i = 0; i < RTE_DIM(prefixes); i++) {
		snprintf(text, sizeof(text), "10.0.0.1/%s", prefixes[i]);
		assert_refused(text, "from 1 to 32");
	}
	assert_refused("fd00::1/0", "from 1 to 128");
	assert_refused("fd00::1/129", "from 1 to 128");
}

TEST(address_parse__refuses_what_no_host_has)
{
	assert_refused("0.0.0.1/8", "a host can have");
	assert_refused("127.0.0.1/8", "a host can have");
	assert_refused("224.0.0.1/24", "a host can have");
	assert_refused("255.255.255.255/32", "a host can have");
	assert_refused("10.0.0.0/24", "network's address");
	assert_refused("10.0.0.255/24", "broadcast");
	assert_refused("10.0.0.127/25", "broadcast");
	assert_refused("::/64", "a host can have");
	assert_refused("::1/128", "a host can have");
	assert_refused("ff02::1/64", "a host can have");
	assert_refused("::ffff:10.0.0.1/96", "as IPv4");
}

TEST(address_parse__links_of_two_have_no_broadcast)
{
	struct settings_ip ip;
	char error[256];

	assert_int_equal(address_parse("10.0.0.0/31", &ip, error, sizeof(error)), 0);
	assert_int_equal(address_parse("10.0.0.1/31", &ip, error, sizeof(error)), 0);
	assert_int_equal(address_parse("10.0.0.0/32", &ip, error, sizeof(error)), 0);
	/* The widest network has a whole address for its host part. */
	assert_int_equal(address_parse("10.0.0.0/1", &ip, error, sizeof(error)), 0);
}

TEST(address_parse__takes_a_vlan)
{
	struct settings_ip ip;
	char error[256];

	assert_int_equal(address_parse("10.0.0.1/24", &ip, error, sizeof(error)), 0);
	assert_int_equal(ip.vlan, -1);
	assert_int_equal(address_parse("10.0.0.1/24@4094", &ip, error, sizeof(error)), 0);
	assert_int_equal(ip.vlan, 4094);
	assert_int_equal(ip.prefix_len, 24);
	assert_refused("10.0.0.1/24@", "from 1 to 4094");
	assert_refused("10.0.0.1/24@0", "from 1 to 4094");
	assert_refused("10.0.0.1/24@4095", "from 1 to 4094");
	assert_refused("10.0.0.1/24@5@6", "from 1 to 4094");
	assert_refused("10.0.0.1@5", "prefix length is missing");
}

TEST(address_format__is_the_inverse)
{
	static const char *const texts[] = {"10.0.0.1/24",   "192.168.255.254/32",
					    "fd00::1/64",    "fe80::1:2ff:fe03:405/128",
					    "10.0.0.1/24@5", "fd00::1/64@4094"};
	char error[256], text[ADDRESS_TEXT_MAX];
	struct settings_ip ip;

	for (size_t i = 0; i < RTE_DIM(texts); i++) {
		assert_int_equal(address_parse(texts[i], &ip, error, sizeof(error)), 0);
		address_format(&ip, text);
		assert_string_equal(text, texts[i]);
	}
}
