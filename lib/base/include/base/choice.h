/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses the fastest of several ways to do the same work, by measurement: all ways are tried in
 * turn on the work that is to be done anyway, several rounds, and their medians are compared.
 *
 * These functions know neither clock nor work: measured costs in, choice out. Not MT-safe.
 */
#ifndef BASE_CHOICE_H
#define BASE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#define CHOICE_WAYS	   3
#define CHOICE_ROUNDS	   5  /* trials of each way; odd, for the median */
#define CHOICE_INVALID_MAX 8  /* trials that may fail before the choice is left as it is */
#define CHOICE_DISTANCES   15 /* fetches of a cache line, for a quantile */
#define CHOICE_RETRY	   (UINT64_C(64) << 20) /* work after trials without a result */

struct choice {
	uint8_t possible; /* a bit for each way */
	uint8_t chosen;	  /* by the last trials; at first the lowest way */
	uint8_t now;	  /* the way to use; while `tries` the one that is tried */
	bool tries;
	uint32_t round;
	uint32_t invalid; /* trials without a result */
	uint32_t cost[CHOICE_WAYS][CHOICE_ROUNDS];
	uint64_t left;	    /* work until the ways are tried again */
	uint64_t again;	    /* the same, after the next trials */
	uint64_t again_min; /* `again` is doubled if trials change nothing, and set back if they do
			     */
	uint64_t again_max;
	uint32_t trials; /* how often all ways were tried */
	/* The time to fetch a line that another CPU has just written tells where that CPU is. */
	uint32_t distance; /* when the ways were tried; 0: unknown */
	uint32_t distances[CHOICE_DISTANCES];
	uint32_t distance_count;
	bool moved; /* the last CHOICE_DISTANCES times differed from `distance` */
};

/**
 * Initialise. The first work begins the trials.
 *
 * @param possible
 *   A bit for each way; at least one.
 */
void choice_init(struct choice *choice, uint8_t possible, uint64_t again_min, uint64_t again_max);

/** Return true if there is more than one way. */
static inline bool choice_is_open(const struct choice *choice)
{
	return (choice->possible & (choice->possible - 1)) != 0;
}

/** Begin to try the ways: `now` is the first one. */
void choice_try(struct choice *choice);

/** Note that work was done while nothing is tried. Return true if it is time for choice_try. */
static inline bool choice_spend(struct choice *choice, uint64_t work)
{
	if (likely(work < choice->left)) {
		choice->left -= work;
		return false;
	}
	choice->left = 0;
	return true;
}

/**
 * Note the cost of the way that is tried.
 *
 * @param cost
 *   Time for a certain amount of work; 0: the trial has no result, and is repeated.
 * @return
 *   True if the trials go on; `now` is the way to try next. False: `now` is the choice.
 */
bool choice_note(struct choice *choice, uint32_t cost);

/** Note how long it took to fetch a line that the other CPU had just written. If the CPUs have
 * moved, the next work begins trials. */
void choice_distance(struct choice *choice, uint32_t ticks);

#endif
