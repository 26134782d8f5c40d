/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/ids.c. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "owner/ids.h"
#include "test.h"

#define ALICE user_of_uid(1000)
#define BOB   user_of_uid(1001)

static struct ids ids;

static int setup(TEST_STATE)
{
	ids_init(&ids);
	return 0;
}

TEST_FIXTURE(setup, NULL);

TEST(ids_find__knows_a_block)
{
	uint32_t value;

	assert_int_equal(ids_alloc(&ids, 7, 0, USER_TRUSTED, &value), 0);
	assert_int_equal(value & ~IDS_MASK, 0);
	assert_int_equal(ids_find(&ids, value), 7);
	assert_int_equal(ids_find(&ids, value | ~IDS_MASK), 7);
	assert_int_equal(ids_find(&ids, value ^ 1u << IDS_SHIFT), IDS_NONE);
	ids_free(&ids, value, 0);
	assert_int_equal(ids_find(&ids, value), IDS_NONE);
}

TEST(ids_alloc__gives_each_block_once)
{
	uint32_t value;

	for (uint32_t i = 0; i < IDS_BLOCKS; i++) {
		assert_int_equal(ids_alloc(&ids, (uint16_t)i, 0, USER_TRUSTED, &value), 0);
		assert_int_equal(ids_find(&ids, value), i);
	}
	assert_int_equal(ids_alloc(&ids, 1, 0, USER_TRUSTED, &value), -ENOSPC);
}

TEST(ids_alloc__is_random)
{
	uint32_t value, before = 0, steps = 0, upper = 0;

	for (uint32_t i = 0; i < 256; i++) {
		assert_int_equal(ids_alloc(&ids, 0, 0, USER_TRUSTED, &value), 0);
		steps += value - before == 1u << IDS_SHIFT;
		upper += value >> 31;
		before = value;
	}
	/* Each of these fails once in more than 10^12 runs. */
	assert_in_range(steps, 0, 16);
	assert_in_range(upper, 64, 192);
}

TEST(ids_alloc__quarantines_a_block)
{
	uint32_t value, others[IDS_BLOCKS];

	assert_int_equal(ids_alloc(&ids, 0, 0, ALICE, &value), 0);
	for (uint32_t i = 1; i < IDS_BLOCKS; i++)
		assert_int_equal(ids_alloc(&ids, 1, 0, USER_TRUSTED, &others[i]), 0);
	ids_free(&ids, value, 1000);
	assert_int_equal(ids_alloc(&ids, 2, 999 + IDS_QUARANTINE_NS, BOB, &others[0]), -ENOSPC);
	assert_int_equal(ids_alloc(&ids, 2, 1000 + IDS_QUARANTINE_NS, BOB, &others[0]), 0);
	assert_int_equal(others[0], value);
	/* A trusted process gets a block in quarantine rather than none. */
	ids_free(&ids, value, 1000 + IDS_QUARANTINE_NS);
	assert_int_equal(ids_alloc(&ids, 3, 1000 + IDS_QUARANTINE_NS, USER_TRUSTED, &others[0]), 0);
	assert_int_equal(others[0], value);
}

TEST(ids_alloc__limits_a_user_that_comes_and_goes)
{
	uint32_t value, count = 0;

	while (ids_alloc(&ids, 0, count, ALICE, &value) == 0) {
		ids_free(&ids, value, count);
		count++;
	}
	assert_int_equal(count, IDS_USER_MAX);
	assert_int_equal(ids_alloc(&ids, 0, count, ALICE, &value), -EAGAIN);
	assert_int_equal(ids_alloc(&ids, 0, count, BOB, &value), 0);
	assert_int_equal(ids_alloc(&ids, 0, count + IDS_QUARANTINE_NS, ALICE, &value), 0);
}

TEST(ids_free__of_a_free_block_changes_nothing)
{
	ids_free(&ids, 0, 1000);
	assert_int_equal(ids.quarantine_end_ns[0], 0);
}
