/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves packets out of and into shared memory. Both ends use their rings in the same way. A server
 * finds buffers through the descriptors that its client wrote; a client knows its buffers from
 * private memory.
 */
#include "memif/end.h"

#include <errno.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_branch_prediction.h>

#include "base/copy.h"
#include "base/own.h"
#include "base/prefetch.h"
#include "memif/socket.h"
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

void memif_end_init_meters(struct memif_end *end)
{
	meter_init(&end->meter);
	taker_init(&end->taker);
}

void memif_end_take_doorbell(struct memif_end *end, int doorbell_fd)
{
	if (end->wakes_by_socket)
		end->wake_fd = doorbell_fd;
	if (end->rings_by_socket)
		end->doorbell_fd = doorbell_fd;
}

void memif_end_drop_doorbells(struct memif_end *end)
{
	if (own_is(end->wake_fd))
		memif_socket_discard(end->wake_fd);
	if (end->doorbell_fd != end->wake_fd && own_is(end->doorbell_fd))
		memif_socket_discard(end->doorbell_fd);
	end->wake_fd = end->doorbell_fd = -1;
}

static int end_break(struct memif_end *end)
{
	end->state = MEMIF_STATE_BROKEN;
	return -EPROTO;
}

static bool end_is_connected(const struct memif_end *end)
{
	return likely(end->state == MEMIF_STATE_CONNECTED);
}

static bool end_is_client(const struct memif_end *end)
{
	return end->side == MEMIF_CLIENT;
}

/* Return a buffer's address; NULL if it is not in a region of the client. */
static uint8_t *end_find(const struct memif_end *end, const struct memif_descriptor *descriptor)
{
	const struct memif_region *region;

	if (unlikely(descriptor->region >= end->region_count))
		return NULL;
	region = &end->regions[descriptor->region];
	if (unlikely(descriptor->length > region->bytes ||
		     descriptor->offset > region->bytes - descriptor->length))
		return NULL;
	return region->at + descriptor->offset;
}

/* Return the received bytes that a descriptor describes; NULL if the descriptor is invalid. */
static const uint8_t *end_received(const struct memif_end *end, uint16_t index,
				   const struct memif_descriptor *descriptor)
{
	if (!end_is_client(end))
		return end_find(end, descriptor);
	if (unlikely(descriptor->length > end->buffers.bytes))
		return NULL;
	return buffers_received(&end->buffers, &end->rx, index);
}

/* Return how many buffers have arrived; less than 0 if the other end claims to have filled more
 * buffers than were ready, which breaks a rule. */
static int end_count(struct memif_end *end)
{
	struct memif_ring *rx = &end->rx;
	const int known = ring_known(rx);

	if (likely(known > 0))
		return known;
	return ring_look(rx,
			 end_is_client(end) ? (uint16_t)(end->buffers.posted - rx->own) : rx->size);
}

/* Prefetch a packet. A server reads the descriptor again before it uses it; this read is for
 * prefetching only. A client prefetches the descriptor for writing, because it writes it soon after
 * reading it. */
static void end_fetch(const struct memif_end *end, uint16_t index)
{
	const struct memif_ring *rx = &end->rx;
	struct memif_descriptor descriptor;
	const uint8_t *from;

	if (end_is_client(end)) {
		prefetch_write(ring_at(rx, index));
		ring_fetch(buffers_received(&end->buffers, rx, index));
		return;
	}
	descriptor = ring_read(rx, index);
	from = end_find(end, &descriptor);
	rte_prefetch0(ring_at(rx, (uint16_t)(index + RING_DESCRIPTORS_AHEAD)));
	if (likely(from))
		ring_fetch(from);
}

/* Prefetch the packets that follow the next one. `news`: they have just arrived, so none of them
 * was prefetched before. */
static void end_fetch_ahead(const struct memif_end *end, int count, bool news)
{
	const uint16_t own = end->rx.own;

	for (int i = ring_fetch_from(news); i < ring_fetch_to(count); i++)
		end_fetch(end, (uint16_t)(own + i));
}

/* Return the result for a packet whose rest has not arrived: 0 (wait for it), or -EPROTO if packets
 * must be whole, if no buffer is left for the rest, or if the packet has as many buffers as it may
 * have. */
static int end_wait(struct memif_end *end, int used)
{
	if (!end->spreads || used >= end->chain_max || (uint32_t)used >= end->rx.size)
		return end_break(end);
	end->rx.unfinished = true;
	return 0;
}

/* Receive a packet in several buffers, or one that does not fit. `count` buffers have arrived;
 * `descriptor` is that of the first. */
