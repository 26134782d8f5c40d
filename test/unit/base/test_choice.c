/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/meter.c: the choice between two ways by their costs. */
#include <stdint.h>

#include "base/meter.h"
#include "test.h"

#define AGAIN_MIN 1000
#define AGAIN_MAX 4000

/* Note one cost for each way in each round; `costs[way]`. */
static void try_all(struct choice *choice, const uint32_t *costs)
{
	choice_try(choice);
	for (int i = 0; choice->tries && i < 2 * CHOICE_ROUNDS; i++)
		choice_note(choice, costs[choice->now]);
	assert_false(choice->tries);
}

static void spend_until_trials(struct choice *choice)
{
	while (!choice_spend(choice, 100))
		;
}

TEST(choice_init__the_first_way_is_used)
{
	struct choice choice;

	choice_init(&choice, AGAIN_MIN, AGAIN_MAX);
	assert_int_equal(choice.now, 0);
	/* The first work begins the trials. */
	assert_true(choice_spend(&choice, 1));
}

TEST(choice_note__tries_each_way_in_each_round)
{
	struct choice choice;
	uint32_t count[2] = {0};

	choice_init(&choice, AGAIN_MIN, AGAIN_MAX);
	choice_try(&choice);
	do
		count[choice.now]++;
	while (choice_note(&choice, 100));
	assert_int_equal(count[0], CHOICE_ROUNDS);
	assert_int_equal(count[1], CHOICE_ROUNDS);
	assert_int_equal(choice.trials, 1);
}

TEST(choice_note__the_best_median_wins)
{
	static const uint32_t costs[2][2] = {{100, 200}, {200, 100}};

	for (uint32_t best = 0; best < 2; best++) {
		struct choice choice;

		choice_init(&choice, AGAIN_MIN, AGAIN_MAX);
		try_all(&choice, costs[best]);
		assert_int_equal(choice.now, best);
		assert_int_equal(choice.chosen, best);
	}
}

/* Samples that an interruption has spoiled, or that are too good to be true. */
TEST(choice_note__two_wrong_samples_of_five_change_nothing)
{
	static const uint32_t wrong[] = {1, 1000000};

	for (size_t w = 0; w < 2; w++) {
		for (uint32_t way = 0; way < 2; way++) {
			uint32_t seen = 0;
			struct choice choice;

			choice_init(&choice, AGAIN_MIN, AGAIN_MAX);
			choice_try(&choice);
			while (choice.tries) {
				const bool spoil = choice.now == way && seen++ < 2;

				choice_note(&choice, spoil ? wrong[w] : choice.now ? 100 : 200);
			}
			assert_int_equal(choice.now, 1);
		}
	}
}

TEST(choice_note__an_equal_way_takes_no_place)
{
	struct choice choice;

	choice_init(&choice, AGAIN_MIN, AGAIN_MAX);
	try_all(&choice, (const uint32_t[]){100, 95});
	assert_int_equal(choice.now, 0);
	try_all(&choice, (const uint32_t[]){100, 80});
	assert_int_equal(choice.now, 1);
	/* The same holds against the way that was chosen. */
	try_all(&choice, (const uint32_t[]){75, 80});
	assert_int_equal(choice.now, 1);
	try_all(&choice, (const uint32_t[]){60, 80});
	assert_int_equal(choice.now, 0);
}

TEST(choice_note__without_results_nothing_changes)
{
	struct choice choice;

	choice_init(&choice, AGAIN_MIN, AGAIN_MAX);
	try_all(&choice, (const uint32_t[]){300, 100});
	choice_try(&choice);
	choice_note(&choice, 50);
	for (int i = 0; i < CHOICE_INVALID_MAX; i++)
		assert_true(choice_note(&choice, 0));
	assert_false(choice_note(&choice, 0));
	assert_int_equal(choice.now, 1);
	assert_int_equal(choice.trials, 1);
	assert_int_equal(choice.left, CHOICE_RETRY);
}

TEST(choice_spend__waits_longer_while_nothing_changes)
{
	struct choice choice;
	uint64_t waits[5];

	choice_init(&choice, AGAIN_MIN, AGAIN_MAX);
	for (int i = 0; i < 5; i++) {
		/* The third trials change the way. */
		try_all(&choice, (const uint32_t[]){100, i < 2 ? 200 : 50});
		waits[i] = choice.left;
	}
	assert_int_equal(waits[0], AGAIN_MIN);
	assert_int_equal(waits[1], 2 * AGAIN_MIN);
	assert_int_equal(waits[2], AGAIN_MIN);
	assert_int_equal(waits[3], 2 * AGAIN_MIN);
	assert_int_equal(waits[4], AGAIN_MAX);
	spend_until_trials(&choice);
	assert_int_equal(choice.left, 0);
	/* It stays so until the trials begin: they may have to wait for a moment that suits. */
	assert_true(choice_spend(&choice, 1));
}

static void tell_distances(struct choice *choice, uint32_t ticks)
{
	for (int i = 0; i < CHOICE_DISTANCES; i++)
		choice_distance(choice, i % 2 ? ticks : 40);
}

TEST(choice_distance__other_cpus_begin_trials)
{
	static const uint32_t to[] = {380, 50};

	for (size_t i = 0; i < 2; i++) {
		struct choice choice;

		choice_init(&choice, AGAIN_MIN, AGAIN_MAX);
		try_all(&choice, (const uint32_t[]){100, 200});
		for (int k = 0; k < 10; k++)
			tell_distances(&choice, 130 + (uint32_t)k);
		assert_false(choice_spend(&choice, 1));
		tell_distances(&choice, to[i]);
		assert_false(choice_spend(&choice, 1));
		tell_distances(&choice, to[i]);
		assert_true(choice_spend(&choice, 1));
	}
}

TEST(choice_distance__an_interruption_begins_none)
{
	struct choice choice;

	choice_init(&choice, AGAIN_MIN, AGAIN_MAX);
	try_all(&choice, (const uint32_t[]){100, 200});
	for (int i = 0; i < 20 * CHOICE_DISTANCES; i++)
		choice_distance(&choice, i % CHOICE_DISTANCES == 3 ? 4000000 : 130);
	/* Several within a short time. */
	tell_distances(&choice, 4000000);
	for (int i = 0; i < 20 * CHOICE_DISTANCES; i++)
		choice_distance(&choice, 130);
	assert_false(choice_spend(&choice, 1));
}
