/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/key_table.c. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mem/key_table.h"

/* The table never looks into a region: addresses of these bytes stand for regions. */
static char objects[10000];

static struct mr *region(size_t i)
{
	return (struct mr *)&objects[i];
}

static void key_table_create__some_bits_stay_for_chance(void **state)
{
	struct key_table *table;

	(void)state;
	assert_int_equal(key_table_create(UINT32_MAX, &table), -ENOMEM);
	assert_int_equal(key_table_create((1 << 24) + 1, &table), -ENOMEM);
	assert_int_equal(key_table_create(1 << 24, &table), 0);
	key_table_destroy(table);
}

static void key_table_insert__every_region_is_found_by_its_key(void **state)
{
	static uint32_t keys[5000];
	struct key_table *table;

	(void)state;
	assert_int_equal(key_table_create(1 << 20, &table), 0);
	for (size_t i = 0; i < 5000; i++) {
		assert_int_equal(key_table_insert(table, region(i), &keys[i]), 0);
		assert_int_not_equal(keys[i], 0);
	}
	for (size_t i = 0; i < 5000; i++)
		assert_ptr_equal(key_table_find(table, keys[i]), region(i));
	key_table_destroy(table);
}

static void key_table_insert__a_full_table_answers_enospc_until_a_key_is_freed(void **state)
{
	struct key_table *table;
	uint32_t keys[700], key;

	(void)state;
	/* More than one chunk, and the last one not whole. */
	assert_int_equal(key_table_create(700, &table), 0);
	for (size_t i = 0; i < 700; i++)
		assert_int_equal(key_table_insert(table, region(i), &keys[i]), 0);
	assert_int_equal(key_table_insert(table, region(700), &key), -ENOSPC);
	key_table_remove(table, keys[123]);
	assert_int_equal(key_table_insert(table, region(700), &key), 0);
	assert_ptr_equal(key_table_find(table, key), region(700));
	assert_int_equal(key_table_insert(table, region(701), &key), -ENOSPC);
	key_table_destroy(table);
}

static void key_table_insert__a_table_of_none_takes_none(void **state)
{
	struct key_table *table;
	uint32_t key;

	(void)state;
	assert_int_equal(key_table_create(0, &table), 0);
	assert_int_equal(key_table_insert(table, region(0), &key), -ENOSPC);
	assert_null(key_table_find(table, 0x12345678));
	key_table_destroy(table);
}

static void key_table_insert__a_freed_place_rests(void **state)
{
	bool seen[2048] = {false};
	struct key_table *table;
	uint32_t key;

	(void)state;
	assert_int_equal(key_table_create(2048, &table), 0);
	/* However many are in use, 511 others have their turn before a place comes back; the low
	 * bits say which it is. */
	for (size_t i = 0; i < 500; i++)
		assert_int_equal(key_table_insert(table, region(0), &key), 0);
	for (size_t i = 0; i < 512; i++) {
		assert_int_equal(key_table_insert(table, region(0), &key), 0);
		assert_false(seen[key & 2047]);
		seen[key & 2047] = true;
		key_table_remove(table, key);
	}
	key_table_destroy(table);
}

static void key_table_insert__a_place_never_repeats_its_last_key(void **state)
{
	uint32_t *last = calloc(1 << 24, sizeof(*last));
	struct key_table *table;
	uint32_t key;

	(void)state;
	assert_non_null(last);
	/* The largest table has the fewest random bits, 8: chance alone would repeat many of 20,000
	 * keys. */
	assert_int_equal(key_table_create(1 << 24, &table), 0);
	for (size_t i = 0; i < 20000; i++) {
		assert_int_equal(key_table_insert(table, region(0), &key), 0);
		assert_int_not_equal(key, last[key & 0xffffff]);
		last[key & 0xffffff] = key;
		key_table_remove(table, key);
	}
	key_table_destroy(table);
	free(last);
}

static void key_table_insert__keys_are_not_predictable(void **state)
{
	uint32_t ones = 0, zeros = 0, same = 0;
	struct key_table *a, *b;

	(void)state;
	assert_int_equal(key_table_create(1 << 20, &a), 0);
	assert_int_equal(key_table_create(1 << 20, &b), 0);
	/* Every bit takes both values, and two tables do not agree. */
	for (size_t i = 0; i < 256; i++) {
		uint32_t key_a, key_b;

		assert_int_equal(key_table_insert(a, region(i), &key_a), 0);
		assert_int_equal(key_table_insert(b, region(i), &key_b), 0);
		ones |= key_a;
		zeros |= ~key_a;
		same += key_a == key_b;
	}
	assert_int_equal(ones >> 20, 0xfff);
	assert_int_equal(zeros >> 20, 0xfff);
	assert_in_range(same, 0, 2);
	key_table_destroy(a);
	key_table_destroy(b);
}

