/* SPDX-License-Identifier: BSD-3-Clause */
/* Lending packets through a ring: what is taken, done with and given back. */
#include "share/lane.h"

#include <string.h>

static_assert((LANE_WORDS & (LANE_WORDS - 1)) == 0, "indices are taken modulo a power of two");

void lane_init(struct lane_tx *tx, struct lane_rx *rx, void *memory, unsigned int side)
{
	uint8_t *at = memory;

	memset(tx, 0, sizeof(*tx));
	memset(rx, 0, sizeof(*rx));
	share_ring_init(&tx->ring, at + lane_ring_offset(side), LANE_WORDS);
	share_ring_init(&rx->ring, at + lane_ring_offset(!side), LANE_WORDS);
}

uint32_t lane_put(struct lane_tx *tx, const uint64_t *words, uint32_t n)
{
	/* Not all that the ring has room for: what was lent is noted until it is collected. */
	const uint32_t room = LANE_WORDS - lane_lent(tx);

	n = RTE_MIN(n, room);
	for (uint32_t i = 0; i < n; i++)
		tx->buffers[(tx->ring.own + i) % LANE_WORDS] = share_unpack(words[i]).buffer;
	return share_ring_put(&tx->ring, words, n);
}

static uint32_t lane_collect_to(struct lane_tx *tx, uint32_t end, uint32_t *buffers)
{
	uint32_t n = 0;

	while (tx->collected != end)
		buffers[n++] = tx->buffers[tx->collected++ % LANE_WORDS];
	return n;
}

uint32_t lane_collect(struct lane_tx *tx, uint32_t *buffers)
{
	share_ring_room(&tx->ring);
	/* An index that goes back gives back nothing, and what it once gave is not given again. */
	if (tx->ring.other - tx->collected > tx->ring.own - tx->collected)
		tx->ring.broken = true;
	return tx->ring.broken ? 0 : lane_collect_to(tx, tx->ring.other, buffers);
}

uint32_t lane_reclaim(struct lane_tx *tx, uint32_t *buffers)
{
	return lane_collect_to(tx, tx->ring.own, buffers);
}

/* Packets that wait and may be taken. */
static uint32_t lane_count(struct lane_rx *rx)
{
	uint32_t end;

	share_ring_count(&rx->ring);
	end = rx->ends ? rx->end : rx->ring.other;
	/* An index that goes back, too, is none. */
	if (end - rx->seen > LANE_WORDS - (rx->seen - rx->ring.own))
		rx->ring.broken = true;
	return rx->ring.broken ? 0 : end - rx->seen;
}

uint32_t lane_take(struct lane_rx *rx, uint64_t *words, uint32_t n, uint32_t *first)
{
	n = RTE_MIN(n, lane_count(rx));
	*first = rx->seen;
	for (uint32_t i = 0; i < n; i++)
		words[i] = rx->ring.memory->words[(rx->seen + i) % LANE_WORDS];
	rx->seen += n;
	return n;
}

void lane_done(struct lane_rx *rx, uint32_t index)
{
	rx->done[index % LANE_WORDS] = true;
}

void lane_give_back(struct lane_rx *rx)
{
	uint32_t n = 0;

	while (rx->ring.own + n != rx->seen && rx->done[(rx->ring.own + n) % LANE_WORDS]) {
		rx->done[(rx->ring.own + n) % LANE_WORDS] = false;
		n++;
	}
	if (n > 0)
		share_ring_skip(&rx->ring, n);
}

void lane_end(struct lane_rx *rx)
{
	share_ring_count(&rx->ring);
	rx->end = rx->ring.broken ? rx->seen : rx->ring.other;
	rx->ends = true;
}

bool lane_is_over(const struct lane_rx *rx)
{
	return rx->ends && rx->seen == rx->ring.own && (rx->ring.broken || rx->seen == rx->end);
}

bool lane_waits(const struct lane_rx *rx)
{
	return __atomic_load_n(&rx->ring.memory->prod, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&rx->ring.memory->cons, __ATOMIC_RELAXED);
}
