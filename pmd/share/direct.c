/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes packets through a ring: the receiver takes them, releases them and gives them back. */
#include "share/direct.h"

#include <string.h>

#include <rte_prefetch.h>

static_assert((DIRECT_SLOTS & (DIRECT_SLOTS - 1)) == 0, "indices are taken modulo a power of two");

void direct_init(struct direct_tx *tx, struct direct_rx *rx, struct direct_memory *memory,
		 unsigned int side)
{
	memset(tx, 0, sizeof(*tx));
	memset(rx, 0, sizeof(*rx));
	tx->ring = &memory->rings[side];
	rx->ring = &memory->rings[!side];
}

bool direct_copy(struct direct_tx *tx, const uint8_t *frame, uint32_t len)
{
	const bool is_short = len <= DIRECT_SHORT_BYTES;

	if (unlikely(tx->staged == DIRECT_STAGED_MAX))
		direct_show(tx);
	if (!direct_has_place(tx))
		return false;
	memcpy(is_short ? direct_place(tx) : direct_buffer(tx, 0), frame, len);
	direct_placed(tx, len, is_short ? SHARE_FLAG_SHORT : 0);
	return true;
}

void direct_show(struct direct_tx *tx)
{
	for (uint32_t i = 0; i < tx->staged; i++) {
		struct direct_slot *slot = &tx->ring->slots[(tx->own + i) % DIRECT_SLOTS];

		/* Copy all of it: a memcpy of constant size is not a function call. */
		if (share_unpack(tx->stage[i].word).flags & SHARE_FLAG_SHORT)
			memcpy(slot->frame, tx->stage[i].frame, sizeof(slot->frame));
	}
	/* Release: the receiver sees the packet before the word. Pairs with direct_take. */
	for (uint32_t i = 0; i < tx->staged; i++)
		__atomic_store_n(&tx->ring->slots[(tx->own + i) % DIRECT_SLOTS].word,
				 tx->stage[i].word, __ATOMIC_RELEASE);
	tx->own += tx->staged;
	tx->staged = 0;
}

bool direct_tell_taken(const struct direct_tx *tx, uint32_t *given, uint32_t *taken)
{
	*given = tx->own;
	*taken = __atomic_load_n(&tx->ring->cons, __ATOMIC_RELAXED);
	return !tx->broken && *given - *taken <= DIRECT_SLOTS;
}

void direct_look(struct direct_tx *tx)
{
	/* Acquire: the receiver has read the packets that it gave back, so they may be
	 * overwritten. Pairs with direct_give_back. */
	const uint32_t cons = __atomic_load_n(&tx->ring->cons, __ATOMIC_ACQUIRE);

	/* An impossible index is, for example, one that goes backwards. */
	if (cons - tx->seen > direct_used(tx))
		tx->broken = true;
	else
		tx->seen = cons;
}

/* Read the packet at an index, which is inside the ring. Return false if it is not there yet. */
static bool direct_read(const struct direct_rx *rx, uint32_t index, struct share_packet *packet)
{
	const struct direct_slot *slot = &rx->ring->slots[index % DIRECT_SLOTS];

	if (!direct_unpack(__atomic_load_n(&slot->word, __ATOMIC_ACQUIRE), index, packet))
		return false;
	/* A short packet has one more cache line. */
	rte_prefetch0((const uint8_t *)slot + RTE_CACHE_LINE_SIZE);
	return true;
}

/* Return how many packets may be taken if they are there: never more than there are slots. */
static uint32_t direct_limit(const struct direct_rx *rx)
{
	return rx->ends ? rx->end - rx->seen : DIRECT_SLOTS - (rx->seen - rx->own);
}

uint32_t direct_take(struct direct_rx *rx, struct share_packet *packets, uint32_t n,
		     uint32_t *first)
{
	uint32_t taken = 0;

	n = RTE_MIN(n, direct_limit(rx));
	*first = rx->seen;
	while (taken < n && direct_read(rx, rx->seen, &packets[taken])) {
		rx->seen++;
		taken++;
	}
	return taken;
}

void direct_give_back(struct direct_rx *rx)
{
	uint32_t own = rx->own;

	while (own != rx->seen && rx->done[own % DIRECT_SLOTS])
		rx->done[own++ % DIRECT_SLOTS] = false;
	if (own == rx->own)
		return;
	__atomic_store_n(&rx->own, own, __ATOMIC_RELAXED);
	/* Release: the packets were read before the sender may overwrite them. Pairs with
	 * direct_look. */
	__atomic_store_n(&rx->ring->cons, own, __ATOMIC_RELEASE);
}

void direct_end(struct direct_rx *rx)
{
	const uint32_t limit = direct_limit(rx);
	uint32_t n = 0;

	while (n < limit && direct_has(rx->ring, rx->seen + n))
		n++;
	rx->end = rx->seen + n;
	rx->ends = true;
}

bool direct_is_over(const struct direct_rx *rx)
{
	/* The sender may take back packets that direct_end has seen. */
	return rx->ends && rx->seen == rx->own && (rx->seen == rx->end || !direct_has_next(rx));
}

bool direct_waits(const struct direct_rx *rx)
{
	/* Not the index in the ring: the sender may write it. */
	return direct_has(rx->ring, __atomic_load_n(&rx->own, __ATOMIC_RELAXED));
}
