/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds packets to another attached process in the buffers of a lane. The way to store long ones
 * follows the lane's measurements (base/meter.h). Whatever cannot be placed takes an mbuf, and
 * waits there for room.
 */
#include <rte_atomic.h>

#include "base/copy.h"
#include "base/meter.h"
#include "base/tuning.h"
#include "client.h"
#include "port/port.h"

#define HEAD_BYTES 128 /* headers: they are stored in the ordinary way */

/* Return the way to store a packet of `len` bytes. */
static enum store_way lane_way(const struct client_lane *lane, uint32_t len)
{
	return len < METER_LONG ? STORE_RECENT : store_way(&lane->meter.choice);
}

bool client_long_aim(void *arg, uint32_t qpn)
{
	struct share_client *client = arg;

	client->aimed = client_lane_of(client, qpn);
	return client->aimed != NULL;
}

uint8_t *client_long_place(void *arg, uint32_t len)
{
	struct share_client *client = arg;
	struct client_lane *lane = client->aimed;

	client->placing = NULL;
	if (unlikely(len > LANE_BUFFER_BYTES || !client_has_switched(client, lane)))
		return NULL;
	/* The order among packets of one lane is the order in which they are placed; packets that
	 * were placed in another lane are put now, because `push` knows one lane. */
	if (client->last_lane && client->last_lane != lane)
		client_lane_show(client, client->last_lane);
	if (lane->tx.staged == 0)
		client_lane_make_room(lane, LANE_STAGED_MAX);
	if (unlikely(!lane_has_place(&lane->tx)))
		return NULL;
	client->placing = lane;
	client->port->place_way = lane_way(lane, len);
	return lane_buffer(&lane->tx, 0);
}

void client_long_placed(struct share_client *client, uint32_t len)
{
	struct client_lane *lane = client->placing;

	lane_placed(&lane->tx, len, 0);
	client->expects_long = len >= METER_LONG;
	if (client->expects_long)
		meter_put(&lane->meter, len, client->port->place_way == STORE_PAST);
	lane->touched = true;
	lane->full_since_tsc = 0;
	client->last_lane = lane;
	client->placing = NULL;
}

/* Prefetch a buffer for writing. The copy without a CRC prefetches what follows its first piece
 * itself. */
void client_long_expect(const struct share_client *client, uint32_t ahead, uint32_t len)
{
	const struct client_lane *lane = client->last_lane;

	if (lane_way(lane, METER_LONG) == STORE_PAST)
		len = RTE_MIN(len, (uint32_t)HEAD_BYTES);
	else if (client->spares_icrc)
		len = RTE_MIN(len, (uint32_t)(HEAD_BYTES + COPY_PIECE_BYTES));
	prefetch_write_bytes(lane_buffer(&lane->tx, ahead), RTE_MIN(len, LANE_BUFFER_BYTES));
}

static uint16_t lane_load_taken(const void *arg)
{
	const struct lane_tx *tx = arg;

	return (uint16_t)__atomic_load_n(&tx->ring->cons, __ATOMIC_RELAXED);
}

static void lane_measure(struct share_client *client, struct client_lane *lane)
{
	const struct meter_ring ring = {
		.own = (uint16_t)(lane->tx.own + lane->tx.staged),
		.known = (uint16_t)lane->tx.seen,
		.size = LANE_SLOTS,
		.load = lane_load_taken,
		.arg = &lane->tx,
	};
	const uint32_t trials = lane->meter.choice.trials;

	meter_push(&lane->meter, &ring);
	client->port->place_trials += lane->meter.choice.trials - trials;
}

void client_lane_show(struct share_client *client, struct client_lane *lane)
{
	/* Non-temporal stores are not ordered with the stores of the words. */
	if (unlikely(lane->meter.past_caches))
		rte_wmb();
	if (unlikely(lane->meter.bytes > 0))
		lane_measure(client, lane);
	if (lane->tx.staged > 0)
		lane_show(&lane->tx);
}

void client_push(void *arg)
{
	struct share_client *client = arg;

	/* The other process has ended meanwhile, and its lane has gone. */
	if (unlikely(!client->last_lane))
		return;
	client_lane_show(client, client->last_lane);
	/* Order the stores of the packets before the loads of the sleep flags: a receiver sets
	 * its flag, and then looks for packets once more. Pairs with client_arm. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	client_lanes_wake(client);
}
