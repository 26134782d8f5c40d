/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane between two attached processes: packets from each to the other, past the owner of the
 * port.
 *
 * A packet is lent, not given: its buffer stays noted as its sender's in the owner's ledger, and
 * the receiver gives it back by advancing the index up to which it has done with what the ring
 * holds. So the sender believes no number that comes from the other side (it knows itself what it
 * put where), and when either is killed, at whatever instruction, the two indices tell what was
 * lent just then:
 *
 *   the receiver has ended   the sender takes back all that is not given back
 *   the sender has ended     the owner sets aside what the ring holds until it is given back, or
 * the receiver ends as well (pmd/share/lanes.c)
 */
#ifndef SHARE_LANE_H
#define SHARE_LANE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prefetch.h"
#include "share/layout.h"
#include "share/ring.h"

#define LANE_WORDS 256 /* packets on their way, each direction */

/* One process's end. */
struct lane_side {
	uint32_t ready __rte_cache_aligned;  /* atomic: it has mapped the lane, and looks at it */
	uint32_t sleeps __rte_cache_aligned; /* atomic: who puts must wake it */
};

/* The begin of the memory; the ring from side 0 to side 1, and the one back, follow. Zeros at
 * first. */
struct lane_memory {
	struct lane_side sides[2];
};

static_assert(SHARE_LANES_MAX * LANE_WORDS < SHARE_HELD_MAX,
	      "a process whose peers have all stopped has buffers left");

static inline size_t lane_ring_offset(unsigned int side)
{
	return sizeof(struct lane_memory) + side * share_ring_bytes(LANE_WORDS);
}

static inline size_t lane_bytes(void)
{
	return lane_ring_offset(2);
}

/* The sender's view. One thread at a time. */
struct lane_tx {
	struct share_ring ring;
	uint32_t collected;	      /* index up to which buffers have been taken back */
	uint32_t buffers[LANE_WORDS]; /* by index: what was lent */
};

/* The receiver's view. One thread at a time. */
struct lane_rx {
	struct share_ring ring; /* own: up to here all has been given back */
	uint32_t seen;		/* index up to which packets have been taken */
	bool ends;		/* nothing behind `end` is taken any more */
	uint32_t end;
	bool done[LANE_WORDS]; /* by index modulo: taken, and not needed any more */
};

/** Look at the two rings of a lane whose memory is still all zeros, from a side. */
void lane_init(struct lane_tx *tx, struct lane_rx *rx, void *memory, unsigned int side);

/** Lend packets whose buffers are ours; returns how many had room. */
uint32_t lane_put(struct lane_tx *tx, const uint64_t *words, uint32_t n);

/** Fetch the line that the next packet is told of in, which the receiver has read. */
static inline void lane_fetch(const struct lane_tx *tx)
{
	prefetch_write(&tx->ring.memory->words[tx->ring.own % LANE_WORDS]);
}

/** How many packets are lent, as far as has been looked. */
static inline uint32_t lane_lent(const struct lane_tx *tx)
{
	return tx->ring.own - tx->collected;
}

/** Take back what the receiver has done with; `buffers` has room for LANE_WORDS. Returns how many.
 */
uint32_t lane_collect(struct lane_tx *tx, uint32_t *buffers);

/** The same of all that is lent: the receiver has ended. */
uint32_t lane_reclaim(struct lane_tx *tx, uint32_t *buffers);

/**
 * Take packets, which are borrowed until lane_done.
 *
 * @param first
 *   Set to the index of the first.
 */
uint32_t lane_take(struct lane_rx *rx, uint64_t *words, uint32_t n, uint32_t *first);

/** Note that the packet at an index is needed no more. */
void lane_done(struct lane_rx *rx, uint32_t index);

/** Tell the sender of all that is done. */
void lane_give_back(struct lane_rx *rx);

/** Take nothing that is put from here on. */
void lane_end(struct lane_rx *rx);

/** Whether, after lane_end, everything has been taken and given back. */
bool lane_is_over(const struct lane_rx *rx);

/** Whether packets wait, as far as both indices tell that are in shared memory. MT-safe. */
bool lane_waits(const struct lane_rx *rx);

#endif
