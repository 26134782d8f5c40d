/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's own buffers, and their places in its rings. */
#ifndef BUFFERS_H
#define BUFFERS_H

#include <errno.h>

#include "memif/end.h"
#include "ring.h"

#define COLLECT_EVERY 32 /* packets sent between two looks at the server's index */

static inline uint8_t *buffers_at(const struct memif_buffers *buffers, uint32_t buffer)
{
	return buffers->first + (size_t)buffer * buffers->stride;
}

/* Return the buffer behind an index of the ring from the server, which is always the same. */
static inline uint8_t *buffers_received(const struct memif_buffers *buffers,
					const struct memif_ring *rx, uint16_t index)
{
	return buffers_at(buffers, rx->size + (index & (rx->size - 1)));
}

/* Return the place in the free-buffer cache of the buffer that is sent after `ahead` others, which
 * are as many as are free at most. `oldest`: take those that have been free for longest. */
static inline uint32_t *buffers_cache_at(const struct memif_buffers *buffers,
					 const struct memif_ring *tx, uint32_t ahead, bool oldest)
{
	const uint32_t at = oldest ? ahead : buffers->cache_count - 1 - ahead;

	return &buffers->cache[(buffers->cache_first + at) & (tx->size - 1)];
}

/* Make all received buffers ready for the server again. Return false if none were received. */
static inline bool buffers_post(struct memif_buffers *buffers, const struct memif_ring *rx)
{
	const uint16_t end = (uint16_t)(rx->own + rx->size);

	if (buffers->posted == end)
		return false;
	while (buffers->posted != end)
		ring_describe(rx, buffers->posted++, 0, buffers->bytes);
	return true;
}

/* Take back the buffers that the server has read. 0 or -EPROTO. */
static inline int buffers_collect(struct memif_buffers *buffers, const struct memif_ring *tx)
{
	const uint16_t tail = __atomic_load_n(tx->theirs, __ATOMIC_ACQUIRE);

	/* The index is invalid if it goes back or is ahead of ours. */
	if (unlikely((uint16_t)(tail - buffers->collected) >
		     (uint16_t)(buffers->shown - buffers->collected)))
		return -EPROTO;
	while (buffers->collected != tail) {
		buffers->cache[(buffers->cache_first + buffers->cache_count++) & (tx->size - 1)] =
			buffers->placed[buffers->collected++ & (tx->size - 1)];
	}
	return 0;
}

/* Return how many buffers can be sent now, or -EPROTO. The result may be lower than the true
 * number, but not if it is lower than `wanted`. */
static inline int buffers_room(struct memif_buffers *buffers, const struct memif_ring *tx,
			       uint32_t wanted)
{
	/* Do not read the server's index each time: the server writes that cache line. */
	if ((uint16_t)(tx->own - buffers->looked) >= COLLECT_EVERY ||
	    buffers->cache_count < wanted) {
		buffers->looked = tx->own;
		if (unlikely(buffers_collect(buffers, tx) != 0))
			return -EPROTO;
	}
	return (int)buffers->cache_count;
}

/* Put the next buffer, which holds `len` bytes, into the ring. */
static inline void buffers_put(struct memif_buffers *buffers, const struct memif_ring *tx,
			       uint16_t flags, size_t len, bool oldest)
{
	const uint32_t buffer = *buffers_cache_at(buffers, tx, 0, oldest);

	buffers->cache_first += oldest;
	buffers->cache_count--;
	buffers->placed[tx->own & (tx->size - 1)] = buffer;
	/* Write the whole descriptor: the server may have changed it. */
	*ring_at(tx, tx->own) = (struct memif_descriptor){
		.flags = flags,
		.length = (uint32_t)len,
		.offset = buffers->offset + buffer * buffers->stride,
	};
}

#endif
