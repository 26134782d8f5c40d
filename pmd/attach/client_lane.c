/* SPDX-License-Identifier: BSD-3-Clause */
/* An attached process's lanes to other processes (share/lane.h): opens and closes them, and
 * sends and receives packets through them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/own.h"
#include "base/meter.h"
#include "base/tuning.h"
#include "client.h"
#include "port/port.h"

#define BURST_MAX 64
/* In a route: the other process's device has several engines. */
#define ROUTE_ENGINES 0x80

static_assert(SHARE_LANES_MAX < ROUTE_ENGINES, "a route has room for both");

/* Release packets that were received. */
static int lane_enqueue(struct rte_mempool *pool, void *const *objects, unsigned int n)
{
	struct client_lane *lane = pool->pool_data;

	for (unsigned int i = 0; i < n; i++)
		lane_done(&lane->rx, (uint32_t)((const struct rte_mbuf *)objects[i] - lane->mbufs));
	lane_give_back(&lane->rx);
	return 0;
}

static int lane_dequeue(struct rte_mempool *pool, void **objects, unsigned int n)
{
	(void)pool, (void)objects, (void)n;
	return -ENOBUFS;
}

static unsigned int lane_count(const struct rte_mempool *pool)
{
	(void)pool;
	return 0;
}

static const struct client_pool_kind lane_pool_kind = {
	.enqueue = lane_enqueue,
	.dequeue = lane_dequeue,
	.get_count = lane_count,
};

