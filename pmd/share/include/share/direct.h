/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A direct channel between two programs of one owner. It carries packets in both directions without
 * the owner of the port.
 *
 * Both programs map one piece of memory, which the owner has made. Each slot of a ring has a
 * buffer. The sender writes a packet there, and the receiver releases the slot when it has finished
 * with it. So if either program is killed, at any instruction, nothing has to be taken back.
 *
 * Each packet uses one slot of the ring: a word that describes it and, for a short packet, the
 * packet itself; a longer packet is in the slot's buffer. The receiver polls only the words, so a
 * short packet arrives in the same cache line as its word. A second cache miss would cost as much
 * as all instructions for one message. A bit in the word, which alternates with each round of the
 * ring, tells if the word is valid.
 *
 * Nothing in the memory is believed: words and indices are read once and checked, our own indices
 * are in private memory. Programs that trust each other read packets in place. Others must copy a
 * packet before they check it, because the sender may change it at any time.
 */
#ifndef SHARE_DIRECT_H
#define SHARE_DIRECT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "base/prefetch.h"
#include "share/layout.h"
#include "wire/build.h"

#define DIRECT_SLOTS	    256	 /* packets in flight in each direction; a power of two */
#define DIRECT_SLOT_BYTES   128	 /* two cache lines, which CPUs fetch together */
#define DIRECT_BUFFER_BYTES 4608 /* the longest packet */
#define DIRECT_STAGED_MAX   32
/* The longest packet that is beside its word. */
#define DIRECT_SHORT_BYTES (DIRECT_SLOT_BYTES - sizeof(uint64_t))

static_assert(PACKET_FRAME_MAX <= DIRECT_BUFFER_BYTES, "each packet of the engine fits");

/* The end of one process. */
struct direct_side {
	uint32_t ready
		__rte_cache_aligned; /* atomic: the process has mapped the channel and polls it */
	uint32_t sleeps __rte_cache_aligned; /* atomic: the sender must wake the process */
};

struct direct_slot {
	/* atomic; a struct share_packet with SHARE_FLAG_ROUND and SHARE_FLAG_SHORT */
	uint64_t word;
	uint8_t frame[DIRECT_SHORT_BYTES]; /* SHARE_FLAG_SHORT: the packet */
} __rte_aligned(DIRECT_SLOT_BYTES);

static_assert(sizeof(struct direct_slot) == DIRECT_SLOT_BYTES, "a slot is that long");

/* One direction of a direct channel, in shared memory. A ring whose bytes are all zero is empty. */
struct direct_ring {
	/* atomic; free-running; written by the receiver: all before it was given back */
	uint32_t cons __rte_aligned(DIRECT_SLOT_BYTES);
	struct direct_slot slots[DIRECT_SLOTS];
	uint8_t buffers[DIRECT_SLOTS][DIRECT_BUFFER_BYTES]; /* by slot: longer packets */
};

/* A direct channel's memory. rings[0] goes from side 0 to side 1, rings[1] back. Initially all
 * zero. */
struct direct_memory {
	struct direct_side sides[2] __rte_aligned(DIRECT_SLOT_BYTES);
	struct direct_ring rings[2];
};

/* The sender's view. One thread at a time. */
struct direct_tx {
	struct direct_ring *ring;
	uint32_t own;  /* index up to which packets have been put */
	uint32_t seen; /* the receiver's index, when it was read last */
	bool broken;   /* the other side's index is impossible: no packet is put any more */
	/* Words and short packets are built here and copied to the ring together: the receiver
	 * polls the ring's next slot, so each write there would miss the cache. */
	uint32_t staged;
	struct direct_slot stage[DIRECT_STAGED_MAX];
};

/* The receiver's view. One thread at a time. */
struct direct_rx {
	struct direct_ring *ring;
	uint32_t own; /* index up to which all has been given back; direct_waits reads it: atomic */
	uint32_t seen; /* index up to which packets have been taken */
	bool ends;     /* packets from index `end` on are not taken */
	uint32_t end;
	bool done[DIRECT_SLOTS]; /* by index modulo: taken and released */
};

/** Initialise one side's view of a direct channel whose memory is still all zero. */
void direct_init(struct direct_tx *tx, struct direct_rx *rx, struct direct_memory *memory,
		 unsigned int side);

/** Return the number of slots in use, as of the last direct_look. */
static inline uint32_t direct_used(const struct direct_tx *tx)
{
	return tx->own - tx->seen;
}

/** Return true if one more packet can be placed, as of the last direct_look. */
static inline bool direct_has_place(const struct direct_tx *tx)
{
	return !tx->broken && tx->staged != DIRECT_STAGED_MAX &&
	       direct_used(tx) + tx->staged != DIRECT_SLOTS;
}

/** Return where to build the next packet of at most DIRECT_SHORT_BYTES; NULL: there is no room.
 */
