/* SPDX-License-Identifier: BSD-3-Clause */
/* The log-linear histogram: its buckets leave no gap, and quantiles are as exact as they say. */
#include <stdint.h>

#include "histogram.h"
#include "test.h"

static struct histogram histogram;

static int setup(TEST_STATE)
{
	histogram_clear(&histogram);
	return 0;
}

TEST_FIXTURE(setup, NULL);

TEST(histogram_low__buckets_are_in_a_row)
{
	assert_int_equal(histogram_low(0), 0);
	for (unsigned int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
		assert_true(histogram_low(i) <= histogram_high(i));
		assert_int_equal(histogram_high(i) + 1, histogram_low(i + 1));
	}
	assert_int_equal(histogram_high(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
}

TEST(histogram_low__width_is_a_64th_at_most)
{
	for (unsigned int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++)
		assert_true(histogram_high(i) - histogram_low(i) <= histogram_low(i) / 64);
}

TEST(histogram_add__counts_in_the_bucket_of_the_value)
{
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		histogram_clear(&histogram);
		histogram_add(&histogram, histogram_low(i));
		histogram_add(&histogram, histogram_high(i));
		assert_int_equal(histogram.buckets[i], 2);
		assert_int_equal(histogram.count, 2);
	}
}

TEST(histogram_add__keeps_the_extremes_exactly)
{
	histogram_add(&histogram, 1000003);
	histogram_add(&histogram, 999999937);
	histogram_add(&histogram, 5000000);
	assert_int_equal(histogram.min, 1000003);
	assert_int_equal(histogram.max, 999999937);
}

TEST(histogram_merge__is_as_if_all_values_were_in_one)
{
	static struct histogram both, other;

	histogram_clear(&both);
	histogram_clear(&other);
	for (uint64_t value = 1; value < UINT64_C(1) << 50; value = value * 3 + 1) {
		histogram_add(value % 2 ? &histogram : &other, value);
		histogram_add(&both, value);
	}
	histogram_merge(&histogram, &other);
	assert_memory_equal(&histogram, &both, sizeof(both));
}

TEST(histogram_merge__of_an_empty_one_changes_nothing)
{
	static struct histogram before, empty;

	histogram_clear(&empty);
	histogram_add(&histogram, 7);
	before = histogram;
	histogram_merge(&histogram, &empty);
	assert_memory_equal(&histogram, &before, sizeof(before));
	histogram_merge(&empty, &histogram);
	assert_memory_equal(&empty, &before, sizeof(before));
}

TEST(histogram_quantile__none_of_nothing)
{
	assert_int_equal(histogram_quantile(&histogram, 500000), 0);
}

TEST(histogram_quantile__of_one_value_is_that)
{
	histogram_add(&histogram, 123456789);
	assert_int_equal(histogram_quantile(&histogram, 0), 123456789);
	assert_int_equal(histogram_quantile(&histogram, 500000), 123456789);
	assert_int_equal(histogram_quantile(&histogram, 1000000), 123456789);
}

TEST(histogram_quantile__of_small_values_is_exact)
{
	for (uint64_t value = 1; value <= 50; value++)
		histogram_add(&histogram, value);
	assert_int_equal(histogram_quantile(&histogram, 20000), 1);
	assert_int_equal(histogram_quantile(&histogram, 20001), 2);
	assert_int_equal(histogram_quantile(&histogram, 500000), 25);
	assert_int_equal(histogram_quantile(&histogram, 990000), 50);
}

TEST(histogram_quantile__is_at_most_a_64th_above)
{
	for (uint64_t value = 1; value <= 100000; value++)
		histogram_add(&histogram, value);
	for (uint32_t percent = 1; percent <= 100; percent++) {
		const uint64_t exact = percent * UINT64_C(1000);
		const uint64_t found = histogram_quantile(&histogram, percent * 10000);

		assert_in_range(found, exact, exact + exact / 64);
	}
	assert_int_equal(histogram_quantile(&histogram, 1000000), 100000);
}