static void close_fds(const int *fds)
{
	for (int i = 0; i < SHARE_LANE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

void client_lanes_offer(struct share_client *client, const struct share_message *message,
			const int *fds)
{
	struct client_offer *offer = &client->offers[client->offer_count];

	/* Ignore a bad offer, or one too many. The other process then never sees us ready, and
	 * both go on through the owner. */
	if (client->offer_count == SHARE_LANES_MAX || message->offer.number == 0 ||
	    message->offer.peer >= SHARE_PEERS_MAX || message->offer.side > 1 ||
	    message->offer.engines - 1 >= SHARE_ENGINES_MAX) {
		close_fds(fds);
		return;
	}
	offer->offer = message->offer;
	memcpy(offer->fds, fds, sizeof(offer->fds));
	client->offer_count++;
}

static void lane_prepare_mbufs(struct client_lane *lane)
{
	for (uint32_t i = 0; i < LANE_SLOTS; i++) {
		struct rte_mbuf *mbuf = &lane->mbufs[i];

		mbuf->buf_len = LANE_BUFFER_BYTES;
		mbuf->nb_segs = 1;
		rte_mbuf_refcnt_set(mbuf, 1);
		mbuf->pool = lane->pool;
	}
}

static struct client_lane *lane_create(const struct client_offer *offer)
{
	struct client_lane *lane = aligned_alloc(_Alignof(struct client_lane), sizeof(*lane));
	struct lane_memory *memory;

	if (!lane)
		return NULL;
	memset(lane, 0, sizeof(*lane));
	lane->pool = client_new_pool(&lane_pool_kind, lane, LANE_SLOTS, LANE_BUFFER_BYTES);
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED,
		      offer->fds[SHARE_LANE_FD_MEMORY], 0);
	if (!lane->pool || memory == MAP_FAILED) {
		if (memory != MAP_FAILED)
			munmap(memory, sizeof(*memory));
		free(lane->pool);
		free(lane);
		return NULL;
	}
	madvise(memory, sizeof(*memory), MADV_DONTFORK);
	madvise(memory, sizeof(*memory), MADV_DONTDUMP);
	lane->offer = offer->offer;
	lane->memory = memory;
	lane->peer_fd = offer->fds[SHARE_LANE_FD_PEER];
	own_mark(lane->peer_fd);
	lane_init(&lane->tx, &lane->rx, memory, offer->offer.side);
	meter_init(&lane->meter);
	lane_prepare_mbufs(lane);
	return lane;
}

static void lane_destroy(struct client_lane *lane)
{
	munmap(lane->memory, sizeof(*lane->memory));
	close(lane->peer_fd);
	free(lane->pool);
	free(lane);
}

/* Return the route by a lane. */
static uint8_t lane_route(const struct client_lane *lane, uint8_t index)
{
	return (uint8_t)((index + 1) | (lane->offer.engines > 1 ? ROUTE_ENGINES : 0));
}

static void client_set_routes(struct share_client *client, const struct share_offer *offer,
			      uint8_t from, uint8_t to)
{
	const uint32_t count = RTE_MIN(offer->qpn_count, BLOCKS * BLOCK_QPNS);

	for (uint32_t qpn = 0; qpn < count; qpn += BLOCK_QPNS) {
		uint8_t *route = &client->routes[blocks_index(offer->qpn_first + qpn)];

		if (*route == from)
			*route = to;
	}
}

/* Tell the other process that we are ready. `sleeps` is set before, so that it wakes us for the
 * first packet. */
static void lane_say_ready(struct client_lane *lane)
{
	struct lane_side *own = &lane->memory->sides[lane->offer.side];

	__atomic_store_n(&own->sleeps, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&own->ready, 1, __ATOMIC_RELEASE);
}

/* Open the offered lane. Return false if there is no room: keep the offer. */
static bool client_accept(struct share_client *client, const struct client_offer *offer)
{
	struct client_lane *lane;
	uint8_t i = 0;

	while (i < SHARE_LANES_MAX && client->lanes[i])
		i++;
	if (i == SHARE_LANES_MAX)
		return false;
	lane = lane_create(offer);
	close(offer->fds[SHARE_LANE_FD_MEMORY]);
	if (!lane) {
		close(offer->fds[SHARE_LANE_FD_PEER]);
		return true;
	}
	pthread_mutex_lock(&client->lanes_lock);
	client->lanes[i] = lane;
	client->lane_end = RTE_MAX(client->lane_end, i + 1u);
	pthread_mutex_unlock(&client->lanes_lock);
	client_set_routes(client, &lane->offer, 0, lane_route(lane, i));
	lane_say_ready(lane);
	return true;
}

/* Return the route by another lane to the same process; 0: there is none. */
static uint8_t client_other_route(const struct share_client *client, const struct client_lane *lane)
{
	for (uint8_t i = 0; i < SHARE_LANES_MAX; i++) {
		const struct client_lane *other = client->lanes[i];

		if (other && other != lane && other->state != LANE_CLOSED &&
		    other->offer.qpn_first == lane->offer.qpn_first)
			return lane_route(other, i);
	}
	return 0;
}

/* Close a lane. The other process reads and writes nothing any more. Packets that it sent before
 * are still taken. */
static void client_close_lane(struct share_client *client, uint8_t index)
{
	struct client_lane *lane = client->lanes[index];

	lane->state = LANE_CLOSED;
	client_set_routes(client, &lane->offer, lane_route(lane, index),
			  client_other_route(client, lane));
	lane_end(&lane->rx);
}

static void client_look_at(struct share_client *client, uint8_t index)
{
	struct client_lane *lane = client->lanes[index];
	const uint32_t number =
		__atomic_load_n(&client->page->lanes[lane->offer.peer], __ATOMIC_ACQUIRE);

	if (number != lane->offer.number && lane->state != LANE_CLOSED)
		client_close_lane(client, index);
	if (lane->state != LANE_CLOSED || !lane_is_over(&lane->rx))
		return;
	pthread_mutex_lock(&client->lanes_lock);
	client->lanes[index] = NULL;
	pthread_mutex_unlock(&client->lanes_lock);
	if (client->last_lane == lane)
		client->last_lane = NULL;
	lane_destroy(lane);
}

void client_lanes_drop(struct share_client *client)
{
	for (uint8_t i = 0; i < SHARE_LANES_MAX; i++) {
		struct client_lane *lane = client->lanes[i];

		pthread_mutex_lock(&client->lanes_lock);
		client->lanes[i] = NULL;
		pthread_mutex_unlock(&client->lanes_lock);
		if (lane)
			lane_destroy(lane);
	}
	memset(client->routes, 0, sizeof(client->routes));
	client->last_lane = client->aimed = client->placing = NULL;
}

void client_offers_drop_locked(struct share_client *client)
{
	while (client->offer_count > 0)
		close_fds(client->offers[--client->offer_count].fds);
}

void client_lanes_look(struct share_client *client)
{
	uint32_t left = 0;

	for (uint8_t i = 0; i < SHARE_LANES_MAX; i++) {
		if (client->lanes[i])
			client_look_at(client, i);
	}
	if (pthread_mutex_trylock(&client->lock) != 0)
		return;
	/* The next owner's lanes are accepted when its memory is in place. */
	for (uint32_t i = 0; i < client->offer_count; i++) {
		if (client_is_away(client) || client_returned(client) ||
		    !client_accept(client, &client->offers[i]))
			client->offers[left++] = client->offers[i];
	}
	client->offer_count = left;
	pthread_mutex_unlock(&client->lock);
}

/* Return a lane, unless its other process has not mapped it yet. */
static __rte_noinline struct client_lane *client_lane_begin(const struct share_client *client,
							    struct client_lane *lane)
{
	if (!__atomic_load_n(&lane->memory->sides[!lane->offer.side].ready, __ATOMIC_ACQUIRE))
		return NULL;
	lane->state = LANE_SWITCHES;
	lane->owner_ring_end = client->rings[SHARE_RING_TX].own;
	return lane;
}

/* Return true if a lane leads to a process's queue pair. The owner counts packets that reach no
 * process. */
static bool lane_leads_to(const struct client_lane *lane, uint32_t qpn)
{
	return qpn - lane->offer.qpn_first < lane->offer.qpn_count;
}

static struct client_lane *client_lane_if_ready(const struct share_client *client,
						struct client_lane *lane)
{
	return unlikely(lane->state == LANE_UNREADY) ? client_lane_begin(client, lane) : lane;
}

/* Return the lane to the engine of a queue pair, of a process whose device has several. NULL: there
 * is none yet, or no process. */
static __rte_noinline struct client_lane *client_lane_of_engine(const struct share_client *client,
								uint32_t qpn, uint8_t route)
{
	struct client_lane *lane;
	uint32_t first, bit;

	if (route == 0)
		return NULL;
	lane = client->lanes[(route & ~ROUTE_ENGINES) - 1];
	if (!lane_leads_to(lane, qpn))
		return NULL;
	first = lane->offer.qpn_first;
	bit = 1u << qpn % lane->offer.engines;
	for (int i = 0; !(lane->offer.served & bit); i++) {
		struct client_lane *other;

		if (i == SHARE_LANES_MAX)
			return NULL;
		other = client->lanes[i];
		if (other && other->state != LANE_CLOSED && other->offer.qpn_first == first)
			lane = other;
	}
	return client_lane_if_ready(client, lane);
}

struct client_lane *client_lane_of(struct share_client *client, uint32_t qpn)
{
	struct client_lane *lane;
	uint32_t index;

	if (qpn == 0)
		return NULL;
	index = client->routes[blocks_index(qpn)] - 1u;
	/* There is no lane, or the device has several engines. */
	if (index >= SHARE_LANES_MAX)
		return client_lane_of_engine(client, qpn, (uint8_t)(index + 1));
	lane = client->lanes[index];
	if (unlikely(!lane_leads_to(lane, qpn)))
		return NULL;
	return client_lane_if_ready(client, lane);
}

bool client_has_switched(struct share_client *client, struct client_lane *lane)
{
	struct share_ring *ring = &client->rings[SHARE_RING_TX];

	if (likely(lane->state == LANE_OPEN))
		return true;
	share_ring_room(ring);
	if ((int32_t)(ring->other - lane->owner_ring_end) < 0)
		return false;
	lane->state = LANE_OPEN;
	return true;
}

void client_lane_make_room(struct client_lane *lane, uint32_t n)
{
	/* Do not look each time: the other process writes the cache line of the index. */
	if (lane_used(&lane->tx) + n > LANE_SLOTS / 2)
		lane_look(&lane->tx);
}

/* Drop packets for which there was no room, if the other process has taken nothing for a while.
 * Returns how many were dropped. */
static uint16_t client_transmit_timed_out(const struct share_client *client,
					  struct client_lane *lane, struct rte_mbuf **mbufs,
					  uint16_t n)
{
	const uint64_t now = rte_rdtsc() | 1;

	if (lane->full_since_tsc == 0)
		lane->full_since_tsc = now;
	if (now - lane->full_since_tsc < client->transmit_timeout_tsc)
		return 0;
	rte_pktmbuf_free_bulk(mbufs, n);
	lane->dropped += n;
	return n;
}

uint16_t client_lane_put(struct share_client *client, struct client_lane *lane,
			 struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t put = 0;

	if (!client_has_switched(client, lane))
		return 0;
	client_lane_make_room(lane, n);
	while (put < n && lane_copy(&lane->tx, rte_pktmbuf_mtod(mbufs[put], const uint8_t *),
				    mbufs[put]->data_len))
		put++;
	client_lane_show(client, lane);
	rte_pktmbuf_free_bulk(mbufs, put);
	if (put > 0) {
		lane->touched = true;
		client->last_lane = lane;
		client->expects_long = false;
		lane->full_since_tsc = 0;
	}
	if (put == n)
		return n;
	return (uint16_t)(put + client_transmit_timed_out(client, lane, mbufs + put,
							  (uint16_t)(n - put)));
}

void client_lanes_wake(struct share_client *client)
{
	for (uint32_t i = 0; i < client->lane_end; i++) {
		struct client_lane *lane = client->lanes[i];
		struct lane_side *peer;

		if (!lane || !lane->touched)
			continue;
		lane->touched = false;
		peer = &lane->memory->sides[!lane->offer.side];
		if (__atomic_load_n(&peer->sleeps, __ATOMIC_RELAXED) == 0 ||
		    __atomic_exchange_n(&peer->sleeps, 0, __ATOMIC_RELAXED) == 0)
			continue;
		own_ring(lane->peer_fd);
	}
}

static bool client_fetches_all(const struct share_client *client)
{
	return client->taker.choice.now == FETCH_ALL && tuning.store_choice;
}

static uint16_t client_take_from(struct share_client *client, struct client_lane *lane,
				 struct rte_mbuf **mbufs, uint16_t n)
{
	struct share_packet packets[BURST_MAX];
	uint16_t received = 0;
	uint32_t count, first;
	bool refused = false;

	count = lane_take(&lane->rx, packets, RTE_MIN(n, (uint16_t)BURST_MAX), &first);
	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = &lane->mbufs[(first + i) % LANE_SLOTS];
		uint8_t *frame = lane_frame(&lane->rx, first + i, &packets[i]);

		if (unlikely(!frame)) {
			lane_done(&lane->rx, first + i);
			refused = true;
			continue;
		}
		mbuf->buf_addr = frame;
		mbuf->data_off = 0;
		mbuf->data_len = packets[i].len;
		mbuf->pkt_len = packets[i].len;
		mbuf->port = client->spares_icrc ? PORT_HANDED_OVER : PORT_PASSED_ON;
		if (packets[i].len >= METER_LONG)
			client->taker.bytes += packets[i].len;
		mbufs[received++] = mbuf;
	}
	if (unlikely(refused))
		lane_give_back(&lane->rx);
	return received;
}

