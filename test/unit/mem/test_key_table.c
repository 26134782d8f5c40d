/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/key_table.c. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/key_table.h"
#include "sanitizer.h"
#include "test.h"

#define REST 65536u

/* The table never looks into a region: addresses of these bytes stand for regions. */
static char objects[10000];

static struct mr *region(size_t i)
{
	return (struct mr *)&objects[i];
}

TEST(key_table_create__some_bits_stay_for_chance)
{
	struct key_table *table;

	assert_int_equal(key_table_create(UINT32_MAX, &table), -ENOMEM);
	assert_int_equal(key_table_create((1 << 23) - REST + 1, &table), -ENOMEM);
	assert_int_equal(key_table_create((1 << 23) - REST, &table), 0);
	key_table_destroy(table);
}

TEST(key_table_insert__every_region_is_found_by_its_key)
{
	static uint32_t keys[5000];
	struct key_table *table;

	assert_int_equal(key_table_create(1 << 20, &table), 0);
	for (size_t i = 0; i < 5000; i++) {
		assert_int_equal(key_table_insert(table, region(i), &keys[i]), 0);
		assert_int_not_equal(keys[i], 0);
	}
	for (size_t i = 0; i < 5000; i++)
		assert_ptr_equal(key_table_find(table, keys[i]), region(i));
	key_table_destroy(table);
}

/* Key 0 stands in every slot that was freed. It is no region's. */
TEST(key_table_find__key_none_of_removed_regions)
{
	static uint32_t keys[1000];
	struct key_table *table;

	assert_int_equal(key_table_create(1000, &table), 0);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(key_table_insert(table, region(i), &keys[i]), 0);
	for (size_t i = 0; i < 1000; i++)
		key_table_remove(table, keys[i]);
	assert_null(key_table_find(table, 0));
	key_table_destroy(table);
}

/* A child may be less trusted than its parent: it must not know the next keys. */
TEST(key_table_insert__keys_after_fork_are_the_parents_alone)
{
	uint32_t ours[8], theirs[8];
	struct key_table *table;
	int results[2], same = 0;
	pid_t child;

	assert_int_equal(key_table_create(1 << 20, &table), 0);
	/* Some random numbers are left. */
	assert_int_equal(key_table_insert(table, region(0), &ours[0]), 0);
	assert_int_equal(pipe(results), 0);
	child = fork();
	if (child == 0) {
		for (size_t i = 0; i < 8; i++)
			key_table_insert(table, region(i + 1), &theirs[i]);
		_exit(write(results[1], theirs, sizeof(theirs)) != (ssize_t)sizeof(theirs));
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read(results[0], theirs, sizeof(theirs)), sizeof(theirs));
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(key_table_insert(table, region(i + 1), &ours[i]), 0);
		assert_ptr_equal(key_table_find(table, ours[i]), region(i + 1));
		/* Not even the upper bits, which do not change with the tag. */
		same += ours[i] >> 8 == theirs[i] >> 8;
	}
	assert_true(same < 2);
	close(results[0]);
	close(results[1]);
	key_table_destroy(table);
}

TEST(key_table_insert__keeps_the_cancellation_of_the_thread)
{
	static const int kept[] = {PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_ENABLE};
	struct key_table *table;
	uint32_t key;
	int now;

	assert_int_equal(key_table_create(16, &table), 0);
	for (size_t i = 0; i < 2; i++) {
		pthread_setcancelstate(kept[i], NULL);
		assert_int_equal(key_table_insert(table, region(i), &key), 0);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &now);
		assert_int_equal(now, kept[i]);
	}
	key_table_destroy(table);
}

static void *insert_when_cancelled(void *arg)
{
	uint32_t key;

	pthread_cancel(pthread_self());
	/* The first ones fetch random numbers. */
	for (size_t i = 0; i < 100; i++)
		key_table_insert(arg, region(i), &key);
	return arg;
}

