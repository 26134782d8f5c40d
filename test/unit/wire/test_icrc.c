/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC against known values and a bit-by-bit CRC-32. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/icrc.h"
#include "test.h"

#define ROOM 9000

static uint8_t source[ROOM];
static uint32_t seed = 12345;

static uint32_t next_random(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

static int fill_source(TEST_STATE)
{
	size_t i;

	for (i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(next_random() >> 3);
	return 0;
}

TEST_GROUP(fill_source, NULL);

/* CRC-32 of IEEE 802.3 a bit at a time: slow, and as its definition says. */
static uint32_t slow_crc(uint32_t state, const uint8_t *data, size_t len)
{
	int bit;

	state = ~state;
	while (len--) {
		state ^= *data++;
		for (bit = 0; bit < 8; bit++)
			state = state >> 1 ^ (state & 1 ? 0xedb88320 : 0);
	}
	return ~state;
}

/* clang-format off */
/* A READ request and an ACK that a Linux peer sent, from the IP header on, and their ICRCs. */
static const uint8_t ipv4_read[] = {
	/* IPv4 */
	0x45, 0x00, 0x00, 0x3c, 0xfc, 0x4e, 0x40, 0x00, 0x40, 0x11, 0x2a, 0x4e,
	0x0a, 0x09, 0x00, 0x02, 0x0a, 0x09, 0x00, 0x01,
	/* UDP */
	0xc1, 0xe4, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00,
	/* BTH */
	0x0c, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x16, 0x80, 0x00, 0x01, 0x00,
	/* RETH */
	0x00, 0x00, 0x7f, 0x6f, 0x8d, 0x95, 0xb0, 0x00, 0x00, 0x00, 0x07, 0xbf,
	0x00, 0x00, 0x00, 0x08,
};
static const uint8_t ipv4_read_icrc[4] = {0xe9, 0x93, 0x7e, 0xe5};

static const uint8_t ipv6_ack[] = {
	/* IPv6 */
	0x60, 0x00, 0x00, 0x00, 0x00, 0x1c, 0x11, 0x40, 0xfe, 0x80, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x09, 0x00, 0x01,
	0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff,
	0xfe, 0x09, 0x00, 0x02,
	/* UDP */
	0xc4, 0x41, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00,
	/* BTH */
	0x11, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x21, 0x00, 0x00, 0x01, 0x00,
	/* AETH */
	0x1f, 0x00, 0x00, 0x01,
};
static const uint8_t ipv6_ack_icrc[4] = {0xd6, 0x0b, 0xc9, 0xdc};
/* clang-format on */

TEST(icrc_headers__is_what_a_linux_peer_sends)
{
	uint8_t wire[4];

	icrc_store(icrc_headers(ipv4_read, 20, sizeof(ipv4_read)), wire);
	assert_memory_equal(wire, ipv4_read_icrc, sizeof(wire));
	icrc_store(icrc_headers(ipv6_ack, 40, sizeof(ipv6_ack)), wire);
	assert_memory_equal(wire, ipv6_ack_icrc, sizeof(wire));
}

/* The bits that a router may change, 7.8.1 and A17.3.4. */
struct masked {
	uint8_t offset;
	uint8_t bits;
};

static uint8_t masked_bits(const struct masked *masked, size_t offset)
{
	for (; masked->bits != 0; masked++)
		if (masked->offset == offset)
			return masked->bits;
	return 0;
}

/* Flip each bit of the headers: the CRC must change, but for those that it leaves out. */
static void check_mask(const uint8_t *headers, size_t l3_len, size_t len,
		       const struct masked *masked)
{
	const uint32_t crc = icrc_headers(headers, l3_len, len);
	uint8_t changed[ICRC_HEADERS_MAX];
	size_t bit;

	memcpy(changed, headers, len);
	for (bit = 0; bit < 8 * len; bit++) {
		const uint8_t flip = (uint8_t)(1u << bit % 8);

		changed[bit / 8] ^= flip;
		if (masked_bits(masked, bit / 8) & flip)
			assert_int_equal(icrc_headers(changed, l3_len, len), crc);
		else
			assert_int_not_equal(icrc_headers(changed, l3_len, len), crc);
		changed[bit / 8] ^= flip;
	}
}

TEST(icrc_headers__leaves_out_what_changes_on_the_way_ipv4)
{
	/* TOS, TTL, header checksum, UDP checksum, FECN and BECN with six reserved bits. */
	const struct masked masked[] = {{1, 0xff},  {8, 0xff},	{10, 0xff}, {11, 0xff},
					{26, 0xff}, {27, 0xff}, {32, 0xff}, {0, 0}};

	check_mask(ipv4_read, 20, sizeof(ipv4_read), masked);
}

TEST(icrc_headers__leaves_out_what_changes_on_the_way_ipv6)
{
	/* Traffic class, flow label, hop limit, UDP checksum, FECN and BECN with six reserved bits.
	 */
	const struct masked masked[] = {{0, 0x0f},  {1, 0xff},	{2, 0xff},  {3, 0xff}, {7, 0xff},
					{46, 0xff}, {47, 0xff}, {52, 0xff}, {0, 0}};

	check_mask(ipv6_ack, 40, sizeof(ipv6_ack), masked);
}

TEST(icrc_copy_headers__is_icrc_headers_of_a_copy)
{
	uint8_t copied[sizeof(ipv4_read) + sizeof(ipv6_ack)];

	assert_int_equal(icrc_copy_headers(copied, ipv4_read, 20, sizeof(ipv4_read)),
			 icrc_headers(ipv4_read, 20, sizeof(ipv4_read)));
	assert_memory_equal(copied, ipv4_read, sizeof(ipv4_read));
	assert_int_equal(icrc_copy_headers(copied, ipv6_ack, 40, sizeof(ipv6_ack)),
			 icrc_headers(ipv6_ack, 40, sizeof(ipv6_ack)));
	assert_memory_equal(copied, ipv6_ack, sizeof(ipv6_ack));
}

TEST(icrc_headers__takes_the_longest)
{
	uint8_t headers[ICRC_HEADERS_MAX], image[8 + ICRC_HEADERS_MAX];

	memset(image, 0xff, 8);
	memcpy(headers, source, sizeof(headers));
	memcpy(image + 8, headers, sizeof(headers));
	image[8] |= 0x0f;
	memset(image + 8 + 1, 0xff, 3);
	image[8 + 7] = 0xff;
	memset(image + 8 + 46, 0xff, 2);
	image[8 + 52] = 0xff;
	assert_int_equal(icrc_headers(headers, 40, sizeof(headers)),
			 slow_crc(0, image, sizeof(image)));
}

TEST(icrc_update__check_value)
{
	/* The check value by which CRC catalogues name this CRC. */
	assert_int_equal(icrc_update(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(icrc_update(0x1234, "", 0), 0x1234);
}

TEST(icrc_update__every_length_up_to_two_blocks)
{
	size_t len;

	for (len = 0; len <= 1100; len++)
		assert_int_equal(icrc_update(0x5eed, source + len % 67, len),
				 slow_crc(0x5eed, source + len % 67, len));
}

TEST(icrc_update__parts_make_the_whole)
{
	size_t cut;

	for (cut = 0; cut <= 600; cut++)
		assert_int_equal(icrc_update(icrc_update(7, source, cut), source + cut, 600 - cut),
				 slow_crc(7, source, 600));
}

/* Copy between places of any alignment; the bytes around the target must stay. */
static void check_copy(size_t from, size_t to, size_t len)
{
	uint8_t *target = malloc(to + len + 64);
	uint32_t start = next_random();
	size_t i;

	assert_non_null(target);
	memset(target, 0xa5, to + len + 64);
	assert_int_equal(icrc_copy(start, target + to, source + from, len),
			 slow_crc(start, source + from, len));
	assert_memory_equal(target + to, source + from, len);
	for (i = 0; i < to; i++)
		assert_int_equal(target[i], 0xa5);
	for (i = to + len; i < to + len + 64; i++)
		assert_int_equal(target[i], 0xa5);
	free(target);
}

TEST(icrc_copy__every_length_up_to_two_blocks)
{
	size_t len;

	for (len = 0; len <= 1100; len++)
		check_copy(len % 61, len % 67, len);
}

TEST(icrc_copy__random_lengths_and_alignments)
{
	unsigned int round;

	for (round = 0; round < 1000; round++)
		check_copy(next_random() % 256, next_random() % 128, next_random() % 8200);
}

TEST(icrc_copy__reads_nothing_beyond_its_source)
{
	size_t len;

	for (len = 1; len <= 300; len++) {
		/* Exact sizes: the address sanitizer sees one byte too many. */
		uint8_t *from = malloc(len), *to = malloc(len);

		memcpy(from, source, len);
		assert_int_equal(icrc_copy(0, to, from, len), slow_crc(0, source, len));
		assert_int_equal(icrc_update(0, from, len), slow_crc(0, source, len));
		free(from);
		free(to);
	}
}

TEST(icrc_zeros__is_an_update_with_zeros)
{
	static const uint8_t zeros[8192];
	size_t len;

	for (len = 0; len <= 600; len++)
		assert_int_equal(icrc_zeros(0xdeadbeef, len), slow_crc(0xdeadbeef, zeros, len));
	for (len = 1000; len <= sizeof(zeros); len += 1 + next_random() % 97)
		assert_int_equal(icrc_zeros((uint32_t)len, len),
				 slow_crc((uint32_t)len, zeros, len));
}

TEST(icrc_zeros__lengths_that_nobody_has_memory_for)
{
	const size_t huge = (size_t)3 << 40;

	/* x has order 2^32 - 1, so that many zero bytes change nothing. */
	assert_int_equal(icrc_zeros(0x12345678, 0xffffffff), 0x12345678);
	assert_int_equal(icrc_zeros(icrc_zeros(1, huge), huge + 5), icrc_zeros(1, 2 * huge + 5));
}

TEST(icrc_store__is_little_endian_and_load_undoes_it)
{
	uint8_t wire[4];

	icrc_store(0x11223344, wire);
	assert_int_equal(wire[0], 0x44);
	assert_int_equal(wire[3], 0x11);
	assert_int_equal(icrc_load(wire), 0x11223344);
}

/* Of the last 60 bytes of a packet, the first four change. */
TEST(icrc_move__from_bytes_to_the_end_and_back)
{
	const uint32_t bytes = 0x8040ff01;
	uint8_t changed[1060];
	uint32_t states;

	memcpy(changed, source, sizeof(changed));
	for (unsigned int i = 0; i < 4; i++)
		changed[1000 + i] ^= (uint8_t)(bytes >> (8 * i));
	states = slow_crc(7, source, sizeof(changed)) ^ slow_crc(7, changed, sizeof(changed));
	assert_int_equal(icrc_move(bytes, icrc_distance(60)), states);
	assert_int_equal(icrc_move(states, icrc_distance(-60)), bytes);
	assert_int_equal(icrc_move(bytes, icrc_distance(0)), bytes);
}
