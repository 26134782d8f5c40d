/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/blocks.c. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "share/blocks.h"
#include "test.h"

TEST(blocks_alloc__gives_numbers_that_lead_to_the_slot)
{
	struct blocks blocks;
	int first;

	blocks_init(&blocks);
	first = blocks_alloc(&blocks, 7, 0, USER_TRUSTED);
	assert_true(first >= 2);
	assert_int_equal(blocks_find(&blocks, (uint32_t)first), 7);
	assert_int_equal(blocks_find(&blocks, (uint32_t)first + BLOCK_QPNS - 1), 7);
	assert_int_not_equal(blocks_find(&blocks, (uint32_t)first + BLOCK_QPNS), 7);
	blocks_free(&blocks, (uint32_t)first, 0);
	assert_int_equal(blocks_find(&blocks, (uint32_t)first), BLOCK_NONE);
}

TEST(blocks_alloc__leaves_management_and_multicast_alone)
{
	struct blocks blocks;
	int given = 0;

	blocks_init(&blocks);
	while (blocks_alloc(&blocks, 1, 0, USER_TRUSTED) >= 0)
		given++;
	assert_int_equal(given, BLOCKS - 2);
	assert_int_equal(blocks.used, BLOCKS - 2);
	assert_int_equal(blocks_find(&blocks, 0), BLOCK_NONE);
	assert_int_equal(blocks_find(&blocks, 1), BLOCK_NONE);
	assert_int_equal(blocks_find(&blocks, 0xffffff), BLOCK_NONE);
	assert_int_equal(blocks_alloc(&blocks, 1, 0, USER_TRUSTED), -ENOSPC);
}

/* Give and take back all that are free, at a time. Returns how many. */
static int walk_round(struct blocks *blocks, uint64_t now_ns)
{
	int count = 0, first;

	while ((first = blocks_alloc(blocks, 1, now_ns, USER_ROOT)) >= 0) {
		blocks_free(blocks, (uint32_t)first, now_ns);
		count++;
	}
	assert_int_equal(first, -ENOSPC);
	return count;
}

/* Nobody gets what a process has just had by walking round. */
TEST(blocks_alloc__quarantines_a_block)
{
	const uint64_t died_ns = 5;
	struct blocks blocks;
	int dead;

	blocks_init(&blocks);
	dead = blocks_alloc(&blocks, 2, 1, USER_ROOT);
	assert_int_equal(walk_round(&blocks, 1), BLOCKS - 3);
	blocks_free(&blocks, (uint32_t)dead, died_ns);
	assert_int_equal(walk_round(&blocks, died_ns), 0);
	/* The quarantine of the others is over, and its own is not. */
	assert_int_equal(walk_round(&blocks, died_ns + BLOCK_QUARANTINE_NS - 1), BLOCKS - 3);
	assert_int_equal(blocks_alloc(&blocks, 3, died_ns + BLOCK_QUARANTINE_NS, USER_ROOT), dead);
}

TEST(blocks_alloc__shortens_the_quarantine_for_the_trusted)
{
	struct blocks blocks;
	int oldest;

	blocks_init(&blocks);
	oldest = blocks_alloc(&blocks, 2, 7, USER_ROOT);
	while (blocks_alloc(&blocks, 1, 7, USER_ROOT) >= 0)
		;
	for (uint32_t block = 1; block < BLOCKS - 1; block++)
		blocks_free(&blocks, block << BLOCK_SHIFT,
			    block << BLOCK_SHIFT == (uint32_t)oldest ? 8 : 9);
	assert_int_equal(blocks_alloc(&blocks, 3, 10, USER_ROOT), -ENOSPC);
	assert_int_equal(blocks_alloc(&blocks, 3, 10, USER_TRUSTED), oldest);
}

/* One user brings blocks into quarantine, and the others still get some. */
TEST(blocks_alloc__counts_blocks_in_quarantine)
{
	const user_t user = user_of_uid(1000), other = user_of_uid(1001);
	struct blocks blocks;
	int first, count = 0;

	blocks_init(&blocks);
	while ((first = blocks_alloc(&blocks, 1, 5, user)) >= 0) {
		if (count++ > 2)
			blocks_free(&blocks, (uint32_t)first, 5);
	}
	assert_int_equal(first, -EAGAIN);
	assert_int_equal(count, BLOCKS_USER_MAX);
	assert_true(blocks_alloc(&blocks, 2, 5, other) >= 0);
	assert_int_equal(blocks_alloc(&blocks, 1, 4 + BLOCK_QUARANTINE_NS, user), -EAGAIN);
	assert_true(blocks_alloc(&blocks, 1, 5 + BLOCK_QUARANTINE_NS, user) >= 0);
}

/* A process cannot tell from its own numbers which ones the next process gets. */
TEST(blocks_alloc__gives_random_blocks)
{
	struct blocks blocks;
	int last, next, steps = 0;

	blocks_init(&blocks);
	last = blocks_alloc(&blocks, 1, 0, USER_TRUSTED);
	for (int i = 0; i < 16; i++) {
		next = blocks_alloc(&blocks, 1, 0, USER_TRUSTED);
		steps += next - last == BLOCK_QPNS;
		last = next;
	}
	assert_true(steps < 8);
}

TEST(blocks_free__takes_a_block_once)
{
	struct blocks blocks;
	int first;

	blocks_init(&blocks);
	first = blocks_alloc(&blocks, 1, 0, USER_TRUSTED);
	blocks_free(&blocks, (uint32_t)first, 0);
	blocks_free(&blocks, (uint32_t)first, 0);
	assert_int_equal(blocks.used, 0);
}
