/* SPDX-License-Identifier: BSD-3-Clause */
/* The log-linear histogram: its buckets leave no gap, and quantiles are as exact as they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "histogram.h"

static struct histogram histogram;

static int setup(void **state)
{
	(void)state;
	histogram_clear(&histogram);
	return 0;
}

static void histogram_low__buckets_are_in_a_row(void **state)
{
	(void)state;
	assert_int_equal(histogram_low(0), 0);
	for (unsigned int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
		assert_true(histogram_low(i) <= histogram_high(i));
		assert_int_equal(histogram_high(i) + 1, histogram_low(i + 1));
	}
	assert_int_equal(histogram_high(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
}

static void histogram_low__width_is_a_64th_at_most(void **state)
{
	(void)state;
	for (unsigned int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++)
		assert_true(histogram_high(i) - histogram_low(i) <= histogram_low(i) / 64);
}

static void histogram_add__counts_in_the_bucket_of_the_value(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		histogram_clear(&histogram);
		histogram_add(&histogram, histogram_low(i));
		histogram_add(&histogram, histogram_high(i));
		assert_int_equal(histogram.buckets[i], 2);
		assert_int_equal(histogram.count, 2);
	}
}

static void histogram_add__keeps_the_extremes_exactly(void **state)
{
	(void)state;
	histogram_add(&histogram, 1000003);
	histogram_add(&histogram, 999999937);
	histogram_add(&histogram, 5000000);
	assert_int_equal(histogram.min, 1000003);
	assert_int_equal(histogram.max, 999999937);
}

static void histogram_quantile__none_of_nothing(void **state)
{
	(void)state;
	assert_int_equal(histogram_quantile(&histogram, 500000), 0);
}

static void histogram_quantile__of_one_value_is_that(void **state)
{
	(void)state;
	histogram_add(&histogram, 123456789);
	assert_int_equal(histogram_quantile(&histogram, 0), 123456789);
	assert_int_equal(histogram_quantile(&histogram, 500000), 123456789);
	assert_int_equal(histogram_quantile(&histogram, 1000000), 123456789);
}

static void histogram_quantile__of_small_values_is_exact(void **state)
{
	(void)state;
	for (uint64_t value = 1; value <= 50; value++)
		histogram_add(&histogram, value);
	assert_int_equal(histogram_quantile(&histogram, 20000), 1);
	assert_int_equal(histogram_quantile(&histogram, 20001), 2);
	assert_int_equal(histogram_quantile(&histogram, 500000), 25);
	assert_int_equal(histogram_quantile(&histogram, 990000), 50);
}

static void histogram_quantile__is_at_most_a_64th_above(void **state)
{
	(void)state;
	for (uint64_t value = 1; value <= 100000; value++)
		histogram_add(&histogram, value);
	for (uint32_t percent = 1; percent <= 100; percent++) {
		const uint64_t exact = percent * UINT64_C(1000);
		const uint64_t found = histogram_quantile(&histogram, percent * 10000);

		assert_in_range(found, exact, exact + exact / 64);
	}
	assert_int_equal(histogram_quantile(&histogram, 1000000), 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(histogram_low__buckets_are_in_a_row, setup),
		cmocka_unit_test_setup(histogram_low__width_is_a_64th_at_most, setup),
		cmocka_unit_test_setup(histogram_add__counts_in_the_bucket_of_the_value, setup),
		cmocka_unit_test_setup(histogram_add__keeps_the_extremes_exactly, setup),
		cmocka_unit_test_setup(histogram_quantile__none_of_nothing, setup),
		cmocka_unit_test_setup(histogram_quantile__of_one_value_is_that, setup),
		cmocka_unit_test_setup(histogram_quantile__of_small_values_is_exact, setup),
		cmocka_unit_test_setup(histogram_quantile__is_at_most_a_64th_above, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
