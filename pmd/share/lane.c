/* SPDX-License-Identifier: BSD-3-Clause */
/* Lends packets through a ring: the receiver takes them, releases them and gives them back. */
#include "share/lane.h"

#include <string.h>

#include <rte_prefetch.h>

static_assert((LANE_WORDS & (LANE_WORDS - 1)) == 0, "indices are taken modulo a power of two");

void lane_init(struct lane_tx *tx, struct lane_rx *rx, struct lane_memory *memory,
	       unsigned int side)
{
	memset(tx, 0, sizeof(*tx));
	memset(rx, 0, sizeof(*rx));
	tx->ring = &memory->rings[side];
	rx->ring = &memory->rings[!side];
}

static uint64_t lane_word(const struct share_packet *packet, uint32_t index)
{
	struct share_packet marked = *packet;

	marked.flags |= lane_round(index);
	if (lane_is_short(packet))
		marked.flags |= SHARE_FLAG_SHORT;
	return share_pack(&marked);
}

/* Fill the slot of a packet, except its word. */
static void lane_fill(struct lane_tx *tx, uint32_t index, const struct share_packet *packet,
		      const uint8_t *frame)
{
	const bool is_short = lane_is_short(packet);

	tx->buffers[index % LANE_WORDS] = is_short ? LANE_NO_BUFFER : packet->buffer;
	tx->lent += !is_short;
	if (is_short)
		memcpy(tx->ring->slots[index % LANE_WORDS].frame, frame, packet->len);
}

uint32_t lane_put(struct lane_tx *tx, const struct share_packet *packets,
		  const uint8_t *const *frames, uint32_t n)
{
	uint32_t room, first;

	if (unlikely(tx->staged > 0))
		lane_show(tx);
	first = tx->own;
	/* A slot has room only after lane_collect: until then `buffers` records the buffer that
	 * was lent. */
	room = tx->broken ? 0 : LANE_WORDS - lane_used(tx);
	n = RTE_MIN(n, room);
	for (uint32_t i = 0; i < n; i++)
		lane_fill(tx, first + i, &packets[i], frames[i]);
	tx->own += n;
	/* Store the index before the words. Then the index covers all buffers that were lent, even
	 * if the sender is killed in between. */
	__atomic_store_n(&tx->ring->prod, tx->own, __ATOMIC_RELEASE);
	/* Release: the receiver sees the packet and the index before the word. Pairs with
	 * lane_take. */
	for (uint32_t i = 0; i < n; i++)
		__atomic_store_n(&tx->ring->slots[(first + i) % LANE_WORDS].word,
				 lane_word(&packets[i], first + i), __ATOMIC_RELEASE);
	return n;
}

void lane_place_buffer(struct lane_tx *tx, const struct share_packet *packet)
{
	tx->staged_buffers[tx->staged] = packet->buffer;
	tx->stage[tx->staged].word = lane_word(packet, tx->own + tx->staged);
	tx->staged++;
}

void lane_show(struct lane_tx *tx)
{
	const uint32_t first = tx->own, n = tx->staged;

	for (uint32_t i = 0; i < n; i++) {
		struct lane_slot *slot = &tx->ring->slots[(first + i) % LANE_WORDS];

		tx->buffers[(first + i) % LANE_WORDS] = tx->staged_buffers[i];
		if (tx->staged_buffers[i] != LANE_NO_BUFFER)
			tx->lent++;
		else /* Copy all of it: a memcpy of constant size is not a function call. */
			memcpy(slot->frame, tx->stage[i].frame, sizeof(slot->frame));
	}
	tx->own += n;
	tx->staged = 0;
	/* Store the index before the words, as lane_put does. */
	__atomic_store_n(&tx->ring->prod, tx->own, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < n; i++)
		__atomic_store_n(&tx->ring->slots[(first + i) % LANE_WORDS].word, tx->stage[i].word,
				 __ATOMIC_RELEASE);
}

static uint32_t lane_collect_to(struct lane_tx *tx, uint32_t end, uint32_t *buffers)
{
	uint32_t n = 0;

	for (; tx->collected != end; tx->collected++) {
		const uint32_t buffer = tx->buffers[tx->collected % LANE_WORDS];

		if (buffer != LANE_NO_BUFFER)
			buffers[n++] = buffer;
	}
	tx->lent -= n;
	return n;
}

