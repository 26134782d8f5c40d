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
 * the receiver ends as well (pmd/owner/lanes.c)
 *
 * A packet is a slot of the ring: a word that tells of it, and behind the word the packet itself
 * where it is so short; then no buffer is lent. The receiver looks at the words alone, so that a
 * short message has come with the line that tells of it: each line that is waited for after another
 * one costs as much as all the instructions that a message takes. A word tells by a bit of its own,
 * which is another one in each round, whether it is there. The index of the sender is ahead of its
 * words, and is for who looks for what was lent, and for who is about to sleep.
 */
#ifndef SHARE_LANE_H
#define SHARE_LANE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "base/prefetch.h"
#include "share/layout.h"

#define LANE_WORDS	256 /* packets on their way, each direction; a power of two */
#define LANE_SLOT_BYTES 128 /* two lines, which CPUs like to fetch together */
#define LANE_STAGED_MAX 32
/* Packets of so many need no buffer. */
#define LANE_SHORT_BYTES (LANE_SLOT_BYTES - sizeof(uint64_t))

/* One process's end. */
struct lane_side {
	uint32_t ready __rte_cache_aligned;  /* atomic: it has mapped the lane, and looks at it */
	uint32_t sleeps __rte_cache_aligned; /* atomic: who puts must wake it */
};

struct lane_slot {
	/* atomic; a struct share_packet with SHARE_FLAG_ROUND and SHARE_FLAG_SHORT */
	uint64_t word;
	uint8_t frame[LANE_SHORT_BYTES]; /* SHARE_FLAG_SHORT: the packet */
} __rte_aligned(LANE_SLOT_BYTES);

static_assert(sizeof(struct lane_slot) == LANE_SLOT_BYTES, "a slot is that long");

/* Of one direction, in shared memory; zeros are an empty one. */
struct lane_ring {
	/* atomic; free-running; the sender's: nothing from here on has been put */
	uint32_t prod __rte_aligned(LANE_SLOT_BYTES);
	/* atomic; free-running; the receiver's: all before it has been given back */
	uint32_t cons __rte_aligned(LANE_SLOT_BYTES);
	struct lane_slot slots[LANE_WORDS];
};

/* The begin of the memory; the ring from side 0 to side 1, and the one back, follow. Zeros at
 * first. */
struct lane_memory {
	struct lane_side sides[2] __rte_aligned(LANE_SLOT_BYTES);
	struct lane_ring rings[2];
};

static_assert(SHARE_LANES_MAX * LANE_WORDS < SHARE_HELD_MAX,
	      "a process whose peers have all stopped has buffers left");

/* No number of a buffer. */
#define LANE_NO_BUFFER UINT32_MAX

/* The sender's view. One thread at a time. */
struct lane_tx {
	struct lane_ring *ring;
	uint32_t own;	    /* index up to which packets have been put */
	uint32_t collected; /* index up to which buffers have been taken back */
	uint32_t lent;	    /* buffers that have not been taken back */
	bool broken;	    /* the other side's index cannot be true: nothing goes in any more */
	uint32_t buffers[LANE_WORDS]; /* by index modulo: what was lent, or LANE_NO_BUFFER */
	/* Short packets that are put together. They are built here, and not in the ring, since the
	 * receiver looks at the next slot there all the time, and takes its lines away. */
	uint32_t staged;
	struct lane_slot stage[LANE_STAGED_MAX];
};

/* The receiver's view. One thread at a time. */
struct lane_rx {
	struct lane_ring *ring;
	uint32_t own;  /* index up to which all has been given back */
	uint32_t seen; /* index up to which packets have been taken */
	bool ends;     /* nothing from `end` on is taken any more */
	uint32_t end;
	bool done[LANE_WORDS]; /* by index modulo: taken, and not needed any more */
};

/** Look at the two rings of a lane whose memory is still all zeros, from a side. */
void lane_init(struct lane_tx *tx, struct lane_rx *rx, struct lane_memory *memory,
	       unsigned int side);

/**
 * Put packets whose buffers are ours.
 *
 * @param frames
 *   Where each packet is: one of at most LANE_SHORT_BYTES is copied, and its buffer is not lent.
 * @return
 *   How many had room.
 */
uint32_t lane_put(struct lane_tx *tx, const struct share_packet *packets,
		  const uint8_t *const *frames, uint32_t n);

/** Whether a packet goes without its buffer. */
static inline bool lane_is_short(const struct share_packet *packet)
{
	return packet->len <= LANE_SHORT_BYTES;
}

/** Slots that are in use, as far as has been looked. */
static inline uint32_t lane_used(const struct lane_tx *tx)
{
	return tx->own - tx->collected;
}

/** Where the next packet may be built if it is of at most LANE_SHORT_BYTES; NULL: there is no room.
 */
static inline uint8_t *lane_place(struct lane_tx *tx)
{
	if (unlikely(tx->broken || tx->staged == LANE_STAGED_MAX ||
		     lane_used(tx) + tx->staged == LANE_WORDS))
		return NULL;
	return tx->stage[tx->staged].frame;
}

/** A packet of so many bytes was built there; lane_show puts it. */
void lane_placed(struct lane_tx *tx, uint32_t len);

/** Put all that was placed. */
void lane_show(struct lane_tx *tx);

/** Fetch the slot of the next packet but `ahead`, which the receiver has read. */
static inline void lane_fetch(const struct lane_tx *tx, uint32_t ahead)
{
	const struct lane_slot *slot =
		&tx->ring->slots[(tx->own + tx->staged + ahead) % LANE_WORDS];

	prefetch_write_bytes(__builtin_assume_aligned(slot, LANE_SLOT_BYTES), LANE_SLOT_BYTES);
}

/** Of the word of the packet at an index. In memory of zeros there is none. */
static inline uint8_t lane_round(uint32_t index)
{
	return (index / LANE_WORDS) % 2 == 0 ? SHARE_FLAG_ROUND : 0;
}

/** What a word tells of the packet at an index; false: it is not there yet. */
static inline bool lane_unpack(uint64_t word, uint32_t index, struct share_packet *packet)
{
	*packet = share_unpack(word);
	return (packet->flags & SHARE_FLAG_ROUND) == lane_round(index);
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
uint32_t lane_take(struct lane_rx *rx, struct share_packet *packets, uint32_t n, uint32_t *first);

/** Where the packet at an index is, whose flags have SHARE_FLAG_SHORT. */
static inline uint8_t *lane_frame(const struct lane_rx *rx, uint32_t index)
{
	return rx->ring->slots[index % LANE_WORDS].frame;
}

/** Note that the packet at an index is needed no more. */
void lane_done(struct lane_rx *rx, uint32_t index);

/** Tell the sender of all that is done. */
void lane_give_back(struct lane_rx *rx);

/** Take nothing that is put from here on. */
void lane_end(struct lane_rx *rx);

/** Whether, after lane_end, everything has been taken and given back. */
bool lane_is_over(const struct lane_rx *rx);

/** Whether packets wait, or will in a moment, as both indices tell that are in shared memory.
 * MT-safe. */
bool lane_waits(const struct lane_rx *rx);

/** The same for who takes them: after lane_end, what there is to take is known here, whatever a
 * sender that ended so has left in its index. */
bool lane_has_some(const struct lane_rx *rx);

#endif
