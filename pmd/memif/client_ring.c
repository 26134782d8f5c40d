/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets out of and into a client's own memory. */
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/prefetch.h"
#include "memif/client_end.h"
#include "ring.h"

#define COLLECT_EVERY 32 /* packets: then the server has done with some */

static int client_break(struct memif_client *client)
{
	client->step = MEMIF_CLIENT_BROKEN;
	return -EPROTO;
}

static bool client_is_connected(const struct memif_client *client)
{
	return likely(client->step == MEMIF_CLIENT_CONNECTED);
}

static uint8_t *client_buffer(const struct memif_client *client, uint32_t buffer)
{
	return client->memory + client->buffers_at + (size_t)buffer * client->stride;
}

/* How far the server's `tail` is ahead of us, of buffers that we have laid ready. */
static int client_count(struct memif_client *client)
{
	struct memif_ring *ring = &client->to_client;
	int count = ring_known(ring);

	if (likely(count > 0))
		return count;
	/* Acquire: what the descriptors and buffers before it hold is seen. */
	count = ring_see(ring, __atomic_load_n(&ring->memory->tail, __ATOMIC_ACQUIRE),
			 (uint16_t)(client->posted - ring->own));
	return unlikely(count < 0) ? client_break(client) : count;
}

/* The buffer behind an index of the ring from the server is always the same. */
static const uint8_t *client_received(const struct memif_client *client, uint16_t index)
{
	const struct memif_ring *ring = &client->to_client;

	return client_buffer(client, ring->size + (index & (ring->size - 1)));
}

/* A packet in several buffers, of which `count` are there. */
static int client_gather(struct memif_client *client, int count, uint8_t *room, size_t room_bytes)
{
	struct memif_ring *ring = &client->to_client;
	bool fits = true;
	size_t len = 0;

	for (uint16_t used = 0; used < RTE_MIN(count, MEMIF_WIRE_CHAIN_MAX);) {
		const struct memif_descriptor descriptor =
			ring_read(ring, (uint16_t)(ring->own + used));
		const uint8_t *from = client_received(client, (uint16_t)(ring->own + used));

		if (descriptor.length > client->config.buffer_bytes)
			return client_break(client);
		fits = fits && descriptor.length <= room_bytes - len;
		if (fits) {
			memcpy(room + len, from, descriptor.length);
			len += descriptor.length;
		}
		used++;
		if (descriptor.flags & MEMIF_MORE)
			continue;
		ring->own = (uint16_t)(ring->own + used);
		return fits && len > 0 ? (int)len : -EMSGSIZE;
	}
	/* The rest is still to come, unless it has no buffers left, or has had enough of them. */
	if (count >= MEMIF_WIRE_CHAIN_MAX || (uint32_t)count == ring->size)
		return client_break(client);
	ring->unfinished = true;
	return 0;
}

/* Descriptors too, which we write as soon as they are read. */
static void client_fetch_ahead(const struct memif_client *client, int count, bool news)
{
	const struct memif_ring *ring = &client->to_client;

	for (int i = ring_fetch_from(news); i < ring_fetch_to(count); i++) {
		const uint16_t index = (uint16_t)(ring->own + i);

		prefetch_write(ring_at(ring, index));
		ring_fetch(client_received(client, index));
	}
}

int memif_client_receive_by(struct memif_client *client, uint8_t *room, size_t room_bytes,
			    memif_copy *copy, bool *right)
{
	struct memif_ring *ring = &client->to_client;
	const bool news = ring_known(ring) <= 0;
	struct memif_descriptor descriptor;
	int count;

	*right = false;
	if (!client_is_connected(client))
		return client->step == MEMIF_CLIENT_BROKEN ? -EPROTO : 0;
	count = client_count(client);
	if (count <= 0)
		return count;
	client_fetch_ahead(client, count, news);
	descriptor = ring_read(ring, ring->own);
	if (unlikely((descriptor.flags & MEMIF_MORE) || descriptor.length > room_bytes ||
		     descriptor.length > client->config.buffer_bytes || descriptor.length == 0))
		return client_gather(client, count, room, room_bytes);
	*right = copy(room, client_received(client, ring->own), descriptor.length);
	ring->own++;
	return (int)descriptor.length;
}

void memif_client_release(struct memif_client *client)
{
	struct memif_ring *ring = &client->to_client;
	const uint16_t end = (uint16_t)(ring->own + ring->size);

	if (!client_is_connected(client) || client->posted == end)
		return;
	while (client->posted != end)
		ring_describe(ring, client->posted++, 0, client->config.buffer_bytes);
	/* Release: buffers have been read, and may be written. */
	__atomic_store_n(&ring->memory->head, client->posted, __ATOMIC_RELEASE);
}

