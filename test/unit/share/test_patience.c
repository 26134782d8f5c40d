/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/include/share/patience.h. */
#include <stdint.h>

#include "share/patience.h"
#include "test.h"

#define START	1000
#define POLL_NS 1000 /* ns, between two tries */

TEST(patience_waits__for_a_while)
{
	struct patience patience = {0};

	assert_true(patience_waits(&patience, START));
	assert_true(patience_waits(&patience, START + PATIENCE_NS - 1));
	assert_false(patience_waits(&patience, START + PATIENCE_NS));
	assert_false(patience_waits(&patience, START + 100 * PATIENCE_NS));
}

TEST(patience_renew__makes_it_whole)
{
	struct patience patience = {0};

	assert_true(patience_waits(&patience, START));
	patience_renew(&patience);
	assert_true(patience_waits(&patience, START + PATIENCE_NS));
	assert_true(patience_waits(&patience, START + 2 * PATIENCE_NS - 1));
}

/* The time that packets wait for who takes one at the last moment, again and again. */
TEST(patience_earn__one_now_and_then_earns_next_to_nothing)
{
	struct patience patience = {0};
	uint64_t now = START, waited = 0;

	for (int taken = 0; taken < 100; taken++) {
		const uint64_t since = now;

		while (now - since < PATIENCE_NS - POLL_NS && patience_waits(&patience, now)) {
			now += POLL_NS;
			waited += POLL_NS;
		}
		now = since + PATIENCE_NS - POLL_NS;
		patience_earn(&patience, now);
	}
	assert_true(waited <= PATIENCE_NS + 100 * (PATIENCE_EARNED_NS + POLL_NS));
}

/* A slow one, but one that goes on: its senders keep to its pace, and nothing is lost. */
TEST(patience_earn__who_keeps_taking_is_always_waited_for)
{
	struct patience patience = {0};
	uint64_t now = START;

	for (int taken = 0; taken < 10000; taken++) {
		assert_true(patience_waits(&patience, now));
		now += PATIENCE_EARNED_NS;
		patience_earn(&patience, now);
	}
}

TEST(patience_earn__enough_packets_make_it_whole)
{
	struct patience patience = {0};
	uint64_t now = START;

	assert_true(patience_waits(&patience, now));
	/* The process has slept for much longer. */
	now += 1000 * PATIENCE_NS;
	assert_false(patience_waits(&patience, now));
	for (uint64_t taken = 0; taken < PATIENCE_NS / PATIENCE_EARNED_NS; taken++)
		patience_earn(&patience, now);
	assert_true(patience_waits(&patience, now));
	assert_true(patience_waits(&patience, now + PATIENCE_NS - 1));
	assert_false(patience_waits(&patience, now + PATIENCE_NS));
}
