/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring in memory that the other end may be writing: each word is loaded once, and checked there.
 */
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

#define RING_FRAMES_AHEAD      8 /* that are being fetched: a CPU waits for some 16 lines at once */
#define RING_DESCRIPTORS_AHEAD 16
#define RING_FIRST_BYTES       128 /* of a frame: its headers, and all of a small message */

/* Begin with a ring in shared memory, whose indices are zero. */
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

/* Of `count` packets, which of those behind the next one are fetched: all that are near where they
 * are `news`, else the one at the far end. */
static inline int ring_fetch_from(bool news)
{
	return news ? 0 : RING_FRAMES_AHEAD;
}

static inline int ring_fetch_to(int count)
{
	return likely(tuning.prefetch) ? RTE_MIN(count, RING_FRAMES_AHEAD + 1) : 0;
}

/* The begin of what the other has written: it is in another CPU's cache. */
static inline void ring_fetch(const uint8_t *frame)
{
	for (uint32_t at = 0; at < RING_FIRST_BYTES; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(frame + at);
}

/* A descriptor, which the other may be changing. */
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

/* Whether there is something to take: the begin of a packet that was seen to be no more than that
 * is none. */
static inline bool ring_has_news(const struct memif_ring *ring)
{
	return __atomic_load_n(ring->theirs, __ATOMIC_ACQUIRE) !=
	       (ring->unfinished ? ring->seen : ring->own);
}

/* Release: what was read may be written, or what was written is seen before it. */
static inline void ring_show(const struct memif_ring *ring, uint16_t index)
{
	__atomic_store_n(ring->ours, index, __ATOMIC_RELEASE);
}

/* How far the other's index was ahead of ours at the last look; 0 where it is to be looked at. */
static inline int ring_known(const struct memif_ring *ring)
{
	return likely(!ring->unfinished) ? (uint16_t)(ring->seen - ring->own) : 0;
}

/* How far it is now: more than `most` cannot be true, nor less than it was. -EPROTO then. */
static inline int ring_look(struct memif_ring *ring, uint32_t most)
{
	/* Acquire: what the descriptors and buffers before it hold is seen. */
	const uint16_t index = __atomic_load_n(ring->theirs, __ATOMIC_ACQUIRE);
	const uint16_t count = (uint16_t)(index - ring->own);

	if (unlikely(count > most || count < (uint16_t)(ring->seen - ring->own)))
		return -EPROTO;
	ring->unfinished = ring->unfinished && index == ring->seen;
	ring->seen = index;
	return unlikely(ring->unfinished) ? 0 : count;
}

/* Ask to be told of what comes, or not to be. */
static inline void ring_listen(const struct memif_ring *ring, bool on)
{
	__atomic_store_n(&ring->memory->flags, on ? 0 : MEMIF_QUIET, __ATOMIC_RELAXED);
}

/* Whether the other asks to be told of what was just published. Orders that store before the load:
 * whoever sleeps looks after it has said so. */
static inline bool ring_wants_bell(const struct memif_ring *ring)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !(__atomic_load_n(&ring->memory->flags, __ATOMIC_RELAXED) & MEMIF_QUIET);
}

/* What a packet's piece is, in a buffer that stays as it was. */
static inline void ring_describe(const struct memif_ring *ring, uint16_t index, uint16_t flags,
				 size_t len)
{
	struct memif_descriptor *at = ring_at(ring, index);

	__atomic_store_n(&at->flags, flags, __ATOMIC_RELAXED);
	__atomic_store_n(&at->length, (uint32_t)len, __ATOMIC_RELAXED);
}

#endif
