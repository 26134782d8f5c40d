/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/ooo.c: what is kept, in which order, and what is not. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guard.h"
#include "transport/ooo.h"
#include "wire/headers.h"
#include "wire/packet.h"
#include "test.h"

#define EXPECTED 0xfffffeu /* PSNs wrap soon */
#define POOL	 8u

static struct ooo_pool *pool;
static struct ooo ooo;
static uint8_t payload[OOO_BYTES_MAX + 4];

static int set_up(TEST_STATE)
{
	assert_int_equal(ooo_pool_create(POOL, &pool), 0);
	ooo = (struct ooo){.pool = pool};
	return 0;
}

static int tear_down(TEST_STATE)
{
	ooo_clear(&ooo);
	ooo_pool_destroy(pool);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Make a packet that is this far ahead. Its payload is its number. */
static struct packet ahead(uint32_t n, uint32_t len)
{
	memset(payload, (int)n, sizeof(payload));
	return (struct packet){
		.psn = psn_make(EXPECTED + n), .payload = payload, .payload_len = len};
}

/* Keep a packet while `from` is the expected PSN. */
static bool keep_from(struct ooo *list, uint32_t from, uint32_t n, uint32_t len)
{
	const struct packet packet = ahead(n, len);
	uint32_t place;

	if (ooo_look(list, &packet, psn_make(EXPECTED + from), &place) != OOO_TAKEN)
		return false;
	ooo_keep(list, &packet, place, NULL);
	return true;
}

static bool keep(struct ooo *list, uint32_t n, uint32_t len)
{
	return keep_from(list, 0, n, len);
}

static void expect_first(uint32_t n, uint32_t len)
{
	const struct packet *first = ooo_first(&ooo);

	assert_non_null(first);
	assert_int_equal(first->psn.v, psn_make(EXPECTED + n).v);
	assert_int_equal(first->payload_len, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(first->payload[i], (uint8_t)n);
	ooo_drop(&ooo);
}

TEST(ooo_keep__in_the_order_of_psns_whatever_the_order_of_coming)
{
	static const uint32_t numbers[] = {3, 1, 6, 2, 5};
	static const uint32_t sorted[] = {1, 2, 3, 5, 6};

	assert_null(ooo_first(&ooo));
	for (size_t i = 0; i < 5; i++)
		assert_true(keep(&ooo, numbers[i], 10 * numbers[i]));
	/* The frames were reused by then. */
	memset(payload, 0xee, sizeof(payload));
	for (size_t i = 0; i < 5; i++)
		expect_first(sorted[i], 10 * sorted[i]);
	assert_null(ooo_first(&ooo));
}

TEST(ooo_keep__of_the_longest_payload)
{
	assert_true(keep(&ooo, 1, OOO_BYTES_MAX));
	assert_false(keep(&ooo, 2, OOO_BYTES_MAX + 4));
	expect_first(1, OOO_BYTES_MAX);
}

TEST(ooo_keep__what_is_placed_has_no_payload)
{
	const struct packet packet = ahead(1, 77);

	assert_null(ooo_placed(&ooo));
	ooo_keep(&ooo, &packet, 0, payload);
	assert_null(ooo_first(&ooo)->payload);
	assert_ptr_equal(ooo_placed(&ooo), payload);
	assert_int_equal(ooo_first(&ooo)->payload_len, 77);
}

/* The window moves on meanwhile, as during a long loss. */
TEST(ooo_keep__of_many_each_once_in_any_order)
{
	const uint32_t window = OOO_LIST_PKTS - 1, steps = 4000;
	bool there[4000 / 3 + OOO_LIST_PKTS + 1] = {false};
	struct ooo_pool *large;
	uint32_t from = 1, random = 1, count = 0;

	assert_int_equal(ooo_pool_create(OOO_LIST_PKTS, &large), 0);
	ooo.pool = large;
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t n;

		random = random * 1103515245 + 12345;
		n = from + (random >> 16) % window;
		assert_int_equal(keep_from(&ooo, from - 1, n, 1), !there[n]);
		count += !there[n];
		there[n] = true;
		if (i % 3 == 0) {
			assert_int_equal(ooo_drop_before(&ooo, psn_make(EXPECTED + from + 1)),
					 there[from]);
			count -= there[from++];
		}
		assert_int_equal(ooo.count, count);
	}
	for (uint32_t n = from; n < from + window; n++) {
		if (there[n])
			expect_first(n, 1);
	}
	assert_int_equal(ooo.count, 0);
	ooo_pool_destroy(large);
}

TEST(ooo_look__no_packet_twice)
{
	assert_true(keep(&ooo, 1, 1));
	assert_true(keep(&ooo, 3, 1));
	assert_false(keep(&ooo, 1, 1));
	assert_false(keep(&ooo, 3, 1));
	assert_true(keep(&ooo, 2, 1));
	assert_int_equal(ooo.count, 3);
}

TEST(ooo_look__only_what_is_ahead_and_in_reach)
{
	assert_false(keep(&ooo, 0, 1));
	assert_false(keep(&ooo, 0u - 1, 1));
	assert_false(keep(&ooo, OOO_REACH, 1));
	assert_false(keep(&ooo, 0x7fffff, 1));
	assert_true(keep(&ooo, OOO_REACH - 1, 1));
}

TEST(ooo_look__as_many_as_the_pool_has)
{
	struct ooo other = {.pool = pool};

	for (uint32_t n = 1; n <= POOL / 2; n++) {
		assert_true(keep(&ooo, n, 1));
		assert_true(keep(&other, n, 1));
	}
	assert_false(keep(&ooo, 100, 1));
	/* Room of dropped packets can be used by any list. */
	ooo_clear(&other);
	for (uint32_t n = 1; n <= POOL / 2; n++)
		assert_true(keep(&ooo, 100 + n, 1));
	assert_int_equal(ooo.count, POOL);
}

TEST(ooo_keep__the_list_that_stood_still_longest_gives_its_farthest)
{
	struct ooo other = {.pool = pool};

	for (uint32_t n = 1; n <= POOL / 2; n++) {
		assert_true(keep(&ooo, n, 1));
		assert_true(keep(&other, n, 1));
	}
	assert_true(keep(&other, POOL, 1));
	assert_int_equal(ooo.count, POOL / 2 - 1);
	expect_first(1, 1);
	/* This list has made progress now, and the other one has not. */
	assert_true(keep(&ooo, POOL, 1));
	assert_true(keep(&ooo, POOL + 1, 1));
	assert_int_equal(other.count, POOL / 2);
	assert_false(keep(&other, POOL, 1));
	for (uint32_t n = 2; n < POOL / 2; n++)
		expect_first(n, 1);
	expect_first(POOL, 1);
	expect_first(POOL + 1, 1);
	ooo_clear(&other);
}

TEST(ooo_keep__lists_that_stand_still_keep_nobody_out)
{
	const uint32_t count = OOO_POOL_PKTS / OOO_LIST_PKTS;
	struct ooo stuck[OOO_POOL_PKTS / OOO_LIST_PKTS] = {0};
	struct ooo_pool *large;
	struct ooo moving = {0};

	assert_int_equal(ooo_pool_create(OOO_POOL_PKTS, &large), 0);
	for (uint32_t i = 0; i < count; i++) {
		stuck[i].pool = large;
		for (uint32_t n = 1; n <= OOO_LIST_PKTS; n++)
			assert_true(keep(&stuck[i], n, 1));
	}
	moving.pool = large;
	for (uint32_t n = 1; n <= OOO_LIST_PKTS; n++)
		assert_true(keep(&moving, n, 1));
	for (uint32_t i = 0; i < count; i++)
		ooo_clear(&stuck[i]);
	ooo_clear(&moving);
	ooo_pool_destroy(large);
}

TEST(ooo_look__as_many_as_one_list_may)
{
	struct ooo_pool *large;
	struct ooo greedy = {0};

	assert_int_equal(ooo_pool_create(OOO_LIST_PKTS + 1, &large), 0);
	greedy.pool = large;
	for (uint32_t n = 1; n <= OOO_LIST_PKTS; n++)
		assert_true(keep(&greedy, n, 1));
	assert_false(keep(&greedy, OOO_LIST_PKTS + 1, 1));
	ooo_clear(&greedy);
	ooo_pool_destroy(large);
}

/* The peer has announced a long window. The list grows in the middle, and shrinks from its begin.
 */
TEST(ooo_keep__a_list_of_a_long_reach_grows_and_shrinks)
{
	const uint32_t many = 4 * OOO_LIST_PKTS, left = 50;
	struct ooo_pool *large;

	assert_int_equal(ooo_pool_create(many + 1, &large), 0);
	ooo.pool = large;
	ooo.reach = many + OOO_REACH - OOO_LIST_PKTS;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t n = 1; n <= many; n += 2)
			assert_true(keep(&ooo, n, 1));
		for (uint32_t n = 2; n <= many; n += 2)
			assert_true(keep(&ooo, n, 1));
		ooo_check(&ooo);
		assert_false(keep(&ooo, many + 1, 1));
		/* What follows moves, and nothing behind the full list. */
		ooo_remove(&ooo, many / 2);
		ooo_check(&ooo);
		assert_true(ooo_drop_before(&ooo, psn_make(EXPECTED + many + 1 - left)));
		ooo_check(&ooo);
		assert_int_equal(ooo.count, left);
		for (uint32_t n = many + 1 - left; n <= many; n++)
			expect_first(n, 1);
	}
	assert_int_equal(ooo.count, 0);
	ooo_pool_destroy(large);
}

