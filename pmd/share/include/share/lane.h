/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane between two attached processes. It carries packets in both directions without the owner of
 * the port.
 *
 * The sender lends a packet's buffer. It still belongs to the sender. The receiver gives buffers
 * back by advancing its index in the ring. The sender remembers which buffer it put at which index,
 * so it trusts no buffer number from the other side. If either process is killed, at any
 * instruction, the two indices tell which buffers were lent:
 *
 *   the receiver has ended   the sender takes back all buffers that were not given back
 *   the sender has ended     the owner sets aside the buffers in the ring until they are given back
 *                            or the receiver ends too (pmd/owner/lanes.c)
 *
 * Each packet uses one slot of the ring: a word that describes it and, for a short packet, the
 * packet itself; then no buffer is lent. The receiver polls only the words, so a short packet
 * arrives in the same cache line as its word. A second cache miss would cost as much as all
 * instructions for one message. A bit in the word, which alternates with each round of the ring,
 * tells if the word is valid. The sender's index is advanced before the words are written. It is
 * only read to find lent buffers, and before a process sleeps.
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

#define LANE_WORDS	256 /* packets in flight in each direction; a power of two */
#define LANE_SLOT_BYTES 128 /* two cache lines, which CPUs fetch together */
#define LANE_STAGED_MAX 32
/* The longest packet that needs no buffer. */
#define LANE_SHORT_BYTES (LANE_SLOT_BYTES - sizeof(uint64_t))

/* The end of one process. */
struct lane_side {
	uint32_t ready
		__rte_cache_aligned; /* atomic: the process has mapped the lane and polls it */
	uint32_t sleeps __rte_cache_aligned; /* atomic: the sender must wake the process */
};

struct lane_slot {
	/* atomic; a struct share_packet with SHARE_FLAG_ROUND and SHARE_FLAG_SHORT */
	uint64_t word;
	uint8_t frame[LANE_SHORT_BYTES]; /* SHARE_FLAG_SHORT: the packet */
} __rte_aligned(LANE_SLOT_BYTES);

static_assert(sizeof(struct lane_slot) == LANE_SLOT_BYTES, "a slot is that long");

/* One direction of a lane, in shared memory. All zero: empty. */
struct lane_ring {
	/* atomic; free-running; written by the sender: no packet was put at or after it */
	uint32_t prod __rte_aligned(LANE_SLOT_BYTES);
	/* atomic; free-running; written by the receiver: all before it was given back */
	uint32_t cons __rte_aligned(LANE_SLOT_BYTES);
	struct lane_slot slots[LANE_WORDS];
};

/* A lane's memory. rings[0] goes from side 0 to side 1, rings[1] back. Initially all zero. */
struct lane_memory {
	struct lane_side sides[2] __rte_aligned(LANE_SLOT_BYTES);
	struct lane_ring rings[2];
};

static_assert(SHARE_LANES_MAX * LANE_WORDS < SHARE_HELD_MAX,
	      "a process whose peers have all stopped has buffers left");

/* Marks an index without a lent buffer. */
#define LANE_NO_BUFFER UINT32_MAX

/* The sender's view. One thread at a time. */
struct lane_tx {
	struct lane_ring *ring;
	uint32_t own;	    /* index up to which packets have been put */
	uint32_t collected; /* index up to which buffers have been taken back */
	uint32_t lent;	    /* buffers that have not been taken back */
	bool broken;	    /* the other side's index is impossible: no packet is put any more */
	uint32_t buffers[LANE_WORDS]; /* by index modulo: the lent buffer, or LANE_NO_BUFFER */
	/* Short packets are built here and copied to the ring together: the receiver polls the
	 * ring's next slot, so each write there would miss the cache. Packets in buffers that are
	 * to be lent keep their order among them. */
	uint32_t staged;
	uint32_t staged_buffers[LANE_STAGED_MAX]; /* to be lent, or LANE_NO_BUFFER */
	struct lane_slot stage[LANE_STAGED_MAX];
};

/* The receiver's view. One thread at a time. */
struct lane_rx {
	struct lane_ring *ring;
	uint32_t own;  /* index up to which all has been given back */
	uint32_t seen; /* index up to which packets have been taken */
	bool ends;     /* packets from index `end` on are not taken */
	uint32_t end;
	bool done[LANE_WORDS]; /* by index modulo: taken and released */
};

/** Initialise one side's view of a lane whose memory is still all zero. */
void lane_init(struct lane_tx *tx, struct lane_rx *rx, struct lane_memory *memory,
	       unsigned int side);

/**
 * Put packets whose buffers are ours.
 *
 * @param frames
 *   Where each packet is. A packet of at most LANE_SHORT_BYTES is copied; its buffer is not lent.
 * @return
 *   How many had room.
 */
uint32_t lane_put(struct lane_tx *tx, const struct share_packet *packets,
		  const uint8_t *const *frames, uint32_t n);

