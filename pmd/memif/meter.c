/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures how fast long packets pass, in one direction and in the other. Nothing is sent for it:
 * the way that is tried stores or reads the packets that are sent anyway.
 *
 * A trial of a way to store lasts until the other end has taken all packets that were stored before
 * it, and then some more, which are counted. So it measures whichever of the two CPUs is slower.
 * The other end may write any index; a wrong one spoils the choice for its own packets only.
 */
#include "meter.h"

#include <string.h>

#include <rte_atomic.h>
#include <rte_cycles.h>

#include "base/tuning.h"
#include "ring.h"

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

void meter_init(struct memif_end *end)
{
	/* A client chooses its buffers; a server takes those that its client provides, in their
	 * order. */
	const uint8_t recent = end->side == MEMIF_CLIENT ? 1 << STORE_RECENT : 0;

	memset(&end->meter, 0, sizeof(end->meter));
	memset(&end->taker, 0, sizeof(end->taker));
	choice_init(&end->meter.choice, (uint8_t)(recent | 1 << STORE_ROUND | 1 << STORE_PAST),
		    STORE_AGAIN_MIN, STORE_AGAIN_MAX);
	choice_init(&end->taker.choice, 1 << MEMIF_FETCH_START | 1 << MEMIF_FETCH_ALL,
		    FETCH_AGAIN_MIN, FETCH_AGAIN_MAX);
}

/* Packets after which a way shows its usual rate. The few buffers that STORE_RECENT uses get back
 * into the nearest cache slowly; STORE_ROUND must have used all. */
static const uint32_t settle[STORE_WAYS] = {
	[STORE_RECENT] = 2048,
	[STORE_ROUND] = 1024,
	[STORE_PAST] = 256,
};

static uint16_t meter_load(const struct memif_end *end)
{
	return __atomic_load_n(end->tx.theirs, __ATOMIC_RELAXED);
}

/* Return how many packets the other end has not taken. */
static uint16_t meter_backlog(const struct memif_end *end, uint16_t theirs)
{
	/* A server's index follows the buffers that the client has provided, a whole ring ahead. */
	const uint16_t taken =
		end->side == MEMIF_CLIENT ? theirs : (uint16_t)(theirs - end->tx.size);

	return (uint16_t)(end->tx.own - taken);
}

/* Begin to count, or to wait for packets that were stored before. */
static void meter_start(struct memif_end *end, bool counts)
{
	struct memif_meter *meter = &end->meter;

	meter->counts = counts;
	meter->busy = meter->idle = 0;
	meter->put_bytes = 0;
	meter->put = meter->taken = 0;
	/* Packets that wait in the ring were stored in another way. */
	meter->waits = settle[meter->choice.now] + meter_backlog(end, meter->theirs);
}

/* Measure the time to fetch the line of the other end's index, if that has been written since it
 * was read: so the line is in the other CPU's cache. */
static void meter_distance(struct memif_end *end)
{
	const uint16_t known = end->side == MEMIF_CLIENT ? end->buffers.collected : end->tx.seen;
	uint16_t theirs;
	uint64_t from;

	rte_mb();
	from = rte_rdtsc_precise();
	theirs = meter_load(end);
	from = rte_rdtsc_precise() - from;
	if (theirs != known)
		choice_distance(&end->meter.choice, (uint32_t)RTE_MIN(from, (uint64_t)UINT32_MAX));
}

/* Return the cost of packets with so many bytes that took so many ticks; at least 1. */
static uint32_t cost_of(uint64_t ticks, uint64_t bytes)
{
	const uint64_t cost = ticks * COST_BYTES / bytes;

	return (uint32_t)RTE_MAX(RTE_MIN(cost, (uint64_t)UINT32_MAX), UINT64_C(1));
}

/* Return the cost of the packets that were counted; 0: unknown. */
static uint32_t meter_cost(const struct memif_meter *meter)
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
static void meter_count(struct memif_end *end, uint64_t bytes)
{
	struct memif_meter *meter = &end->meter;
	const uint16_t theirs = meter_load(end), taken = (uint16_t)(theirs - meter->theirs);
	const uint64_t tsc = rte_rdtsc(), gap = tsc - meter->tsc;

	meter->busy += RTE_MIN(gap, GAP_TICKS);
	meter->idle += gap - RTE_MIN(gap, GAP_TICKS);
	meter->put_bytes += bytes;
	meter->put += (uint16_t)(end->tx.own - meter->own);
	meter->taken += taken <= end->tx.size ? taken : 0;
	meter->theirs = theirs;
	meter->own = end->tx.own;
	meter->tsc = tsc;
}

static void meter_try(struct memif_end *end, uint64_t bytes)
{
	struct memif_meter *meter = &end->meter;

	meter_count(end, bytes);
	if (!meter->counts && meter->taken >= meter->waits) {
		meter_start(end, true);
	} else if (meter->counts && meter->taken >= COUNTED) {
		choice_note(&meter->choice, meter_cost(meter));
		meter_start(end, false);
	}
}

/* Begin trials, if packets wait in the ring. */
static void meter_begin(struct memif_end *end)
{
	struct memif_meter *meter = &end->meter;
	const uint16_t theirs = meter_load(end);

	if (meter_backlog(end, theirs) < BACKLOG)
		return;
	choice_try(&meter->choice);
	meter->tsc = rte_rdtsc();
	meter->own = end->tx.own;
	meter->theirs = theirs;
	meter_start(end, false);
}

void meter_push(struct memif_end *end)
{
	struct memif_meter *meter = &end->meter;
	const uint64_t bytes = meter->bytes;

	meter->bytes = 0;
	meter->past_caches = false;
	if (unlikely(!store_is_free()) || !choice_is_open(&meter->choice))
		return;
	if (unlikely(meter->choice.tries)) {
		meter_try(end, bytes);
		return;
	}
	if (++meter->pushes >= DISTANCE_EVERY) {
		meter->pushes = 0;
		meter_distance(end);
	}
	if (unlikely(choice_spend(&meter->choice, bytes)))
		meter_begin(end);
}

/* Count a burst if we are slower than the other end: packets waited when it began. So the time from
 * one burst to the next is all that we need for its packets. */
static void taker_try(struct memif_end *end, uint64_t bytes)
{
	struct memif_taker *taker = &end->taker;
	const uint64_t tsc = rte_rdtsc(), gap = tsc - taker->tsc;

	if (taker->backlog && gap < GAP_TICKS) {
		taker->busy += gap;
		taker->counted += bytes;
	}
	taker->tsc = tsc;
	taker->backlog = ring_known(&end->rx) > 0;
	if (taker->counted < FETCH_BYTES)
		return;
	choice_note(&taker->choice, cost_of(taker->busy, taker->counted));
	taker->busy = taker->counted = 0;
	taker->backlog = false;
}

void meter_release(struct memif_end *end)
{
	struct memif_taker *taker = &end->taker;
	const uint64_t bytes = taker->bytes;

	taker->bytes = 0;
	if (unlikely(!tuning.store_choice))
		return;
	if (unlikely(taker->choice.tries)) {
		taker_try(end, bytes);
	} else if (unlikely(choice_spend(&taker->choice, bytes))) {
		choice_try(&taker->choice);
		taker->busy = taker->counted = 0;
		taker->backlog = false;
	}
}
