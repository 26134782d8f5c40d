/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of direct channels: sends and receives them. Between attached processes a packet is read
 * where the sender has written it. Isolated processes do not trust each other: there it is copied,
 * and the copy is checked, as the owner checks what it passes on.
 */
#include <string.h>

#include <rte_ether.h>
#include <rte_prefetch.h>

#include "base/monotonic.h"
#include "base/own.h"
#include "base/tuning.h"
#include "client.h"
#include "net/link.h"
#include "share/vet.h"
#include "wire/packet.h"
#include "wire/qpn_block.h"

#define BURST_MAX 64
/* Bytes of a burst: copied packets must still be in the nearest cache when they are processed. */
#define COPY_BYTES   16384
#define FIRST_BYTES  128 /* of a packet: its headers */
#define BODIES_AHEAD 2	 /* long packets that are prefetched as a whole */

static void client_drop(struct share_client *client, struct client_direct *direct,
			struct rte_mbuf **mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		client->port->tx_refused.bytes += mbufs[i]->pkt_len;
	client->port->tx_refused.packets += n;
	direct->dropped += n;
	rte_pktmbuf_free_bulk(mbufs, n);
}

void client_drop_held(struct share_client *client, struct client_direct *direct)
{
	client_drop(client, direct, direct->held.mbufs, direct->held.count);
	held_remove(&direct->held, client->port, direct->held.count);
}

/* Copy packets into the channel. Returns how many had room. */
static uint16_t direct_put(struct share_client *client, struct client_direct *direct,
			   struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t put = 0;

	if (!client_has_switched(client, direct))
		return 0;
	client_direct_make_room(direct, n);
	while (put < n && direct_copy(&direct->tx, rte_pktmbuf_mtod(mbufs[put], const uint8_t *),
				      mbufs[put]->data_len))
		put++;
	client_direct_show(client, direct);
	if (put == 0)
		return 0;
	rte_pktmbuf_free_bulk(mbufs, put);
	direct->touched = true;
	client_set_last(client, direct);
	client->expects_long = false;
	return put;
}

bool client_waits(void *arg, uint32_t qpn)
{
	const struct client_direct *direct = client_direct_of(arg, qpn);

	return direct && direct->held.count > 0;
}

static void direct_send_held(struct share_client *client, struct client_direct *direct)
{
	struct held *held = &direct->held;
	const uint64_t now = monotonic_ns();

	held_remove(held, client->port, direct_put(client, direct, held->mbufs, held->count));
	if (held->tried_ns == 0 || now - held->tried_ns > HELD_PAUSE_NS)
		held->since_ns = now;
	held->tried_ns = now;
	if (held->count == 0)
		return;
	client_set_last(client, NULL);
	if (now - held->since_ns >= HELD_NS) {
		held->given_up = true;
		client_drop_held(client, direct);
	}
}

void client_send_held(void *arg)
{
	struct share_client *client = arg;

	for (uint32_t i = 0; i < client->directs_end; i++) {
		struct client_direct *direct = client->directs[i];

		if (direct && direct->held.count > 0)
			direct_send_held(client, direct);
	}
	/* Orders the packets before the loads of the sleep flags, as in client_push. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	client_directs_wake(client);
}

void client_direct_send(struct share_client *client, struct client_direct *direct,
			struct rte_mbuf **mbufs, uint16_t n)
{
	struct held *held = &direct->held;
	uint16_t sent = held->count > 0 ? 0 : direct_put(client, direct, mbufs, n);

	if (likely(sent == n && !held->given_up))
		return;
	held->given_up &= sent == 0;
	if (held->count == 0)
		held->tried_ns = 0;
	if (!held->given_up)
		sent = (uint16_t)(sent +
				  held_add(held, client->port, mbufs + sent, (uint16_t)(n - sent)));
	/* No packet that is built in the channel overtakes those. */
	client_set_last(client, NULL);
	client_drop(client, direct, mbufs + sent, (uint16_t)(n - sent));
}

static __rte_noinline void direct_ring_doorbell(struct client_direct *direct)
{
	int cancel_state;

	if (direct->offer.trusted) {
		own_ring(direct->doorbell_fd);
		return;
	}
	cancel_state = cancel_disable();
	if (own_is(direct->doorbell_fd))
		memif_doorbell_ring(direct->doorbell_fd, &direct->doorbell_cost);
	cancel_restore(cancel_state);
}