TEST(key_table_insert__a_cancelled_thread_keeps_no_lock)
{
	struct key_table *table;
	pthread_t thread;
	uint32_t key;

	assert_int_equal(key_table_create(1 << 20, &table), 0);
	assert_int_equal(pthread_create(&thread, NULL, insert_when_cancelled, table), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	alarm(30);
	assert_int_equal(key_table_insert(table, region(100), &key), 0);
	alarm(0);
	key_table_destroy(table);
}

TEST(key_table_insert__a_full_table_answers_enospc_until_a_key_is_freed)
{
	struct key_table *table;
	uint32_t keys[700], key;

	/* The keys need more than one chunk and do not fill the last one. */
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

TEST(key_table_insert__a_table_of_none_takes_none)
{
	struct key_table *table;
	uint32_t key;

	assert_int_equal(key_table_create(0, &table), 0);
	assert_int_equal(key_table_insert(table, region(0), &key), -ENOSPC);
	assert_null(key_table_find(table, 0x12345678));
	key_table_destroy(table);
}

/* The insertion count at which each key was last freed; 0 for never. */
static uint32_t *freed_at;
static uint32_t insertions;

static uint32_t insert_rested(struct key_table *table)
{
	uint32_t key;

	assert_int_equal(key_table_insert(table, region(0), &key), 0);
	insertions++;
	assert_true(freed_at[key >> 8] == 0 || insertions - freed_at[key >> 8] > REST);
	return key;
}

static void remove_to_rest(struct key_table *table, uint32_t key)
{
	key_table_remove(table, key);
	freed_at[key >> 8] = insertions;
}

/* Keys with the same upper 24 bits rest together: a window's owner may choose the lowest byte. */
TEST(key_table_insert__a_freed_key_rests)
{
	static uint32_t keys[3000];
	struct key_table *table;

	freed_at = calloc(1 << 24, sizeof(*freed_at));
	assert_non_null(freed_at);
	insertions = 0;
	assert_int_equal(key_table_create(3000, &table), 0);
	/* Remove one key at a time, more than once around. */
	for (uint32_t i = 0; i < 3 * REST; i++)
		remove_to_rest(table, insert_rested(table));
	/* Remove in waves, and fill the table in between. */
	for (uint32_t wave = 0; wave < 100; wave++) {
		for (size_t i = 0; i < 3000; i++)
			keys[i] = insert_rested(table);
		for (size_t i = 0; i < 3000; i++)
			remove_to_rest(table, keys[i]);
	}
	key_table_destroy(table);
	free(freed_at);
}

/* A large table whose regions come and go uses few slots, and so little memory. The upper bits of a
 * key are its place in this table, behind three random ones. */
TEST(key_table_insert__takes_a_slot_that_has_rested)
{
	uint32_t key, slots = 0;
	struct key_table *table;

	freed_at = calloc(1 << 24, sizeof(*freed_at));
	assert_non_null(freed_at);
	assert_int_equal(key_table_create(1 << 20, &table), 0);
	for (uint32_t i = 0; i < 3 * REST; i++) {
		assert_int_equal(key_table_insert(table, region(0), &key), 0);
		key_table_remove(table, key);
		slots += freed_at[key >> 8 & ((1 << 21) - 1)]++ == 0;
	}
	assert_in_range(slots, REST, REST + 1);
	key_table_destroy(table);
	free(freed_at);
}

/* The number of keys of a large store; a look-up takes the same few instructions. */
/* Then the list of free slots begins anew: no slot is lost. */
TEST(key_table_insert__takes_the_only_slot_that_was_freed)
{
	struct key_table *table;
	uint32_t first, key;

	assert_int_equal(key_table_create(2 * REST, &table), 0);
	assert_int_equal(key_table_insert(table, region(0), &first), 0);
	key_table_remove(table, first);
	/* The last one gets that slot. */
	for (size_t i = 0; i <= REST; i++)
		assert_int_equal(key_table_insert(table, region(0), &key), 0);
	for (size_t i = 0; i <= 3 * REST; i++) {
		key_table_remove(table, key);
		assert_int_equal(key_table_insert(table, region(1), &key), 0);
		assert_ptr_equal(key_table_find(table, key), region(1));
	}
	key_table_destroy(table);
}

TEST(key_table_insert__a_million_regions)
{
	const uint32_t count = 1000000;
	uint32_t *keys = malloc(count * sizeof(*keys));
	struct key_table *table;

	assert_non_null(keys);
	assert_int_equal(key_table_create(1 << 20, &table), 0);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(key_table_insert(table, region(i % 1000), &keys[i]), 0);
	for (uint32_t i = 0; i < count; i++)
		assert_ptr_equal(key_table_find(table, keys[i]), region(i % 1000));
	for (uint32_t i = 0; i < count; i++)
		key_table_remove(table, keys[i]);
	assert_null(key_table_find(table, keys[0]));
	key_table_destroy(table);
	free(keys);
}

/* The thread sanitizer keeps signals back, and clang has another word for its presence. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TRAP_FLAG 0x100

static volatile sig_atomic_t steps;

static void count_step(int sig)
{
	(void)sig;
	steps++;
}

/* Count the instructions of a look-up, by single steps. */
static __attribute__((noinline)) unsigned int count_instructions(struct key_table *table,
								 uint32_t key)
{
	struct mr *found;

	steps = 0;
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
	found = key_table_find(table, key);
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(uint64_t)TRAP_FLAG);
	assert_non_null(found);
	return (unsigned int)steps;
}

TEST(key_table_find__takes_as_many_instructions_among_a_million)
{
	const struct sigaction action = {.sa_handler = count_step};
	const uint32_t count = 1000000;
	struct key_table *table;
	struct sigaction before;
	uint32_t first, key = 0;
	unsigned int alone;

	/* Measure the lookup without the cache. */
	assert_int_equal(tuning_without("key-cache"), 0);
	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	assert_int_equal(key_table_create(1 << 20, &table), 0);
	assert_int_equal(key_table_insert(table, region(0), &first), 0);
	alone = count_instructions(table, first);
	assert_true(alone > 5);
	for (uint32_t i = 1; i < count; i++)
		assert_int_equal(key_table_insert(table, region(i % 1000), &key), 0);
	assert_int_equal(count_instructions(table, first), alone);
	assert_int_equal(count_instructions(table, key), alone);
	assert_int_equal(tuning_without(""), 0);
	assert_true(count_instructions(table, key) < alone);
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
	key_table_destroy(table);
}
#endif

TEST(key_table_change__another_tag)
{
	struct key_table *table;
	uint32_t key, other, changed;

	assert_int_equal(key_table_create(16, &table), 0);
	assert_int_equal(key_table_insert(table, region(1), &key), 0);
	assert_int_equal(key_table_insert(table, region(2), &other), 0);
	for (uint32_t tag = 0; tag < 256; tag++) {
		changed = (key & 0xffffff00) | tag;
		assert_int_equal(key_table_change(table, key, changed), 0);
		assert_ptr_equal(key_table_find(table, changed), region(1));
		if (changed != key)
			assert_null(key_table_find(table, key));
		key = changed;
	}
	assert_int_equal(key_table_change(table, key, key ^ 0x100), -EINVAL);
	assert_int_equal(key_table_change(table, key, key ^ 0x80000000), -EINVAL);
	assert_int_equal(key_table_change(table, key, other), -EINVAL);
	assert_int_equal(key_table_change(table, key ^ 1, key), -EINVAL);
	assert_int_equal(key_table_change(table, 0, 0), -EINVAL);
	assert_ptr_equal(key_table_find(table, key), region(1));
	key_table_remove(table, key);
	assert_int_equal(key_table_change(table, key, key ^ 1), -EINVAL);
	key_table_destroy(table);
}

TEST(key_table_insert__keys_are_not_predictable)
{
	uint32_t ones = 0, zeros = 0, same = 0;
	struct key_table *a, *b;

	assert_int_equal(key_table_create(1 << 20, &a), 0);
	assert_int_equal(key_table_create(1 << 20, &b), 0);
	/* Every bit that is left to chance takes both values, and two tables do not agree. */
	for (size_t i = 0; i < 256; i++) {
		uint32_t key_a, key_b;

		assert_int_equal(key_table_insert(a, region(i), &key_a), 0);
		assert_int_equal(key_table_insert(b, region(i), &key_b), 0);
		ones |= key_a;
		zeros |= ~key_a;
		same += key_a == key_b;
	}
	assert_int_equal(ones & 0xe00000ff, 0xe00000ff);
	assert_int_equal(zeros & 0xe00000ff, 0xe00000ff);
	assert_in_range(same, 0, 2);
	key_table_destroy(a);
	key_table_destroy(b);
}

#define PLACES 1000

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Return how many of them differ from all others. */
static size_t count_kinds(uint32_t *values, size_t count)
{
	size_t kinds = 1;

	qsort(values, count, sizeof(*values), compare);
	for (size_t i = 1; i < count; i++)
		kinds += values[i] != values[i - 1];
	return kinds;
}

/* Steps from one place to the next, and what these steps differ by: neighbours tell of neither. */
/* Bits of a place in a table of REST: the halves that the permutation works on, and all. */
#define LOW_BITS   9
#define PLACE_BITS 17
#define PLACE_MASK ((1u << PLACE_BITS) - 1)

/* The first places of a new table. */
static void fill_places(uint32_t place[PLACES])
{
	struct key_table *table;
	uint32_t key;

	assert_int_equal(key_table_create(REST, &table), 0);
	for (size_t i = 0; i < PLACES; i++) {
		assert_int_equal(key_table_insert(table, region(i), &key), 0);
		place[i] = key >> 8 & PLACE_MASK;
	}
	key_table_destroy(table);
}

TEST(key_table_insert__places_are_not_predictable_from_others)
{
	uint32_t place[PLACES], step[PLACES], change[PLACES];
	const uint32_t mask = PLACE_MASK;

	fill_places(place);
	for (size_t i = 0; i + 1 < PLACES; i++)
		step[i] = (place[i + 1] - place[i]) & mask;
	for (size_t i = 0; i + 2 < PLACES; i++)
		change[i] = (step[i + 1] - step[i]) & mask;
	assert_true(count_kinds(step, PLACES - 1) > 950);
	assert_true(count_kinds(change, PLACES - 2) > 950);
	for (size_t i = 0; i + 1 < PLACES; i++)
		step[i] = place[i + 1] ^ place[i];
	assert_true(count_kinds(step, PLACES - 1) > 950);
}

TEST(key_table_insert__places_are_not_those_of_another_table)
{
	uint32_t a[PLACES], b[PLACES], same = 0;

	fill_places(a);
	fill_places(b);
	for (size_t i = 0; i < PLACES; i++)
		same += a[i] == b[i];
	assert_in_range(same, 0, 5);
}

/* No bit of a place correlates with a bit of the number of earlier insertions. */
TEST(key_table_insert__places_do_not_follow_the_count)
{
	uint32_t place[PLACES];

	fill_places(place);
	for (uint32_t of_place = 0; of_place < PLACE_BITS; of_place++) {
		for (uint32_t of_count = 0; (1u << of_count) < PLACES; of_count++) {
			uint32_t same = 0;

			for (uint32_t i = 0; i < PLACES; i++)
				same += (place[i] >> of_place & 1) == (i >> of_count & 1);
			assert_in_range(same, PLACES / 4, PLACES * 3 / 4);
		}
	}
}

/* With only two rounds, one half of the place would reveal the distance between two insertions. */
TEST(key_table_insert__both_halves_of_a_place_are_mixed)
{
	const size_t apart = 1u << LOW_BITS, pairs = PLACES - apart;
	uint32_t place[PLACES], low[PLACES], high[PLACES];

	fill_places(place);
	for (size_t i = 0; i < pairs; i++) {
		const uint32_t change = place[i] ^ place[i + apart];

		low[i] = change & (apart - 1);
		high[i] = change >> LOW_BITS;
	}
	assert_true(count_kinds(low, pairs) > 100);
	assert_true(count_kinds(high, pairs) > 100);
}

/* The tables have index halves of equal and of unequal length. */
TEST(key_table_insert__no_two_slots_share_a_place)
{
	for (uint32_t bits = 17; bits <= 18; bits++) {
		const uint32_t count = (1u << bits) - REST;
		uint32_t *places = malloc(count * sizeof(*places));
		struct key_table *table;
		uint32_t key;

		assert_non_null(places);
		assert_int_equal(key_table_create(count, &table), 0);
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(key_table_insert(table, region(i % 1000), &key), 0);
			places[i] = key >> 8 & ((1u << bits) - 1);
			assert_ptr_equal(key_table_find(table, key), region(i % 1000));
		}
		assert_int_equal(count_kinds(places, count), count);
		key_table_destroy(table);
		free(places);
	}
}