static void key_table_find__every_bit_of_the_key_counts(void **state)
{
	struct key_table *table;
	uint32_t key;

	(void)state;
	assert_int_equal(key_table_create(1 << 20, &table), 0);
	assert_int_equal(key_table_insert(table, region(0), &key), 0);
	for (int bit = 0; bit < 32; bit++)
		assert_null(key_table_find(table, key ^ (1u << bit)));
	assert_null(key_table_find(table, 0));
	key_table_destroy(table);
}

static void key_table_remove__only_the_named_key_goes(void **state)
{
	struct key_table *table;
	uint32_t a, b;

	(void)state;
	assert_int_equal(key_table_create(16, &table), 0);
	assert_int_equal(key_table_insert(table, region(1), &a), 0);
	assert_int_equal(key_table_insert(table, region(2), &b), 0);
	key_table_remove(table, a ^ 0x80000000u);
	assert_ptr_equal(key_table_find(table, a), region(1));
	key_table_remove(table, a);
	key_table_remove(table, a);
	assert_null(key_table_find(table, a));
	assert_ptr_equal(key_table_find(table, b), region(2));
	/* Removing twice has not freed the place twice. */
	for (size_t i = 0; i < 15; i++)
		assert_int_equal(key_table_insert(table, region(i), &a), 0);
	assert_int_equal(key_table_insert(table, region(0), &a), -ENOSPC);
	key_table_destroy(table);
}

#define RACE_ROUNDS 10000

struct race {
	struct key_table *table;
	uint32_t keys[RACE_ROUNDS];
	uint32_t published; /* atomic: keys below are there to be looked up */
	uint32_t wrong;	    /* atomic */
};

static void *look_up(void *arg)
{
	struct race *race = arg;
	uint32_t n;

	do {
		n = __atomic_load_n(&race->published, __ATOMIC_ACQUIRE);
		/* The newest few: those that come and go right now. */
		for (uint32_t i = n > 4 ? n - 4 : 0; i < n; i++) {
			struct mr *mr = key_table_find(race->table, race->keys[i]);

			if (mr && mr != region(i))
				__atomic_fetch_add(&race->wrong, 1, __ATOMIC_RELAXED);
		}
	} while (n < RACE_ROUNDS);
	return NULL;
}

static void key_table_find__never_answers_with_another_region(void **state)
{
	static struct race race;
	pthread_t reader;

	(void)state;
	assert_int_equal(key_table_create(2, &race.table), 0);
	assert_int_equal(pthread_create(&reader, NULL, look_up, &race), 0);
	for (uint32_t i = 0; i < RACE_ROUNDS; i++) {
		assert_int_equal(key_table_insert(race.table, region(i), &race.keys[i]), 0);
		__atomic_store_n(&race.published, i + 1, __ATOMIC_RELEASE);
		if (i > 0)
			key_table_remove(race.table, race.keys[i - 1]);
	}
	assert_int_equal(pthread_join(reader, NULL), 0);
	/* The same 32 bits may come back to a place by chance after two turns; not more often than
	 * chance has it. */
	assert_in_range(race.wrong, 0, 1);
	key_table_destroy(race.table);
}

static void *churn(void *arg)
{
	struct race *race = arg;
	uint32_t keys[8];

	for (uint32_t round = 0; round < 2000; round++) {
		for (size_t i = 0; i < 8; i++) {
			if (key_table_insert(race->table, region(i), &keys[i]) != 0 ||
			    key_table_find(race->table, keys[i]) != region(i))
				__atomic_fetch_add(&race->wrong, 1, __ATOMIC_RELAXED);
		}
		for (size_t i = 0; i < 8; i++)
			key_table_remove(race->table, keys[i]);
	}
	return NULL;
}

static void key_table_insert__threads_do_not_share_a_key(void **state)
{
	static struct race race;
	pthread_t threads[3];

	(void)state;
	assert_int_equal(key_table_create(24, &race.table), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, &race), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(race.wrong, 0);
	key_table_destroy(race.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_table_create__some_bits_stay_for_chance),
		cmocka_unit_test(key_table_insert__every_region_is_found_by_its_key),
		cmocka_unit_test(
			key_table_insert__a_full_table_answers_enospc_until_a_key_is_freed),
		cmocka_unit_test(key_table_insert__a_table_of_none_takes_none),
		cmocka_unit_test(key_table_insert__a_freed_place_rests),
		cmocka_unit_test(key_table_insert__a_place_never_repeats_its_last_key),
		cmocka_unit_test(key_table_insert__keys_are_not_predictable),
		cmocka_unit_test(key_table_insert__threads_do_not_share_a_key),
		cmocka_unit_test(key_table_find__every_bit_of_the_key_counts),
		cmocka_unit_test(key_table_find__never_answers_with_another_region),
		cmocka_unit_test(key_table_remove__only_the_named_key_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
