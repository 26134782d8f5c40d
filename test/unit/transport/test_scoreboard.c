/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/scoreboard.c: against an array with a state for each packet, across the
 * wrap of PSNs. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/loss.h"
#include "transport/sack.h"
#include "transport/scoreboard.h"
#include "wire/packet.h"
#include "calloc_limit.h"
#include "test.h"

#define FIRST	0xffffe0u
#define PACKETS 200u
/* More than the scoreboard has room for without memory of its own. */
#define MANY (LOSS_WINDOW_LIMIT + 63u)

static struct scoreboard board;
static int set_up(TEST_STATE)
{
	allocations = UINT_MAX;
	scoreboard_init(&board);
	scoreboard_begin(&board, psn_make(FIRST));
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

static void mark(uint32_t from, uint32_t to, enum range_state state)
{
	assert_true(scoreboard_mark(&board, at(from), at(to), state));
}

static void expect_first(enum range_state state, uint32_t first, uint32_t end)
{
	struct psn from, to;

	assert_true(scoreboard_first(&board, state, &from, &to));
	assert_int_equal(from.v, at(first).v);
	assert_int_equal(to.v, at(end).v);
}

TEST(scoreboard_first__finds_packets_that_are_marked_one_after_the_other)
{
	struct psn psn;

	mark(10, 20, RANGE_MISSING);
	mark(30, 140, RANGE_MISSING);
	expect_first(RANGE_MISSING, 10, 20);
	mark(20, 30, RANGE_MISSING);
	expect_first(RANGE_MISSING, 10, 140);
	mark(15, 16, RANGE_SENT_AGAIN);
	expect_first(RANGE_MISSING, 10, 15);
	expect_first(RANGE_SENT_AGAIN, 15, 16);
	assert_true(scoreboard_last_open(&board, &psn));
	assert_int_equal(psn.v, at(139).v);
	scoreboard_replace(&board, at(0), RANGE_SENT_AGAIN, RANGE_MISSING);
	expect_first(RANGE_MISSING, 10, 140);
	scoreboard_replace(&board, at(100), RANGE_MISSING, RANGE_SENT);
	expect_first(RANGE_MISSING, 10, 100);
	assert_true(scoreboard_last_open(&board, &psn));
	assert_int_equal(psn.v, at(99).v);
	scoreboard_replace(&board, at(0), RANGE_MISSING, RANGE_SENT);
	assert_true(scoreboard_is_empty(&board));
	assert_false(scoreboard_last_open(&board, &psn));
}

TEST(scoreboard_forget__cuts_the_oldest_packets)
{
	mark(10, 20, RANGE_MISSING);
	mark(30, 40, RANGE_CAME);
	assert_int_equal(scoreboard_settled(&board), 20);
	scoreboard_forget(&board, at(35));
	assert_int_equal(scoreboard_settled(&board), 5);
	expect_first(RANGE_CAME, 35, 40);
	scoreboard_forget(&board, at(40));
	assert_true(scoreboard_is_empty(&board));
	/* Far behind all that was known. */
	scoreboard_forget(&board, at(100000));
	scoreboard_check(&board, at(100000), at(100000));
}

/* The memory grows from any place of the oldest packet in its word, and everything stays. */
TEST(scoreboard_mark__takes_more_memory)
{
	for (uint32_t una = 0; una < 130; una++) {
		scoreboard_fini(&board);
		scoreboard_begin(&board, at(una));
		for (uint32_t i = una; i < una + SCOREBOARD_FEW; i += 3)
			mark(i, i + 1, RANGE_CAME);
		mark(una + 1, una + 3, RANGE_MISSING);
		mark(una + SCOREBOARD_FEW - 1, una + SCOREBOARD_FEW, RANGE_MISSING);
		mark(una + MANY - 1, una + MANY, RANGE_CAME);
		scoreboard_check(&board, at(una), at(una + MANY));
		for (uint32_t i = 3; i < MANY - 1; i++) {
			const enum range_state expected = i == SCOREBOARD_FEW - 1 ? RANGE_MISSING
							  : i >= SCOREBOARD_FEW || i % 3 != 0
								  ? RANGE_SENT
								  : RANGE_CAME;

			assert_int_equal(scoreboard_at(&board, at(una + i)), expected);
		}
		expect_first(RANGE_MISSING, una + 1, una + 3);
	}
}

TEST(scoreboard_mark__as_a_state_for_each_packet)
{
	uint8_t expected[PACKETS] = {0};
	uint32_t random = 1, una = 0;

	for (int step = 0; step < 20000; step++) {
		uint32_t from, to, kind;

		random = random * 1664525 + 1013904223;
		if (random >> 28 == 0)
			una += (random >> 20) % 8;
		if (una >= PACKETS - 20) {
			una = 0;
			memset(expected, 0, sizeof(expected));
			scoreboard_clear(&board);
			scoreboard_begin(&board, at(0));
		}
		scoreboard_forget(&board, at(una));
		from = una + (random >> 8) % (PACKETS - una);
		to = from + 1 + (random >> 16) % 20;
		to = to < PACKETS ? to : PACKETS;
		kind = (random >> 24) % 4;
		mark(from, to, kind);
		memset(expected + from, (int)kind, to - from);
		scoreboard_check(&board, at(una), at(PACKETS));
		for (uint32_t i = una; i < PACKETS; i++) {
			struct psn end;
			uint32_t same = i;

			while (same < PACKETS && expected[same] == expected[i])
				same++;
			assert_int_equal(scoreboard_look(&board, at(i), at(PACKETS), &end),
					 expected[i]);
			assert_int_equal(end.v, at(same).v);
		}
	}
}

TEST(scoreboard_lose_again__finds_what_was_sent_before_something_that_came)
{
	mark(0, 10, RANGE_MISSING);
	assert_true(scoreboard_mark_again(&board, at(4), at(6), at(20), AGAIN_REQUEST));
	assert_true(scoreboard_mark_again(&board, at(0), at(4), at(22), AGAIN_REQUEST));
	assert_true(scoreboard_mark_again(&board, at(6), at(10), at(22), AGAIN_REQUEST));
	scoreboard_lose_again(&board);
	assert_int_equal(board.count[RANGE_MISSING], 0);
	/* The second packet of the second retransmission: 4, 5 and 0 were sent before it. */
	scoreboard_note_came(&board, at(1), at(2), AGAIN_REQUEST);
	scoreboard_mark(&board, at(1), at(2), RANGE_CAME);
	scoreboard_lose_again(&board);
	assert_int_equal(board.count[RANGE_MISSING], 3);
	expect_first(RANGE_MISSING, 0, 1);
	/* New packets were sent behind the others. */
	scoreboard_note_came(&board, at(21), at(22), AGAIN_REQUEST);
	scoreboard_lose_again(&board);
	assert_int_equal(board.count[RANGE_MISSING], 3);
	scoreboard_note_came(&board, at(22), at(23), AGAIN_REQUEST);
	scoreboard_lose_again(&board);
	assert_int_equal(board.count[RANGE_SENT_AGAIN], 0);
	assert_int_equal(board.count[RANGE_MISSING], 9);
}

/* A responder answers a request for a missing response before others that it took earlier. */
TEST(scoreboard_lose_again__what_has_come_is_about_the_same_kind)
{
	assert_true(scoreboard_mark_again(&board, at(8), at(9), at(20), AGAIN_REQUEST));
	assert_true(scoreboard_mark_again(&board, at(2), at(5), at(20), AGAIN_RESPONSE));
	assert_true(scoreboard_mark_again(&board, at(9), at(10), at(20), AGAIN_REQUEST));
	scoreboard_note_came(&board, at(4), at(5), AGAIN_RESPONSE);
	scoreboard_lose_again(&board);
	assert_int_equal(board.count[RANGE_MISSING], 2);
	expect_first(RANGE_MISSING, 2, 4);
	scoreboard_note_came(&board, at(9), at(10), AGAIN_REQUEST);
	scoreboard_lose_again(&board);
	assert_int_equal(board.count[RANGE_MISSING], 3);
	assert_int_equal(scoreboard_at(&board, at(8)), RANGE_MISSING);
	scoreboard_note_came(&board, at(20), at(21), AGAIN_RESPONSE);
	scoreboard_lose_again(&board);
	assert_int_equal(board.count[RANGE_MISSING], 4);
	assert_int_equal(scoreboard_at(&board, at(4)), RANGE_MISSING);
	assert_int_equal(scoreboard_at(&board, at(9)), RANGE_SENT_AGAIN);
}

TEST(scoreboard_clear__forgets_the_order)
{
	assert_true(scoreboard_mark_again(&board, at(1), at(2), at(20), AGAIN_REQUEST));
	assert_true(scoreboard_mark_again(&board, at(2), at(3), at(20), AGAIN_REQUEST));
	scoreboard_note_came(&board, at(2), at(3), AGAIN_REQUEST);
	scoreboard_clear(&board);
	assert_true(scoreboard_mark(&board, at(1), at(2), RANGE_SENT_AGAIN));
	scoreboard_lose_again(&board);
	assert_int_equal(scoreboard_at(&board, at(1)), RANGE_SENT_AGAIN);
}

/* Other packets have the bits of these. */
TEST(scoreboard_at__knows_nothing_of_what_is_outside)
{
	assert_true(scoreboard_mark(&board, at(0), at(9), RANGE_MISSING));
	assert_int_equal(scoreboard_at(&board, at(8)), RANGE_MISSING);
	assert_int_equal(scoreboard_at(&board, at(8 + board.packets)), RANGE_SENT);
	assert_int_equal(scoreboard_at(&board, psn_add(at(8), -(int32_t)board.packets)),
			 RANGE_SENT);
}

/* More packets are sent again than have a place, one after the other: the oldest have no order. */
TEST(scoreboard_mark_again__forgets_the_order_of_the_oldest)
{
	const uint32_t count = 3 * SCOREBOARD_FEW, newest = (count - 1) % 7;

	for (uint32_t i = 0; i < count; i++)
		assert_true(scoreboard_mark_again(&board, at(i % 7), at(i % 7 + 1), at(i + 10),
						  AGAIN_REQUEST));
	scoreboard_note_came(&board, at(newest), at(newest + 1), AGAIN_REQUEST);
	scoreboard_lose_again(&board);
	assert_int_equal(board.count[RANGE_MISSING], 6);
	assert_int_equal(scoreboard_at(&board, at(newest)), RANGE_SENT_AGAIN);
	scoreboard_check(&board, at(0), at(count + 10));
}

/* Report a bitmap about the packets from 1 on, which has every second of `packets`. */
static void tell(uint32_t packets, uint8_t bits, bool drops)
{
	uint8_t bytes[SACK_BYTES_MAX];
	const struct packet sack = {.psn = at(0), .payload = bytes, .payload_len = packets / 8};

	memset(bytes, bits, sizeof(bytes));
	scoreboard_tell(&board, &sack, at(0), at(packets), drops);
}

TEST(scoreboard_mark__without_memory_as_many_as_there_is_room_for)
{
	allocations = 0;
	assert_true(scoreboard_mark(&board, at(0), at(SCOREBOARD_FEW), RANGE_MISSING));
	assert_false(scoreboard_mark(&board, at(5), at(SCOREBOARD_FEW + 1), RANGE_CAME));
	expect_first(RANGE_MISSING, 0, 5);
	expect_first(RANGE_CAME, 5, SCOREBOARD_FEW);
	assert_int_equal(board.packets, SCOREBOARD_FEW);
	allocations = 1;
	mark(SCOREBOARD_FEW, SCOREBOARD_FEW + 1, RANGE_CAME);
	expect_first(RANGE_CAME, 5, SCOREBOARD_FEW + 1);
}

/* Then only a timer finds that a packet is lost again. */
TEST(scoreboard_mark_again__without_memory_there_is_no_order)
{
	struct psn psn;

	allocations = 0;
	assert_false(scoreboard_mark_again(&board, at(0), at(4), at(10), AGAIN_REQUEST));
	expect_first(RANGE_SENT_AGAIN, 0, 4);
	assert_null(board.again);
	scoreboard_note_came(&board, at(11), at(12), AGAIN_REQUEST);
	scoreboard_lose_again(&board);
	expect_first(RANGE_SENT_AGAIN, 0, 4);
	allocations = 1;
	assert_true(scoreboard_mark_again(&board, at(2), at(4), at(20), AGAIN_REQUEST));
	scoreboard_note_came(&board, at(20), at(21), AGAIN_REQUEST);
	scoreboard_lose_again(&board);
	expect_first(RANGE_MISSING, 2, 4);
	/* More bits find memory, and their order does not. */
	allocations = 1;
	mark(5, SCOREBOARD_FEW + 1, RANGE_CAME);
	assert_null(board.again);
	expect_first(RANGE_MISSING, 2, 4);
	expect_first(RANGE_SENT_AGAIN, 0, 2);
	assert_true(scoreboard_last_open(&board, &psn));
	assert_int_equal(psn.v, at(3).v);
}

TEST(scoreboard_tell__marks_what_is_kept_and_what_is_not)
{
	tell(96, 0x0f, true);
	/* Bit 0 is packet 1. */
	for (uint32_t i = 0; i < 96; i++)
		assert_int_equal(scoreboard_at(&board, at(i)),
				 i > 0 && (i - 1) % 8 < 4 ? RANGE_CAME : RANGE_MISSING);
	assert_int_equal(scoreboard_at(&board, at(96)), RANGE_SENT);
	assert_true(board.missed);
	scoreboard_check(&board, at(0), at(96));
	/* What was kept is not any more. */
	assert_true(scoreboard_mark_again(&board, at(0), at(1), at(96), AGAIN_REQUEST));
	board.dropped = false;
	tell(96, 0x0e, false);
	assert_int_equal(scoreboard_at(&board, at(1)), RANGE_CAME);
	assert_false(board.dropped);
	tell(96, 0x0e, true);
	assert_int_equal(scoreboard_at(&board, at(0)), RANGE_SENT_AGAIN);
	assert_int_equal(scoreboard_at(&board, at(1)), RANGE_MISSING);
	assert_int_equal(scoreboard_at(&board, at(2)), RANGE_CAME);
	assert_true(board.dropped);
	scoreboard_check(&board, at(0), at(96));
}

/* The work does not depend on the bits. */
TEST(scoreboard_tell__looks_at_words_and_not_at_packets)
{
	const uint64_t words = LOSS_WINDOW_LIMIT / 64 + 1;

	for (unsigned int i = 0; i < 100; i++) {
		const uint64_t before = board.steps;

		tell(LOSS_WINDOW_LIMIT, i % 2 == 0 ? 0x55 : 0xaa, true);
		assert_true(board.steps - before <= words);
	}
	scoreboard_check(&board, at(0), at(MANY));
}
