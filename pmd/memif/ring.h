/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring in memory that the other end may be writing: each word is loaded once, and checked there.
 */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stdint.h>

#include "memif/peer.h"

static inline struct memif_descriptor *ring_at(const struct memif_ring *ring, uint16_t index)
{
	return &ring->memory->descriptors[index & (ring->size - 1)];
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

/* Whether there is something to take where the other's index is `index`: the begin of a packet that
 * was seen to be no more than that is none. */
static inline bool ring_has_news(const struct memif_ring *ring, uint16_t index)
{
	return index != (ring->unfinished ? ring->seen : ring->own);
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
