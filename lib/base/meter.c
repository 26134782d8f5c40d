/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures how fast long packets pass, in one direction and in the other, and chooses the faster of
 * two ways. Nothing is sent for it: the way that is tried stores or reads the packets that are sent
 * anyway.
 *
 * A trial of a way to store lasts until the other end has taken all packets that were stored before
 * it, and then some more, which are counted. So it measures whichever of the two CPUs is slower.
 */
#include "base/meter.h"

#include <assert.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "base/tuning.h"

#define BETTER_PART    12  /* the other way must be better by this part to be chosen */
#define DISTANCE_RANK  13  /* of the distances, from the least: see choice_distance */
#define BACKLOG	       16  /* packets in the ring: with fewer, latency matters more than the rate */
#define COUNTED	       256 /* packets of a trial */
#define GAP_TICKS      (UINT64_C(1) << 17) /* some 50 us: longer gaps are the program's */
#define IDLE_PART      4 /* a trial with more idle time than this part of its time does not count */
#define DISTANCE_EVERY 64		    /* pushes */
#define COST_BYTES     (UINT64_C(64) << 10) /* the cost is that of so many bytes */

/* Bytes until the ways are tried again. The other end may change its way to store at any time, so a
 * receiver tries more often; that costs little. */
#define STORE_AGAIN_MIN (UINT64_C(2) << 30)
#define STORE_AGAIN_MAX (UINT64_C(64) << 30)
#define FETCH_AGAIN_MIN (UINT64_C(64) << 20)
#define FETCH_AGAIN_MAX (UINT64_C(512) << 20)
#define FETCH_BYTES	(UINT64_C(512) << 10) /* of a trial */

static_assert(CHOICE_ROUNDS <= CHOICE_DISTANCES, "the longest list that `quantile` sorts");

static enum store_way forced = STORE_WAYS;

/* ---- the choice ---- */

void store_force(enum store_way way)
{
	forced = way;
}

/* Return true if ports choose: it is neither forced nor switched off. */
static bool store_is_free(void)
{
	return likely(tuning.store_choice && forced == STORE_WAYS);
}

enum store_way store_way(const struct choice *choice)
{
	if (likely(store_is_free()))
		return (enum store_way)choice->now;
	return tuning.store_choice ? forced : STORE_ROUND;
}

void choice_init(struct choice *choice, uint64_t again_min, uint64_t again_max)
{
	memset(choice, 0, sizeof(*choice));
	choice->again = choice->again_min = again_min;
	choice->again_max = again_max;
}