/* A packet that is in the list is found even if there is no room for more. */
TEST(ooo_look__tells_of_what_is_there)
{
	struct packet packet;
	uint32_t place;

	for (uint32_t n = POOL; n > 0; n--)
		assert_true(keep(&ooo, 2 * n, n));
	for (uint32_t n = 1; n <= POOL; n++) {
		packet = ahead(2 * n, n);
		assert_int_equal(ooo_look(&ooo, &packet, psn_make(EXPECTED), &place), OOO_THERE);
		assert_int_equal(place, n - 1);
		assert_int_equal(ooo_at(&ooo, place)->psn.v, packet.psn.v);
		packet = ahead(2 * n + 1, n);
		assert_int_equal(ooo_look(&ooo, &packet, psn_make(EXPECTED), &place), OOO_REFUSED);
	}
}

TEST(ooo_same_payload__byte_for_byte)
{
	struct packet packet;

	assert_true(keep(&ooo, 1, WIRE_MTU_MAX));
	packet = ahead(1, WIRE_MTU_MAX);
	assert_true(ooo_same_payload(&ooo, 0, &packet));
	packet.payload_len--;
	assert_false(ooo_same_payload(&ooo, 0, &packet));
	packet.payload_len++;
	payload[WIRE_MTU_MAX - 1] ^= 1;
	assert_false(ooo_same_payload(&ooo, 0, &packet));
	assert_true(keep(&ooo, 2, 0));
	packet = ahead(2, 0);
	packet.payload = NULL;
	assert_true(ooo_same_payload(&ooo, 1, &packet));
}

