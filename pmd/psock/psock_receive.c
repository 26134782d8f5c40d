/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives packets from the ring. */
#include <linux/if_packet.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>
#include <rte_udp.h>

#include "psock_internal.h"
#include "wire/headers.h"
#include "wire/mad.h"

#define TAG_LEN	      ((uint32_t)sizeof(struct rte_vlan_hdr))
#define ADDRESSES_LEN (2 * RTE_ETHER_ADDR_LEN)

/* A packet as the ring describes it. The kernel does not write to its memory until ring_advance
 * gives the memory back. */
struct received {
	const uint8_t *frame;
	uint32_t seen; /* bytes of the frame that are in the ring */
	uint32_t len;
	struct virtio_net_hdr offload;
	bool has_sum;	  /* the UDP checksum is complete */
	uint32_t tag_len; /* length of the VLAN tag that was removed, or 0 */
	rte_be16_t tag[2];
};

static struct tpacket2_hdr *ring_frame(const struct psock_ring *ring)
{
	return (struct tpacket2_hdr *)(void *)(ring->memory + (size_t)ring->next * FRAME_BYTES);
}

static void ring_advance(struct psock_ring *ring, struct tpacket2_hdr *header)
{
	__atomic_store_n(&header->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	ring->next = ring->next + 1 == FRAMES ? 0 : ring->next + 1;
}

static void parse_header(const struct tpacket2_hdr *header, uint32_t status,
			 struct received *packet)
{
	packet->frame = (const uint8_t *)header + header->tp_mac;
	packet->seen = header->tp_snaplen;
	packet->len = header->tp_len;
	packet->has_sum = !(status & TP_STATUS_CSUMNOTREADY);
	memcpy(&packet->offload, packet->frame - sizeof(packet->offload), sizeof(packet->offload));
	packet->tag_len = 0;
	if (likely(!(status & TP_STATUS_VLAN_VALID)))
		return;
	packet->tag_len = TAG_LEN;
	packet->tag[0] = rte_cpu_to_be_16(status & TP_STATUS_VLAN_TPID_VALID ? header->tp_vlan_tpid
									     : RTE_ETHER_TYPE_VLAN);
	packet->tag[1] = rte_cpu_to_be_16(header->tp_vlan_tci);
}

/* Insert the removed tag. The frame begins tag_len bytes after the buffer's data. */
static void finish(const struct received *packet, struct rte_mbuf *mbuf, uint32_t len)
{
	uint8_t *at = rte_pktmbuf_mtod(mbuf, uint8_t *);

	mbuf->data_len = (uint16_t)(len + packet->tag_len);
	mbuf->pkt_len = mbuf->data_len;
	if (likely(packet->tag_len == 0))
		return;
	memmove(at, at + TAG_LEN, ADDRESSES_LEN);
	memcpy(at + ADDRESSES_LEN, packet->tag, TAG_LEN);
}

static uint8_t *frame_of(const struct received *packet, struct rte_mbuf *mbuf)
{
	return rte_pktmbuf_mtod(mbuf, uint8_t *) + packet->tag_len;
}

/* Return true if the packet was longer than a frame of the ring, which no packet should be. */
static bool is_cut(const struct received *packet)
{
	return packet->seen < packet->len;
}

/* Set the UDP checksum to zero, which means "not computed". A sender on this host leaves a partial
 * sum there, which a NIC would complete. */
static void clear_sum(const struct received *packet, uint8_t *frame)
{
	struct udp_frame headers;

	if (udp_frame_find(frame, packet->len, &headers))
		((struct rte_udp_hdr *)(void *)(frame + headers.l4_off))->dgram_cksum = 0;
}

/* Drop the packet. The ring's frame is free again. */
static bool drop(struct psock *psock)
{
	psock->dropped++;
	return true;
}

/* Receive an ordinary packet. Return false if there is no buffer for it. */
static bool take_one(struct psock *psock, const struct received *packet)
{
	struct psock_held *held = &psock->held;
	struct rte_mbuf *mbuf;
	uint8_t *at;

	if (unlikely(is_cut(packet) || packet->len > psock->room - packet->tag_len))
		return drop(psock);
	mbuf = rte_pktmbuf_alloc(psock->pool);
	if (unlikely(!mbuf))
		return false;
	at = frame_of(packet, mbuf);
	rte_memcpy(at, packet->frame, packet->len);
	if (!packet->has_sum)
		clear_sum(packet, at);
	finish(packet, mbuf, packet->len);
	held->mbufs[0] = mbuf;
	__atomic_store_n(&held->count, 1, __ATOMIC_RELAXED);
	return true;
}

/* Copy each packet's payload to the place behind its headers. */
static void copy_payloads(const struct received *packet, const struct split *split,
			  struct rte_mbuf **mbufs)
{
	const uint8_t *from = packet->frame + split->headers.len;

	for (uint32_t i = 0; i < split->count; i++) {
		const uint32_t len = split_payload(split, i);

		rte_memcpy(frame_of(packet, mbufs[i]) + split->headers.len, from, len);
		from += len;
	}
}

/* Write all headers. Begin with the second packet: its ICRC shows whether the IPv4 identification
 * counts up from packet to packet. */
static void write_headers(const struct received *packet, struct split *split,
			  struct rte_mbuf **mbufs)
{
	if (split->count > 1) {
		split_header(split, 1, frame_of(packet, mbufs[1]));
		if (split_find_step(split, frame_of(packet, mbufs[1])))
			mbufs[1]->port = PSOCK_VERIFIED;
	}
	for (uint32_t i = 0; i < split->count; i++) {
		if (i != 1)
			split_header(split, i, frame_of(packet, mbufs[i]));
		finish(packet, mbufs[i], split->headers.len + split_payload(split, i));
	}
}

/* Return true if a queue pair belongs to the socket. */
static bool expects(const struct psock *psock, uint32_t qpn)
{
	if ((qpn ^ psock->qpn_first) >> psock->qpn_shift != 0)
		return false;
	if (psock->shares == 0)
		return true;
	return qpn > GSI_QPN && qpn != WIRE_QPN_MULTICAST && qpn % psock->shares == psock->share;
}

/* Mark the packets of a run that are for queue pairs of other sockets. */
static void mark_strays(const struct psock *psock, const struct received *packet,
			const struct split *split, struct rte_mbuf **mbufs)
{
	for (uint32_t i = 0; i < split->count; i++) {
		const struct bth *bth =
			(const void *)(frame_of(packet, mbufs[i]) + split->headers.len);

		if (split_payload(split, i) >= sizeof(*bth) &&
		    !expects(psock, wire_get24(bth->dest_qpn)))
			mbufs[i]->port = PSOCK_STRAY;
	}
}

/* Receive the packets of a run. Return false if there are no buffers for them. */
static bool take_run(struct psock *psock, const struct received *packet)
{
	struct psock_held *held = &psock->held;
	struct split split;

	if (is_cut(packet) ||
	    !split_begin(&split, packet->frame, packet->seen, packet->len, &packet->offload) ||
	    split.segment_len > psock->room - HEADERS_MAX - packet->tag_len)
		return drop(psock);
	if (rte_pktmbuf_alloc_bulk(psock->pool, held->mbufs, split.count) != 0)
		return false;
	copy_payloads(packet, &split, held->mbufs);
	write_headers(packet, &split, held->mbufs);
	mark_strays(psock, packet, &split, held->mbufs);
	__atomic_store_n(&held->count, split.count, __ATOMIC_RELAXED);
	return true;
}

/* Count the frames that the kernel has dropped since the last query. The query resets the kernel's
 * count. */
static void count_missed(struct psock *psock)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(psock->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0)
		psock->missed += stats.tp_drops;
}

