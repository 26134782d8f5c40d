/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures how fast long packets pass from one CPU to another, and so chooses between two ways: the
 * sender's ways to store them, and the receiver's ways to read them. Nothing is sent for a
 * measurement: both ways are tried on the packets that are being sent, several times, and their
 * medians are compared. Not MT-safe.
 *
 * Which way to store is the fastest depends on the processor and on the place of the two CPUs: a
 * line that was just written may be slow to fetch from the writer's cache, and fast to fetch from a
 * cache that both CPUs share; without such a cache, memory may be faster than either.
 *
 * The receiver's index in the ring is all that a sender reads. A receiver that lies spoils the
 * choice for its own packets only.
 */
#ifndef BASE_METER_H
#define BASE_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#define METER_LONG 1024 /* bytes: a shorter packet is always stored as STORE_RECENT */

#define CHOICE_ROUNDS	   5  /* trials of each way; odd, for the median */
#define CHOICE_INVALID_MAX 8  /* trials that may fail before the choice is left as it is */
#define CHOICE_DISTANCES   15 /* fetches of a cache line, for a quantile */
#define CHOICE_RETRY	   (UINT64_C(64) << 20) /* work after trials without a result */

/* Ways to store packets. */
enum store_way {
	STORE_ROUND,  /* ordinary stores; all buffers are used in turn */
	STORE_PAST,   /* non-temporal stores, past the caches */
	STORE_RECENT, /* short packets: ordinary stores; the buffer that came back last */
	STORE_WAYS
};

/* Ways to read long packets. */
enum fetch_way {
	FETCH_START, /* only the start of a packet is prefetched */
	FETCH_ALL    /* all of it: better for packets that were stored past the caches */
};

/* A choice between two ways, 0 and 1: costs in, choice out. It knows neither clock nor work. */
struct choice {
	uint8_t chosen; /* by the last trials; at first 0 */
	uint8_t now;	/* the way to use; while `tries` the one that is tried */
	bool tries;
	uint32_t round;
	uint32_t invalid; /* trials without a result */
	uint32_t cost[2][CHOICE_ROUNDS];
	uint64_t left;	/* work until the ways are tried again */
	uint64_t again; /* the same, after the next trials: doubled if trials change nothing, and
			   set back to `again_min` if they do */
	uint64_t again_min, again_max;
	uint32_t trials; /* how often both ways were tried */
	/* The time to fetch a line that another CPU has just written tells where that CPU is. */
	uint32_t distance; /* when the ways were tried; 0: unknown */
	uint32_t distances[CHOICE_DISTANCES];
	uint32_t distance_count;
	bool moved; /* the last CHOICE_DISTANCES times differed from `distance` */
};

/* Measures a sender's ways to store. */
struct meter {
	struct choice choice; /* STORE_ROUND or STORE_PAST */
	uint64_t bytes;	      /* of long packets, since the last push */
	bool past_caches;     /* some of them were stored past the caches */
	uint32_t pushes;      /* since a distance was measured */
	/* while a way is tried */
	bool counts;	 /* the packets that were stored before have been taken */
	uint32_t waits;	 /* for so many packets to be taken before it counts */
	uint16_t own;	 /* our index at the last push */
	uint16_t theirs; /* the other side's */
	uint64_t tsc;	 /* time of the last push */
	uint64_t busy;	 /* ticks of this trial */
	uint64_t idle;	 /* ticks in which nothing was sent for long */
	uint64_t put_bytes;
	uint32_t put, taken; /* slots of the ring */
};

/* A ring as its sender sees it. Indices are free-running, and only their lower 16 bits count. */
struct meter_ring {
	uint16_t own;	/* index up to which packets have been put */
	uint16_t known; /* the result of `load` when the sender last read the index itself */
	uint32_t size;
	/* Load the index up to which the other side has taken packets. Any result is harmless. */
	uint16_t (*load)(const void *arg);
	const void *arg;
};

/* Measures a receiver's ways to read. */
struct taker {
	struct choice choice; /* of enum fetch_way */
	uint64_t bytes;	      /* of long packets, since the last release */
	/* while a way is tried */
	bool backlog;		/* packets waited at the last release */
	uint64_t tsc;		/* time of the last release */
	uint64_t busy, counted; /* ticks and bytes of this trial */
};

/** Make all ports store long packets in one way, without trials; STORE_WAYS: let them choose.
 * Before the first device exists. */
void store_force(enum store_way way);

/** Return the way to store the next long packet. MT-safe. */
enum store_way store_way(const struct choice *choice);

/** Initialise. The first work begins the trials. */
void choice_init(struct choice *choice, uint64_t again_min, uint64_t again_max);

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

void meter_init(struct meter *meter);

/** Note that a long packet was put into the ring. */
static inline void meter_put(struct meter *meter, size_t len, bool past_caches)
{
	meter->bytes += len;
	meter->past_caches |= past_caches;
}

/** Measure, before the packets that were put since the last call are published. Some of them are
 * long. */
void meter_push(struct meter *meter, const struct meter_ring *ring);

void taker_init(struct taker *taker);

/**
 * Measure, after packets were received, of which `taker->bytes` bytes are in long ones.
 *
 * @param backlog
 *   More packets wait.
 */
void taker_release(struct taker *taker, bool backlog);

#endif
