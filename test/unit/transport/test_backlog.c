/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/backlog.c. */
#include <stdint.h>

#include "test.h"
#include "transport/backlog.h"

#define NOW_NS UINT64_C(1000000)
#define UNA    psn_make(0xffffff)

static struct backlog backlog;

static int set_up(TEST_STATE)
{
	backlog_reset(&backlog);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static const struct sink_taken none;

static bool restarts(struct backlog *of, struct psn una, bool owed, enum sink_knows knows,
		     const struct sink_taken *taken, uint64_t now_ns)
{
	return backlog_judge(of, una, owed, knows, taken, 1000000, now_ns) == BACKLOG_RESTART;
}

/* Judge a timer of a packet that has left. Return true if the timer is restarted. */
static bool excuses(uint32_t given, uint32_t taken, uint64_t now_ns)
{
	const struct sink_taken counts = {.given = given, .taken = taken};

	return restarts(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, now_ns);
}

TEST(backlog_judge__nothing_is_known)
{
	assert_int_equal(
		backlog_judge(&backlog, UNA, true, SINK_KNOWS_NOTHING, &none, 1000000, NOW_NS),
		BACKLOG_COUNTS);
}

TEST(backlog_judge__all_packets_were_taken)
{
	assert_false(excuses(7, 7, NOW_NS));
	assert_false(excuses(8, 8, NOW_NS + 1));
}

TEST(backlog_judge__until_what_was_given_is_taken_and_once_more)
{
	assert_true(excuses(7, 3, NOW_NS));
	/* Packets that were given later do not matter. */
	assert_true(excuses(90, 3, NOW_NS + 1));
	assert_true(excuses(90, 6, NOW_NS + 2));
	assert_true(excuses(90, 7, NOW_NS + 3));
	assert_false(excuses(90, 8, NOW_NS + 4));
	/* The packet is sent again, and what is known of it begins anew. */
	assert_true(excuses(91, 90, NOW_NS + 5));
	assert_true(excuses(95, 90, NOW_NS + 6));
	assert_true(excuses(95, 91, NOW_NS + 7));
	assert_false(excuses(95, 91, NOW_NS + 8));
}

TEST(backlog_judge__counts_wrap)
{
	assert_true(excuses(1, UINT32_MAX - 2, NOW_NS));
	assert_true(excuses(5, 0, NOW_NS + 1));
	assert_true(excuses(5, 1, NOW_NS + 2));
	assert_false(excuses(5, 1, NOW_NS + 3));
}

/* Counts of another way than that of the mark. */
TEST(backlog_judge__a_mark_of_another_way_counts_as_taken)
{
	assert_true(excuses(1000, 999, NOW_NS));
	assert_true(excuses(10, 5, NOW_NS + 1));
	assert_false(excuses(10, 5, NOW_NS + 2));
}

TEST(backlog_judge__a_packet_that_has_not_left_is_not_lost)
{
	const struct sink_taken counts = {.given = 7, .taken = 7};

	assert_true(restarts(&backlog, UNA, true, SINK_KNOWS_TAKEN, &counts, NOW_NS));
	assert_true(restarts(&backlog, UNA, false, SINK_KNOWS_FULL, &none, NOW_NS));
	/* It has left now. */
	assert_false(excuses(8, 8, NOW_NS + 1));
}

TEST(backlog_judge__has_a_limit)
{
	assert_true(excuses(7, 3, NOW_NS));
	assert_true(excuses(7, 3, NOW_NS + BACKLOG_MAX_NS - 1));
	assert_false(excuses(7, 3, NOW_NS + BACKLOG_MAX_NS));
	assert_false(excuses(8, 3, NOW_NS + BACKLOG_MAX_NS + 1));
	assert_false(
		restarts(&backlog, UNA, true, SINK_KNOWS_FULL, &none, NOW_NS + BACKLOG_MAX_NS + 2));
}

/* A hostile end takes a packet now and then, and answers none. */
TEST(backlog_judge__the_limit_is_that_of_the_packet)
{
	uint64_t now_ns = NOW_NS;
	uint32_t taken = 0;

	while (excuses(taken + 10, taken, now_ns) || now_ns < NOW_NS + BACKLOG_MAX_NS) {
		taken += 3;
		now_ns += BACKLOG_MAX_NS / 100;
		assert_true(now_ns <= NOW_NS + BACKLOG_MAX_NS);
	}
}

TEST(backlog_judge__progress_begins_a_new_limit)
{
	const struct sink_taken counts = {.given = 9, .taken = 3};
	const uint64_t now_ns = NOW_NS + BACKLOG_MAX_NS;

	assert_true(excuses(7, 3, NOW_NS));
	assert_true(restarts(&backlog, psn_add(UNA, 1), false, SINK_KNOWS_TAKEN, &counts, now_ns));
	assert_true(restarts(&backlog, psn_add(UNA, 1), false, SINK_KNOWS_TAKEN, &counts,
			     now_ns + BACKLOG_MAX_NS - 1));
}

/* The port has dropped packets because its other end took none. */
TEST(backlog_judge__what_the_port_has_dropped_uses_up_no_retry)
{
	struct sink_taken counts = {.given = 9, .taken = 9, .dropped = 3};

	/* Nobody knows when they were dropped. */
	assert_int_equal(
		backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, 1000000, NOW_NS),
		BACKLOG_COUNTS);
	counts.dropped = 4;
	assert_int_equal(
		backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, 1000000, NOW_NS),
		BACKLOG_RESEND);
	assert_int_equal(
		backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, 1000000, NOW_NS),
		BACKLOG_COUNTS);
	/* It drops while others wait. */
	counts.given = 10;
	counts.dropped = 5;
	assert_true(restarts(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, NOW_NS));
	counts.taken = 10;
	assert_true(restarts(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, NOW_NS));
	assert_int_equal(
		backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, 1000000, NOW_NS),
		BACKLOG_RESEND);
	counts.dropped = 6;
	assert_int_equal(backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, 1000000,
				       NOW_NS + BACKLOG_MAX_NS),
			 BACKLOG_COUNTS);
}