/* A placed payload is compared in the memory where it was placed, which may be unmapped by now. */
TEST(ooo_same_payload__of_what_was_placed)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct packet packet = ahead(1, 100);

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(guard_install(), 0);
	memset(memory, 1, 100);
	ooo_keep(&ooo, &packet, 0, memory);
	assert_ptr_equal(ooo_placed_at(&ooo, 0), memory);
	assert_true(ooo_same_payload(&ooo, 0, &packet));
	memory[99] ^= 1;
	assert_false(ooo_same_payload(&ooo, 0, &packet));
	munmap(memory, page);
	assert_false(ooo_same_payload(&ooo, 0, &packet));
}

TEST(ooo_remove__from_anywhere)
{
	for (uint32_t n = 1; n <= 5; n++)
		assert_true(keep(&ooo, n, n));
	ooo_remove(&ooo, 4);
	ooo_remove(&ooo, 2);
	ooo_remove(&ooo, 0);
	assert_int_equal(ooo.count, 2);
	/* The packet can be kept again. */
	assert_true(keep(&ooo, 3, 30));
	expect_first(2, 2);
	expect_first(3, 30);
	expect_first(4, 4);
	assert_true(keep(&ooo, 7, 1));
	ooo_remove(&ooo, 0);
	assert_int_equal(ooo.count, 0);
	assert_null(ooo_first(&ooo));
}

/* Keep a packet at this time. */
static void keep_at(uint32_t n, uint64_t now_ns)
{
	assert_true(keep(&ooo, n, 4));
	ooo_stamp(&ooo, psn_make(EXPECTED + n), now_ns);
}

TEST(ooo_drop_old__what_was_kept_for_longer)
{
	keep_at(5, 1000);
	keep_at(2, 1040);
	keep_at(9, 1060);
	/* Only the first stamp counts; and none of a packet that is not there. */
	ooo_stamp(&ooo, psn_make(EXPECTED + 5), 1200);
	ooo_stamp(&ooo, psn_make(EXPECTED + 6), 1200);
	ooo_stamp(&ooo, psn_make(EXPECTED + 60), 1200);
	assert_int_equal(ooo_drop_old(&ooo, 80, 1080), 0);
	assert_int_equal(ooo_drop_old(&ooo, 80, 1081), 1);
	assert_int_equal(ooo_drop_old(&ooo, 80, 1120), 0);
	assert_int_equal(ooo_drop_old(&ooo, 80, 1121), 1);
	assert_int_equal(ooo.count, 1);
	ooo_check(&ooo);
	expect_first(9, 4);
	assert_int_equal(ooo_drop_old(&ooo, 80, 5000), 0);
}

TEST(ooo_drop_old__of_many_leaves_the_list_as_it_must_be)
{
	for (uint32_t n = 1; n <= POOL; n++)
		keep_at(n, 1000 + (n > POOL / 2));
	assert_int_equal(ooo_drop_old(&ooo, 80, 1081), POOL / 2);
	ooo_check(&ooo);
	assert_int_equal(ooo.count, POOL / 2);
	/* Another look is worth its cost only an eighth of the time later. */
	assert_int_equal(ooo_drop_old(&ooo, 80, 1091), 0);
	assert_int_equal(ooo_drop_old(&ooo, 80, 1092), POOL / 2);
	ooo_check(&ooo);
	/* All packets are free again. */
	for (uint32_t n = 1; n <= POOL; n++)
		keep_at(n, 2000);
}

TEST(ooo_look__nothing_without_a_pool)
{
	struct ooo none = {0};

	assert_false(keep(&none, 1, 1));
	assert_null(ooo_first(&none));
	ooo_drop_before(&none, psn_make(5));
	ooo_clear(&none);
}

TEST(ooo_drop_before__across_the_wrap)
{
	for (uint32_t n = 1; n <= 5; n++)
		assert_true(keep(&ooo, n, n));
	ooo_drop_before(&ooo, psn_make(EXPECTED + 4));
	expect_first(4, 4);
	ooo_drop_before(&ooo, psn_make(EXPECTED + 100));
	assert_int_equal(ooo.count, 0);
}