TEST(key_table_find__every_bit_of_the_key_counts)
{
	struct key_table *table;
	uint32_t key;

	assert_int_equal(key_table_create(1 << 20, &table), 0);
	assert_int_equal(key_table_insert(table, region(0), &key), 0);
	for (int bit = 0; bit < 32; bit++)
		assert_null(key_table_find(table, key ^ (1u << bit)));
	assert_null(key_table_find(table, 0));
	key_table_destroy(table);
}

TEST(key_table_remove__only_the_named_key_goes)
{
	struct key_table *table;
	uint32_t a, b;

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

TEST(key_table_find__never_answers_with_another_region)
{
	static struct race race;
	pthread_t reader;

	assert_int_equal(key_table_create(2, &race.table), 0);
	assert_int_equal(pthread_create(&reader, NULL, look_up, &race), 0);
	for (uint32_t i = 0; i < RACE_ROUNDS; i++) {
		assert_int_equal(key_table_insert(race.table, region(i), &race.keys[i]), 0);
		__atomic_store_n(&race.published, i + 1, __ATOMIC_RELEASE);
		if (i > 0)
			key_table_remove(race.table, race.keys[i - 1]);
	}
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_int_equal(race.wrong, 0);
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

TEST(key_table_insert__threads_do_not_share_a_key)
{
	static struct race race;
	pthread_t threads[3];

	assert_int_equal(key_table_create(24, &race.table), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, &race), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(race.wrong, 0);
	key_table_destroy(race.table);
}

TEST(key_table_destroy__gives_all_memory_back)
{
	const uint32_t count = 5000;
	struct key_table *table;
	size_t heap, before;
	uint32_t key;

	key_table_destroy(NULL);
	heap = mallinfo2().uordblks;
	assert_int_equal(key_table_create(count, &table), 0);
	before = mallinfo2().uordblks;
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(key_table_insert(table, region(i), &key), 0);
	/* A sanitizer has a heap of its own, and finds what is lost there. */
	if (!THREAD_SANITIZER && !ADDRESS_SANITIZER)
		assert_true(mallinfo2().uordblks > before + count * sizeof(struct key_slot));
	key_table_destroy(table);
	assert_int_equal(mallinfo2().uordblks, heap);
}

struct visit {
	const struct mr *mr;
	uint32_t key;
};

static struct visit visits[700];
static size_t visited;

static void visit(const struct mr *mr, uint32_t key, void *arg)
{
	assert_ptr_equal(arg, visits);
	assert_in_range(visited, 0, 699);
	visits[visited++] = (struct visit){mr, key};
}

TEST(key_table_each__calls_for_each_key_once)
{
	uint32_t keys[700];
	struct key_table *table;

	assert_int_equal(key_table_create(700, &table), 0);
	visited = 0;
	key_table_each(table, visit, visits);
	assert_int_equal(visited, 0);
	for (size_t i = 0; i < 700; i++)
		assert_int_equal(key_table_insert(table, region(i), &keys[i]), 0);
	key_table_remove(table, keys[1]);
	key_table_remove(table, keys[699]);
	key_table_remove(table, keys[300]);
	key_table_each(table, visit, visits);
	assert_int_equal(visited, 697);
	for (size_t i = 0; i < visited; i++) {
		const size_t of = (size_t)((const char *)visits[i].mr - objects);

		assert_int_equal(visits[i].key, keys[of]);
		keys[of] = 0;
	}
	key_table_destroy(table);
}

TEST(key_table_find_any_tag__whatever_the_lowest_byte)
{
	struct key_table *table;
	uint32_t key;

	assert_int_equal(key_table_create(16, &table), 0);
	assert_null(key_table_find_any_tag(table, 0));
	assert_null(key_table_find_any_tag(table, 0x12345678));
	assert_int_equal(key_table_insert(table, region(1), &key), 0);
	for (uint32_t tag = 0; tag < 256; tag++)
		assert_ptr_equal(key_table_find_any_tag(table, (key & 0xffffff00) | tag),
				 region(1));
	for (int bit = 8; bit < 32; bit++)
		assert_null(key_table_find_any_tag(table, key ^ (1u << bit)));
	key_table_remove(table, key);
	assert_null(key_table_find_any_tag(table, key));
	key_table_destroy(table);
}
