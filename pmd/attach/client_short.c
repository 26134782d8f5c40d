/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds short packets to another attached process in a place of the lane, so they need no buffer
 * and no mbuf that must be given back.
 *
 * The receiver of a packet is known only when the packet is built. So the packet is built in the
 * lane that was used last, which is most often the right one. If it is another one, the packet is
 * moved out of that place.
 */
#include "base/tuning.h"
#include "client.h"
#include "port/port.h"

static_assert(PORT_OFFER_BYTES == LANE_SHORT_BYTES, "what fits into an offer fits into a slot");

uint8_t *client_short_offer(void *arg)
{
	struct share_client *client = arg;
	struct client_lane *lane = client->last_lane;

	client->placing = NULL;
	if (!lane || lane->state != LANE_OPEN || !client->spares_icrc)
		return NULL;
	/* Do not look each time: the other process writes the cache line of the index. */
	if (unlikely(lane->tx.staged == 0 && lane_used(&lane->tx) >= LANE_SLOTS / 2))
		lane_look(&lane->tx);
	if (likely(tuning.prefetch))
		lane_fetch(&lane->tx, 0);
	return lane_place(&lane->tx);
}

bool client_short_suits(void *arg, uint32_t qpn)
{
	struct share_client *client = arg;

	return client_lane_of(client, qpn) == client->last_lane;
}

void client_placed(void *arg, uint32_t len)
{
	struct share_client *client = arg;
	struct client_lane *lane = client->last_lane;

	if (client->placing) {
		client_long_placed(client, len);
		return;
	}
	lane_placed(&lane->tx, len, SHARE_FLAG_SHORT);
	lane->touched = true;
	lane->full_since_tsc = 0;
	client->expects_long = false;
}
