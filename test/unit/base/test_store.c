/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/meter.c: the way to store; and of the copy past the caches. */
#include "base/meter.h"

#include <string.h>

#include "base/copy.h"
#include "base/tuning.h"
#include "test.h"

#define ROOM 1000

static int restore(TEST_STATE)
{
	store_force(STORE_WAYS);
	return tuning_without("");
}

TEST_FIXTURE(restore, restore);

TEST(store_way__chosen_forced_or_fixed)
{
	struct choice choice;

	choice_init(&choice, 1, 1);
	assert_int_equal(store_way(&choice), STORE_ROUND);
	choice.now = STORE_PAST;
	assert_int_equal(store_way(&choice), STORE_PAST);
	store_force(STORE_ROUND);
	assert_int_equal(store_way(&choice), STORE_ROUND);
	store_force(STORE_PAST);
	choice.now = STORE_ROUND;
	assert_int_equal(store_way(&choice), STORE_PAST);
	assert_int_equal(tuning_without("store-choice"), 0);
	assert_int_equal(store_way(&choice), STORE_ROUND);
}

TEST(copy_past_caches__copies_and_touches_nothing_else)
{
	static uint8_t from[ROOM + 64], to[ROOM + 256];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t len = 0; len <= ROOM; len++) {
		const size_t at = 64 + len * 11 % 64, source = len * 5 % 64;

		memset(to, 0xa5, sizeof(to));
		copy_past_caches(to + at, from + source, len);
		assert_memory_equal(to + at, from + source, len);
		for (size_t i = 0; i < at; i++)
			assert_int_equal(to[i], 0xa5);
		for (size_t i = at + len; i < sizeof(to); i++)
			assert_int_equal(to[i], 0xa5);
	}
}
