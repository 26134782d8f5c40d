/* SPDX-License-Identifier: BSD-3-Clause */
/* Patterns: any byte that changes is noticed, and so is another message's. */
#include <stddef.h>
#include <stdint.h>

#include "pattern.h"
#include "test.h"

static uint8_t bytes[100];

TEST(pattern_check__takes_what_was_filled)
{
	uint64_t tag;

	for (size_t size = PATTERN_MIN_BYTES; size <= sizeof(bytes); size++) {
		pattern_fill(bytes, size, 7, pattern_tag(3, size));
		assert_true(pattern_check(bytes, size, 7, &tag));
		assert_int_equal(tag, pattern_tag(3, size));
	}
}

TEST(pattern_check__sees_every_byte)
{
	uint64_t tag;

	for (size_t size = PATTERN_MIN_BYTES + 1; size <= sizeof(bytes); size++) {
		pattern_fill(bytes, size, 7, 1);
		for (size_t i = PATTERN_MIN_BYTES; i < size; i++) {
			bytes[i] ^= 0x10;
			assert_false(pattern_check(bytes, size, 7, &tag));
			bytes[i] ^= 0x10;
		}
		/* Damage the tag itself; the bytes after it show it. */
		if (size >= PATTERN_MIN_BYTES + 8) {
			bytes[0] ^= 1;
			assert_false(pattern_check(bytes, size, 7, &tag));
		}
	}
}

TEST(pattern_check__tells_seeds_apart)
{
	uint64_t tag;

	pattern_fill(bytes, sizeof(bytes), 7, 1);
	assert_false(pattern_check(bytes, sizeof(bytes), 8, &tag));
}

TEST(pattern_fill__writes_no_byte_more)
{
	for (size_t size = PATTERN_MIN_BYTES; size < sizeof(bytes); size++) {
		bytes[size] = 0xa5;
		pattern_fill(bytes, size, 1, 2);
		assert_int_equal(bytes[size], 0xa5);
	}
}
