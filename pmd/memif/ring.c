/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets out of and into a client's memory. */
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "base/prefetch.h"
#include "ring.h"

static int peer_break(struct memif_peer *peer)
{
	peer->state = MEMIF_STATE_BROKEN;
	return -EPROTO;
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

/* How far `head` is ahead of us. */
static int ring_look(struct memif_ring *ring)
{
	/* Acquire: what the descriptors and buffers before it hold is seen. */
	return ring_see(ring, __atomic_load_n(&ring->memory->head, __ATOMIC_ACQUIRE), ring->size);
}

/* The same as far as is known; where that is nothing, or no whole packet, it is looked at. */
static int ring_count(struct memif_ring *ring)
{
	const int known = ring_known(ring);

	return likely(known > 0) ? known : ring_look(ring);
}

/* A packet that is being put together, of pieces that are checked one by one. */
struct gathering {
	uint8_t *room;
	size_t room_bytes;
	memif_copy *copy;
	size_t len;
	uint16_t used; /* buffers */
	bool fits;
	bool right;
};

/* Whether the piece is the client's to show. */
static bool gather_piece(struct gathering *g, const struct memif_peer *peer,
			 const struct memif_descriptor *descriptor)
{
	const uint8_t *from = peer_find(peer, descriptor);
	const bool is_all = g->used == 0 && !(descriptor->flags & MEMIF_MORE);

	if (unlikely(!from))
		return false;
	g->used++;
	g->fits = g->fits && descriptor->length <= g->room_bytes - g->len;
	if (unlikely(!g->fits))
		return true;
	if (likely(is_all && g->copy))
		g->right = g->copy(g->room, from, descriptor->length);
	else
		memcpy(g->room + g->len, from, descriptor->length);
	g->len += descriptor->length;
	return true;
}

/* Up to `count` buffers are one packet. Returns its length; 0: the rest of it is still to come. */
static int peer_gather(const struct memif_peer *peer, int count, struct gathering *g)
{
	const struct memif_ring *ring = &peer->to_server;
	const int chain_max = peer->is_wire ? MEMIF_WIRE_CHAIN_MAX : MEMIF_CHAIN_MAX;

	while (g->used < count && g->used < chain_max) {
		const struct memif_descriptor descriptor =
			ring_read(ring, (uint16_t)(ring->own + g->used));

		if (unlikely(!gather_piece(g, peer, &descriptor)))
			return -EPROTO;
		if (unlikely(descriptor.flags & MEMIF_MORE))
			continue;
		if (unlikely(!g->fits))
			return -EMSGSIZE;
		return g->len > 0 ? (int)g->len : -EPROTO;
	}
	/* It goes on where nothing is, or for too long: an isolated client shows packets that are
	 * whole. */
	return peer->is_wire && g->used < chain_max && g->used < ring->size ? 0 : -EPROTO;
}

/* What a descriptor says is for fetching alone here: it is read again. */
static void peer_fetch(const struct memif_peer *peer, uint16_t index)
{
	const struct memif_descriptor descriptor = ring_read(&peer->to_server, index);
	const uint8_t *from = peer_find(peer, &descriptor);

	rte_prefetch0(ring_at(&peer->to_server, (uint16_t)(index + RING_DESCRIPTORS_AHEAD)));
	if (likely(from))
		ring_fetch(from);
}

static void peer_fetch_ahead(const struct memif_peer *peer, int count, bool news)
{
	const uint16_t own = peer->to_server.own;

	for (int i = ring_fetch_from(news); i < ring_fetch_to(count); i++)
		peer_fetch(peer, (uint16_t)(own + i));
}

int memif_peer_receive_by(struct memif_peer *peer, uint8_t *room, size_t room_bytes,
			  memif_copy *copy, bool *right)
{
	struct gathering g = {.room = room, .room_bytes = room_bytes, .copy = copy, .fits = true};
	const bool news = ring_known(&peer->to_server) <= 0;
	int count, len;

	*right = false;
	if (unlikely(peer->state != MEMIF_STATE_CONNECTED))
		return peer->state == MEMIF_STATE_BROKEN ? -EPROTO : 0;
	count = ring_count(&peer->to_server);
	if (count == 0)
		return 0;
	if (unlikely(count < 0))
		return peer_break(peer);
	peer_fetch_ahead(peer, count, news);
	len = peer_gather(peer, count, &g);
	if (unlikely(len == 0)) {
		peer->to_server.unfinished = true;
		return 0;
	}
	if (unlikely(len < 0 && len != -EMSGSIZE))
		return peer_break(peer);
	*right = g.right;
	peer->to_server.own = (uint16_t)(peer->to_server.own + g.used);
	return len;
}

int memif_peer_receive(struct memif_peer *peer, uint8_t *room, size_t room_bytes)
{
	bool right;
	const int len = memif_peer_receive_by(peer, room, room_bytes, NULL, &right);

	return unlikely(len == -EMSGSIZE) ? peer_break(peer) : len;
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
		ring_listen(&peer->to_server, on);
}

bool memif_peer_waits(const struct memif_peer *peer)
{
	const struct memif_ring *ring = &peer->to_server;

	/* What is no index that can be true is found out by who receives. */
	return peer->state == MEMIF_STATE_CONNECTED &&
	       ring_has_news(ring, __atomic_load_n(&ring->memory->head, __ATOMIC_ACQUIRE));
}

/* Buffers that are ready; less than 0: a rule was broken. */
static int peer_room(struct memif_peer *peer)
{
	const int count = ring_count(&peer->to_client);

	return unlikely(count < 0) ? peer_break(peer) : count;
}

bool memif_peer_has_room(struct memif_peer *peer)
{
	return peer->state == MEMIF_STATE_CONNECTED && peer_room(peer) > 0;
}

uint8_t *memif_peer_place(struct memif_peer *peer, size_t len)
{
	struct memif_ring *ring = &peer->to_client;
	struct memif_descriptor descriptor;
	uint8_t *to;

	if (unlikely(peer->state != MEMIF_STATE_CONNECTED) || peer_room(peer) <= 0)
		return NULL;
	descriptor = ring_read(ring, ring->own);
	to = peer_find(peer, &descriptor);
	if (unlikely(!to))
		peer_break(peer);
	return likely(to && descriptor.length >= len) ? to : NULL;
}

void memif_peer_expect(const struct memif_peer *peer, uint32_t ahead, size_t len)
{
	const struct memif_ring *ring = &peer->to_client;
	const uint16_t index = (uint16_t)(ring->own + ahead);
	struct memif_descriptor descriptor;
	const uint8_t *to;

	if (unlikely(peer->state != MEMIF_STATE_CONNECTED) || (int)ahead >= ring_known(ring))
		return;
	prefetch_write(ring_at(ring, (uint16_t)(index + RING_DESCRIPTORS_AHEAD)));
	descriptor = ring_read(ring, index);
	to = peer_find(peer, &descriptor);
	if (likely(to))
		prefetch_write_bytes(to, RTE_MIN(len, (size_t)descriptor.length));
}

void memif_peer_placed(struct memif_peer *peer, size_t len)
{
	ring_describe(&peer->to_client, peer->to_client.own, 0, len);
	peer->to_client.own++;
}

bool memif_peer_push(struct memif_peer *peer)
{
	struct memif_ring *ring = &peer->to_client;

	if (unlikely(peer->state != MEMIF_STATE_CONNECTED))
		return false;
	/* Release: packets and descriptors are seen before it. */
	__atomic_store_n(&ring->memory->tail, ring->own, __ATOMIC_RELEASE);
	return peer->is_wire && peer->bell_fd >= 0 && ring_wants_bell(ring);
}

/* A packet over several buffers. */
static int peer_scatter(struct memif_peer *peer, const uint8_t *packet, size_t len, int count)
{
	struct memif_ring *ring = &peer->to_client;
	uint32_t pieces[MEMIF_WIRE_CHAIN_MAX];
	int used = 0;

	while (len > 0) {
		const struct memif_descriptor descriptor =
			ring_read(ring, (uint16_t)(ring->own + used));
		uint8_t *to = peer_find(peer, &descriptor);

		if (unlikely(!to || descriptor.length == 0))
			return peer_break(peer);
		pieces[used] = (uint32_t)RTE_MIN(len, (size_t)descriptor.length);
		memcpy(to, packet, pieces[used]);
		packet += pieces[used];
		len -= pieces[used];
		used++;
		if (len > 0 && used >= RTE_MIN(count, MEMIF_WIRE_CHAIN_MAX))
			return used < MEMIF_WIRE_CHAIN_MAX && (uint32_t)count < ring->size
				       ? -EAGAIN
				       : -EMSGSIZE;
	}
	for (int i = 0; i < used; i++)
		ring_describe(ring, ring->own++, i + 1 < used ? MEMIF_MORE : 0, pieces[i]);
	return 0;
}

int memif_peer_send(struct memif_peer *peer, const uint8_t *packet, size_t len)
{
	struct memif_ring *ring = &peer->to_client;
	uint8_t *to;
	int count;

	if (unlikely(peer->state != MEMIF_STATE_CONNECTED))
		return peer->state == MEMIF_STATE_BROKEN ? -EPROTO : -EAGAIN;
	count = peer_room(peer);
	if (count <= 0)
		return count < 0 ? count : -EAGAIN;
	to = memif_peer_place(peer, len);
	if (likely(to)) {
		memcpy(to, packet, len);
		memif_peer_placed(peer, len);
	} else if (peer->state == MEMIF_STATE_BROKEN) {
		return -EPROTO;
	} else if (!peer->is_wire) {
		return -EMSGSIZE;
	} else {
		/* All that is ready. */
		count = ring_look(ring);
		count = count < 0 ? peer_break(peer) : peer_scatter(peer, packet, len, count);
		if (count != 0)
			return count;
	}
	if (!peer->is_wire)
		memif_peer_push(peer);
	return 0;
}
