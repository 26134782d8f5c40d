/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/include/share/patience.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "share/patience.h"

#define START 1000
#define TURN  1000 /* ns, between two tries */

static void patience_waits__for_a_while(void **state)
{
	struct patience patience = {0};

	(void)state;
	assert_true(patience_waits(&patience, START));
	assert_true(patience_waits(&patience, START + PATIENCE_NS - 1));
	assert_false(patience_waits(&patience, START + PATIENCE_NS));
	assert_false(patience_waits(&patience, START + 100 * PATIENCE_NS));
}

static void patience_renew__makes_it_whole(void **state)
{
	struct patience patience = {0};

	(void)state;
	assert_true(patience_waits(&patience, START));
	patience_renew(&patience);
	assert_true(patience_waits(&patience, START + PATIENCE_NS));
	assert_true(patience_waits(&patience, START + 2 * PATIENCE_NS - 1));
}

/* The time that packets wait for who takes one at the last moment, again and again. */
static void patience_earn__one_now_and_then_earns_next_to_nothing(void **state)
{
	struct patience patience = {0};
	uint64_t now = START, waited = 0;

	(void)state;
	for (int taken = 0; taken < 100; taken++) {
		const uint64_t since = now;

		while (now - since < PATIENCE_NS - TURN && patience_waits(&patience, now)) {
			now += TURN;
			waited += TURN;
		}
		now = since + PATIENCE_NS - TURN;
		patience_earn(&patience, now);
	}
	assert_true(waited <= PATIENCE_NS + 100 * (PATIENCE_EARNED_NS + TURN));
}

/* A slow one, but one that goes on: its senders keep to its pace, and nothing is lost. */
static void patience_earn__who_keeps_taking_is_always_waited_for(void **state)
{
	struct patience patience = {0};
	uint64_t now = START;

	(void)state;
	for (int taken = 0; taken < 10000; taken++) {
		assert_true(patience_waits(&patience, now));
		now += PATIENCE_EARNED_NS;
		patience_earn(&patience, now);
	}
}

static void patience_earn__enough_packets_make_it_whole(void **state)
{
	struct patience patience = {0};
	uint64_t now = START;

	(void)state;
	assert_true(patience_waits(&patience, now));
	/* It slept for much longer. */
	now += 1000 * PATIENCE_NS;
	assert_false(patience_waits(&patience, now));
	for (uint64_t taken = 0; taken < PATIENCE_NS / PATIENCE_EARNED_NS; taken++)
		patience_earn(&patience, now);
	assert_true(patience_waits(&patience, now));
	assert_true(patience_waits(&patience, now + PATIENCE_NS - 1));
	assert_false(patience_waits(&patience, now + PATIENCE_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patience_waits__for_a_while),
		cmocka_unit_test(patience_renew__makes_it_whole),
		cmocka_unit_test(patience_earn__one_now_and_then_earns_next_to_nothing),
		cmocka_unit_test(patience_earn__who_keeps_taking_is_always_waited_for),
		cmocka_unit_test(patience_earn__enough_packets_make_it_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
