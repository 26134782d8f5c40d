/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of words in memory that two processes share. One process puts words, the other takes them.
 *
 * DPDK's ring keeps its size in shared memory. The other process could change the size, and a
 * reader that trusts it would access memory outside the ring. Here shared memory has only two
 * indices and the words, and neither is trusted: each side keeps its own index and the size in
 * private memory, and checks the other side's index when it reads it.
 *
 * A process may be killed at any instruction. So a word becomes visible by one store: that of the
 * index behind it.
 */
#ifndef SHARE_RING_H
#define SHARE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

/* In shared memory; zeros are an empty ring. */
struct share_ring_memory {
	uint32_t prod __rte_cache_aligned;    /* atomic; free-running; the putting side writes it */
	uint32_t cons __rte_cache_aligned;    /* atomic; free-running; the taking side writes it */
	uint64_t words[] __rte_cache_aligned; /* atomic: the other side may change them any time */
};

/* The view of one side. Only one thread at a time may use it. */
struct share_ring {
	struct share_ring_memory *memory;
	uint32_t size;	/* a power of two */
	uint32_t own;	/* the index that this side writes */
	uint32_t other; /* the other side's, when it was last read */
	bool broken;	/* the other side's index is impossible: the ring is not used any more */
};

static inline size_t share_ring_bytes(uint32_t size)
{
	return RTE_CACHE_LINE_ROUNDUP(sizeof(struct share_ring_memory) + size * sizeof(uint64_t));
}

/** Initialise one side's view of a ring that is still empty. */
static inline void share_ring_init(struct share_ring *ring, void *memory, uint32_t size)
{
	*ring = (struct share_ring){.memory = memory, .size = size};
}

/** Return how many words have room. For the putting side. */
static inline uint32_t share_ring_room(struct share_ring *ring)
{
	/* Acquire: the words below it have been read, and may be overwritten. Pairs with
	 * share_ring_take. */
	ring->other = __atomic_load_n(&ring->memory->cons, __ATOMIC_ACQUIRE);
	if (unlikely(ring->own - ring->other > ring->size))
		ring->broken = true;
	return ring->broken ? 0 : ring->size - (ring->own - ring->other);
}

/** Put up to `n` words; returns how many. */
static inline uint32_t share_ring_put(struct share_ring *ring, const uint64_t *words, uint32_t n)
{
	uint32_t room = ring->size - (ring->own - ring->other);

	if (ring->broken || room < n)
		room = share_ring_room(ring);
	n = RTE_MIN(n, room);
	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		__atomic_store_n(&ring->memory->words[(ring->own + i) & (ring->size - 1)], words[i],
				 __ATOMIC_RELAXED);
	ring->own += n;
	/* Release: the words, and the packets that they describe, become visible before the index.
	 * Pairs with share_ring_count. */
	__atomic_store_n(&ring->memory->prod, ring->own, __ATOMIC_RELEASE);
	return n;
}

/** Return how many words wait. For the taking side. */
static inline uint32_t share_ring_count(struct share_ring *ring)
{
	ring->other = __atomic_load_n(&ring->memory->prod, __ATOMIC_ACQUIRE);
	if (unlikely(ring->other - ring->own > ring->size))
		ring->broken = true;
	return ring->broken ? 0 : ring->other - ring->own;
}

/** Read up to `n` words without taking them. Returns how many. */
static inline uint32_t share_ring_peek(struct share_ring *ring, uint64_t *words, uint32_t n)
{
	n = RTE_MIN(n, share_ring_count(ring));
	for (uint32_t i = 0; i < n; i++)
		words[i] = __atomic_load_n(&ring->memory->words[(ring->own + i) & (ring->size - 1)],
					   __ATOMIC_RELAXED);
	return n;
}

/** Take the first `n` words, which share_ring_peek has read. */
static inline void share_ring_skip(struct share_ring *ring, uint32_t n)
{
	ring->own += n;
	__atomic_store_n(&ring->memory->cons, ring->own, __ATOMIC_RELEASE);
}

/** Take up to `n` words; returns how many. */
static inline uint32_t share_ring_take(struct share_ring *ring, uint64_t *words, uint32_t n)
{
	n = share_ring_peek(ring, words, n);
	if (n > 0)
		share_ring_skip(ring, n);
	return n;
}

#endif