void memif_client_listen(struct memif_client *client, bool on)
{
	if (client_is_connected(client))
		ring_listen(&client->to_client, on);
}

bool memif_client_waits(const struct memif_client *client)
{
	const struct memif_ring *ring = &client->to_client;

	return client_is_connected(client) &&
	       ring_has_news(ring, __atomic_load_n(&ring->memory->tail, __ATOMIC_ACQUIRE));
}

/* Take back the buffers that the server has read. */
static void client_collect(struct memif_client *client)
{
	struct memif_ring *ring = &client->to_server;
	const uint16_t tail = __atomic_load_n(&ring->memory->tail, __ATOMIC_ACQUIRE);

	/* An index that goes back, or ahead of us, cannot be true. */
	if (unlikely((uint16_t)(tail - client->collected) >
		     (uint16_t)(ring->seen - client->collected))) {
		client_break(client);
		return;
	}
	while (client->collected != tail)
		client->stock[client->stock_count++] =
			client->placed[client->collected++ & (ring->size - 1)];
}

/* Free places of the ring, as far as is known where that is enough. */
static uint32_t client_room(struct memif_client *client, size_t wanted)
{
	struct memif_ring *ring = &client->to_server;
	uint32_t room = ring->size - (uint16_t)(ring->own - client->collected);

	/* Not each time: the line with its index is the server's to write. */
	if ((uint16_t)(ring->own - client->looked) >= COLLECT_EVERY || room < wanted) {
		client->looked = ring->own;
		client_collect(client);
		room = ring->size - (uint16_t)(ring->own - client->collected);
	}
	return client_is_connected(client) ? room : 0;
}

bool memif_client_has_room(struct memif_client *client)
{
	return client_is_connected(client) && client_room(client, 1) > 0;
}

uint8_t *memif_client_place(struct memif_client *client, size_t len)
{
	if (!client_is_connected(client) || len > client->config.buffer_bytes ||
	    client_room(client, 1) == 0)
		return NULL;
	return client_buffer(client, client->stock[client->stock_count - 1]);
}

void memif_client_expect(const struct memif_client *client, uint32_t ahead, size_t len)
{
	const struct memif_ring *ring = &client->to_server;

	if (!client_is_connected(client) || ahead >= client->stock_count)
		return;
	prefetch_write(ring_at(ring, (uint16_t)(ring->own + ahead)));
	prefetch_write_bytes(client_buffer(client, client->stock[client->stock_count - 1 - ahead]),
			     RTE_MIN(len, (size_t)client->config.buffer_bytes));
}

static void client_put(struct memif_client *client, uint16_t flags, size_t len)
{
	struct memif_ring *ring = &client->to_server;
	const uint32_t buffer = client->stock[--client->stock_count];

	client->placed[ring->own & (ring->size - 1)] = buffer;
	/* All of it: the server may have written there. */
	*ring_at(ring, ring->own) = (struct memif_descriptor){
		.flags = flags,
		.length = (uint32_t)len,
		.offset = (uint32_t)(client->buffers_at + (size_t)buffer * client->stride),
	};
	ring->own++;
}

void memif_client_placed(struct memif_client *client, size_t len)
{
	client_put(client, 0, len);
}

int memif_client_send(struct memif_client *client, const uint8_t *packet, size_t len)
{
	const size_t most = client->config.buffer_bytes;
	const size_t pieces = likely(len <= most) ? 1 : (len + most - 1) / most;

	if (!client_is_connected(client))
		return client->step == MEMIF_CLIENT_BROKEN ? -EPROTO : -EAGAIN;
	/* More than a server takes, of ours, has it end the connection. */
	if (pieces > RTE_MIN(client->to_server.size, (uint32_t)MEMIF_WIRE_CHAIN_MAX))
		return -EMSGSIZE;
	if (client_room(client, pieces) < pieces)
		return -EAGAIN;
	while (len > 0) {
		const size_t piece = RTE_MIN(len, most);

		memcpy(client_buffer(client, client->stock[client->stock_count - 1]), packet,
		       piece);
		packet += piece;
		len -= piece;
		client_put(client, len > 0 ? MEMIF_MORE : 0, piece);
	}
	return 0;
}

bool memif_client_push(struct memif_client *client)
{
	struct memif_ring *ring = &client->to_server;

	if (!client_is_connected(client))
		return false;
	ring->seen = ring->own;
	/* Release: packets and descriptors are seen before it. */
	__atomic_store_n(&ring->memory->head, ring->own, __ATOMIC_RELEASE);
	return ring_wants_bell(ring);
}
