/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/sack.c: bitmaps are read as they were written. */
#include <stdint.h>
#include <string.h>

#include "transport/ooo.h"
#include "transport/sack.h"
#include "wire/packet.h"
#include "test.h"

#define EXPECTED 0xfffff0u
#define PACKETS	 200u

static uint32_t random_bits(uint32_t *drawn)
{
	*drawn = *drawn * 1664525u + 1013904223u;
	return *drawn >> 8;
}

static bool bit_at(const struct packet *packet, uint32_t from)
{
	const uint32_t bit = from - 1;

	return from > 0 && bit < 8 * packet->payload_len &&
	       (packet->payload[bit / 8] >> bit % 8 & 1);
}

/* Check every position of a bitmap against its bits, one by one. */
static void expect_bits(const struct packet *packet)
{
	const uint32_t all = 8 * packet->payload_len + 1;
	uint32_t span = all;

	while (span > 0 && !bit_at(packet, span - 1))
		span--;
	assert_int_equal(sack_span(packet, UINT32_MAX), span);
	for (uint32_t from = 0; from < all + 70; from++) {
		const uint64_t word = sack_word(packet, from);

		for (uint32_t i = 0; i < 64; i++)
			assert_int_equal(word >> i & 1, bit_at(packet, from + i));
	}
}

TEST(sack_word__has_the_bits_of_random_bitmaps)
{
	uint32_t drawn = 1;

	for (uint32_t round = 0; round < 2000; round++) {
		const uint32_t density = random_bits(&drawn) % 100;
		uint8_t bytes[20];
		const struct packet packet = {.payload = bytes,
					      .payload_len = random_bits(&drawn) % 21};

		memset(bytes, 0, sizeof(bytes));
		for (uint32_t i = 0; i < 8 * sizeof(bytes); i++) {
			if (random_bits(&drawn) % 100 < density)
				bytes[i / 8] |= (uint8_t)(1u << i % 8);
		}
		expect_bits(&packet);
	}
}

TEST(sack_span__of_nothing_is_nothing)
{
	static const uint8_t zeros[8];
	struct packet packet = {.payload = zeros};

	assert_int_equal(sack_span(&packet, UINT32_MAX), 0);
	packet.payload_len = sizeof(zeros);
	assert_int_equal(sack_span(&packet, UINT32_MAX), 0);
}

TEST(ooo_tell__tells_what_is_kept)
{
	uint8_t bitmap[SACK_BYTES_MAX];
	struct packet told = {.payload = bitmap};
	struct ooo_pool *pool;
	struct ooo ooo = {0};
	uint32_t drawn = 7;

	assert_int_equal(ooo_pool_create(PACKETS, &pool), 0);
	ooo.pool = pool;
	assert_int_equal(ooo_tell(&ooo, psn_make(EXPECTED), bitmap, sizeof(bitmap)), 0);
	for (uint32_t i = 0; i < 60; i++) {
		const struct packet packet = {
			.psn = psn_make(EXPECTED + 1 + random_bits(&drawn) % PACKETS),
			.payload = bitmap};
		uint32_t place;

		if (ooo_look(&ooo, &packet, psn_make(EXPECTED), &place) == OOO_TAKEN)
			ooo_keep(&ooo, &packet, place, NULL);
	}
	memset(bitmap, 0xff, sizeof(bitmap));
	told.payload_len = ooo_tell(&ooo, psn_make(EXPECTED), bitmap, sizeof(bitmap));
	expect_bits(&told);
	for (uint32_t i = 1; i <= PACKETS; i++) {
		const struct packet packet = {.psn = psn_make(EXPECTED + i)};
		uint32_t place;

		assert_int_equal(bit_at(&told, i),
				 ooo_look(&ooo, &packet, psn_make(EXPECTED), &place) == OOO_THERE);
	}
	/* There is room for the first of them only. */
	assert_int_equal(ooo_tell(&ooo, psn_make(EXPECTED), bitmap, 3), 3);
	ooo_clear(&ooo);
	ooo_pool_destroy(pool);
}

TEST(ooo_tell__keeps_within_the_bitmap)
{
	for (uint32_t ahead = 8; ahead <= 9; ahead++) {
		uint8_t bitmap[2] = {0xee, 0xee};
		const struct packet packet = {.psn = psn_make(EXPECTED + ahead), .payload = bitmap};
		struct ooo_pool *pool;
		struct ooo ooo = {0};
		uint32_t place;

		assert_int_equal(ooo_pool_create(1, &pool), 0);
		ooo.pool = pool;
		assert_int_equal(ooo_look(&ooo, &packet, psn_make(EXPECTED), &place), OOO_TAKEN);
		ooo_keep(&ooo, &packet, place, NULL);
		assert_int_equal(ooo_tell(&ooo, psn_make(EXPECTED), bitmap, 1), ahead == 8);
		assert_int_equal(bitmap[0], ahead == 8 ? 0x80 : 0xee);
		assert_int_equal(bitmap[1], 0xee);
		ooo_clear(&ooo);
		ooo_pool_destroy(pool);
	}
}

TEST(sack_is_newer__a_late_one_is_not)
{
	assert_true(sack_is_newer(1, 0));
	assert_false(sack_is_newer(5, 5));
	assert_false(sack_is_newer(4, 5));
	assert_true(sack_is_newer(3, UINT32_MAX));
	/* The newest was forged. */
	assert_true(sack_is_newer(5, 5 + SACK_REORDER_MAX + 1));
}

TEST(sack_span__without_packets_that_were_not_sent)
{
	static const uint8_t bytes[4] = {0x01, 0x80, 0x02, 0};
	const struct packet packet = {.payload = bytes, .payload_len = sizeof(bytes)};

	/* Bits 0, 15 and 17: the packets 1, 16 and 18 PSNs behind the expected one. */
	assert_int_equal(sack_span(&packet, 100), 19);
	assert_int_equal(sack_span(&packet, 19), 19);
	assert_int_equal(sack_span(&packet, 18), 17);
	assert_int_equal(sack_span(&packet, 17), 17);
	assert_int_equal(sack_span(&packet, 16), 2);
	assert_int_equal(sack_span(&packet, 2), 2);
	assert_int_equal(sack_span(&packet, 1), 0);
	assert_int_equal(sack_span(&packet, 0), 0);
}
