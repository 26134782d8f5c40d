/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares ways to do the same work by measured costs. */
#include "base/choice.h"

#include <assert.h>
#include <string.h>

#include <rte_common.h>

#define BETTER_PART   12 /* another way must be better by this part to be chosen */
#define DISTANCE_RANK 13 /* of the distances, from the least: see choice_distance */

static_assert(CHOICE_ROUNDS <= CHOICE_DISTANCES, "the longest list that `quantile` sorts");

/* Return the first possible way from `way` on, or CHOICE_WAYS. */
static uint8_t choice_next(const struct choice *choice, unsigned int way)
{
	while (way < CHOICE_WAYS && !(choice->possible >> way & 1))
		way++;
	return (uint8_t)way;
}

void choice_init(struct choice *choice, uint8_t possible, uint64_t again_min, uint64_t again_max)
{
	memset(choice, 0, sizeof(*choice));
	choice->possible = possible;
	choice->chosen = choice->now = choice_next(choice, 0);
	choice->again = choice->again_min = again_min;
	choice->again_max = again_max;
}

void choice_try(struct choice *choice)
{
	choice->tries = true;
	choice->round = 0;
	choice->invalid = 0;
	choice->now = choice_next(choice, 0);
}

/* Return the value that comes behind `rank` others in their order. */
static uint32_t quantile(const uint32_t *values, uint32_t count, uint32_t rank)
{
	uint32_t sorted[CHOICE_DISTANCES];

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;

		for (; at > 0 && sorted[at - 1] > values[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = values[i];
	}
	return sorted[rank];
}

static uint32_t median(const uint32_t *costs)
{
	return quantile(costs, CHOICE_ROUNDS, CHOICE_ROUNDS / 2);
}

/* Return the best way. Another way than the chosen one must be clearly better, so that two ways
 * that are equally good do not alternate. */
static uint8_t choice_best(const struct choice *choice)
{
	const uint32_t chosen = median(choice->cost[choice->chosen]);
	uint32_t limit = chosen - chosen / BETTER_PART;
	uint8_t best = choice->chosen;

	for (uint8_t way = choice_next(choice, 0); way < CHOICE_WAYS;
	     way = choice_next(choice, way + 1u)) {
		const uint32_t cost = median(choice->cost[way]);

		if (way != choice->chosen && cost < limit) {
			limit = cost;
			best = way;
		}
	}
	return best;
}

/* End the trials, and use a way until `left` work is done. */
static void choice_settle(struct choice *choice, uint8_t way, uint64_t left)
{
	choice->left = left;
	choice->chosen = choice->now = way;
	choice->tries = false;
	choice->distance = 0;
	choice->distance_count = 0;
	choice->moved = false;
}

static void choice_decide(struct choice *choice)
{
	const uint8_t best = choice_best(choice);

	if (best != choice->chosen)
		choice->again = choice->again_min;
	choice_settle(choice, best, choice->again);
	choice->again = RTE_MIN(2 * choice->again, choice->again_max);
	choice->trials++;
}

bool choice_note(struct choice *choice, uint32_t cost)
{
	uint8_t next;

	if (cost == 0) {
		if (++choice->invalid > CHOICE_INVALID_MAX)
			choice_settle(choice, choice->chosen, CHOICE_RETRY);
		return choice->tries;
	}
	choice->cost[choice->now][choice->round] = cost;
	next = choice_next(choice, choice->now + 1u);
	if (next == CHOICE_WAYS) {
		next = choice_next(choice, 0);
		choice->round++;
	}
	if (choice->round == CHOICE_ROUNDS)
		choice_decide(choice);
	else
		choice->now = next;
	return choice->tries;
}

/* The line may have been in a near cache already, which takes little time, or the thread may have
 * been interrupted. So a high quantile counts, but not the highest. Near and far CPUs differ by a
 * factor of two and more. The second time in a row decides. */
void choice_distance(struct choice *choice, uint32_t ticks)
{
	uint32_t now;
	bool moved;

	choice->distances[choice->distance_count++] = ticks;
	if (choice->distance_count < CHOICE_DISTANCES)
		return;
	choice->distance_count = 0;
	now = quantile(choice->distances, CHOICE_DISTANCES, DISTANCE_RANK);
	if (choice->distance == 0)
		choice->distance = now;
	moved = now > choice->distance + choice->distance / 2 || choice->distance > now + now / 2;
	if (moved && choice->moved) {
		choice->left = 0;
		choice->again = choice->again_min;
	}
	choice->moved = moved;
}