bool lane_tell_taken(const struct lane_tx *tx, uint32_t *given, uint32_t *taken)
{
	*given = tx->own;
	*taken = __atomic_load_n(&tx->ring->cons, __ATOMIC_RELAXED);
	return !tx->broken && *given - *taken <= LANE_WORDS;
}

uint32_t lane_collect(struct lane_tx *tx, uint32_t *buffers)
{
	/* Acquire: the receiver has read the packets that it gave back, so they may be
	 * overwritten. Pairs with lane_tell. */
	const uint32_t end = __atomic_load_n(&tx->ring->cons, __ATOMIC_ACQUIRE);

	/* An impossible index, for example one that goes backwards, gives back nothing. So no
	 * buffer is taken back twice. */
	if (end - tx->collected > lane_used(tx))
		tx->broken = true;
	return tx->broken ? 0 : lane_collect_to(tx, end, buffers);
}

uint32_t lane_reclaim(struct lane_tx *tx, uint32_t *buffers)
{
	uint32_t n = lane_collect_to(tx, tx->own, buffers);

	for (uint32_t i = 0; i < tx->staged; i++) {
		if (tx->staged_buffers[i] != LANE_NO_BUFFER)
			buffers[n++] = tx->staged_buffers[i];
	}
	tx->staged = 0;
	return n;
}

/* Read the packet at an index, which is inside the ring. Return false if it is not there yet. */
static bool lane_look(const struct lane_rx *rx, uint32_t index, struct share_packet *packet)
{
	const struct lane_slot *slot = &rx->ring->slots[index % LANE_WORDS];

	if (!lane_unpack(__atomic_load_n(&slot->word, __ATOMIC_ACQUIRE), index, packet))
		return false;
	/* A short packet has one more cache line. */
	rte_prefetch0((const uint8_t *)slot + RTE_CACHE_LINE_SIZE);
	return true;
}

/* Return how many packets may be taken if they are there: never more than there are slots. */
static uint32_t lane_limit(const struct lane_rx *rx)
{
	return rx->ends ? rx->end - rx->seen : LANE_WORDS - (rx->seen - rx->own);
}

uint32_t lane_take(struct lane_rx *rx, struct share_packet *packets, uint32_t n, uint32_t *first)
{
	uint32_t taken = 0;

	n = RTE_MIN(n, lane_limit(rx));
	*first = rx->seen;
	while (taken < n && lane_look(rx, rx->seen, &packets[taken])) {
		rx->seen++;
		taken++;
	}
	return taken;
}

void lane_done(struct lane_rx *rx, uint32_t index)
{
	rx->done[index % LANE_WORDS] = true;
}

/* Tell the sender which packets were given back. When the lane is over, these include packets that
 * the sender was about to put. */
static void lane_tell(struct lane_rx *rx)
{
	const uint32_t own =
		lane_is_over(rx) ? __atomic_load_n(&rx->ring->prod, __ATOMIC_RELAXED) : rx->own;

	__atomic_store_n(&rx->ring->cons, own, __ATOMIC_RELEASE);
}

void lane_give_back(struct lane_rx *rx)
{
	const uint32_t before = rx->own;

	while (rx->own != rx->seen && rx->done[rx->own % LANE_WORDS])
		rx->done[rx->own++ % LANE_WORDS] = false;
	if (rx->own != before)
		lane_tell(rx);
}

void lane_end(struct lane_rx *rx)
{
	const uint32_t limit = lane_limit(rx);
	struct share_packet packet;
	uint32_t n = 0;

	while (n < limit && lane_look(rx, rx->seen + n, &packet))
		n++;
	rx->end = rx->seen + n;
	rx->ends = true;
	lane_tell(rx);
}

bool lane_is_over(const struct lane_rx *rx)
{
	return rx->ends && rx->seen == rx->own && rx->seen == rx->end;
}

bool lane_waits(const struct lane_rx *rx)
{
	return __atomic_load_n(&rx->ring->prod, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&rx->ring->cons, __ATOMIC_RELAXED);
}

bool lane_has_some(const struct lane_rx *rx)
{
	return rx->ends ? rx->seen != rx->end : lane_waits(rx);
}
