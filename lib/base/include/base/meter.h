/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures how fast long packets pass from one CPU to another, and so chooses the sender's way to
 * store them (base/store.h) and the receiver's way to read them. Nothing is sent for a measurement:
 * the ways are tried in turn on the packets that are being sent. Not MT-safe.
 *
 * The receiver's index in the ring is all that a sender reads. A receiver that lies spoils the
 * choice for its own packets only.
 */
#ifndef BASE_METER_H
#define BASE_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/choice.h"

#define METER_LONG 1024 /* bytes: a shorter packet is always stored as STORE_RECENT */

/* Measures a sender's ways to store. */
struct meter {
	struct choice choice; /* of enum store_way */
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

/* Ways to read long packets. */
enum fetch_way {
	FETCH_START, /* only the start of a packet is prefetched */
	FETCH_ALL    /* all of it: better for packets that were stored past the caches */
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

/**
 * Initialise.
 *
 * @param possible
 *   A bit for each enum store_way that the sender has.
 */
void meter_init(struct meter *meter, uint8_t possible);

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