/** Return true if a packet is copied and its buffer not lent. */
static inline bool lane_is_short(const struct share_packet *packet)
{
	return packet->len <= LANE_SHORT_BYTES;
}

/** Return the number of slots in use, as of the last lane_collect. */
static inline uint32_t lane_used(const struct lane_tx *tx)
{
	return tx->own - tx->collected;
}

/** Return true if one more packet can be placed, as of the last lane_collect. */
static inline bool lane_has_place(const struct lane_tx *tx)
{
	return !tx->broken && tx->staged != LANE_STAGED_MAX &&
	       lane_used(tx) + tx->staged != LANE_WORDS;
}

/** Return where to build the next packet of at most LANE_SHORT_BYTES; NULL: there is no room.
 */
static inline uint8_t *lane_place(struct lane_tx *tx)
{
	return likely(lane_has_place(tx)) ? tx->stage[tx->staged].frame : NULL;
}

/** Place a packet of more than LANE_SHORT_BYTES that is in a buffer of ours, after lane_has_place.
 * lane_show puts it, and lends the buffer. */
void lane_place_buffer(struct lane_tx *tx, const struct share_packet *packet);

/** Put all packets that were placed. */
void lane_show(struct lane_tx *tx);

/** Prefetch for writing the slot `ahead` packets after the next one. */
static inline void lane_fetch(const struct lane_tx *tx, uint32_t ahead)
{
	const struct lane_slot *slot =
		&tx->ring->slots[(tx->own + tx->staged + ahead) % LANE_WORDS];

	prefetch_write_bytes(__builtin_assume_aligned(slot, LANE_SLOT_BYTES), LANE_SLOT_BYTES);
}

/** Return SHARE_FLAG_ROUND as it is in the word at an index. In the first round it is set, so words
 * of zero are invalid. */
static inline uint8_t lane_round(uint32_t index)
{
	return (index / LANE_WORDS) % 2 == 0 ? SHARE_FLAG_ROUND : 0;
}

/** Note that a packet of `len` bytes was built at lane_place. lane_show puts it. */
static inline void lane_placed(struct lane_tx *tx, uint32_t len)
{
	const struct share_packet packet = {
		.len = (uint16_t)len,
		.flags = SHARE_FLAG_SHORT | lane_round(tx->own + tx->staged),
	};

	tx->staged_buffers[tx->staged] = LANE_NO_BUFFER;
	tx->stage[tx->staged].word = share_pack(&packet);
	tx->staged++;
}

/** Unpack the word at an index. Return false if the packet is not there yet. */
static inline bool lane_unpack(uint64_t word, uint32_t index, struct share_packet *packet)
{
	*packet = share_unpack(word);
	return (packet->flags & SHARE_FLAG_ROUND) == lane_round(index);
}

/** Tell how many packets were put, and how many the receiver has given back, both modulo 2^32.
 * Return false if its index is impossible. */
bool lane_tell_taken(const struct lane_tx *tx, uint32_t *given, uint32_t *taken);

/** Take back the buffers that the receiver has given back. `buffers` has room for LANE_WORDS.
 * Returns how many. */
uint32_t lane_collect(struct lane_tx *tx, uint32_t *buffers);

/** Take back all lent buffers, after the receiver has ended, and those of packets that were placed
 * and not put. */
uint32_t lane_reclaim(struct lane_tx *tx, uint32_t *buffers);

/**
 * Take up to `n` packets. They are borrowed until lane_done. Returns how many.
 *
 * @param first
 *   Set to the index of the first one.
 */
uint32_t lane_take(struct lane_rx *rx, struct share_packet *packets, uint32_t n, uint32_t *first);

/** Return false if lane_take would find nothing. */
static inline bool lane_has_next(const struct lane_rx *rx)
{
	const struct lane_slot *slot = &rx->ring->slots[rx->seen % LANE_WORDS];
	struct share_packet packet;

	return lane_unpack(__atomic_load_n(&slot->word, __ATOMIC_RELAXED), rx->seen, &packet);
}

/** Return the packet at an index, if its flags have SHARE_FLAG_SHORT. */
static inline uint8_t *lane_frame(const struct lane_rx *rx, uint32_t index)
{
	return rx->ring->slots[index % LANE_WORDS].frame;
}

/** Release the packet at an index. */
void lane_done(struct lane_rx *rx, uint32_t index);

/** Give the released packets back to the sender. */
void lane_give_back(struct lane_rx *rx);

/** Take no packets that are put after this call. */
void lane_end(struct lane_rx *rx);

/** Return true if all packets before lane_end have been taken and given back. */
bool lane_is_over(const struct lane_rx *rx);

/** Return true if the indices in shared memory say that packets wait, or are just being put.
 * MT-safe. */
bool lane_waits(const struct lane_rx *rx);

/** Return true if the receiver has packets to take. After lane_end it does not read the sender's
 * index, which a dead sender may have left anywhere. */
bool lane_has_some(const struct lane_rx *rx);

#endif
