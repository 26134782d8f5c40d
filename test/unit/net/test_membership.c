/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/membership.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_ip.h>

#include "net/membership.h"
#include "test.h"

#define ETHER 14

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t own4[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t own6[GID_LEN] = {0xfe, 0x80, [15] = 1};
static const uint8_t group4[GID_LEN] = {[10] = 0xff, 0xff, 239, 129, 2, 3};
static const uint8_t group6[GID_LEN] = {0xff, 0x0e, [12] = 0x11, 0x22, 0x33, 0x44};
static const uint8_t none[GID_LEN];

static uint8_t frame[MEMBERSHIP_FRAME_MAX];

/* Check the headers: Ethernet, and IPv4 with router alert, to these addresses. Return the IGMP
 * message. */
static const uint8_t *expect_igmp(size_t len, size_t message_len, const uint8_t to_mac[6],
				  const uint8_t to[4])
{
	static const uint8_t router_alert[4] = {0x94, 4, 0, 0};
	const uint8_t *ip = frame + ETHER;

	assert_int_equal(len, ETHER + 24 + message_len);
	assert_memory_equal(frame, to_mac, 6);
	assert_memory_equal(frame + 6, mac, 6);
	assert_int_equal(frame[12] << 8 | frame[13], 0x0800);
	assert_int_equal(ip[0], 0x46);
	assert_int_equal(ip[2] << 8 | ip[3], 24 + message_len);
	assert_int_equal(ip[8], 1);
	assert_int_equal(ip[9], 2);
	assert_int_equal(rte_raw_cksum(ip, 24), 0xffff);
	assert_memory_equal(ip + 12, own4 + 12, 4);
	assert_memory_equal(ip + 16, to, 4);
	assert_memory_equal(ip + 20, router_alert, 4);
	assert_int_equal(rte_raw_cksum(ip + 24, message_len), 0xffff);
	return ip + 24;
}

TEST(build__igmpv3)
{
	static const uint8_t to_mac[6] = {0x01, 0x00, 0x5e, 0, 0, 22}, to[4] = {224, 0, 0, 22};
	static const struct {
		enum membership_change change;
		uint8_t record;
	} cases[] = {{MEMBERSHIP_IS, 2}, {MEMBERSHIP_JOINED, 4}, {MEMBERSHIP_LEFT, 3}};

	for (size_t i = 0; i < 3; i++) {
		const size_t len =
			membership_build(frame, mac, own4, group4, cases[i].change, false);
		const uint8_t *igmp = expect_igmp(len, 16, to_mac, to);

		assert_int_equal(igmp[0], 0x22);
		assert_int_equal(igmp[7], 1);
		assert_int_equal(igmp[8], cases[i].record);
		assert_int_equal(igmp[10] << 8 | igmp[11], 0);
		assert_memory_equal(igmp + 12, group4 + 12, 4);
	}
}

TEST(build__igmpv2)
{
	static const uint8_t group_mac[6] = {0x01, 0x00, 0x5e, 1, 2, 3};
	static const uint8_t routers_mac[6] = {0x01, 0x00, 0x5e, 0, 0, 2};
	static const uint8_t routers[4] = {224, 0, 0, 2};
	const uint8_t *igmp;

	igmp = expect_igmp(membership_build(frame, mac, own4, group4, MEMBERSHIP_JOINED, true), 8,
			   group_mac, group4 + 12);
	assert_int_equal(igmp[0], 0x16);
	assert_memory_equal(igmp + 4, group4 + 12, 4);
	igmp = expect_igmp(membership_build(frame, mac, own4, group4, MEMBERSHIP_LEFT, true), 8,
			   routers_mac, routers);
	assert_int_equal(igmp[0], 0x17);
	assert_memory_equal(igmp + 4, group4 + 12, 4);
}

static const uint8_t *expect_mld(size_t len, size_t message_len, const uint8_t to_mac[6],
				 const uint8_t to[16])
{
	static const uint8_t router_alert[8] = {58, 0, 5, 2, 0, 0, 1, 0};
	struct rte_ipv6_hdr ip;

	assert_int_equal(len, ETHER + 48 + message_len);
	assert_memory_equal(frame, to_mac, 6);
	assert_memory_equal(frame + 6, mac, 6);
	assert_int_equal(frame[12] << 8 | frame[13], 0x86dd);
	memcpy(&ip, frame + ETHER, sizeof(ip));
	assert_int_equal(rte_be_to_cpu_16(ip.payload_len), 8 + message_len);
	assert_int_equal(ip.proto, 0);
	assert_int_equal(ip.hop_limits, 1);
	assert_memory_equal(&ip.src_addr, own6, 16);
	assert_memory_equal(&ip.dst_addr, to, 16);
	assert_memory_equal(frame + ETHER + 40, router_alert, 8);
	/* The checksum leaves the extension header out. */
	ip.payload_len = rte_cpu_to_be_16((uint16_t)message_len);
	ip.proto = 58;
	assert_int_equal(rte_ipv6_udptcp_cksum_verify(&ip, frame + ETHER + 48), 0);
	return frame + ETHER + 48;
}

TEST(build__mldv2)
{
	static const uint8_t to_mac[6] = {0x33, 0x33, 0, 0, 0, 0x16};
	static const uint8_t to[16] = {0xff, 0x02, [15] = 0x16};
	const uint8_t *mld;

	mld = expect_mld(membership_build(frame, mac, own6, group6, MEMBERSHIP_IS, false), 28,
			 to_mac, to);
	assert_int_equal(mld[0], 143);
	assert_int_equal(mld[7], 1);
	assert_int_equal(mld[8], 2);
	assert_memory_equal(mld + 12, group6, 16);
}

TEST(build__mldv1)
{
	static const uint8_t group_mac[6] = {0x33, 0x33, 0x11, 0x22, 0x33, 0x44};
	static const uint8_t routers_mac[6] = {0x33, 0x33, 0, 0, 0, 2};
	static const uint8_t routers[16] = {0xff, 0x02, [15] = 2};
	const uint8_t *mld;

	mld = expect_mld(membership_build(frame, mac, own6, group6, MEMBERSHIP_IS, true), 24,
			 group_mac, group6);
	assert_int_equal(mld[0], 131);
	assert_memory_equal(mld + 8, group6, 16);
	mld = expect_mld(membership_build(frame, mac, own6, group6, MEMBERSHIP_LEFT, true), 24,
			 routers_mac, routers);
	assert_int_equal(mld[0], 132);
}

/* A general query of IGMPv3 from 10.0.0.2, with Max Resp Code 100. */
static const uint8_t igmp_query[] = {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01, 2, 0, 0, 0, 0, 1, 0x08,
				     0x00,
				     /* IPv4 */
				     0x46, 0xc0, 0, 36, 0, 0, 0x40, 0, 1, 2, 0xfa, 0x10, 10, 0, 0,
				     2, 224, 0, 0, 1, 0x94, 4, 0, 0,
				     /* IGMP */
				     0x11, 100, 0xec, 0x1e, 0, 0, 0, 0, 2, 125, 0, 0};

static size_t patch_igmp(uint8_t max_resp, const uint8_t group[4], size_t message_len)
{
	uint8_t *ip = frame + ETHER, *igmp = ip + 24;
	uint16_t sum;

	memcpy(frame, igmp_query, sizeof(igmp_query));
	igmp[1] = max_resp;
	memcpy(igmp + 4, group, 4);
	ip[3] = (uint8_t)(24 + message_len);
	memset(ip + 10, 0, 2);
	sum = (uint16_t)~rte_raw_cksum(ip, 24);
	memcpy(ip + 10, &sum, 2);
	memset(igmp + 2, 0, 2);
	sum = (uint16_t)~rte_raw_cksum(igmp, message_len);
	memcpy(igmp + 2, &sum, 2);
	return ETHER + 24 + message_len;
}

TEST(parse__igmp)
{
	static const uint8_t every[4];
	struct membership_query query;

	memcpy(frame, igmp_query, sizeof(igmp_query));
	assert_true(membership_parse(frame, sizeof(igmp_query), &query));
	assert_true(query.ipv4);
	assert_false(query.old);
	assert_memory_equal(query.group, none, GID_LEN);
	assert_int_equal(query.max_delay_ns, 10000000000);
	/* A mantissa and an exponent: (5 | 16) << (2 + 3) tenths. */
	assert_true(membership_parse(frame, patch_igmp(0xa5, group4 + 12, 12), &query));
	assert_int_equal(query.max_delay_ns, 67200000000);
	assert_memory_equal(query.group, group4, GID_LEN);
	/* A query of eight bytes is one of version 2, whose delay has no exponent. */
	assert_true(membership_parse(frame, patch_igmp(0xa5, every, 8), &query));
	assert_true(query.old);
	assert_int_equal(query.max_delay_ns, 16500000000);
	/* Version 1. */
	assert_true(membership_parse(frame, patch_igmp(0, every, 8), &query));
	assert_true(query.old);
	assert_int_equal(query.max_delay_ns, 10000000000);
}

TEST(parse__igmp_that_is_malformed_or_no_query)
{
	static const uint8_t every[4];
	struct membership_query query;
	const size_t len = sizeof(igmp_query);

	for (size_t i = 0; i < len; i++) {
		uint8_t *copy = test_malloc(i ? i : 1);

		memcpy(copy, igmp_query, i);
		assert_false(membership_parse(copy, i, &query));
		test_free(copy);
	}
	/* Change each byte behind the Ethernet addresses. Then the protocol or a checksum is
	 * wrong. */
	for (size_t i = 12; i < len; i++) {
		memcpy(frame, igmp_query, len);
		frame[i] ^= 0x10;
		assert_false(membership_parse(frame, len, &query));
	}
	assert_false(membership_parse(frame, patch_igmp(100, every, 4), &query));
	membership_build(frame, mac, own4, group4, MEMBERSHIP_IS, false);
	assert_false(membership_parse(frame, sizeof(frame), &query));
}

/* Make an MLD query from a report, whose headers are the same. */
static size_t mld_query(uint16_t max_resp, const uint8_t group[16], bool old)
{
	const size_t len = membership_build(frame, mac, own6, group6, MEMBERSHIP_IS, old);
	const size_t message_len = old ? 24 : 28;
	uint8_t *mld = frame + ETHER + 48;
	struct rte_ipv6_hdr ip;
	uint16_t sum;

	memcpy(&ip, frame + ETHER, sizeof(ip));
	memset(mld, 0, message_len);
	mld[0] = 130;
	mld[4] = (uint8_t)(max_resp >> 8);
	mld[5] = (uint8_t)max_resp;
	memcpy(mld + 8, group, 16);
	ip.payload_len = rte_cpu_to_be_16((uint16_t)message_len);
	ip.proto = 58;
	sum = rte_ipv6_udptcp_cksum(&ip, mld);
	memcpy(mld + 2, &sum, 2);
	return len;
}

TEST(parse__mld)
{
	struct membership_query query;

	assert_true(membership_parse(frame, mld_query(1000, none, false), &query));
	assert_false(query.ipv4);
	assert_false(query.old);
	assert_memory_equal(query.group, none, GID_LEN);
	assert_int_equal(query.max_delay_ns, 1000000000);
	/* (0x123 | 0x1000) << (1 + 3) milliseconds. */
	assert_true(membership_parse(frame, mld_query(0x9123, group6, false), &query));
	assert_memory_equal(query.group, group6, GID_LEN);
	assert_int_equal(query.max_delay_ns, 0x11230 * UINT64_C(1000000));
	assert_true(membership_parse(frame, mld_query(0x9123, none, true), &query));
	assert_true(query.old);
	assert_int_equal(query.max_delay_ns, 0x9123 * UINT64_C(1000000));
}

TEST(parse__mld_that_is_malformed_or_no_query)
{
	struct membership_query query;
	const size_t len = mld_query(1000, none, false);

	for (size_t i = 0; i < len; i++) {
		uint8_t *copy = test_malloc(i ? i : 1);

		memcpy(copy, frame, i);
		assert_false(membership_parse(copy, i, &query));
		test_free(copy);
	}
	frame[ETHER + 48 + 6] ^= 1;
	assert_false(membership_parse(frame, len, &query));
	/* Only a query of a neighbour (hop limit 1) is answered. */
	mld_query(1000, none, false);
	frame[ETHER + 8] = 0x20;
	assert_false(membership_parse(frame, len, &query));
}
