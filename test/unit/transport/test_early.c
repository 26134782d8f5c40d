/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/early.c: what is kept, in which order, and what is not. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guard.h"
#include "transport/early.h"
#include "wire/headers.h"
#include "wire/packet.h"
#include "test.h"

#define EXPECTED 0xfffffeu /* PSNs wrap soon */
#define POOL	 8u

static struct early_pool *pool;
static struct early early;
static uint8_t payload[EARLY_BYTES_MAX + 4];

static int set_up(TEST_STATE)
{
	assert_int_equal(early_pool_create(POOL, &pool), 0);
	early = (struct early){.pool = pool};
	return 0;
}

static int tear_down(TEST_STATE)
{
	early_clear(&early);
	early_pool_destroy(pool);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* A packet so far ahead, whose payload is its number. */
static struct packet ahead(uint32_t n, uint32_t len)
{
	memset(payload, (int)n, sizeof(payload));
	return (struct packet){
		.psn = psn_make(EXPECTED + n), .payload = payload, .payload_len = len};
}

/* Where `from` is expected. */
static bool keep_from(struct early *list, uint32_t from, uint32_t n, uint32_t len)
{
	const struct packet packet = ahead(n, len);
	uint32_t place;

	if (early_look(list, &packet, psn_make(EXPECTED + from), &place) != EARLY_TAKEN)
		return false;
	early_keep(list, &packet, place, NULL);
	return true;
}

static bool keep(struct early *list, uint32_t n, uint32_t len)
{
	return keep_from(list, 0, n, len);
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

TEST(early_keep__in_the_order_of_psns_whatever_the_order_of_coming)
{
	static const uint32_t numbers[] = {3, 1, 6, 2, 5};
	static const uint32_t sorted[] = {1, 2, 3, 5, 6};

	assert_null(early_first(&early));
	for (size_t i = 0; i < 5; i++)
		assert_true(keep(&early, numbers[i], 10 * numbers[i]));
	/* The frames are gone by then. */
	memset(payload, 0xee, sizeof(payload));
	for (size_t i = 0; i < 5; i++)
		expect_first(sorted[i], 10 * sorted[i]);
	assert_null(early_first(&early));
}

TEST(early_keep__of_the_longest_payload)
{
	assert_true(keep(&early, 1, EARLY_BYTES_MAX));
	assert_false(keep(&early, 2, EARLY_BYTES_MAX + 4));
	expect_first(1, EARLY_BYTES_MAX);
}

TEST(early_keep__what_is_placed_has_no_payload)
{
	const struct packet packet = ahead(1, 77);

	assert_null(early_placed(&early));
	early_keep(&early, &packet, 0, payload);
	assert_null(early_first(&early)->payload);
	assert_ptr_equal(early_placed(&early), payload);
	assert_int_equal(early_first(&early)->payload_len, 77);
}

/* Over a window that moves on, as of a long loss. */
TEST(early_keep__of_many_each_once_in_any_order)
{
	const uint32_t window = EARLY_LIST_PKTS - 1, steps = 4000;
	bool there[4000 / 3 + EARLY_LIST_PKTS + 1] = {false};
	struct early_pool *large;
	uint32_t from = 1, random = 1, count = 0;

	assert_int_equal(early_pool_create(EARLY_LIST_PKTS, &large), 0);
	early.pool = large;
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t n;

		random = random * 1103515245 + 12345;
		n = from + (random >> 16) % window;
		assert_int_equal(keep_from(&early, from - 1, n, 1), !there[n]);
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

TEST(early_look__no_packet_twice)
{
	assert_true(keep(&early, 1, 1));
	assert_true(keep(&early, 3, 1));
	assert_false(keep(&early, 1, 1));
	assert_false(keep(&early, 3, 1));
	assert_true(keep(&early, 2, 1));
	assert_int_equal(early.count, 3);
}

TEST(early_look__only_what_is_ahead_and_in_reach)
{
	assert_false(keep(&early, 0, 1));
	assert_false(keep(&early, 0u - 1, 1));
	assert_false(keep(&early, EARLY_REACH, 1));
	assert_false(keep(&early, 0x7fffff, 1));
	assert_true(keep(&early, EARLY_REACH - 1, 1));
}

TEST(early_look__as_many_as_the_pool_has)
{
	struct early other = {.pool = pool};

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

TEST(early_keep__the_list_that_stood_still_longest_gives_its_farthest)
{
	struct early other = {.pool = pool};

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

TEST(early_keep__lists_that_stand_still_keep_nobody_out)
{
	const uint32_t count = EARLY_POOL_PKTS / EARLY_LIST_PKTS;
	struct early stuck[EARLY_POOL_PKTS / EARLY_LIST_PKTS] = {0};
	struct early_pool *large;
	struct early moving = {0};

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

TEST(early_look__as_many_as_one_list_may)
{
	struct early_pool *large;
	struct early greedy = {0};

	assert_int_equal(early_pool_create(EARLY_LIST_PKTS + 1, &large), 0);
	greedy.pool = large;
	for (uint32_t n = 1; n <= EARLY_LIST_PKTS; n++)
		assert_true(keep(&greedy, n, 1));
	assert_false(keep(&greedy, EARLY_LIST_PKTS + 1, 1));
	early_clear(&greedy);
	early_pool_destroy(large);
}

/* One that is there is found also where there is no room for more. */
TEST(early_look__tells_of_what_is_there)
{
	struct packet packet;
	uint32_t place;

	for (uint32_t n = POOL; n > 0; n--)
		assert_true(keep(&early, 2 * n, n));
	for (uint32_t n = 1; n <= POOL; n++) {
		packet = ahead(2 * n, n);
		assert_int_equal(early_look(&early, &packet, psn_make(EXPECTED), &place),
				 EARLY_THERE);
		assert_int_equal(place, n - 1);
		assert_int_equal(early_at(&early, place)->psn.v, packet.psn.v);
		packet = ahead(2 * n + 1, n);
		assert_int_equal(early_look(&early, &packet, psn_make(EXPECTED), &place),
				 EARLY_REFUSED);
	}
}

TEST(early_same_payload__byte_for_byte)
{
	struct packet packet;

	assert_true(keep(&early, 1, WIRE_MTU_MAX));
	packet = ahead(1, WIRE_MTU_MAX);
	assert_true(early_same_payload(&early, 0, &packet));
	packet.payload_len--;
	assert_false(early_same_payload(&early, 0, &packet));
	packet.payload_len++;
	payload[WIRE_MTU_MAX - 1] ^= 1;
	assert_false(early_same_payload(&early, 0, &packet));
	assert_true(keep(&early, 2, 0));
	packet = ahead(2, 0);
	packet.payload = NULL;
	assert_true(early_same_payload(&early, 1, &packet));
}

/* It is compared where it is, which may be nowhere by now. */
TEST(early_same_payload__of_what_was_placed)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct packet packet = ahead(1, 100);

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(guard_install(), 0);
	memset(memory, 1, 100);
	early_keep(&early, &packet, 0, memory);
	assert_ptr_equal(early_placed_at(&early, 0), memory);
	assert_true(early_same_payload(&early, 0, &packet));
	memory[99] ^= 1;
	assert_false(early_same_payload(&early, 0, &packet));
	munmap(memory, page);
	assert_false(early_same_payload(&early, 0, &packet));
}

TEST(early_remove__from_anywhere)
{
	for (uint32_t n = 1; n <= 5; n++)
		assert_true(keep(&early, n, n));
	early_remove(&early, 4);
	early_remove(&early, 2);
	early_remove(&early, 0);
	assert_int_equal(early.count, 2);
	/* It can come again. */
	assert_true(keep(&early, 3, 30));
	expect_first(2, 2);
	expect_first(3, 30);
	expect_first(4, 4);
	assert_true(keep(&early, 7, 1));
	early_remove(&early, 0);
	assert_int_equal(early.count, 0);
	assert_null(early_first(&early));
}

TEST(early_look__nothing_without_a_pool)
{
	struct early none = {0};

	assert_false(keep(&none, 1, 1));
	assert_null(early_first(&none));
	early_drop_before(&none, psn_make(5));
	early_clear(&none);
}

TEST(early_drop_before__across_the_wrap)
{
	for (uint32_t n = 1; n <= 5; n++)
		assert_true(keep(&early, n, n));
	early_drop_before(&early, psn_make(EXPECTED + 4));
	expect_first(4, 4);
	early_drop_before(&early, psn_make(EXPECTED + 100));
	assert_int_equal(early.count, 0);
}
