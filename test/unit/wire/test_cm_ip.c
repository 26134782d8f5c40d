/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/wire/cm_ip.c. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "wire/cm_ip.h"
#include "test.h"

static const struct cm_ip ipv4 = {.version = 4,
				  .port = 0xcf3c,
				  .src = {[10] = 0xff, 0xff, 10, 9, 0, 2},
				  .dst = {[10] = 0xff, 0xff, 10, 9, 0, 1}};
static const struct cm_ip ipv6 = {
	.version = 6, .port = 7174, .src = {0xfe, 0x80, [15] = 2}, .dst = {0xfe, 0x80, [15] = 1}};

TEST(build__ipv4_is_the_last_word)
{
	const uint8_t expected[CM_IP_LEN] = {0, 0x40, 0xcf,	 0x3c, [16] = 10, 9,
					     0, 2,    [32] = 10, 9,    0,	  1};
	uint8_t bytes[CM_IP_LEN];

	assert_int_equal(cm_ip_build(&ipv4, bytes), 0);
	assert_memory_equal(bytes, expected, sizeof(bytes));
}

TEST(build__address_of_the_other_version_is_refused)
{
	struct cm_ip ip = ipv4;
	uint8_t bytes[CM_IP_LEN];

	ip.version = 6;
	assert_int_equal(cm_ip_build(&ip, bytes), -EINVAL);
	ip = ipv6;
	ip.version = 4;
	assert_int_equal(cm_ip_build(&ip, bytes), -EINVAL);
	ip.version = 5;
	assert_int_equal(cm_ip_build(&ip, bytes), -EINVAL);
	ip = ipv6;
	memcpy(ip.dst, ipv4.dst, sizeof(ip.dst));
	assert_int_equal(cm_ip_build(&ip, bytes), -EINVAL);
}

static void assert_parses_back(const struct cm_ip *ip)
{
	uint8_t bytes[CM_IP_LEN];
	struct cm_ip parsed;

	assert_int_equal(cm_ip_build(ip, bytes), 0);
	assert_int_equal(cm_ip_parse(bytes, sizeof(bytes), &parsed), 0);
	assert_int_equal(parsed.version, ip->version);
	assert_int_equal(parsed.port, ip->port);
	assert_memory_equal(parsed.src, ip->src, sizeof(ip->src));
	assert_memory_equal(parsed.dst, ip->dst, sizeof(ip->dst));
}

TEST(parse__gives_what_was_built)
{
	assert_parses_back(&ipv4);
	assert_parses_back(&ipv6);
}

TEST(parse__other_versions_are_refused)
{
	uint8_t bytes[CM_IP_LEN];
	struct cm_ip ip;

	assert_int_equal(cm_ip_build(&ipv6, bytes), 0);
	assert_int_equal(cm_ip_parse(bytes, CM_IP_LEN - 1, &ip), -EBADMSG);
	bytes[0] = 0x10;
	assert_int_equal(cm_ip_parse(bytes, CM_IP_LEN, &ip), -EBADMSG);
	bytes[0] = 0;
	bytes[1] = 0x50;
	assert_int_equal(cm_ip_parse(bytes, CM_IP_LEN, &ip), -EBADMSG);
}

/* Its sender would be mistaken for another host. */
TEST(parse__ipv4_address_as_ipv6_is_refused)
{
	uint8_t bytes[CM_IP_LEN];
	struct cm_ip ip;

	assert_int_equal(cm_ip_build(&ipv6, bytes), 0);
	memcpy(bytes + 4, ipv4.src, sizeof(ipv4.src));
	assert_int_equal(cm_ip_parse(bytes, CM_IP_LEN, &ip), -EBADMSG);
}

TEST(fits__addresses_of_the_packet)
{
	uint8_t other[16];

	memcpy(other, ipv4.src, sizeof(other));
	other[15]++;
	assert_true(cm_ip_fits(&ipv4, ipv4.src, ipv4.dst));
	assert_false(cm_ip_fits(&ipv4, other, ipv4.dst));
	assert_false(cm_ip_fits(&ipv4, ipv4.src, other));
}

TEST(fits__loopback_of_a_packet_to_its_own_host)
{
	struct cm_ip ip = {.version = 4};
	static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

	memcpy(ip.src, loopback, sizeof(loopback));
	memcpy(ip.dst, loopback, sizeof(loopback));
	assert_true(cm_ip_fits(&ip, ipv4.src, ipv4.src));
	assert_false(cm_ip_fits(&ip, ipv4.src, ipv4.dst));
	memcpy(ip.src, ipv4.src, sizeof(ip.src));
	assert_true(cm_ip_fits(&ip, ipv4.src, ipv4.src));
	assert_false(cm_ip_fits(&ip, ipv4.dst, ipv4.dst));
	/* A packet to its own host is for no other host's address. */
	memcpy(ip.dst, ipv4.dst, sizeof(ip.dst));
	assert_false(cm_ip_fits(&ip, ipv4.src, ipv4.src));
}

TEST(service_id__is_space_and_port)
{
	assert_int_equal(cm_service_id(CM_PS_TCP, 7174), 0x0000000001061c06);
	assert_int_equal(cm_service_id(CM_PS_UDP, 7174), 0x0000000001111c06);
}
