/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/tuning.c. */
#include <errno.h>
#include <stddef.h>

#include "base/tuning.h"
#include "test.h"

static int reset(TEST_STATE)
{
	return tuning_without("");
}

TEST_FIXTURE(NULL, reset);

TEST(tuning__all_are_on)
{
#define IS_ON(field, name, meaning) assert_true(tuning.field);
	TUNINGS(IS_ON)
}

TEST(tuning_without__switches_off_what_is_named)
{
	assert_int_equal(tuning_without("batch-ack,key-cache"), 0);
	assert_false(tuning.batch_ack);
	assert_false(tuning.key_cache);
	assert_true(tuning.fused_copy);
	/* A new list replaces the earlier one. */
	assert_int_equal(tuning_without("fused-copy"), 0);
	assert_true(tuning.batch_ack);
	assert_false(tuning.fused_copy);
}

TEST(tuning_without__takes_every_name_there_is)
{
	assert_true(tuning_knows(tuning_names()));
	assert_true(tuning.key_cache);
	assert_int_equal(tuning_without(tuning_names()), 0);
#define IS_OFF(field, name, meaning) assert_false(tuning.field);
	TUNINGS(IS_OFF)
}

TEST(tuning_without__refuses_unknown_names)
{
	static const char *const bad[] = {"key", ",key-cache", "key-cache2", " ", "key-cache,,"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(tuning_knows(bad[i]));
		assert_int_equal(tuning_without(bad[i]), -ENOENT);
		assert_true(tuning.key_cache);
	}
}