void client_directs_wake(struct share_client *client)
{
	for (uint32_t i = 0; i < client->directs_end; i++) {
		struct client_direct *direct = client->directs[i];
		struct direct_side *peer;

		if (!direct || !direct->touched)
			continue;
		direct->touched = false;
		peer = &direct->memory->sides[!direct->offer.side];
		if (__atomic_load_n(&peer->sleeps, __ATOMIC_RELAXED) != 0 &&
		    __atomic_exchange_n(&peer->sleeps, 0, __ATOMIC_RELAXED) != 0)
			direct_ring_doorbell(direct);
	}
}

bool client_direct_taken(const struct client_direct *direct, struct port_taken *taken, bool *known)
{
	taken->dropped = direct->dropped;
	if (direct->state != DIRECT_OPEN)
		return false;
	*known = direct_tell_taken(&direct->tx, &taken->given, &taken->taken);
	return true;
}

static bool client_fetches_all(const struct share_client *client)
{
	return client->taker.choice.now == FETCH_ALL && tuning.store_choice;
}

/* Take packets that are read in place. */
static uint16_t direct_lend(struct share_client *client, struct client_direct *direct,
			    struct rte_mbuf **mbufs, uint16_t n)
{
	const uint16_t origin = client->spares_icrc ? PORT_HANDED_OVER : PORT_PASSED_ON;
	struct share_packet packets[BURST_MAX];
	uint16_t received = 0;
	uint32_t count, first;
	bool refused = false;

	count = direct_take(&direct->rx, packets, RTE_MIN(n, (uint16_t)BURST_MAX), &first);
	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = &direct->mbufs[(first + i) % DIRECT_SLOTS];
		uint8_t *frame = direct_frame(&direct->rx, first + i, &packets[i]);

		if (unlikely(!frame)) {
			direct_done(&direct->rx, first + i);
			client->port->rx_too_long++;
			refused = true;
			continue;
		}
		mbuf->buf_addr = frame;
		mbuf->data_off = 0;
		mbuf->data_len = packets[i].len;
		mbuf->pkt_len = packets[i].len;
		mbuf->port = origin;
		if (packets[i].len >= METER_LONG)
			client->taker.bytes += packets[i].len;
		mbufs[received++] = mbuf;
	}
	if (unlikely(refused))
		direct_give_back(&direct->rx);
	client->port->rx_bodies = client_fetches_all(client);
	return received;
}

