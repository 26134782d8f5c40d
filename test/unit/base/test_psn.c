/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of packet sequence numbers, above all where they wrap. */
#include <stdint.h>

#include "base/psn.h"
#include "test.h"

TEST(psn_make__keeps_24_bits)
{
	assert_int_equal(psn_make(0x12345678).v, 0x345678);
	assert_int_equal(psn_make(PSN_MASK).v, PSN_MASK);
	assert_int_equal(psn_make(PSN_MASK + 1).v, 0);
}

TEST(psn_add__wraps_both_ways)
{
	assert_int_equal(psn_add(psn_make(5), 3).v, 8);
	assert_int_equal(psn_add(psn_make(PSN_MASK), 1).v, 0);
	assert_int_equal(psn_add(psn_make(PSN_MASK - 1), 4).v, 2);
	assert_int_equal(psn_add(psn_make(0), -1).v, PSN_MASK);
	assert_int_equal(psn_add(psn_make(2), -4).v, PSN_MASK - 1);
}

TEST(psn_diff__is_signed_distance)
{
	assert_int_equal(psn_diff(psn_make(7), psn_make(7)), 0);
	assert_int_equal(psn_diff(psn_make(9), psn_make(7)), 2);
	assert_int_equal(psn_diff(psn_make(7), psn_make(9)), -2);
	assert_int_equal(psn_diff(psn_make(1), psn_make(PSN_MASK)), 2);
	assert_int_equal(psn_diff(psn_make(PSN_MASK), psn_make(1)), -2);
}

TEST(psn_diff__half_of_the_space_is_ahead)
{
	/* 9.7.2: the PSNs up to 2^23 - 1 ahead are new, the other half are duplicates. */
	assert_int_equal(psn_diff(psn_make(0x7fffff), psn_make(0)), 0x7fffff);
	assert_int_equal(psn_diff(psn_make(0x800000), psn_make(0)), -0x800000);
	assert_int_equal(psn_diff(psn_make(0x7ffffe), psn_make(PSN_MASK)), 0x7fffff);
	assert_int_equal(psn_diff(psn_make(0x7fffff), psn_make(PSN_MASK)), -0x800000);
}

TEST(psn_diff__undoes_add)
{
	uint32_t start, n;

	for (start = 0; start <= PSN_MASK; start += 65521)
		for (n = 0; n < 0x800000; n += 99991) {
			struct psn psn = psn_make(start);

			assert_int_equal(psn_diff(psn_add(psn, (int32_t)n), psn), n);
			assert_int_equal(psn_diff(psn_add(psn, -(int32_t)n), psn), -(int32_t)n);
		}
}

TEST(psn_eq__compares_values)
{
	assert_true(psn_eq(psn_make(3), psn_make(3 + PSN_MASK + 1)));
	assert_false(psn_eq(psn_make(3), psn_make(4)));
}

TEST(psn_before__wraps)
{
	assert_true(psn_before(psn_make(1), psn_make(2)));
	assert_false(psn_before(psn_make(2), psn_make(2)));
	assert_false(psn_before(psn_make(2), psn_make(1)));
	assert_true(psn_before(psn_make(PSN_MASK), psn_make(0)));
	assert_false(psn_before(psn_make(0), psn_make(PSN_MASK)));
}
