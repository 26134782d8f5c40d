/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/icmp.c: echo. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net/icmp.h"
#include "test.h"

#define DATA_LEN 10
#define V4_LEN	 (14 + 20 + 8 + DATA_LEN)
#define V6_LEN	 (14 + 40 + 8 + DATA_LEN)

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t own4[GID_LEN] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t own6[GID_LEN] = {0xfd, [15] = 1};
static const uint8_t peer6[GID_LEN] = {0xfd, [15] = 2};

static struct addresses own;
static uint8_t v4[V4_LEN], v6[V6_LEN], reply[256];

/* RFC 1071, over bytes in network order. */
static uint32_t add16(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	return sum;
}

static int add(struct addresses *addresses, const uint8_t gid[GID_LEN], uint8_t prefix_len)
{
	struct address address = {.prefix_len = prefix_len, .vlan = VLAN_NONE};

	memcpy(address.gid, gid, GID_LEN);
	return addresses_add(addresses, &address);
}

static void store_sum(uint8_t *at, uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	at[0] = (uint8_t)(~sum >> 8);
	at[1] = (uint8_t)~sum;
}

static void seal_v4(uint8_t *f)
{
	f[24] = f[25] = f[36] = f[37] = 0;
	store_sum(f + 24, add16(0, f + 14, 20));
	store_sum(f + 36, add16(0, f + 34, 8 + DATA_LEN));
}

static void seal_v6(uint8_t *f)
{
	f[56] = f[57] = 0;
	store_sum(f + 56, add16(58 + 8 + DATA_LEN, f + 22, 32 + 8 + DATA_LEN));
}

static int set_up(TEST_STATE)
{
	const uint8_t ip_head[] = {0x45, 0, 0, V4_LEN - 14, 0x12, 0x34, 0x40, 0, 63, 1};

	own.count = 0;
	add(&own, own4, 24);
	add(&own, own6, 64);
	memset(v4, 0, sizeof(v4));
	memset(v6, 0, sizeof(v6));
	memcpy(v4, own_mac, 6);
	memcpy(v4 + 6, peer_mac, 6);
	memcpy(v6, v4, 12);
	v4[12] = 0x08;
	memcpy(v4 + 14, ip_head, sizeof(ip_head));
	memcpy(v4 + 26, ((uint8_t[]){10, 0, 0, 2, 10, 0, 0, 1}), 8);
	v4[34] = 8;
	v6[12] = 0x86;
	v6[13] = 0xdd;
	v6[14] = 0x60;
	v6[19] = 8 + DATA_LEN;
	v6[20] = 58;
	v6[21] = 64;
	memcpy(v6 + 22, peer6, 16);
	memcpy(v6 + 38, own6, 16);
	v6[54] = 128;
	for (int i = 0; i < DATA_LEN; i++)
		v4[V4_LEN - DATA_LEN + i] = v6[V6_LEN - DATA_LEN + i] = (uint8_t)(i + 1);
	seal_v4(v4);
	seal_v6(v6);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static size_t answer(const uint8_t *frame, size_t len)
{
	return echo_reply(&own, VLAN_NONE, own_mac, frame, len, reply, sizeof(reply));
}

TEST(echo_reply__ipv4_turns_the_request_round)
{
	uint8_t want[V4_LEN];

	assert_int_equal(answer(v4, sizeof(v4)), V4_LEN);
	memcpy(want, v4, sizeof(want));
	memcpy(want, peer_mac, 6);
	memcpy(want + 6, own_mac, 6);
	memcpy(want + 26, ((uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}), 8);
	want[22] = 64;
	want[34] = 0;
	seal_v4(want);
	assert_memory_equal(reply, want, sizeof(want));
}

TEST(echo_reply__ipv6_turns_the_request_round)
{
	uint8_t want[V6_LEN];

	assert_int_equal(answer(v6, sizeof(v6)), V6_LEN);
	memcpy(want, v6, sizeof(want));
	memcpy(want, peer_mac, 6);
	memcpy(want + 6, own_mac, 6);
	memcpy(want + 22, own6, 16);
	memcpy(want + 38, peer6, 16);
	want[54] = 129;
	seal_v6(want);
	assert_memory_equal(reply, want, sizeof(want));
}

TEST(echo_reply__padding_of_short_frames_is_not_echoed)
{
	uint8_t padded[V4_LEN + 8] = {0};

	memcpy(padded, v4, sizeof(v4));
	assert_int_equal(answer(padded, sizeof(padded)), V4_LEN);
}

TEST(echo_reply__no_answer_to_truncated_frames)
{
	for (size_t len = 0; len < V4_LEN; len++)
		assert_int_equal(answer(v4, len), 0);
	for (size_t len = 0; len < V6_LEN; len++)
		assert_int_equal(answer(v6, len), 0);
}

TEST(echo_reply__no_answer_that_does_not_fit)
{
	assert_int_equal(echo_reply(&own, VLAN_NONE, own_mac, v4, V4_LEN, reply, V4_LEN - 1), 0);
	assert_int_equal(echo_reply(&own, VLAN_NONE, own_mac, v4, V4_LEN, reply, V4_LEN), V4_LEN);
}

TEST(echo_reply__no_answer_to_fragments_and_options)
{
	v4[20] = 0x20; /* more fragments */
	seal_v4(v4);
	assert_int_equal(answer(v4, sizeof(v4)), 0);
	v4[20] = 0;
	v4[21] = 1; /* an offset */
	seal_v4(v4);
	assert_int_equal(answer(v4, sizeof(v4)), 0);
	v4[21] = 0;
	v4[14] = 0x46;
	seal_v4(v4);
	assert_int_equal(answer(v4, sizeof(v4)), 0);
}

TEST(echo_reply__no_answer_with_wrong_checksums)
{
	v4[25] ^= 1;
	assert_int_equal(answer(v4, sizeof(v4)), 0);
	v4[25] ^= 1;
	v4[V4_LEN - 1] ^= 1;
	assert_int_equal(answer(v4, sizeof(v4)), 0);
	v6[V6_LEN - 1] ^= 1;
	assert_int_equal(answer(v6, sizeof(v6)), 0);
}

TEST(echo_reply__no_answer_for_others)
{
	v4[33] = 9;
	seal_v4(v4);
	assert_int_equal(answer(v4, sizeof(v4)), 0);
	v6[53] = 9;
	seal_v6(v6);
	assert_int_equal(answer(v6, sizeof(v6)), 0);
	set_up(state);
	v4[5] = 9;
	assert_int_equal(answer(v4, sizeof(v4)), 0);
}

TEST(echo_reply__no_answer_to_answers)
{
	v4[34] = 0;
	seal_v4(v4);
	assert_int_equal(answer(v4, sizeof(v4)), 0);
	v6[54] = 129;
	seal_v6(v6);
	assert_int_equal(answer(v6, sizeof(v6)), 0);
}
