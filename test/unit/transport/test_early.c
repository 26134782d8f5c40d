/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/early.c: what is kept, in which order, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/early.h"
#include "wire/headers.h"
#include "wire/packet.h"

#define EXPECTED 0xfffffeu /* PSNs wrap soon */
#define POOL	 8u

static struct early_pool *pool;
static struct early early;
static uint8_t payload[WIRE_MTU_MAX + 4];

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(early_pool_create(POOL, &pool), 0);
	early = (struct early){.pool = pool};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	early_clear(&early);
	early_pool_destroy(pool);
	return 0;
}

/* A packet so far ahead, whose payload is its number. */
static struct packet ahead(uint32_t n, uint32_t len)
{
	memset(payload, (int)n, sizeof(payload));
	return (struct packet){
		.psn = psn_make(EXPECTED + n), .payload = payload, .payload_len = len};
}

static bool keep(struct early *list, uint32_t n, uint32_t len)
{
	const struct packet packet = ahead(n, len);
	uint32_t place;

	if (!early_takes(list, &packet, psn_make(EXPECTED), &place))
		return false;
	early_keep(list, &packet, place, NULL);
	return true;
}

static void expect_first(uint32_t n, uint32_t len)
{
	const struct packet *first = early_first(&early);

	assert_non_null(first);
	assert_int_equal(first->psn.v, psn_make(EXPECTED + n).v);
	assert_int_equal(first->payload_len, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(first->payload[i], (uint8_t)n);
	early_drop(&early);
}

static void early_keep__in_the_order_of_psns_whatever_the_order_of_coming(void **state)
{
	static const uint32_t numbers[] = {3, 1, 6, 2, 5};
	static const uint32_t sorted[] = {1, 2, 3, 5, 6};

	(void)state;
	assert_null(early_first(&early));
	for (size_t i = 0; i < 5; i++)
		assert_true(keep(&early, numbers[i], 10 * numbers[i]));
	/* The frames are gone by then. */
	memset(payload, 0xee, sizeof(payload));
	for (size_t i = 0; i < 5; i++)
		expect_first(sorted[i], 10 * sorted[i]);
	assert_null(early_first(&early));
}

static void early_keep__of_the_longest_payload(void **state)
{
	(void)state;
	assert_true(keep(&early, 1, WIRE_MTU_MAX));
	assert_false(keep(&early, 2, WIRE_MTU_MAX + 4));
	expect_first(1, WIRE_MTU_MAX);
}

static void early_keep__what_is_placed_has_no_payload(void **state)
{
	const struct packet packet = ahead(1, 77);

	(void)state;
	assert_null(early_placed(&early));
	early_keep(&early, &packet, 0, payload);
	assert_null(early_first(&early)->payload);
	assert_ptr_equal(early_placed(&early), payload);
	assert_int_equal(early_first(&early)->payload_len, 77);
}

/* Over a window that moves on, as of a long loss. */
static void early_keep__of_many_each_once_in_any_order(void **state)
{
	const uint32_t window = EARLY_LIST_PKTS - 1, steps = 4000;
	bool there[4000 / 3 + EARLY_LIST_PKTS + 1] = {false};
	struct early_pool *large;
	uint32_t from = 1, random = 1, count = 0;

	(void)state;
	assert_int_equal(early_pool_create(EARLY_LIST_PKTS, &large), 0);
	early.pool = large;
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t n;

		random = random * 1103515245 + 12345;
		n = from + (random >> 16) % window;
		assert_int_equal(keep(&early, n, 1), !there[n]);
		count += !there[n];
		there[n] = true;
		if (i % 3 == 0) {
			assert_int_equal(early_drop_before(&early, psn_make(EXPECTED + from + 1)),
					 there[from]);
			count -= there[from++];
		}
		assert_int_equal(early.count, count);
	}
	for (uint32_t n = from; n < from + window; n++) {
		if (there[n])
			expect_first(n, 1);
	}
	assert_int_equal(early.count, 0);
	early_pool_destroy(large);
}

static void early_takes__no_packet_twice(void **state)
{
	(void)state;
	assert_true(keep(&early, 1, 1));
	assert_true(keep(&early, 3, 1));
	assert_false(keep(&early, 1, 1));
	assert_false(keep(&early, 3, 1));
	assert_true(keep(&early, 2, 1));
	assert_int_equal(early.count, 3);
}

static void early_takes__only_what_is_ahead_and_in_reach(void **state)
{
	(void)state;
	assert_false(keep(&early, 0, 1));
	assert_false(keep(&early, 0u - 1, 1));
	assert_false(keep(&early, EARLY_REACH, 1));
	assert_false(keep(&early, 0x7fffff, 1));
	assert_true(keep(&early, EARLY_REACH - 1, 1));
}

