/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/grey.c. */
#include <stdint.h>

#include "grey.h"
#include "test.h"

#define FLOOD 100000

/* splitmix64's last step: as good as random. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

TEST(seen__the_second_time_only)
{
	struct grey grey = {0};

	assert_false(grey_seen(&grey, mix(1), 0));
	assert_true(grey_seen(&grey, mix(1), 0));
	assert_false(grey_seen(&grey, mix(2), 0));
	grey_fini(&grey);
}

TEST(seen__for_a_period_at_least_and_two_at_most)
{
	struct grey grey = {0};

	grey_seen(&grey, mix(1), 0);
	assert_true(grey_seen(&grey, mix(1), GREY_PERIOD_NS + GREY_PERIOD_NS / 2));
	grey_seen(&grey, mix(2), 2 * GREY_PERIOD_NS + GREY_PERIOD_NS / 2);
	assert_false(grey_seen(&grey, mix(1), 10 * GREY_PERIOD_NS));
	assert_false(grey_seen(&grey, mix(2), 10 * GREY_PERIOD_NS));
	grey_fini(&grey);
}

TEST(seen__after_two_periods_without_requests)
{
	struct grey grey = {0};

	grey_seen(&grey, mix(1), 0);
	assert_false(grey_seen(&grey, mix(1), 2 * GREY_PERIOD_NS));
	grey_fini(&grey);
}

/* A period begins once, not with each request after the first one has ended. */
TEST(seen__a_new_period_forgets_once)
{
	const uint64_t next_ns = GREY_PERIOD_NS + GREY_PERIOD_NS / 10;
	struct grey grey = {0};

	grey_seen(&grey, mix(1), 0);
	for (uint64_t i = 0; i < 5; i++)
		grey_seen(&grey, mix(10 + i), next_ns + i);
	assert_true(grey_seen(&grey, mix(1), next_ns + 5));
	for (uint64_t i = 0; i < 5; i++)
		assert_true(grey_seen(&grey, mix(10 + i), next_ns + 6));
	grey_fini(&grey);
}

/* What was noted in the period before is still known, and nothing else is. */
TEST(seen__in_the_third_period)
{
	const uint64_t second_ns = GREY_PERIOD_NS + 1, third_ns = 2 * GREY_PERIOD_NS + 2;
	struct grey grey = {0};
	unsigned int passed = 0;

	grey_seen(&grey, mix(1), 0);
	grey_seen(&grey, mix(2), second_ns);
	assert_true(grey_seen(&grey, mix(2), third_ns));
	assert_false(grey_seen(&grey, mix(1), third_ns));
	for (uint64_t i = 10; i < 1010; i++)
		passed += grey_seen(&grey, mix(i), third_ns);
	assert_int_equal(passed, 0);
	grey_fini(&grey);
}

/* Hardly any of 100,000 requests that come once are let through; one that comes again is. */
TEST(seen__a_flood_is_told_from_who_comes_again)
{
	struct grey grey = {0};
	unsigned int passed = 0;

	grey_seen(&grey, mix(0), 0);
	for (uint64_t i = 1; i <= FLOOD; i++)
		passed += grey_seen(&grey, mix(i), i * 1000);
	assert_true(grey_seen(&grey, mix(0), FLOOD * 1000));
	assert_in_range(passed, 0, FLOOD / 50);
	grey_fini(&grey);
}