static int end_gather(struct memif_end *end, int count, struct memif_descriptor descriptor,
		      uint8_t *room, size_t room_bytes)
{
	struct memif_ring *rx = &end->rx;
	const int most = RTE_MIN(count, end->chain_max);
	bool fits = true;
	size_t len = 0;
	int used = 0;

	for (;;) {
		const uint8_t *from = end_received(end, (uint16_t)(rx->own + used), &descriptor);

		if (unlikely(!from))
			return end_break(end);
		used++;
		fits = fits && descriptor.length <= room_bytes - len;
		if (fits) {
			memcpy(room + len, from, descriptor.length);
			len += descriptor.length;
		}
		if (!(descriptor.flags & MEMIF_MORE))
			break;
		if (used == most)
			return end_wait(end, used);
		descriptor = ring_read(rx, (uint16_t)(rx->own + used));
	}
	rx->own = (uint16_t)(rx->own + used);
	return fits && len > 0 ? (int)len : -EMSGSIZE;
}

/* Prefetch a packet beyond its start, into the second cache: it may be longer than the first has
 * room for. */
static void end_fetch_body(const struct memif_end *end, uint16_t index)
{
	const struct memif_descriptor descriptor = ring_read(&end->rx, index);
	const uint8_t *from = end_received(end, index, &descriptor);
	const uint32_t bytes = RTE_MIN(descriptor.length, (uint32_t)RING_BODY_BYTES);

	for (uint32_t at = RING_FIRST_BYTES; from && at < bytes; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch1(from + at);
}

/* Note that a long packet was received, and prefetch the next ones, of which `count` have come. */
static void end_took_long(struct memif_end *end, int count, size_t len)
{
	end->taker.bytes += len;
	if (end->taker.choice.now == FETCH_START || unlikely(!tuning.store_choice) ||
	    unlikely(!tuning.prefetch))
		return;
	for (int i = 0; i < RTE_MIN(count, RING_BODIES_AHEAD); i++)
		end_fetch_body(end, (uint16_t)(end->rx.own + i));
}

int memif_end_receive(struct memif_end *end, uint8_t *room, size_t room_bytes, memif_copy *copy,
		      bool *right)
{
	struct memif_ring *rx = &end->rx;
	const bool news = ring_known(rx) <= 0;
	struct memif_descriptor descriptor;
	const uint8_t *from;
	int count;

	*right = false;
	if (unlikely(!end_is_connected(end)))
		return end->state == MEMIF_STATE_BROKEN ? -EPROTO : 0;
	count = end_count(end);
	if (count <= 0)
		return unlikely(count < 0) ? end_break(end) : 0;
	end_fetch_ahead(end, count, news);
	descriptor = ring_read(rx, rx->own);
	if (unlikely((descriptor.flags & MEMIF_MORE) || descriptor.length > room_bytes ||
		     descriptor.length == 0))
		return end_gather(end, count, descriptor, room, room_bytes);
	from = end_received(end, rx->own, &descriptor);
	if (unlikely(!from))
		return end_break(end);
	*right = copy(room, from, descriptor.length);
	rx->own++;
	if (descriptor.length >= METER_LONG)
		end_took_long(end, count - 1, descriptor.length);
	return (int)descriptor.length;
}

void memif_end_release(struct memif_end *end)
{
	const struct memif_ring *rx = &end->rx;

	if (!end_is_connected(end))
		return;
	if (end->taker.bytes > 0)
		taker_release(&end->taker, ring_known(&end->rx) > 0);
	if (!end_is_client(end))
		ring_show(rx, rx->own);
	else if (buffers_post(&end->buffers, rx))
		ring_show(rx, end->buffers.posted);
}

void memif_end_listen(struct memif_end *end, bool on)
{
	if (end_is_connected(end))
		ring_listen(&end->rx, on);
}

bool memif_end_waits(const struct memif_end *end)
{
	/* An impossible index is detected when packets are received. */
	return end_is_connected(end) && ring_has_news(&end->rx);
}

uint16_t memif_end_arrived(const struct memif_end *end)
{
	return end_is_connected(end) ? ring_theirs(&end->rx) : end->rx.own;
}

bool memif_end_has_received(const struct memif_end *end, uint16_t index)
{
	return (int16_t)(end->rx.own - index) >= 0;
}

uint16_t memif_end_sent(const struct memif_end *end)
{
	return end->tx.own;
}

bool memif_end_has_taken(const struct memif_end *end, uint16_t index)
{
	uint16_t taken;

	if (!end_is_connected(end))
		return true;
	taken = ring_theirs(&end->tx);
	return taken == end->tx.own || (int16_t)(taken - index) >= 0;
}

/* Return how many buffers are free for packets; less than 0: the other end broke a rule. The result
 * may be lower than the true number, but not if it is lower than `wanted`. */
static int end_room(struct memif_end *end, uint32_t wanted)
{
	struct memif_ring *tx = &end->tx;
	int count;

	if (end_is_client(end)) {
		count = buffers_room(&end->buffers, tx, wanted);
	} else {
		count = ring_known(tx);
		if (unlikely((uint32_t)count < wanted))
			count = ring_look(tx, tx->size);
	}
	return unlikely(count < 0) ? end_break(end) : count;
}

/* Return the way to store a packet of `len` bytes. */
static enum store_way end_way(const struct memif_end *end, size_t len)
{
	return len < METER_LONG ? STORE_RECENT : store_way(&end->meter.choice);
}

/* Return the buffer that is sent after `ahead` others, and its size; NULL if its descriptor is
 * invalid. There must be more than `ahead` buffers. Inline, because a call would cost more than the
 * function itself. */
static __rte_always_inline uint8_t *end_next(const struct memif_end *end, uint32_t ahead,
					     enum store_way way, size_t *bytes)
{
	struct memif_descriptor descriptor;

	if (end_is_client(end)) {
		*bytes = end->buffers.bytes;
		return buffers_at(&end->buffers, *buffers_cache_at(&end->buffers, &end->tx, ahead,
								   way == STORE_ROUND));
	}
	descriptor = ring_read(&end->tx, (uint16_t)(end->tx.own + ahead));
	*bytes = descriptor.length;
	return end_find(end, &descriptor);
}

/* Put the next buffer, which holds a packet or a part of one, into the ring. */
static void end_put(struct memif_end *end, uint16_t flags, size_t len, enum store_way way)
{
	if (end_is_client(end))
		buffers_put(&end->buffers, &end->tx, flags, len, way == STORE_ROUND);
	else
		ring_describe(&end->tx, end->tx.own, flags, len);
	end->tx.own++;
}

/* Put the next buffer, which holds a whole packet, into the ring. */
static void end_put_whole(struct memif_end *end, size_t len, enum store_way way)
{
	end_put(end, 0, len, way);
	end->expects_long = len >= METER_LONG;
	if (end->expects_long)
		meter_put(&end->meter, len, way == STORE_PAST);
}

bool memif_end_has_room(struct memif_end *end)
{
	return end_is_connected(end) && end_room(end, 1) > 0;
}

uint8_t *memif_end_place(struct memif_end *end, size_t len)
{
	uint8_t *to;
	size_t bytes;

	end->placing = end_way(end, len);
	if (unlikely(!end_is_connected(end)) || end_room(end, 1) <= 0)
		return NULL;
	to = end_next(end, 0, end->placing, &bytes);
	if (unlikely(!to))
		end_break(end);
	return likely(to && bytes >= len) ? to : NULL;
}

void memif_end_expect(const struct memif_end *end, uint32_t ahead, size_t len)
{
	const bool is_client = end_is_client(end);
	const struct memif_ring *tx = &end->tx;
	const uint16_t index = (uint16_t)(tx->own + ahead);
	const enum store_way way = end_way(end, end->expects_long ? METER_LONG : 0);
	const uint8_t *to;
	size_t bytes;

	if (unlikely(!end_is_connected(end)) ||
	    ahead >= (is_client ? end->buffers.cache_count : (uint32_t)ring_known(tx)))
		return;
	/* A server reads descriptors before it writes them. */
	prefetch_write(ring_at(tx, (uint16_t)(index + (is_client ? 0 : RING_DESCRIPTORS_AHEAD))));
	to = end_next(end, ahead, way, &bytes);
	/* Do not prefetch lines that will be stored past the caches: only the headers. */
	if (way == STORE_PAST)
		len = RTE_MIN(len, (size_t)RING_FIRST_BYTES);
	if (likely(to))
		prefetch_write_bytes(to, RTE_MIN(len, bytes));
}

void memif_end_placed(struct memif_end *end, size_t len)
{
	end_put_whole(end, len, end->placing);
}

/* Return up to which index the other end has taken packets, when it has written `theirs`. */
static uint16_t end_taken(const struct memif_end *end, uint16_t theirs)
{
	/* A server's client provides buffers, a whole ring ahead of the packets that it takes. */
	return end_is_client(end) ? theirs : (uint16_t)(theirs - end->tx.size);
}

bool memif_end_tell_taken(const struct memif_end *end, uint32_t *given, uint32_t *taken,
			  uint32_t *dropped)
{
	const uint16_t own = end->tx.own;
	uint16_t theirs;

	if (!end_is_connected(end))
		return false;
	theirs = end_taken(end, ring_theirs(&end->tx));
	*given = (uint32_t)own << 16;
	*taken = (uint32_t)theirs << 16;
	/* ring_theirs acquires what memif_end_tell_dropped stored before the index was shown. */
	*dropped = end_is_client(end) ? __atomic_load_n(&end->tx.memory->dropped, __ATOMIC_RELAXED)
				      : 0;
	return (uint16_t)(own - theirs) <= end->tx.size;
}

void memif_end_tell_dropped(const struct memif_end *end, uint32_t dropped)
{
	if (end_is_connected(end) && !end_is_client(end))
		__atomic_store_n(&end->rx.memory->dropped, dropped, __ATOMIC_RELAXED);
}

void memif_end_tell_unread(const struct memif_end *end, uint64_t unread)
{
	if (end_is_connected(end) && !end_is_client(end))
		__atomic_store_n(&end->rx.memory->unread, unread, __ATOMIC_RELAXED);
}

uint64_t memif_end_unread(const struct memif_end *end)
{
	return end_is_connected(end) && end_is_client(end)
		       ? __atomic_load_n(&end->tx.memory->unread, __ATOMIC_RELAXED)
		       : 0;
}

static uint16_t end_load_taken(const void *arg)
{
	const struct memif_end *end = arg;

	return end_taken(end, __atomic_load_n(end->tx.theirs, __ATOMIC_RELAXED));
}

/* Measure the packets that are about to be published. */
static void end_measure(struct memif_end *end)
{
	const struct meter_ring ring = {
		.own = end->tx.own,
		.known = end_taken(end, end_is_client(end) ? end->buffers.collected : end->tx.seen),
		.size = end->tx.size,
		.load = end_load_taken,
		.arg = end,
	};

	meter_push(&end->meter, &ring);
}

void memif_end_publish(struct memif_end *end)
{
	struct memif_ring *tx = &end->tx;

	if (unlikely(!end_is_connected(end)))
		return;
	/* Non-temporal stores are not ordered with the store of the index. */
	if (unlikely(end->meter.past_caches))
		rte_wmb();
	if (unlikely(end->meter.bytes > 0))
		end_measure(end);
	end->buffers.shown = tx->own;
	ring_show(tx, tx->own);
}

bool memif_end_is_asleep(const struct memif_end *end)
{
	return end_is_connected(end) && end->doorbell_fd >= 0 && ring_wants_doorbell(&end->tx);
}

bool memif_end_push(struct memif_end *end)
{
	memif_end_publish(end);
	if (end->doorbell_fd < 0)
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return memif_end_is_asleep(end);
}

/* Send a packet in several buffers, if enough are free. */
static int end_scatter(struct memif_end *end, const uint8_t *packet, size_t len)
{
	uint32_t pieces[MEMIF_CHAIN_MAX];
	const int count = end_room(end, UINT32_MAX);
	int used = 0;

	while (count > 0 && len > 0) {
		size_t bytes;
		uint8_t *to = end_next(end, (uint32_t)used, STORE_RECENT, &bytes);

		if (unlikely(!to || bytes == 0))
			return end_break(end);
		pieces[used] = (uint32_t)RTE_MIN(len, bytes);
		memcpy(to, packet, pieces[used]);
		packet += pieces[used];
		len -= pieces[used];
		used++;
		if (len > 0 && used >= RTE_MIN(count, end->chain_max))
			return used < end->chain_max && (uint32_t)count < end->tx.size ? -EAGAIN
										       : -EMSGSIZE;
	}
	if (unlikely(count <= 0))
		return count < 0 ? count : -EAGAIN;
	for (int i = 0; i < used; i++)
		end_put(end, i + 1 < used ? MEMIF_MORE : 0, pieces[i], STORE_RECENT);
	return 0;
}

int memif_end_send(struct memif_end *end, const uint8_t *packet, size_t len)
{
	const enum store_way way = end_way(end, len);
	uint8_t *to;
	size_t bytes;
	int count;

	if (unlikely(!end_is_connected(end)))
		return end->state == MEMIF_STATE_BROKEN ? -EPROTO : -EAGAIN;
	count = end_room(end, 1);
	if (unlikely(count <= 0))
		return count < 0 ? count : -EAGAIN;
	to = end_next(end, 0, way, &bytes);
	if (unlikely(!to))
		return end_break(end);
	if (unlikely(len > bytes))
		return end->spreads ? end_scatter(end, packet, len) : -EMSGSIZE;
	if (unlikely(way == STORE_PAST))
		copy_past_caches(to, packet, len);
	else
		memcpy(to, packet, len);
	end_put_whole(end, len, way);
	return 0;
}
