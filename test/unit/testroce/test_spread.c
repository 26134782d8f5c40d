/* SPDX-License-Identifier: BSD-3-Clause */
/* The median and the range of some values. */
#include "spread.h"
#include "test.h"

static void check(const struct spread *spread, double least, double median, double most)
{
	assert_true(spread->least == least);
	assert_true(spread->median == median);
	assert_true(spread->most == most);
}

TEST(spread_of__sorts)
{
	double values[] = {7, 1, 5, 100, 3};
	const struct spread spread = spread_of(values, 5);

	check(&spread, 1, 5, 100);
}

TEST(spread_of__an_even_number_has_two_in_the_middle)
{
	double values[] = {4, 10, 1, 2};
	const struct spread spread = spread_of(values, 4);

	check(&spread, 1, 3, 10);
}

TEST(spread_of__one_value)
{
	double value = 2.5;
	const struct spread spread = spread_of(&value, 1);

	check(&spread, 2.5, 2.5, 2.5);
}
