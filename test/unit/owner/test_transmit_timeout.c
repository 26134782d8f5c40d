/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/transmit_timeout.h. */
#include <stdint.h>

#include "transmit_timeout.h"
#include "test.h"

#define START	1000
#define POLL_NS 1000 /* ns, between two tries */

TEST(transmit_timeout_waits__for_a_while)
{
	struct transmit_timeout timeout = {0};

	assert_true(transmit_timeout_waits(&timeout, START));
	assert_true(transmit_timeout_waits(&timeout, START + TRANSMIT_TIMEOUT_NS - 1));
	assert_false(transmit_timeout_waits(&timeout, START + TRANSMIT_TIMEOUT_NS));
	assert_false(transmit_timeout_waits(&timeout, START + 100 * TRANSMIT_TIMEOUT_NS));
}

TEST(transmit_timeout_reset__makes_it_whole)
{
	struct transmit_timeout timeout = {0};

	assert_true(transmit_timeout_waits(&timeout, START));
	transmit_timeout_reset(&timeout);
	assert_true(transmit_timeout_waits(&timeout, START + TRANSMIT_TIMEOUT_NS));
	assert_true(transmit_timeout_waits(&timeout, START + 2 * TRANSMIT_TIMEOUT_NS - 1));
}

/* The time that packets wait for who takes one at the last moment, again and again. */
TEST(transmit_timeout_credit__one_now_and_then_earns_next_to_nothing)
{
	struct transmit_timeout timeout = {0};
	uint64_t now = START, waited = 0;

	for (int taken = 0; taken < 100; taken++) {
		const uint64_t since = now;

		while (now - since < TRANSMIT_TIMEOUT_NS - POLL_NS &&
		       transmit_timeout_waits(&timeout, now)) {
			now += POLL_NS;
			waited += POLL_NS;
		}
		now = since + TRANSMIT_TIMEOUT_NS - POLL_NS;
		transmit_timeout_credit(&timeout, now);
	}
	assert_true(waited <= TRANSMIT_TIMEOUT_NS + 100 * (TRANSMIT_TIMEOUT_CREDIT_NS + POLL_NS));
}

/* A slow one, but one that goes on: its senders keep to its pace, and nothing is lost. */
TEST(transmit_timeout_credit__who_keeps_taking_is_always_waited_for)
{
	struct transmit_timeout timeout = {0};
	uint64_t now = START;

	for (int taken = 0; taken < 10000; taken++) {
		assert_true(transmit_timeout_waits(&timeout, now));
		now += TRANSMIT_TIMEOUT_CREDIT_NS;
		transmit_timeout_credit(&timeout, now);
	}
}

TEST(transmit_timeout_credit__enough_packets_make_it_whole)
{
	struct transmit_timeout timeout = {0};
	uint64_t now = START;

	assert_true(transmit_timeout_waits(&timeout, now));
	/* The process has slept for much longer. */
	now += 1000 * TRANSMIT_TIMEOUT_NS;
	assert_false(transmit_timeout_waits(&timeout, now));
	for (uint64_t taken = 0; taken < TRANSMIT_TIMEOUT_NS / TRANSMIT_TIMEOUT_CREDIT_NS; taken++)
		transmit_timeout_credit(&timeout, now);
	assert_true(transmit_timeout_waits(&timeout, now));
	assert_true(transmit_timeout_waits(&timeout, now + TRANSMIT_TIMEOUT_NS - 1));
	assert_false(transmit_timeout_waits(&timeout, now + TRANSMIT_TIMEOUT_NS));
}
