/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane between two attached processes. It carries packets in both directions without the owner of
 * the port.
 *
 * The lane's memory has all its packets: each slot of a ring has a buffer. The sender writes a
 * packet there, and the receiver reads it in place, and releases the slot. So if either process is
 * killed, at any instruction, nothing has to be taken back: the memory goes with its last mapping.
 *
 * Each packet uses one slot of the ring: a word that describes it and, for a short packet, the
 * packet itself; a longer packet is in the slot's buffer. The receiver polls only the words, so a
 * short packet arrives in the same cache line as its word. A second cache miss would cost as much
 * as all instructions for one message. A bit in the word, which alternates with each round of the
 * ring, tells if the word is valid.
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
#include "wire/build.h"

#define LANE_SLOTS	  256  /* packets in flight in each direction; a power of two */
#define LANE_SLOT_BYTES	  128  /* two cache lines, which CPUs fetch together */
#define LANE_BUFFER_BYTES 4608 /* the longest packet */
#define LANE_STAGED_MAX	  32
/* The longest packet that is beside its word. */
#define LANE_SHORT_BYTES (LANE_SLOT_BYTES - sizeof(uint64_t))

static_assert(PACKET_FRAME_MAX <= LANE_BUFFER_BYTES, "each packet of the engine fits");

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
	/* atomic; free-running; written by the receiver: all before it was given back */
	uint32_t cons __rte_aligned(LANE_SLOT_BYTES);
	struct lane_slot slots[LANE_SLOTS];
	uint8_t buffers[LANE_SLOTS][LANE_BUFFER_BYTES]; /* by slot: longer packets */
};

/* A lane's memory. rings[0] goes from side 0 to side 1, rings[1] back. Initially all zero. */
struct lane_memory {
	struct lane_side sides[2] __rte_aligned(LANE_SLOT_BYTES);
	struct lane_ring rings[2];
};

/* The sender's view. One thread at a time. */
struct lane_tx {
	struct lane_ring *ring;
	uint32_t own;  /* index up to which packets have been put */
	uint32_t seen; /* the receiver's index, when it was read last */
	bool broken;   /* the other side's index is impossible: no packet is put any more */
	/* Words and short packets are built here and copied to the ring together: the receiver
	 * polls the ring's next slot, so each write there would miss the cache. */
	uint32_t staged;
	struct lane_slot stage[LANE_STAGED_MAX];
};

/* The receiver's view. One thread at a time. */
struct lane_rx {
	struct lane_ring *ring;
	uint32_t own;  /* index up to which all has been given back */
	uint32_t seen; /* index up to which packets have been taken */
	bool ends;     /* packets from index `end` on are not taken */
	uint32_t end;
	bool done[LANE_SLOTS]; /* by index modulo: taken and released */
};

/** Initialise one side's view of a lane whose memory is still all zero. */
void lane_init(struct lane_tx *tx, struct lane_rx *rx, struct lane_memory *memory,
	       unsigned int side);

/** Return the number of slots in use, as of the last lane_look. */
static inline uint32_t lane_used(const struct lane_tx *tx)
{
	return tx->own - tx->seen;
}

/** Return true if one more packet can be placed, as of the last lane_look. */
static inline bool lane_has_place(const struct lane_tx *tx)
{
	return !tx->broken && tx->staged != LANE_STAGED_MAX &&
	       lane_used(tx) + tx->staged != LANE_SLOTS;
}

/** Return where to build the next packet of at most LANE_SHORT_BYTES; NULL: there is no room.
 */
static inline uint8_t *lane_place(struct lane_tx *tx)
{
	return likely(lane_has_place(tx)) ? tx->stage[tx->staged].frame : NULL;
}

/** Return the buffer of the packet `ahead` packets after the next one. */
static inline uint8_t *lane_buffer(const struct lane_tx *tx, uint32_t ahead)
{
	return tx->ring->buffers[(tx->own + tx->staged + ahead) % LANE_SLOTS];
}

/** Put all packets that were placed. */
void lane_show(struct lane_tx *tx);

/** Copy a packet of any length to the next place. Return false if there is no room, as of the last
 * lane_look. lane_show puts it. */
bool lane_copy(struct lane_tx *tx, const uint8_t *frame, uint32_t len);

/** Prefetch for writing the slot `ahead` packets after the next one. */
static inline void lane_fetch(const struct lane_tx *tx, uint32_t ahead)
{
	const struct lane_slot *slot =
		&tx->ring->slots[(tx->own + tx->staged + ahead) % LANE_SLOTS];

	prefetch_write_bytes(__builtin_assume_aligned(slot, LANE_SLOT_BYTES), LANE_SLOT_BYTES);
}

/** Return SHARE_FLAG_ROUND as it is in the word at an index. In the first round it is set, so words
 * of zero are invalid. */
static inline uint8_t lane_round(uint32_t index)
{
	return (index / LANE_SLOTS) % 2 == 0 ? SHARE_FLAG_ROUND : 0;
}

/** Note that a packet of `len` bytes was built in the next place: at lane_place (`flags` is
 * SHARE_FLAG_SHORT), or in the buffer (0). lane_show puts it. */
static inline void lane_placed(struct lane_tx *tx, uint32_t len, uint8_t flags)
{
	const struct share_packet packet = {
		.len = (uint16_t)len,
		.flags = flags | lane_round(tx->own + tx->staged),
	};

	tx->stage[tx->staged++].word = share_pack(&packet);
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

/** Read the receiver's index: there may be more room. */
void lane_look(struct lane_tx *tx);

/**
 * Take up to `n` packets. They are the receiver's until lane_done. Returns how many.
 *
 * @param first
 *   Set to the index of the first one.
 */
uint32_t lane_take(struct lane_rx *rx, struct share_packet *packets, uint32_t n, uint32_t *first);

/** Return true if the packet at an index has been put, where that index is at most as many packets
 * ahead as the ring has slots. */
static inline bool lane_has(const struct lane_ring *ring, uint32_t index)
{
	struct share_packet packet;

	return lane_unpack(__atomic_load_n(&ring->slots[index % LANE_SLOTS].word, __ATOMIC_RELAXED),
			   index, &packet);
}

/** Return false if lane_take would find nothing. */
static inline bool lane_has_next(const struct lane_rx *rx)
{
	return lane_has(rx->ring, rx->seen);
}

/** Return where the packet at an index is; NULL: its word says that it is longer than its place.
 */
static inline uint8_t *lane_frame(const struct lane_rx *rx, uint32_t index,
				  const struct share_packet *packet)
{
	const bool is_short = packet->flags & SHARE_FLAG_SHORT;

	if (unlikely(packet->len > (is_short ? LANE_SHORT_BYTES : LANE_BUFFER_BYTES)))
		return NULL;
	return is_short ? rx->ring->slots[index % LANE_SLOTS].frame
			: rx->ring->buffers[index % LANE_SLOTS];
}

/** Release the packet at an index. */
void lane_done(struct lane_rx *rx, uint32_t index);

/** Give the released packets back to the sender. */
void lane_give_back(struct lane_rx *rx);

/** Take no packets that are put after this call. */
void lane_end(struct lane_rx *rx);

/** Return true if all packets before lane_end have been taken and given back. */
bool lane_is_over(const struct lane_rx *rx);

/** Return true if packets wait, or have not been given back. MT-safe. */
bool lane_waits(const struct lane_rx *rx);

#endif
