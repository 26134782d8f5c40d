/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring in memory that the other end may write to at any time: each word is loaded once, and the
 * loaded value is checked. */
#ifndef MEMIF_RING_H
#define MEMIF_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_prefetch.h>

#include "base/tuning.h"
#include "memif/end.h"

#define RING_FRAMES_AHEAD      8 /* prefetched; a CPU fetches some 16 lines at once */
#define RING_DESCRIPTORS_AHEAD 16
#define RING_FIRST_BYTES       128  /* of a frame: its headers, and the whole of a small message */
#define RING_BODIES_AHEAD      2    /* frames that are prefetched as a whole */
#define RING_BODY_BYTES	       4608 /* of each, at most */

/* Initialise a ring in shared memory, whose indices are zero. */
static inline void ring_init(struct memif_ring *ring, uint8_t *at, uint32_t size,
			     enum memif_side side)
{
	struct memif_ring_memory *memory = (struct memif_ring_memory *)(void *)at;
	const bool is_server = side == MEMIF_SERVER;

	*ring = (struct memif_ring){
		.memory = memory,
		.theirs = is_server ? &memory->head : &memory->tail,
		.ours = is_server ? &memory->tail : &memory->head,
		.size = size,
	};
}

static inline struct memif_descriptor *ring_at(const struct memif_ring *ring, uint16_t index)
{
	return &ring->memory->descriptors[index & (ring->size - 1)];
}

/* Return the first and the last of the packets behind the next one to prefetch: all near ones if
 * they have just arrived (`news`), else only the farthest. */
static inline int ring_fetch_from(bool news)
{
	return news ? 0 : RING_FRAMES_AHEAD;
}

static inline int ring_fetch_to(int count)
{
	return likely(tuning.prefetch) ? RTE_MIN(count, RING_FRAMES_AHEAD + 1) : 0;
}

/* Prefetch the start of a packet from the cache of the other end's CPU. */
static inline void ring_fetch(const uint8_t *frame)
{
	for (uint32_t at = 0; at < RING_FIRST_BYTES; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(frame + at);
}

/* Read a descriptor, which the other end may change meanwhile. */
static inline struct memif_descriptor ring_read(const struct memif_ring *ring, uint16_t index)
{
	const struct memif_descriptor *at = ring_at(ring, index);

	return (struct memif_descriptor){
		.flags = __atomic_load_n(&at->flags, __ATOMIC_RELAXED),
		.region = __atomic_load_n(&at->region, __ATOMIC_RELAXED),
		.length = __atomic_load_n(&at->length, __ATOMIC_RELAXED),
		.offset = __atomic_load_n(&at->offset, __ATOMIC_RELAXED),
	};
}

/* Return the other end's index, unchecked. Acquire: what it did before it wrote the index is
 * visible. */
static inline uint16_t ring_theirs(const struct memif_ring *ring)
{
	return __atomic_load_n(ring->theirs, __ATOMIC_ACQUIRE);
}

/* Return true if packets wait. The start of an incomplete packet does not count. */
static inline bool ring_has_news(const struct memif_ring *ring)
{
	return ring_theirs(ring) != (ring->unfinished ? ring->seen : ring->own);
}

/* Publish our index. Release: our reads and writes of buffers come before it. */
static inline void ring_show(const struct memif_ring *ring, uint16_t index)
{
	__atomic_store_n(ring->ours, index, __ATOMIC_RELEASE);
}

/* Return how far the other end's index was ahead of ours when last read; 0: read it again. */
static inline int ring_known(const struct memif_ring *ring)
{
	return likely(!ring->unfinished) ? (uint16_t)(ring->seen - ring->own) : 0;
}

/* Read the other end's index, and return how far it is ahead of ours. -EPROTO if that is more than
 * `most`, or if the index has gone back. */
static inline int ring_look(struct memif_ring *ring, uint32_t most)
{
	/* Acquire: the descriptors and buffers before the index are visible. */
	const uint16_t index = __atomic_load_n(ring->theirs, __ATOMIC_ACQUIRE);
	const uint16_t count = (uint16_t)(index - ring->own);

	if (unlikely(count > most || count < (uint16_t)(ring->seen - ring->own)))
		return -EPROTO;
	ring->unfinished = ring->unfinished && index == ring->seen;
	ring->seen = index;
	return unlikely(ring->unfinished) ? 0 : count;
}

/* Switch the other end's notifications on or off. */
static inline void ring_listen(const struct memif_ring *ring, bool on)
{
	__atomic_store_n(&ring->memory->flags, on ? 0 : MEMIF_QUIET, __ATOMIC_RELAXED);
}

/* Return true if the other end wants a notification of the packets just published. A full fence
 * must order that store before this load: a receiver sets the flag, then checks the ring, then
 * sleeps. */
static inline bool ring_wants_doorbell(const struct memif_ring *ring)
{
	return !(__atomic_load_n(&ring->memory->flags, __ATOMIC_RELAXED) & MEMIF_QUIET);
}

/* Describe a part of a packet. The descriptor's buffer does not change. */
static inline void ring_describe(const struct memif_ring *ring, uint16_t index, uint16_t flags,
				 size_t len)
{
	struct memif_descriptor *at = ring_at(ring, index);

	__atomic_store_n(&at->flags, flags, __ATOMIC_RELAXED);
	__atomic_store_n(&at->length, (uint32_t)len, __ATOMIC_RELAXED);
}

#endif