/* Take the next packet of the ring. Returns false if there is none, or no buffer for it. */
static bool take(struct psock *psock)
{
	struct tpacket2_hdr *header = ring_frame(&psock->ring);
	/* Acquire: the frame that the kernel wrote before is visible. */
	const uint32_t status = __atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE);
	struct received packet;

	if (!(status & TP_STATUS_USER))
		return false;
	parse_header(header, status, &packet);
	if (!(packet.offload.gso_type == VIRTIO_NET_HDR_GSO_NONE ? take_one(psock, &packet)
								 : take_run(psock, &packet)))
		return false;
	ring_advance(&psock->ring, header);
	if (unlikely(status & TP_STATUS_LOSING))
		count_missed(psock);
	return true;
}

uint16_t psock_rx_burst(struct psock *psock, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint64_t dropped = psock->dropped;
	struct psock_held *held = &psock->held;
	uint32_t received = 0;

	do {
		const uint32_t count = RTE_MIN(held->count, n - received);

		memcpy(mbufs + received, held->mbufs + held->first, count * sizeof(mbufs[0]));
		received += count;
		held->first = held->count == count ? 0 : held->first + count;
		__atomic_store_n(&held->count, held->count - count, __ATOMIC_RELAXED);
	} while (received + (psock->dropped - dropped) < n && take(psock));
	return (uint16_t)received;
}

uint64_t psock_missed(const struct psock *psock)
{
	return psock->missed;
}

uint64_t psock_dropped(const struct psock *psock)
{
	return psock->dropped;
}

bool psock_holds(const struct psock *psock)
{
	return __atomic_load_n(&psock->held.count, __ATOMIC_RELAXED) > 0;
}