static void fetch_frame(const uint8_t *frame, uint32_t from, uint32_t to)
{
	for (uint32_t at = from; at < to; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(frame + at);
}

/* Return true if the other process may send this packet, and not through the owner only. */
static bool direct_may_send(const struct share_client *client, const struct client_direct *direct,
			    const struct rte_mbuf *mbuf)
{
	const struct vet vet = {
		.mac = client->port->mac,
		/* Only the engine's thread changes them. */
		.addresses = &client->net->addresses,
		.qpn_first = direct->offer.qpn_first,
		.qpn_count = direct->offer.qpn_count,
		.mtu_bytes = client->port->mtu_bytes,
	};

	return vet_frame(&vet, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len) ==
	       VET_PASSES;
}

/* Copy a packet, and check the copy. Return false if it is dropped. */
static bool direct_copy_out(const struct share_client *client, const struct client_direct *direct,
			    const uint8_t *frame, uint32_t len, struct rte_mbuf *mbuf)
{
	uint8_t *to = rte_pktmbuf_mtod(mbuf, uint8_t *);
	bool verified = false;

	if (unlikely(!frame || len > rte_pktmbuf_tailroom(mbuf))) {
		client->port->rx_too_long++;
		return false;
	}
	if (likely(tuning.fused_copy))
		verified = packet_copy(to, frame, len);
	else
		memcpy(to, frame, len);
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = len;
	mbuf->port = verified ? PORT_VERIFIED : 0;
	if (unlikely(!direct_may_send(client, direct, mbuf))) {
		client->port->rx_refused++;
		return false;
	}
	wire_mark_sender(to + RTE_ETHER_ADDR_LEN, direct->offer.qpn_first);
	return true;
}

/* Return how many of the packets are copied in one burst, and have mbufs. */
static uint32_t direct_limit(const struct share_client *client, const struct share_packet *packets,
			     uint32_t count, struct rte_mbuf **mbufs)
{
	uint32_t bytes = 0, n = 0;

	while (n < count && bytes < COPY_BYTES)
		bytes += packets[n++].len;
	return n == 0 || rte_pktmbuf_alloc_bulk(client->port->pool, mbufs, n) == 0 ? n : 0;
}

/* Take packets of a process that is not trusted. Each word is read once. */
static uint16_t direct_take_copies(struct share_client *client, struct client_direct *direct,
				   struct rte_mbuf **mbufs, uint16_t n)
{
	struct share_packet packets[BURST_MAX];
	const uint8_t *frames[BURST_MAX];
	struct rte_mbuf *room[BURST_MAX];
	uint32_t count, first, limit;
	uint16_t received = 0;

	count = direct_take(&direct->rx, packets, RTE_MIN(n, (uint16_t)BURST_MAX), &first);
	limit = direct_limit(client, packets, count, room);
	direct_untake(&direct->rx, count - limit);
	client->port->rx_cut |= limit < count || count == n;
	for (uint32_t i = 0; i < limit; i++) {
		frames[i] = direct_frame(&direct->rx, first + i, &packets[i]);
		if (frames[i] && likely(tuning.prefetch))
			fetch_frame(frames[i], 0, FIRST_BYTES);
	}
	for (uint32_t i = 0; i < limit; i++) {
		const uint32_t ahead = i + BODIES_AHEAD;

		if (ahead < limit && frames[ahead] && client_fetches_all(client))
			fetch_frame(frames[ahead], FIRST_BYTES, packets[ahead].len);
		if (direct_copy_out(client, direct, frames[i], packets[i].len, room[i])) {
			mbufs[received++] = room[i];
			if (packets[i].len >= METER_LONG)
				client->taker.bytes += packets[i].len;
		} else {
			rte_pktmbuf_free(room[i]);
		}
		direct_done(&direct->rx, first + i);
	}
	direct_give_back(&direct->rx);
	return received;
}

/* Mark the packets that have arrived from the owner until now. */
static struct memif_mark client_arrived(const struct share_client *client)
{
	return client->below
		       ? memif_caller_arrived(client->below)
		       : (struct memif_mark){.index = (uint16_t)__atomic_load_n(
						     &client->rings[SHARE_RING_RX].memory->prod,
						     __ATOMIC_ACQUIRE)};
}

static bool client_has_received(const struct share_client *client, const struct memif_mark *mark)
{
	return client->below
		       ? memif_caller_has_received(client->below, mark)
		       : (int16_t)((uint16_t)client->rings[SHARE_RING_RX].own - mark->index) >= 0;
}

/*
 * Return true if packets of the channel may be taken, of which there is one. Packets that the other
 * process sent through the owner come first. It saw them in our ring before it put anything into
 * the channel. So look at the ring after the channel.
 */
static bool client_may_take(const struct share_client *client, struct client_direct *direct)
{
	if (likely(direct->hears == DIRECT_HEARS_PEER))
		return true;
	if (direct->hears == DIRECT_HEARS_NOTHING) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		direct->arrived = client_arrived(client);
		direct->hears = DIRECT_HEARS_OWNER;
	}
	if (client_has_received(client, &direct->arrived))
		direct->hears = DIRECT_HEARS_PEER;
	return direct->hears == DIRECT_HEARS_PEER;
}

static uint32_t next_direct(const struct share_client *client, uint32_t index)
{
	return index + 1 < client->directs_end ? index + 1 : 0;
}

uint16_t client_directs_take(struct share_client *client, struct rte_mbuf **mbufs, uint16_t n)
{
	uint32_t at = client->first_direct;
	uint16_t received = 0;

	/* The packets of the last call have been processed since. */
	if (client->taker.bytes > 0 || unlikely(client->taker.choice.tries))
		taker_release(&client->taker, false);
	client->first_direct = next_direct(client, at);
	for (uint32_t i = 0; i < client->directs_end && received < n; i++) {
		struct client_direct *direct = client->directs[at];
		const uint16_t room = (uint16_t)(n - received);

		at = next_direct(client, at);
		if (!direct || !direct_has_next(&direct->rx) || !client_may_take(client, direct))
			continue;
		received = (uint16_t)(received +
				      (direct->offer.trusted
					       ? direct_lend(client, direct, mbufs + received, room)
					       : direct_take_copies(client, direct,
								    mbufs + received, room)));
	}
	/* The time until the next call is that of these packets. */
	client->taker.backlog = client->taker.bytes > 0;
	return received;
}

void client_directs_say_asleep(struct share_client *client, bool asleep)
{
	pthread_mutex_lock(&client->directs_lock);
	for (int i = 0; i < SHARE_DIRECTS_MAX; i++) {
		const struct client_direct *direct = client->directs[i];

		if (direct)
			__atomic_store_n(&direct->memory->sides[direct->offer.side].sleeps, asleep,
					 __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&client->directs_lock);
}

bool client_directs_wait(struct share_client *client)
{
	bool wait = false;

	pthread_mutex_lock(&client->directs_lock);
	for (int i = 0; i < SHARE_DIRECTS_MAX; i++)
		wait |= client->directs[i] && direct_waits(&client->directs[i]->rx);
	pthread_mutex_unlock(&client->directs_lock);
	return wait;
}
