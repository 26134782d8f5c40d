/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the damage of pmd/impair/impair_path.c. */
#include <string.h>

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "damage.h"
#include "frames.h"
#include "test.h"
#include "wire/headers.h"

static uint8_t room[FRAME_MAX], before[FRAME_MAX];
static struct rte_mbuf mbuf;
static struct udp_frame headers;

static void make(bool ipv6, bool tagged, uint32_t payload)
{
	const struct frame frame = {
		.ipv6 = ipv6, .tagged = tagged, .psn = 5, .len = payload, .fill = 7};

	memset(&mbuf, 0, sizeof(mbuf));
	mbuf.buf_addr = room;
	mbuf.data_len = (uint16_t)frame_make(&frame, room);
	mbuf.pkt_len = mbuf.data_len;
	mbuf.nb_segs = 1;
	memcpy(before, room, sizeof(before));
}

static uint32_t chosen(void *arg, uint32_t n)
{
	const uint32_t *bit = arg;

	assert_in_range(*bit, 0, n - 1);
	return *bit;
}

static uint32_t bound(void *arg, uint32_t n)
{
	*(uint32_t *)arg = n;
	return 0;
}

/* Flip each bit that can be flipped: it is one bit, and the check notices it. */
static void assert_each_is_noticed(void)
{
	uint32_t n, bits = 0;

	assert_true(damage_find(&mbuf, &headers));
	assert_true(damage_flip(&mbuf, &headers, bound, &n));
	assert_int_equal(n, (mbuf.data_len - headers.len - 1) * 8);
	for (uint32_t bit = 0; bit < n; bit++) {
		memcpy(room, before, sizeof(room));
		assert_true(damage_flip(&mbuf, &headers, chosen, &bit));
		assert_false(frame_is_right(room, mbuf.data_len));
		for (uint32_t i = 0; i < mbuf.data_len; i++)
			bits += (uint32_t)__builtin_popcount(room[i] ^ before[i]);
	}
	assert_int_equal(bits, n);
}

TEST(damage_flip__is_noticed_by_the_icrc_at_every_bit)
{
	for (uint32_t payload = 0; payload <= 64; payload += 16) {
		make(false, false, payload);
		assert_each_is_noticed();
		make(true, true, payload);
		assert_each_is_noticed();
	}
}

TEST(damage_flip__leaves_padding_of_the_frame_alone)
{
	uint32_t n;

	make(false, false, 0);
	mbuf.data_len = (uint16_t)(mbuf.data_len + 10);
	assert_true(damage_find(&mbuf, &headers));
	assert_true(damage_flip(&mbuf, &headers, bound, &n));
	assert_int_equal(n, (mbuf.data_len - 10 - headers.len - 1) * 8);
}

/* The payload in the second buffer is the application's memory. */
TEST(damage_flip__stays_in_the_first_buffer)
{
	uint32_t n;

	make(false, false, 512);
	assert_true(damage_find(&mbuf, &headers));
	mbuf.data_len = (uint16_t)(headers.len + sizeof(struct bth));
	mbuf.nb_segs = 2;
	assert_true(damage_flip(&mbuf, &headers, bound, &n));
	assert_int_equal(n, (sizeof(struct bth) - 1) * 8);
	mbuf.data_len--;
	assert_false(damage_flip(&mbuf, &headers, bound, &n));
}

static int ecn_of(bool ipv6)
{
	const uint8_t *l3 = room + headers.l3_off;

	return ipv6 ? l3[1] >> 4 & 3 : l3[1] & 3;
}

TEST(damage_mark__sets_ce_and_the_packet_stays_right)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (int tagged = 0; tagged < 2; tagged++) {
			make(ipv6, tagged, 64);
			assert_true(damage_find(&mbuf, &headers));
			assert_int_equal(ecn_of(ipv6), 0);
			damage_mark(&mbuf, &headers);
			assert_int_equal(ecn_of(ipv6), 3);
			/* frame_is_right checks the checksums as well. */
			assert_true(frame_is_right(room, mbuf.data_len));
		}
	}
}

TEST(damage_find__finds_only_roce)
{
	make(false, false, 64);
	assert_true(damage_find(&mbuf, &headers));
	((struct rte_udp_hdr *)(void *)(room + headers.l4_off))->dst_port = RTE_BE16(4790);
	assert_false(damage_find(&mbuf, &headers));
	make(false, false, 64);
	room[12] = 8, room[13] = 6; /* ARP */
	assert_false(damage_find(&mbuf, &headers));
	make(false, false, 64);
	mbuf.data_len = 20;
	assert_false(damage_find(&mbuf, &headers));
}
