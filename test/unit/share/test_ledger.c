/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/ledger.c. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "share/ledger.h"
#include "test.h"

#define BUFFERS	     4000
#define BUFFER_BYTES 1000
#define SLOTS	     4

static int setup(void **state)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));

	*state = ledger;
	return ledger_init(ledger, BUFFERS, BUFFER_BYTES, SLOTS, SHARE_HELD_MAX);
}

static int teardown(void **state)
{
	ledger_fini(*state);
	free(*state);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static void count_reclaimed(uint32_t buffer, void *arg)
{
	uint32_t *seen = arg;

	seen[buffer]++;
}

TEST(ledger_take__believes_only_who_has_it)
{
	struct ledger *ledger = *state;

	assert_true(ledger_give(ledger, 5, 1));
	assert_false(ledger_take(ledger, 5, 2));
	assert_false(ledger_take(ledger, 6, 1));
	assert_false(ledger_take(ledger, BUFFERS, 1));
	assert_false(ledger_take(ledger, 0xffffff, 1));
	assert_true(ledger_take(ledger, 5, 1));
	assert_false(ledger_take(ledger, 5, 1));
	assert_int_equal(ledger->held[1], 0);
	assert_int_equal(ledger->held[2], 0);
}

TEST(ledger_give__ends_at_the_quota_of_a_slot)
{
	struct ledger *ledger = *state;

	for (uint32_t i = 0; i < SHARE_HELD_MAX; i++)
		assert_true(ledger_give(ledger, i, 1));
	assert_false(ledger_give(ledger, SHARE_HELD_MAX, 1));
	ledger->quotas[3] = 2;
	assert_true(ledger_give(ledger, SHARE_HELD_MAX + 1, 3));
	assert_true(ledger_give(ledger, SHARE_HELD_MAX + 2, 3));
	assert_false(ledger_give(ledger, SHARE_HELD_MAX + 3, 3));
	assert_int_equal(ledger->holders[SHARE_HELD_MAX], LEDGER_OWNER);
	assert_true(ledger_give(ledger, SHARE_HELD_MAX, 2));
}

TEST(ledger_may_send__keeps_frames_inside_their_buffer)
{
	struct ledger *ledger = *state;
	struct share_packet packet = {.buffer = 9, .offset = 100, .len = 900};

	assert_true(ledger_give(ledger, 9, 3));
	assert_true(ledger_may_send(ledger, &packet, 3));
	assert_false(ledger_may_send(ledger, &packet, 2));
	packet.len = 901;
	assert_false(ledger_may_send(ledger, &packet, 3));
	packet.offset = 0;
	packet.len = 1001;
	assert_false(ledger_may_send(ledger, &packet, 3));
	packet.offset = 65535;
	packet.len = 900;
	assert_false(ledger_may_send(ledger, &packet, 3));
	packet.offset = 0;
	packet.len = 13;
	assert_false(ledger_may_send(ledger, &packet, 3));
	packet.len = 14;
	assert_true(ledger_may_send(ledger, &packet, 3));
	packet.buffer = BUFFERS;
	assert_false(ledger_may_send(ledger, &packet, 3));
}

TEST(ledger_reclaim__brings_each_buffer_back_once)
{
	struct ledger *ledger = *state;
	uint32_t *seen = calloc(BUFFERS, sizeof(*seen));

	for (uint32_t i = 0; i < 100; i++)
		assert_true(ledger_give(ledger, i * 37, (uint16_t)(i % 2)));
	ledger_reclaim(ledger, 1, count_reclaimed, seen);
	assert_int_equal(ledger->held[1], 0);
	assert_int_equal(ledger->held[0], 50);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(seen[i * 37], i % 2);
	free(seen);
}
