/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/meter.c. Which way wins depends on the time that other programs leave; that all
 * ways are tried, and on what, does not. */
#include <stdint.h>

#include "base/meter.h"
#include "base/tuning.h"
#include "test.h"

#define SIZE  256
#define BURST 32
#define LEN   4096
#define TURNS 100000

static uint16_t taken; /* index up to which the other side has taken packets */

static uint16_t load_taken(const void *arg)
{
	(void)arg;
	return taken;
}

/* Put a burst, with `backlog` packets before it that were not taken. */
static void push_burst(struct meter *meter, struct meter_ring *ring, uint16_t backlog)
{
	for (int i = 0; i < BURST; i++)
		meter_put(meter, LEN, false);
	ring->own = (uint16_t)(ring->own + BURST);
	ring->known = taken;
	taken = (uint16_t)(ring->own - backlog);
	meter_push(meter, ring);
}

static struct meter_ring start(struct meter *meter)
{
	taken = 0;
	meter_init(meter);
	return (struct meter_ring){.size = SIZE, .load = load_taken};
}

TEST(meter_push__tries_both_ways_while_packets_wait)
{
	struct meter meter;
	struct meter_ring ring = start(&meter);
	uint32_t used[STORE_WAYS] = {0};

	for (int i = 0; i < TURNS && meter.choice.trials == 0; i++) {
		used[store_way(&meter.choice)]++;
		push_burst(&meter, &ring, BURST);
	}
	assert_true(used[STORE_ROUND] > 0 && used[STORE_PAST] > 0);
	assert_int_equal(meter.bytes, 0);
}

TEST(meter_push__tries_nothing_while_no_packets_wait)
{
	struct meter meter;
	struct meter_ring ring = start(&meter);

	for (int i = 0; i < 1000; i++) {
		push_burst(&meter, &ring, 0);
		assert_false(meter.choice.tries);
	}
}

/* An index of the other side that jumps counts for nothing. */
TEST(meter_push__does_not_believe_an_impossible_index)
{
	struct meter meter;
	struct meter_ring ring = start(&meter);
	uint32_t before;

	push_burst(&meter, &ring, BURST);
	assert_true(meter.choice.tries);
	before = meter.taken;
	push_burst(&meter, &ring, 40000);
	assert_int_equal(meter.taken, before);
}

TEST(taker_release__tries_both_ways)
{
	struct taker taker;
	uint32_t used[2] = {0};

	taker_init(&taker);
	for (int i = 0; i < TURNS && taker.choice.trials == 0; i++) {
		used[taker.choice.now]++;
		taker.bytes = BURST * LEN;
		taker_release(&taker, true);
	}
	assert_true(used[FETCH_START] > 0 && used[FETCH_ALL] > 0);
	assert_int_equal(taker.choice.trials, 1);
}