static void early_takes__as_many_as_the_pool_has(void **state)
{
	struct early other = {.pool = pool};

	(void)state;
	for (uint32_t n = 1; n <= POOL / 2; n++) {
		assert_true(keep(&early, n, 1));
		assert_true(keep(&other, n, 1));
	}
	assert_false(keep(&early, 100, 1));
	/* What is dropped can be used again, by anybody. */
	early_clear(&other);
	for (uint32_t n = 1; n <= POOL / 2; n++)
		assert_true(keep(&early, 100 + n, 1));
	assert_int_equal(early.count, POOL);
}

static void early_keep__the_list_that_stood_still_longest_gives_its_farthest(void **state)
{
	struct early other = {.pool = pool};

	(void)state;
	for (uint32_t n = 1; n <= POOL / 2; n++) {
		assert_true(keep(&early, n, 1));
		assert_true(keep(&other, n, 1));
	}
	assert_true(keep(&other, POOL, 1));
	assert_int_equal(early.count, POOL / 2 - 1);
	expect_first(1, 1);
	/* Now that one has moved on, the other has not. */
	assert_true(keep(&early, POOL, 1));
	assert_true(keep(&early, POOL + 1, 1));
	assert_int_equal(other.count, POOL / 2);
	assert_false(keep(&other, POOL, 1));
	for (uint32_t n = 2; n < POOL / 2; n++)
		expect_first(n, 1);
	expect_first(POOL, 1);
	expect_first(POOL + 1, 1);
	early_clear(&other);
}

static void early_keep__lists_that_stand_still_keep_nobody_out(void **state)
{
	const uint32_t count = EARLY_POOL_PKTS / EARLY_LIST_PKTS;
	struct early stuck[EARLY_POOL_PKTS / EARLY_LIST_PKTS] = {0};
	struct early_pool *large;
	struct early moving = {0};

	(void)state;
	assert_int_equal(early_pool_create(EARLY_POOL_PKTS, &large), 0);
	for (uint32_t i = 0; i < count; i++) {
		stuck[i].pool = large;
		for (uint32_t n = 1; n <= EARLY_LIST_PKTS; n++)
			assert_true(keep(&stuck[i], n, 1));
	}
	moving.pool = large;
	for (uint32_t n = 1; n <= EARLY_LIST_PKTS; n++)
		assert_true(keep(&moving, n, 1));
	for (uint32_t i = 0; i < count; i++)
		early_clear(&stuck[i]);
	early_clear(&moving);
	early_pool_destroy(large);
}

static void early_takes__as_many_as_one_list_may(void **state)
{
	struct early_pool *large;
	struct early greedy = {0};

	(void)state;
	assert_int_equal(early_pool_create(EARLY_LIST_PKTS + 1, &large), 0);
	greedy.pool = large;
	for (uint32_t n = 1; n <= EARLY_LIST_PKTS; n++)
		assert_true(keep(&greedy, n, 1));
	assert_false(keep(&greedy, EARLY_LIST_PKTS + 1, 1));
	early_clear(&greedy);
	early_pool_destroy(large);
}

static void early_takes__nothing_without_a_pool(void **state)
{
	struct early none = {0};

	(void)state;
	assert_false(keep(&none, 1, 1));
	assert_null(early_first(&none));
	early_drop_before(&none, psn_make(5));
	early_clear(&none);
}

static void early_drop_before__across_the_wrap(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 5; n++)
		assert_true(keep(&early, n, n));
	early_drop_before(&early, psn_make(EXPECTED + 4));
	expect_first(4, 4);
	early_drop_before(&early, psn_make(EXPECTED + 100));
	assert_int_equal(early.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(early_keep__in_the_order_of_psns_whatever_the_order_of_coming),
		TEST(early_keep__of_the_longest_payload),
		TEST(early_keep__what_is_placed_has_no_payload),
		TEST(early_keep__of_many_each_once_in_any_order),
		TEST(early_takes__no_packet_twice),
		TEST(early_takes__only_what_is_ahead_and_in_reach),
		TEST(early_takes__as_many_as_the_pool_has),
		TEST(early_keep__the_list_that_stood_still_longest_gives_its_farthest),
		TEST(early_keep__lists_that_stand_still_keep_nobody_out),
		TEST(early_takes__as_many_as_one_list_may),
		TEST(early_takes__nothing_without_a_pool),
		TEST(early_drop_before__across_the_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
