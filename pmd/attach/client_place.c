/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds packets in the memory of a direct channel. Whatever cannot be placed takes an mbuf, and
 * waits there for room.
 *
 * A short packet to a process that needs no ICRC is built beside its word. Most packets are to the
 * same queue pair as the one before, so its channel is known.
 *
 * The way to store long packets follows the channel's measurements (base/meter.h).
 */
#include <rte_atomic.h>

#include "base/copy.h"
#include "base/meter.h"
#include "base/tuning.h"
#include "client.h"

#define HEAD_BYTES 128 /* headers: they are stored in the ordinary way */

static_assert(PORT_OFFER_BYTES == DIRECT_SHORT_BYTES, "what fits into an offer fits into a slot");

/* Return the way to store a packet of `len` bytes. */
static enum store_way direct_way(const struct client_direct *direct, uint32_t len)
{
	return len < METER_LONG ? STORE_RECENT : store_way(&direct->meter.choice);
}

void client_direct_make_room(struct client_direct *direct, uint32_t n)
{
	/* Do not look each time: the other process writes the cache line of the index. */
	if (direct_used(&direct->tx) + n > DIRECT_SLOTS / 2)
		direct_look(&direct->tx);
}

/* Send by a channel from now on. The order among packets of one channel is the order in which they
 * are placed; packets that were placed in another channel are put now, because `push` knows one. */
static void client_turn_to(struct share_client *client, struct client_direct *direct)
{
	if (likely(client->last_direct == direct))
		return;
	if (client->last_direct)
		client_direct_show(client, client->last_direct);
	client_set_last(client, direct);
}

static inline uint8_t *direct_offer(struct direct_tx *tx)
{
	if (likely(tuning.prefetch))
		direct_fetch(tx, 0);
	return direct_place(tx);
}

static __rte_noinline uint8_t *direct_look_and_offer(struct direct_tx *tx)
{
	direct_look(tx);
	return direct_offer(tx);
}

/* Let short packets to a queue pair be built in its channel. Return false if they cannot be. */
static __rte_noinline bool client_begin_offers(struct share_client *client, uint32_t qpn)
{
	struct client_direct *direct = client_direct_of(client, qpn);

	/* Packets that wait were sent before. */
	if (!direct || !client->spares_icrc || direct->held.count > 0 ||
	    !client_has_switched(client, direct))
		return false;
	client_turn_to(client, direct);
	client->offer_qpn = qpn;
	return true;
}

uint8_t *client_offer(void *arg, uint32_t qpn)
{
	struct share_client *client = arg;
	struct direct_tx *tx;

	client->placing = NULL;
	/* A program may name the peer 0, too. */
	if (unlikely(qpn != client->offer_qpn || qpn == 0) && !client_begin_offers(client, qpn))
		return NULL;
	tx = &client->last_direct->tx;
	if (unlikely(tx->staged == 0 && direct_used(tx) >= DIRECT_SLOTS / 2))
		return direct_look_and_offer(tx);
	return direct_offer(tx);
}

bool client_aim(void *arg, uint32_t qpn)
{
	struct share_client *client = arg;

	client->aimed = client_direct_of(client, qpn);
	/* A packet that was placed before, and could not be sealed, is not sent. */
	client->placing = NULL;
	return client->aimed != NULL;
}

uint8_t *client_place(void *arg, uint32_t len)
{
	struct share_client *client = arg;
	struct client_direct *direct = client->aimed;

	/* Packets that wait were sent before. */
	if (unlikely(len > DIRECT_BUFFER_BYTES || direct->held.count > 0 ||
		     !client_has_switched(client, direct)))
		return NULL;
	client_turn_to(client, direct);
	if (direct->tx.staged == 0)
		client_direct_make_room(direct, DIRECT_STAGED_MAX);
	if (unlikely(!direct_has_place(&direct->tx)))
		return NULL;
	client->placing = direct;
	client->port->place_way = direct_way(direct, len);
	return direct_buffer(&direct->tx, 0);
}

/* The packet is in a buffer. */
static __rte_noinline void client_placed_in_buffer(struct share_client *client, uint32_t len)
{
	struct client_direct *direct = client->placing;

	direct_placed(&direct->tx, len, 0);
	direct->touched = true;
	direct->held.given_up = false;
	client->placing = NULL;
	client->expects_long = len >= METER_LONG;
	if (client->expects_long)
		meter_put(&direct->meter, len, client->port->place_way == STORE_PAST);
}

void client_placed(void *arg, uint32_t len)
{
	struct share_client *client = arg;
	struct client_direct *direct = client->last_direct;

	if (client->placing) {
		client_placed_in_buffer(client, len);
		return;
	}
	direct_placed(&direct->tx, len, SHARE_FLAG_SHORT);
	direct->touched = true;
	direct->held.given_up = false;
	client->expects_long = false;
}

/* Prefetch the buffer of a long packet. The copy without a CRC prefetches what follows its first
 * piece itself. */
static void client_expect_long(const struct share_client *client, uint32_t ahead, uint32_t len)
{
	const struct client_direct *direct = client->last_direct;

	if (direct_way(direct, METER_LONG) == STORE_PAST)
		len = RTE_MIN(len, (uint32_t)HEAD_BYTES);
	else if (client->spares_icrc)
		len = RTE_MIN(len, (uint32_t)(HEAD_BYTES + COPY_PIECE_BYTES));
	prefetch_write_bytes(direct_buffer(&direct->tx, ahead),
			     RTE_MIN(len, (uint32_t)DIRECT_BUFFER_BYTES));
}

/* Prefetch a slot of the channel, and the buffer of a long packet. Other packets are in buffers
 * whose cache lines the code that builds them prefetches. */
void client_expect(void *arg, uint32_t ahead, uint32_t len)
{
	const struct share_client *client = arg;

	if (!client->last_direct)
		return;
	direct_fetch(&client->last_direct->tx, ahead);
	if (client->expects_long)
		client_expect_long(client, ahead, len);
}

static uint16_t direct_load_taken(const void *arg)
{
	const struct direct_tx *tx = arg;

	return (uint16_t)__atomic_load_n(&tx->ring->cons, __ATOMIC_RELAXED);
}

static void direct_measure(struct share_client *client, struct client_direct *direct)
{
	const struct meter_ring ring = {
		.own = (uint16_t)(direct->tx.own + direct->tx.staged),
		.known = (uint16_t)direct->tx.seen,
		.size = DIRECT_SLOTS,
		.load = direct_load_taken,
		.arg = &direct->tx,
	};
	const uint32_t trials = direct->meter.choice.trials;

	meter_push(&direct->meter, &ring);
	client->port->place_trials += direct->meter.choice.trials - trials;
}

void client_direct_show(struct share_client *client, struct client_direct *direct)
{
	/* Non-temporal stores are not ordered with the stores of the words. */
	if (unlikely(direct->meter.past_caches))
		rte_wmb();
	if (unlikely(direct->meter.bytes > 0))
		direct_measure(client, direct);
	if (direct->tx.staged > 0)
		direct_show(&direct->tx);
}

void client_push(void *arg)
{
	struct share_client *client = arg;

	/* The other process has ended meanwhile, and its channel has gone. */
	if (unlikely(!client->last_direct))
		return;
	client_direct_show(client, client->last_direct);
	/* Order the stores of the packets before the loads of the sleep flags: a receiver sets
	 * its flag, and then looks for packets once more. Pairs with client_arm. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	client_directs_wake(client);
}