static inline uint8_t *direct_place(struct direct_tx *tx)
{
	return likely(direct_has_place(tx)) ? tx->stage[tx->staged].frame : NULL;
}

/** Return the buffer of the packet `ahead` packets after the next one. */
static inline uint8_t *direct_buffer(const struct direct_tx *tx, uint32_t ahead)
{
	return tx->ring->buffers[(tx->own + tx->staged + ahead) % DIRECT_SLOTS];
}

/** Put all packets that were placed. */
void direct_show(struct direct_tx *tx);

/** Copy a packet of any length to the next place. Return false if there is no room, as of the last
 * direct_look. direct_show puts it. */
bool direct_copy(struct direct_tx *tx, const uint8_t *frame, uint32_t len);

/** Prefetch for writing the slot `ahead` packets after the next one. */
static inline void direct_fetch(const struct direct_tx *tx, uint32_t ahead)
{
	const struct direct_slot *slot =
		&tx->ring->slots[(tx->own + tx->staged + ahead) % DIRECT_SLOTS];

	prefetch_write_bytes(__builtin_assume_aligned(slot, DIRECT_SLOT_BYTES), DIRECT_SLOT_BYTES);
}

/** Return SHARE_FLAG_ROUND as it is in the word at an index. In the first round it is set, so words
 * of zero are invalid. */
static inline uint8_t direct_round(uint32_t index)
{
	return (index / DIRECT_SLOTS) % 2 == 0 ? SHARE_FLAG_ROUND : 0;
}

/** Note that a packet of `len` bytes was built in the next place: at direct_place (`flags` is
 * SHARE_FLAG_SHORT), or in the buffer (0). direct_show puts it. */
static inline void direct_placed(struct direct_tx *tx, uint32_t len, uint8_t flags)
{
	const struct share_packet packet = {
		.len = (uint16_t)len,
		.flags = flags | direct_round(tx->own + tx->staged),
	};

	tx->stage[tx->staged++].word = share_pack(&packet);
}

/** Unpack the word at an index. Return false if the packet is not there yet. */
static inline bool direct_unpack(uint64_t word, uint32_t index, struct share_packet *packet)
{
	*packet = share_unpack(word);
	return (packet->flags & SHARE_FLAG_ROUND) == direct_round(index);
}

/** Tell how many packets were put, and how many the receiver has given back, both modulo 2^32.
 * Return false if its index is impossible. */
bool direct_tell_taken(const struct direct_tx *tx, uint32_t *given, uint32_t *taken);

/** Read the receiver's index: there may be more room. */
void direct_look(struct direct_tx *tx);

/**
 * Take up to `n` packets. They are the receiver's until direct_done. Returns how many.
 *
 * @param first
 *   Set to the index of the first one.
 */
uint32_t direct_take(struct direct_rx *rx, struct share_packet *packets, uint32_t n,
		     uint32_t *first);

/** Undo direct_take for the last `n` packets. */
static inline void direct_untake(struct direct_rx *rx, uint32_t n)
{
	rx->seen -= n;
}

/** Return true if the packet at an index has been put, where that index is at most as many packets
 * ahead as the ring has slots. */
static inline bool direct_has(const struct direct_ring *ring, uint32_t index)
{
	struct share_packet packet;

	return direct_unpack(
		__atomic_load_n(&ring->slots[index % DIRECT_SLOTS].word, __ATOMIC_RELAXED), index,
		&packet);
}

/** Return false if direct_take would find nothing. */
static inline bool direct_has_next(const struct direct_rx *rx)
{
	return direct_has(rx->ring, rx->seen);
}

/** Return where the packet at an index is; NULL: its word says that it is longer than its place.
 */
static inline uint8_t *direct_frame(const struct direct_rx *rx, uint32_t index,
				    const struct share_packet *packet)
{
	const bool is_short = packet->flags & SHARE_FLAG_SHORT;

	if (unlikely(packet->len > (is_short ? DIRECT_SHORT_BYTES : DIRECT_BUFFER_BYTES)))
		return NULL;
	return is_short ? rx->ring->slots[index % DIRECT_SLOTS].frame
			: rx->ring->buffers[index % DIRECT_SLOTS];
}

/** Release the packet at an index. */
static inline void direct_done(struct direct_rx *rx, uint32_t index)
{
	rx->done[index % DIRECT_SLOTS] = true;
}

/** Give the released packets back to the sender. */
void direct_give_back(struct direct_rx *rx);

/** Take no packets that are put after this call. */
void direct_end(struct direct_rx *rx);

/** Return true if all packets before direct_end have been taken and given back, as far as they are
 * still there. */
bool direct_is_over(const struct direct_rx *rx);

/** Return true if packets wait, or have not been given back. MT-safe. */
bool direct_waits(const struct direct_rx *rx);

#endif
