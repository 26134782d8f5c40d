/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/tuning.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/tuning.h"

static int reset(void **state)
{
	(void)state;
	return tuning_without("");
}

static void tuning__all_are_on(void **state)
{
	(void)state;
#define IS_ON(field, name, meaning) assert_true(tuning.field);
	TUNINGS(IS_ON)
}

static void tuning_without__switches_off_what_is_named(void **state)
{
	(void)state;
	assert_int_equal(tuning_without("batch-ack,key-cache"), 0);
	assert_false(tuning.batch_ack);
	assert_false(tuning.key_cache);
	assert_true(tuning.fused_copy);
	/* Not beside what was off before. */
	assert_int_equal(tuning_without("fused-copy"), 0);
	assert_true(tuning.batch_ack);
	assert_false(tuning.fused_copy);
}

static void tuning_without__takes_every_name_there_is(void **state)
{
	(void)state;
	assert_true(tuning_knows(tuning_names()));
	assert_true(tuning.key_cache);
	assert_int_equal(tuning_without(tuning_names()), 0);
#define IS_OFF(field, name, meaning) assert_false(tuning.field);
	TUNINGS(IS_OFF)
}

static void tuning_without__refuses_unknown_names(void **state)
{
	static const char *const bad[] = {"key", ",key-cache", "key-cache2", " ", "key-cache,,"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(tuning_knows(bad[i]));
		assert_int_equal(tuning_without(bad[i]), -ENOENT);
		assert_true(tuning.key_cache);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(tuning__all_are_on, reset),
		cmocka_unit_test_teardown(tuning_without__switches_off_what_is_named, reset),
		cmocka_unit_test_teardown(tuning_without__takes_every_name_there_is, reset),
		cmocka_unit_test_teardown(tuning_without__refuses_unknown_names, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