/* The other end has taken all packets, and passed them on to a process that is stopped. */
TEST(backlog_judge__what_somebody_else_does_not_read_waits)
{
	struct sink_taken counts = {.given = 9, .taken = 9, .unread = true};

	for (int i = 0; i < 5; i++) {
		assert_true(restarts(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, NOW_NS));
		counts.given = ++counts.taken;
	}
	/* It reads them, and has the time of a timer to answer. */
	counts.unread = false;
	assert_true(restarts(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, NOW_NS));
	assert_int_equal(
		backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, 1000000, NOW_NS),
		BACKLOG_COUNTS);
	/* It may have stopped for ever. */
	counts.unread = true;
	assert_true(restarts(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts,
			     NOW_NS + BACKLOG_MAX_NS - 1));
	assert_int_equal(backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, 1000000,
				       NOW_NS + BACKLOG_MAX_NS),
			 BACKLOG_COUNTS);
}

TEST(backlog_judge__the_limit_is_longer_for_a_long_timer)
{
	const struct sink_taken counts = {.given = 7, .taken = 3};
	const uint64_t timeout_ns = BACKLOG_MAX_NS;
	const uint64_t end_ns = NOW_NS + BACKLOG_TIMEOUTS * timeout_ns;

	assert_int_equal(
		backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, timeout_ns, NOW_NS),
		BACKLOG_RESTART);
	assert_int_equal(backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, timeout_ns,
				       end_ns - 1),
			 BACKLOG_RESTART);
	assert_int_equal(
		backlog_judge(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, timeout_ns, end_ns),
		BACKLOG_COUNTS);
}

TEST(backlog_reset__forgets_the_limit)
{
	assert_true(excuses(7, 3, NOW_NS));
	assert_false(excuses(7, 3, NOW_NS + BACKLOG_MAX_NS));
	backlog_reset(&backlog);
	assert_true(excuses(7, 3, NOW_NS + BACKLOG_MAX_NS));
}

/* PSN 0 is a packet as others are. */
TEST(backlog_judge__the_first_question_begins_the_time)
{
	const struct sink_taken counts = {.given = 7, .taken = 3};

	assert_true(restarts(&backlog, psn_make(0), false, SINK_KNOWS_TAKEN, &counts, NOW_NS));
}

/* What was learned of a packet says nothing about the next one, nor about the same one after a time
 * without knowledge. */
TEST(backlog_judge__a_mark_ends_with_what_it_was_for)
{
	const struct sink_taken counts = {.given = 7, .taken = 7};

	assert_true(excuses(7, 3, NOW_NS));
	assert_false(restarts(&backlog, psn_add(UNA, 1), false, SINK_KNOWS_TAKEN, &counts, NOW_NS));
	assert_true(excuses(7, 3, NOW_NS));
	assert_false(restarts(&backlog, UNA, false, SINK_KNOWS_NOTHING, &none, NOW_NS));
	assert_false(excuses(7, 7, NOW_NS));
	assert_true(excuses(7, 3, NOW_NS));
	assert_true(restarts(&backlog, UNA, true, SINK_KNOWS_TAKEN, &counts, NOW_NS));
	assert_false(excuses(7, 7, NOW_NS));
}

/* An answer that nobody has read came before the packets that were given since. */
TEST(backlog_judge__unread_answers_move_the_mark)
{
	const struct sink_taken counts = {.given = 10, .taken = 5, .unread = true};

	assert_true(restarts(&backlog, UNA, false, SINK_KNOWS_TAKEN, &counts, NOW_NS));
	for (uint32_t i = 0; i < 4; i++)
		assert_true(excuses(10, 7, NOW_NS));
	assert_true(excuses(10, 10, NOW_NS));
	assert_false(excuses(10, 10, NOW_NS));
}
