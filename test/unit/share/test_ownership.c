/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/ownership.c. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "share/ownership.h"
#include "test.h"

#define BUFFERS	     4000
#define BUFFER_BYTES 1000
#define SLOTS	     4

static int setup(void **state)
{
	struct ownership *ownership = calloc(1, sizeof(*ownership));

	*state = ownership;
	return ownership_init(ownership, BUFFERS, BUFFER_BYTES, SLOTS, SHARE_HELD_MAX);
}

static int teardown(void **state)
{
	ownership_fini(*state);
	free(*state);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static void count_reclaimed(uint32_t buffer, void *arg)
{
	uint32_t *seen = arg;

	seen[buffer]++;
}

TEST(ownership_take__believes_only_who_has_it)
{
	struct ownership *ownership = *state;

	assert_true(ownership_give(ownership, 5, 1));
	assert_false(ownership_take(ownership, 5, 2));
	assert_false(ownership_take(ownership, 6, 1));
	assert_false(ownership_take(ownership, BUFFERS, 1));
	assert_false(ownership_take(ownership, 0xffffff, 1));
	assert_true(ownership_take(ownership, 5, 1));
	assert_false(ownership_take(ownership, 5, 1));
	assert_int_equal(ownership->held[1], 0);
	assert_int_equal(ownership->held[2], 0);
}

TEST(ownership_give__ends_at_the_quota_of_a_slot)
{
	struct ownership *ownership = *state;

	for (uint32_t i = 0; i < SHARE_HELD_MAX; i++)
		assert_true(ownership_give(ownership, i, 1));
	assert_false(ownership_give(ownership, SHARE_HELD_MAX, 1));
	ownership->quotas[3] = 2;
	assert_true(ownership_give(ownership, SHARE_HELD_MAX + 1, 3));
	assert_true(ownership_give(ownership, SHARE_HELD_MAX + 2, 3));
	assert_false(ownership_give(ownership, SHARE_HELD_MAX + 3, 3));
	assert_int_equal(ownership->holders[SHARE_HELD_MAX], OWNERSHIP_OWNER);
	assert_true(ownership_give(ownership, SHARE_HELD_MAX, 2));
}

TEST(ownership_may_send__keeps_frames_inside_their_buffer)
{
	struct ownership *ownership = *state;
	struct share_packet packet = {.buffer = 9, .offset = 100, .len = 900};

	assert_true(ownership_give(ownership, 9, 3));
	assert_true(ownership_may_send(ownership, &packet, 3));
	assert_false(ownership_may_send(ownership, &packet, 2));
	packet.len = 901;
	assert_false(ownership_may_send(ownership, &packet, 3));
	packet.offset = 0;
	packet.len = 1001;
	assert_false(ownership_may_send(ownership, &packet, 3));
	packet.offset = 65535;
	packet.len = 900;
	assert_false(ownership_may_send(ownership, &packet, 3));
	packet.offset = 0;
	packet.len = 13;
	assert_false(ownership_may_send(ownership, &packet, 3));
	packet.len = 14;
	assert_true(ownership_may_send(ownership, &packet, 3));
	packet.buffer = BUFFERS;
	assert_false(ownership_may_send(ownership, &packet, 3));
}

TEST(ownership_reclaim__brings_each_buffer_back_once)
{
	struct ownership *ownership = *state;
	uint32_t *seen = calloc(BUFFERS, sizeof(*seen));

	for (uint32_t i = 0; i < 100; i++)
		assert_true(ownership_give(ownership, i * 37, (uint16_t)(i % 2)));
	ownership_reclaim(ownership, 1, count_reclaimed, seen);
	assert_int_equal(ownership->held[1], 0);
	assert_int_equal(ownership->held[0], 50);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(seen[i * 37], i % 2);
	free(seen);
}