/*
 * Return true if packets of the lane may be taken. Packets that the other process sent through the
 * owner come first. The other process saw them in our ring before it put anything into the lane. So
 * look at the ring after the lane.
 */
static bool client_may_take(struct share_client *client, struct client_lane *lane)
{
	if (likely(lane->has_received))
		return true;
	/* The packet was seen in the lane before the ring is read. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (share_ring_count(&client->rings[SHARE_RING_RX]) > 0)
		return false;
	lane->has_received = true;
	return true;
}

static uint32_t next_lane(const struct share_client *client, uint32_t index)
{
	return index + 1 < client->lane_end ? index + 1 : 0;
}

uint16_t client_lanes_take(struct share_client *client, struct rte_mbuf **mbufs, uint16_t n)
{
	uint32_t at = client->first_lane;
	uint16_t received = 0;

	/* The packets of the last call have been processed since. */
	if (client->taker.bytes > 0 || unlikely(client->taker.choice.tries))
		taker_release(&client->taker, false);
	client->first_lane = next_lane(client, at);
	for (uint32_t i = 0; i < client->lane_end && received < n; i++) {
		struct client_lane *lane = client->lanes[at];

		at = next_lane(client, at);
		if (lane && lane_has_next(&lane->rx) && client_may_take(client, lane))
			received = (uint16_t)(received +
					      client_take_from(client, lane, mbufs + received,
							       (uint16_t)(n - received)));
	}
	/* The time until the next call is that of these packets. */
	client->taker.backlog = client->taker.bytes > 0;
	client->port->rx_bodies = client_fetches_all(client);
	return received;
}

void client_lanes_say_asleep(struct share_client *client)
{
	pthread_mutex_lock(&client->lanes_lock);
	for (int i = 0; i < SHARE_LANES_MAX; i++) {
		const struct client_lane *lane = client->lanes[i];

		if (lane)
			__atomic_store_n(&lane->memory->sides[lane->offer.side].sleeps, 1,
					 __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&client->lanes_lock);
}

bool client_lanes_wait(struct share_client *client)
{
	bool wait = false;

	pthread_mutex_lock(&client->lanes_lock);
	for (int i = 0; i < SHARE_LANES_MAX; i++)
		wait |= client->lanes[i] && lane_waits(&client->lanes[i]->rx);
	pthread_mutex_unlock(&client->lanes_lock);
	return wait;
}
