/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/scoreboard.c: against an array with a state for each packet, across the
 * wrap of PSNs. */
#include <stdint.h>
#include <string.h>

#include "transport/scoreboard.h"
#include "test.h"

#define FIRST	0xffffe0u
#define PACKETS 200u

static struct scoreboard board;

static int set_up(TEST_STATE)
{
	scoreboard_init(&board);
	return 0;
}

static int tear_down(TEST_STATE)
{
	scoreboard_fini(&board);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct psn at(uint32_t i)
{
	return psn_make(FIRST + i);
}

TEST(scoreboard_mark__joins_and_splits_ranges)
{
	assert_true(scoreboard_mark(&board, at(10), at(20), RANGE_MISSING));
	assert_true(scoreboard_mark(&board, at(30), at(40), RANGE_MISSING));
	assert_int_equal(board.count, 2);
	assert_true(scoreboard_mark(&board, at(20), at(30), RANGE_MISSING));
	assert_int_equal(board.count, 1);
	assert_true(scoreboard_mark(&board, at(15), at(16), RANGE_SENT_AGAIN));
	assert_int_equal(board.count, 3);
	assert_int_equal(scoreboard_at(&board, at(9)), RANGE_SENT);
	assert_int_equal(scoreboard_at(&board, at(14)), RANGE_MISSING);
	assert_int_equal(scoreboard_at(&board, at(15)), RANGE_SENT_AGAIN);
	assert_int_equal(scoreboard_at(&board, at(16)), RANGE_MISSING);
	assert_int_equal(scoreboard_at(&board, at(40)), RANGE_SENT);
	scoreboard_replace(&board, RANGE_SENT_AGAIN, RANGE_MISSING);
	assert_int_equal(board.count, 1);
	scoreboard_replace(&board, RANGE_MISSING, RANGE_SENT);
	assert_int_equal(board.count, 0);
	assert_null(scoreboard_first(&board, RANGE_MISSING));
}

TEST(scoreboard_forget__cuts_the_first_range)
{
	assert_true(scoreboard_mark(&board, at(10), at(20), RANGE_MISSING));
	assert_true(scoreboard_mark(&board, at(30), at(40), RANGE_CAME));
	scoreboard_forget(&board, at(35));
	assert_int_equal(board.count, 1);
	assert_int_equal(scoreboard_first(&board, RANGE_CAME)->from.v, at(35).v);
	scoreboard_forget(&board, at(40));
	assert_int_equal(board.count, 0);
}

/* Whatever has come, the packet at una can be called missing, and sent again in two pieces. */
TEST(scoreboard_mark__leaves_room_for_what_is_missing)
{
	uint32_t i = 2;

	while (scoreboard_mark(&board, psn_make(i), psn_make(i + 1), RANGE_CAME))
		i += 2;
	assert_in_range(board.count, SCOREBOARD_LIMIT / 2, SCOREBOARD_LIMIT - SCOREBOARD_SPARE);
	assert_true(scoreboard_mark(&board, psn_make(0), psn_make(2), RANGE_MISSING));
	assert_true(scoreboard_mark(&board, psn_make(0), psn_make(1), RANGE_SENT_AGAIN));
	scoreboard_check(&board, psn_make(0), psn_make(i));
	scoreboard_forget(&board, psn_make(100));
	assert_true(scoreboard_mark(&board, psn_make(i), psn_make(i + 1), RANGE_CAME));
	scoreboard_check(&board, psn_make(100), psn_make(i + 1));
}

TEST(scoreboard_mark__as_a_state_for_each_packet)
{
	uint8_t expected[PACKETS] = {0};
	uint32_t random = 1, una = 0;

	for (int step = 0; step < 20000; step++) {
		uint32_t from, to, mark;

		random = random * 1664525 + 1013904223;
		if (random >> 28 == 0)
			una += (random >> 20) % 8;
		if (una >= PACKETS - 20) {
			una = 0;
			memset(expected, 0, sizeof(expected));
			scoreboard_clear(&board);
		}
		scoreboard_forget(&board, at(una));
		from = una + (random >> 8) % (PACKETS - una);
		to = from + 1 + (random >> 16) % 20;
		to = to < PACKETS ? to : PACKETS;
		mark = (random >> 24) % 4;
		assert_true(scoreboard_mark(&board, at(from), at(to), mark));
		memset(expected + from, (int)mark, to - from);
		scoreboard_check(&board, at(una), at(PACKETS));
		for (uint32_t i = una; i < PACKETS; i++)
			assert_int_equal(scoreboard_at(&board, at(i)), expected[i]);
	}
}
