/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/decimal.c. test/unit/config has those of the values of --impair. */
#include <locale.h>

#include <rte_common.h>

#include "base/decimal.h"
#include "test.h"

static const struct decimal_unit units[] = {{"ms", 1000000}, {"s", DECIMAL_ONE}};

static uint64_t number(const char *text, const char *rest)
{
	uint64_t billionths = 0;
	const char *end;

	assert_true(decimal_read(text, &billionths, &end));
	assert_string_equal(end, rest);
	return billionths;
}

TEST(decimal_read__in_billionths)
{
	assert_int_equal(number("0", ""), 0);
	assert_int_equal(number("1.5x", "x"), DECIMAL_ONE * 3 / 2);
	assert_int_equal(number("0.000000001", ""), 1);
	assert_int_equal(number("0.0000000019", "9"), 1);
	assert_int_equal(number("1000000000", ""), DECIMAL_ONE * DECIMAL_ONE);
}

/* A program may have another one, whose point is a comma. */
TEST(decimal_read__in_any_locale)
{
	static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C"};

	for (size_t i = 0; i < RTE_DIM(locales) && !setlocale(LC_NUMERIC, locales[i]); i++)
		;
	assert_int_equal(number("0.5", ""), DECIMAL_ONE / 2);
	assert_int_equal(number("0,5", ",5"), 0);
	setlocale(LC_NUMERIC, "C");
}

TEST(decimal_read__what_is_none)
{
	static const char *const texts[] = {"", "-1", "+1", ".5", " 1", "1.", "nan", "1000000002"};
	uint64_t billionths;
	const char *end;

	for (size_t i = 0; i < RTE_DIM(texts); i++)
		assert_false(decimal_read(texts[i], &billionths, &end));
}

TEST(decimal_read_unit__needs_one)
{
	uint64_t value = 0;

	assert_true(decimal_read_unit("1.5ms", units, RTE_DIM(units), &value));
	assert_int_equal(value, 1500000);
	assert_true(decimal_read_unit("2s", units, RTE_DIM(units), &value));
	assert_int_equal(value, 2 * DECIMAL_ONE);
	assert_false(decimal_read_unit("0", units, RTE_DIM(units), &value));
	assert_false(decimal_read_unit("2 s", units, RTE_DIM(units), &value));
	assert_false(decimal_read_unit("2m", units, RTE_DIM(units), &value));
	assert_false(decimal_read_unit("s", units, RTE_DIM(units), &value));
}
