/* SPDX-License-Identifier: BSD-3-Clause */
/* MADs that wait for a trusted process. */
#include "mad_queue.h"

#include <stdlib.h>
#include <string.h>

#include "forward.h"
#include "mads.h"
#include "server.h"
#include "share/steer.h"
#include "slot.h"

#define LOOK_MS	  1
#define RING_PART 4 /* 1/RING_PART of a process's ring is left for other packets */

struct waiting_mad {
	uint16_t len;
	uint8_t flags;
	bool local;
	uint8_t frame[STEER_MAD_FRAME_MAX];
};

bool mad_queue_put(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags,
		   bool local)
{
	struct slot *slot = &server->slots.all[number];
	struct mad_queue *queue = &slot->mads;
	struct waiting_mad *mad;

	if (slot->state != SLOT_LIVE || slot->isolated || queue->count == MAD_QUEUE_MAX ||
	    mbuf->data_len > sizeof(mad->frame))
		return false;
	if (!queue->all) {
		queue->all = malloc(MAD_QUEUE_MAX * sizeof(queue->all[0]));
		if (!queue->all)
			return false;
		queue->moved_ns = server->now_ns;
	}
	mad = &queue->all[(queue->first + queue->count++) % MAD_QUEUE_MAX];
	mad->len = mbuf->data_len;
	mad->flags = flags;
	mad->local = local;
	memcpy(mad->frame, rte_pktmbuf_mtod(mbuf, const uint8_t *), mad->len);
	rte_pktmbuf_free(mbuf);
	return true;
}

static void mad_queue_free(struct mad_queue *queue)
{
	free(queue->all);
	memset(queue, 0, sizeof(*queue));
}

/* Give a waiting MAD to a process. Return false if the process takes no more, or there is no
 * buffer. */
static bool mad_queue_give(struct server *server, uint16_t number, const struct waiting_mad *mad)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server->uplink.link.port.pool);

	if (!mbuf)
		return false;
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), mad->frame, mad->len);
	mbuf->data_len = mad->len;
	mbuf->pkt_len = mad->len;
	if (mad->local ? forward_pass(server, number, mbuf, mad->flags)
		       : forward_give(server, number, mbuf, mad->flags))
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

uint32_t mad_queue_serve(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	struct mad_queue *queue = &slot->mads;
	uint32_t given = 0, room;

	room = share_ring_room(&slot->rings[SHARE_RING_RX]);
	while (queue->count > 0 && room > SHARE_RX_WORDS / RING_PART &&
	       mad_queue_give(server, number, &queue->all[queue->first])) {
		queue->first = (queue->first + 1) % MAD_QUEUE_MAX;
		queue->count--;
		room--;
		given++;
	}
	server->totals.mads += given;
	if (given > 0)
		queue->moved_ns = server->now_ns;
	else if (server->now_ns - queue->moved_ns >= MAD_QUEUE_NS)
		mad_queue_drop(server, number);
	if (queue->count == 0)
		mad_queue_free(queue);
	return given;
}

void mad_queue_drop(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	slot->rx_dropped += slot->mads.count;
	server->totals.mads_dropped += slot->mads.count;
	mad_queue_free(&slot->mads);
}

int mad_queue_longest_ms(const struct server *server, int ms)
{
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		if (server->slots.all[server->slots.live[i]].mads.count > 0)
			return RTE_MIN(ms, LOOK_MS);
	}
	return ms;
}
