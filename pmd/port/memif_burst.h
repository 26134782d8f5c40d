/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a burst over one pair of rings, for engines that have one pair and for those that
 * have several. Inline, because a call for each packet would cost more than the steps. Engine's
 * thread. */
#ifndef MEMIF_BURST_H
#define MEMIF_BURST_H

#include <rte_branch_prediction.h>

#include "memif_port.h"

/* Bytes of a burst: copied packets must still be in the nearest cache when they are processed. */
#define BURST_BYTES 16384

/* Counts of the packets that a burst has received. */
struct memif_taken {
	uint16_t packets, dropped;
	uint32_t bytes;
};

static inline bool burst_has_spare(struct memif_queue *queue)
{
	if (likely(queue->spares > 0))
		return true;
	if (rte_pktmbuf_alloc_bulk(queue->port->pool, queue->spare, MEMIF_SPARES) != 0)
		return false;
	queue->spares = MEMIF_SPARES;
	return true;
}

static inline int burst_receive_one(const struct memif_queue *queue, struct memif_end *end,
				    struct rte_mbuf *mbuf)
{
	bool right;
	const int len = memif_end_receive(end, rte_pktmbuf_mtod(mbuf, uint8_t *),
					  rte_pktmbuf_tailroom(mbuf), queue->copy, &right);

	if (len <= 0)
		return len;
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	mbuf->port = right ? PORT_VERIFIED : 0;
	return len;
}

/* Receive from one ring, until `n` packets have been received in this burst, of all rings. Dropped
 * packets count too: else the other end could keep this loop busy for ever. */
static inline void burst_receive(struct memif_queue *queue, struct memif_end *end,
				 struct rte_mbuf **mbufs, uint16_t n, struct memif_taken *taken)
{
	while (taken->packets + taken->dropped < n && taken->bytes < BURST_BYTES &&
	       burst_has_spare(queue)) {
		struct rte_mbuf *mbuf = queue->spare[queue->spares - 1];
		const int len = burst_receive_one(queue, end, mbuf);

		if (unlikely(len == -EMSGSIZE)) {
			taken->dropped++;
			continue;
		}
		if (len <= 0)
			break;
		queue->spares--;
		mbufs[taken->packets++] = mbuf;
		taken->bytes += (uint32_t)len;
	}
}

/* Note the result of a burst of `n` packets at most. */
static inline void burst_note(const struct memif_queue *queue, const struct memif_taken *taken,
			      uint16_t n)
{
	queue->port->rx_cut = taken->packets + taken->dropped == n || taken->bytes >= BURST_BYTES;
	queue->port->rx_too_long += taken->dropped;
}

static inline void burst_count(struct port_drops *drops, const struct rte_mbuf *mbuf)
{
	drops->packets++;
	drops->bytes += mbuf->pkt_len;
}

/* Put a packet into the ring of an end. NULL: there is no connection, and the packet is lost, as on
 * a cable. Return false if the ring has no room. Drops are counted. */
static inline bool burst_send_one(const struct memif_queue *queue, struct memif_end *end,
				  const struct rte_mbuf *mbuf)
{
	int rc;

	if (unlikely(!end)) {
		burst_count(&queue->port->tx_unconnected, mbuf);
		return true;
	}
	rc = memif_end_send(end, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len);
	if (unlikely(rc == -EMSGSIZE))
		burst_count(&queue->port->tx_too_long, mbuf);
	return rc != -EAGAIN;
}

/* Publish the packets of one ring. */
static inline void burst_push(const struct memif_queue *queue, struct memif_end *end)
{
	const uint32_t trials = end->meter.choice.trials;
	const bool wanted = memif_end_push(end);

	queue->port->place_trials += end->meter.choice.trials - trials;
	if (unlikely(wanted))
		memif_port_ring_doorbell(end->doorbell_fd);
}

#endif
