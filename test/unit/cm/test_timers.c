/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/timers.c. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "timers.h"
#include "test.h"

#define COUNT 300

static struct cm_timers timers;
static struct cm_timer_entry entries[COUNT];

static int set_up(TEST_STATE)
{
	timers = (struct cm_timers){0};
	for (int i = 0; i < COUNT; i++)
		entries[i] = (struct cm_timer_entry){0};
	return timers_reserve(&timers, COUNT);
}

static int tear_down(TEST_STATE)
{
	timers_fini(&timers);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

TEST(first__of_none_is_null)
{
	assert_null(timers_first(&timers));
}

/* Find the earliest entry by a linear search. */
static const struct cm_timer_entry *earliest(void)
{
	const struct cm_timer_entry *first = NULL;

	for (int i = 0; i < COUNT; i++) {
		if (entries[i].slot != 0 && (!first || entries[i].at_ns < first->at_ns))
			first = &entries[i];
	}
	return first;
}

TEST(arm__the_earliest_is_first_whatever_was_done)
{
	srandom(1);
	for (int i = 0; i < 20000; i++) {
		struct cm_timer_entry *entry = &entries[random() % COUNT];

		if (random() % 3 == 0)
			timers_disarm(&timers, entry);
		else
			timers_arm(&timers, entry, (uint64_t)random() % 1000);
		if (!earliest())
			assert_null(timers_first(&timers));
		else
			assert_int_equal(timers_first(&timers)->at_ns, earliest()->at_ns);
	}
}

/* Arm `count` timers, disarm some in the middle of the heap, and take the others in their order. */
static void drain(int count)
{
	uint64_t last_ns = 0;

	for (int i = 0; i < count; i++)
		timers_arm(&timers, &entries[i], (uint64_t)random() % 100);
	for (int i = 0; i < count; i += 3)
		timers_disarm(&timers, &entries[i]);
	while (timers_first(&timers)) {
		struct cm_timer_entry *first = timers_first(&timers);

		assert_true(first->at_ns >= last_ns);
		last_ns = first->at_ns;
		timers_disarm(&timers, first);
		assert_int_equal(first->slot, 0);
	}
	assert_int_equal(timers.count, 0);
}

TEST(disarm__keeps_the_order_of_the_others)
{
	srandom(2);
	for (int i = 0; i < 1000; i++)
		drain(1 + i % 60);
}

TEST(disarm__twice_does_nothing)
{
	timers_arm(&timers, &entries[0], 1);
	timers_arm(&timers, &entries[1], 2);
	timers_disarm(&timers, &entries[0]);
	timers_disarm(&timers, &entries[0]);
	assert_ptr_equal(timers_first(&timers), &entries[1]);
}

TEST(reserve__keeps_what_is_armed)
{
	timers_arm(&timers, &entries[0], 7);
	assert_int_equal(timers_reserve(&timers, 10 * COUNT), 0);
	assert_true(timers.room >= 10 * COUNT);
	assert_ptr_equal(timers_first(&timers), &entries[0]);
}
