/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short packets to another attached process, built where they need nothing that has to be given
 * back: no buffer, and no mbuf.
 *
 * Where a packet goes is known only when it is built. So the place for it is one of the lane that
 * something was put into last, which is most often the right one; else the packet moves out of it.
 */
#include "base/tuning.h"
#include "client.h"
#include "port/port.h"

static_assert(PORT_OFFER_BYTES == LANE_SHORT_BYTES, "what fits into an offer fits into a slot");

uint8_t *client_short_offer(void *arg)
{
	struct share_client *client = arg;
	struct client_lane *lane = client->last_lane;

	if (!lane || lane->state != LANE_OPEN || !client->spares_icrc)
		return NULL;
	/* Not each time: the line with the index that tells of them is the other's to write. */
	if (unlikely(lane->tx.staged == 0 && lane_used(&lane->tx) >= LANE_WORDS / 2))
		client_lane_collect(client, lane);
	if (likely(tuning.prefetch))
		lane_fetch(&lane->tx, 0);
	return lane_place(&lane->tx);
}

bool client_short_suits(void *arg, uint32_t qpn)
{
	struct share_client *client = arg;

	return client_lane_of(client, qpn) == client->last_lane;
}

void client_short_placed(void *arg, uint32_t len)
{
	struct share_client *client = arg;
	struct client_lane *lane = client->last_lane;

	lane_placed(&lane->tx, len);
	lane->touched = true;
	lane->full_since_tsc = 0;
}

void client_short_push(void *arg)
{
	struct share_client *client = arg;

	/* The process has ended meanwhile, and its lane has gone. */
	if (unlikely(!client->last_lane))
		return;
	lane_show(&client->last_lane->tx);
	/* Orders the stores of what was put before the loads of who sleeps: who sleeps looks after
	 * it has said so. Pairs with client_arm. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	client_lanes_wake(client);
}
