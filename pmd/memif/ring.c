/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets out of and into a client's memory. */
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "memif/peer.h"

static int peer_break(struct memif_peer *peer)
{
	peer->state = MEMIF_STATE_BROKEN;
	return -EPROTO;
}

/*
 * A descriptor, which the client may be changing: each word is loaded once, and never again.
 */
static struct memif_descriptor ring_read(const struct memif_ring *ring, uint16_t index)
{
	const struct memif_descriptor *at = &ring->memory->descriptors[index & (ring->size - 1)];

	return (struct memif_descriptor){
		.flags = __atomic_load_n(&at->flags, __ATOMIC_RELAXED),
		.region = __atomic_load_n(&at->region, __ATOMIC_RELAXED),
		.length = __atomic_load_n(&at->length, __ATOMIC_RELAXED),
		.offset = __atomic_load_n(&at->offset, __ATOMIC_RELAXED),
	};
}

/* Where a buffer is; NULL where it is not in a region of the client's. */
static uint8_t *peer_find(const struct memif_peer *peer, const struct memif_descriptor *descriptor)
{
	const struct memif_region *region;

	if (descriptor->region >= peer->region_count)
		return NULL;
	region = &peer->regions[descriptor->region];
	if (descriptor->length > region->bytes ||
	    descriptor->offset > region->bytes - descriptor->length)
		return NULL;
	return region->at + descriptor->offset;
}

/* How far `head` is ahead of us; more than the ring has cannot be true. */
static int ring_count(const struct memif_ring *ring)
{
	/* Acquire: what the descriptors and buffers before it hold is seen. */
	const uint16_t head = __atomic_load_n(&ring->memory->head, __ATOMIC_ACQUIRE);
	const uint16_t count = (uint16_t)(head - ring->own);

	return count <= ring->size ? count : -EPROTO;
}

/* Up to `count` buffers are one packet. Returns its length; `used` is set to how many it took. */
static int peer_gather(const struct memif_peer *peer, int count, uint8_t *room, size_t room_bytes,
		       uint16_t *used)
{
	const struct memif_ring *ring = &peer->to_server;
	size_t len = 0;

	for (*used = 0; *used < count && *used < MEMIF_CHAIN_MAX;) {
		const struct memif_descriptor descriptor =
			ring_read(ring, (uint16_t)(ring->own + *used));
		const uint8_t *from = peer_find(peer, &descriptor);

		if (unlikely(!from || descriptor.length > room_bytes - len))
			return -EPROTO;
		memcpy(room + len, from, descriptor.length);
		len += descriptor.length;
		(*used)++;
		if (likely((descriptor.flags & MEMIF_MORE) == 0))
			return len > 0 ? (int)len : -EPROTO;
	}
	/* It goes on where nothing is, or for too long: a client shows packets that are whole. */
	return -EPROTO;
}

int memif_peer_receive(struct memif_peer *peer, uint8_t *room, size_t room_bytes)
{
	uint16_t used;
	int count, len;

	if (unlikely(peer->state != MEMIF_STATE_CONNECTED))
		return peer->state == MEMIF_STATE_BROKEN ? -EPROTO : 0;
	count = ring_count(&peer->to_server);
	if (count == 0)
		return 0;
	if (unlikely(count < 0))
		return peer_break(peer);
	len = peer_gather(peer, count, room, room_bytes, &used);
	if (unlikely(len < 0))
		return peer_break(peer);
	peer->to_server.own = (uint16_t)(peer->to_server.own + used);
	return len;
}

void memif_peer_release(struct memif_peer *peer)
{
	/* Release: buffers have been read, and may be written. */
	if (peer->state == MEMIF_STATE_CONNECTED)
		__atomic_store_n(&peer->to_server.memory->tail, peer->to_server.own,
				 __ATOMIC_RELEASE);
}

void memif_peer_listen(struct memif_peer *peer, bool on)
{
	if (peer->state == MEMIF_STATE_CONNECTED)
		__atomic_store_n(&peer->to_server.memory->flags, on ? 0 : MEMIF_QUIET,
				 __ATOMIC_RELAXED);
}

bool memif_peer_waits(const struct memif_peer *peer)
{
	return peer->state == MEMIF_STATE_CONNECTED && ring_count(&peer->to_server) != 0;
}

int memif_peer_send(struct memif_peer *peer, const uint8_t *packet, size_t len)
{
	struct memif_ring *ring = &peer->to_client;
	struct memif_descriptor descriptor, *at;
	uint8_t *to;
	int count;

	if (unlikely(peer->state != MEMIF_STATE_CONNECTED))
		return peer->state == MEMIF_STATE_BROKEN ? -EPROTO : -EAGAIN;
	count = ring_count(ring);
	if (count == 0)
		return -EAGAIN;
	if (unlikely(count < 0))
		return peer_break(peer);
	descriptor = ring_read(ring, ring->own);
	to = peer_find(peer, &descriptor);
	if (unlikely(!to))
		return peer_break(peer);
	if (unlikely(descriptor.length < len))
		return -EMSGSIZE;
	memcpy(to, packet, len);
	at = &ring->memory->descriptors[ring->own & (ring->size - 1)];
	__atomic_store_n(&at->flags, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&at->length, (uint32_t)len, __ATOMIC_RELAXED);
	ring->own++;
	/* Release: packet and descriptor are seen before it. */
	__atomic_store_n(&ring->memory->tail, ring->own, __ATOMIC_RELEASE);
	return 0;
}