void choice_try(struct choice *choice)
{
	choice->tries = true;
	choice->round = 0;
	choice->invalid = 0;
	choice->now = 0;
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

/* Return the best way. The other way than the chosen one must be clearly better, so that two ways
 * that are equally good do not alternate. */
static uint8_t choice_best(const struct choice *choice)
{
	const uint32_t chosen = median(choice->cost[choice->chosen]);
	const uint32_t other = median(choice->cost[!choice->chosen]);

	return other < chosen - chosen / BETTER_PART ? !choice->chosen : choice->chosen;
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
	if (cost == 0) {
		if (++choice->invalid > CHOICE_INVALID_MAX)
			choice_settle(choice, choice->chosen, CHOICE_RETRY);
		return choice->tries;
	}
	choice->cost[choice->now][choice->round] = cost;
	choice->round += choice->now;
	choice->now = !choice->now;
	if (choice->round == CHOICE_ROUNDS)
		choice_decide(choice);
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

/* ---- the sender ---- */

void meter_init(struct meter *meter)
{
	memset(meter, 0, sizeof(*meter));
	choice_init(&meter->choice, STORE_AGAIN_MIN, STORE_AGAIN_MAX);
}

/* Packets after which a way shows its usual rate: STORE_ROUND must have used all buffers. */
static const uint32_t settle[] = {
	[STORE_ROUND] = 1024,
	[STORE_PAST] = 256,
};

/* Begin to count, or to wait for packets that were stored before. */
static void meter_start(struct meter *meter, bool counts)
{
	meter->counts = counts;
	meter->busy = meter->idle = 0;
	meter->put_bytes = 0;
	meter->put = meter->taken = 0;
	/* Packets that wait in the ring were stored in another way. */
	meter->waits = settle[meter->choice.now] + (uint16_t)(meter->own - meter->theirs);
}

/* Measure the time to fetch the line of the other side's index, if that has been written since it
 * was read: so the line is in the other CPU's cache. */
static void meter_distance(struct meter *meter, const struct meter_ring *ring)
{
	uint16_t theirs;
	uint64_t from;

	rte_mb();
	from = rte_rdtsc_precise();
	theirs = ring->load(ring->arg);
	from = rte_rdtsc_precise() - from;
	if (theirs != ring->known)
		choice_distance(&meter->choice, (uint32_t)RTE_MIN(from, (uint64_t)UINT32_MAX));
}

/* Return the cost of packets with so many bytes that took so many ticks; at least 1. */
static uint32_t cost_of(uint64_t ticks, uint64_t bytes)
{
	const uint64_t cost = ticks * COST_BYTES / bytes;

	return (uint32_t)RTE_MAX(RTE_MIN(cost, (uint64_t)UINT32_MAX), UINT64_C(1));
}

/* Return the cost of the packets that were counted; 0: unknown. */
static uint32_t meter_cost(const struct meter *meter)
{
	uint64_t bytes;

	if (meter->idle > (meter->busy + meter->idle) / IDLE_PART || meter->put == 0)
		return 0;
	bytes = meter->taken * meter->put_bytes / meter->put;
	if (bytes == 0)
		return 0;
	return cost_of(meter->busy, bytes);
}

/* Count what has happened since the last push. */
static void meter_count(struct meter *meter, const struct meter_ring *ring, uint64_t bytes)
{
	const uint16_t theirs = ring->load(ring->arg), taken = (uint16_t)(theirs - meter->theirs);
	const uint64_t tsc = rte_rdtsc(), gap = tsc - meter->tsc;

	meter->busy += RTE_MIN(gap, GAP_TICKS);
	meter->idle += gap - RTE_MIN(gap, GAP_TICKS);
	meter->put_bytes += bytes;
	meter->put += (uint16_t)(ring->own - meter->own);
	meter->taken += taken <= ring->size ? taken : 0;
	meter->theirs = theirs;
	meter->own = ring->own;
	meter->tsc = tsc;
}

static void meter_try(struct meter *meter, const struct meter_ring *ring, uint64_t bytes)
{
	meter_count(meter, ring, bytes);
	if (!meter->counts && meter->taken >= meter->waits) {
		meter_start(meter, true);
	} else if (meter->counts && meter->taken >= COUNTED) {
		choice_note(&meter->choice, meter_cost(meter));
		meter_start(meter, false);
	}
}

/* Begin trials, if packets wait in the ring. */
static void meter_begin(struct meter *meter, const struct meter_ring *ring)
{
	const uint16_t theirs = ring->load(ring->arg);

	if ((uint16_t)(ring->own - theirs) < BACKLOG)
		return;
	choice_try(&meter->choice);
	meter->tsc = rte_rdtsc();
	meter->own = ring->own;
	meter->theirs = theirs;
	meter_start(meter, false);
}

void meter_push(struct meter *meter, const struct meter_ring *ring)
{
	const uint64_t bytes = meter->bytes;

	meter->bytes = 0;
	meter->past_caches = false;
	if (unlikely(!store_is_free()))
		return;
	if (unlikely(meter->choice.tries)) {
		meter_try(meter, ring, bytes);
		return;
	}
	if (++meter->pushes >= DISTANCE_EVERY) {
		meter->pushes = 0;
		meter_distance(meter, ring);
	}
	if (unlikely(choice_spend(&meter->choice, bytes)))
		meter_begin(meter, ring);
}

/* ---- the receiver ---- */

void taker_init(struct taker *taker)
{
	memset(taker, 0, sizeof(*taker));
	choice_init(&taker->choice, FETCH_AGAIN_MIN, FETCH_AGAIN_MAX);
}

/* Count a burst if we are slower than the other side: packets waited when it began. So the time
 * from one burst to the next is all that we need for its packets. */
static void taker_try(struct taker *taker, uint64_t bytes, bool backlog)
{
	const uint64_t tsc = rte_rdtsc(), gap = tsc - taker->tsc;

	if (taker->backlog && gap < GAP_TICKS) {
		taker->busy += gap;
		taker->counted += bytes;
	}
	taker->tsc = tsc;
	taker->backlog = backlog;
	if (taker->counted < FETCH_BYTES)
		return;
	choice_note(&taker->choice, cost_of(taker->busy, taker->counted));
	taker->busy = taker->counted = 0;
	taker->backlog = false;
}

void taker_release(struct taker *taker, bool backlog)
{
	const uint64_t bytes = taker->bytes;

	taker->bytes = 0;
	if (unlikely(!tuning.store_choice))
		return;
	if (unlikely(taker->choice.tries)) {
		taker_try(taker, bytes, backlog);
	} else if (unlikely(choice_spend(&taker->choice, bytes))) {
		choice_try(&taker->choice);
		taker->busy = taker->counted = 0;
		taker->backlog = false;
	}
}
