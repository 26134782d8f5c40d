/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins packets that can be sent as one run. */
#include "psock/packet_run.h"

#include <linux/virtio_net.h>
#include <stddef.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "offload.h"
#include "psock/psock.h"
#include "wire/headers.h"

/*
 * The kernel puts "headers" and its own data into one object of its slab allocator, which has up to
 * 8 KiB, and the rest into pages, which takes longer. So a frame of up to this length is all
 * headers to it, with 768 bytes for the kernel's own. A storage target's block of 4 KiB and the
 * answer behind it are such a frame.
 */
#define SLAB_BYTES (8192 - 768)

/* Return true if two frames are for the same queue pair. The receiver may give a run to a process
 * by its first packet alone (netdev/divide.h). */
static bool run_has_qp(const struct run *run, const uint8_t *frame)
{
	const struct bth *first = (const void *)(run->first + run->headers.len);
	const struct bth *next = (const void *)(frame + run->headers.len);

	return memcmp(first->dest_qpn, next->dest_qpn, sizeof(first->dest_qpn)) == 0;
}

void run_begin(struct run *run, const uint8_t *frame, uint32_t len)
{
	run->first = frame;
	run->count = 1;
	run->ended = !udp_frame_find(frame, len, &run->headers) || len == run->headers.len ||
		     !udp_frame_lengths_match(frame, &run->headers, len - run->headers.len);
	run->segment_len = run->payload_len = run->ended ? len : len - run->headers.len;
}

bool run_add(struct run *run, const uint8_t *frame, uint32_t len)
{
	struct udp_frame headers;
	uint32_t payload_len;
	uint16_t id;

	if (run->ended || run->count == RUN_PACKETS_MAX || !udp_frame_find(frame, len, &headers))
		return false;
	payload_len = len - headers.len;
	id = (uint16_t)(udp_frame_id(run->first, &run->headers) + run->count);
	if (headers.len != run->headers.len || payload_len < sizeof(struct bth) ||
	    payload_len > run->segment_len ||
	    payload_len > RUN_BYTES_MAX - headers.len - run->payload_len ||
	    !udp_frame_same(run->first, frame, &run->headers) ||
	    !udp_frame_lengths_match(frame, &headers, payload_len) || !run_has_qp(run, frame) ||
	    (!headers.ipv6 && udp_frame_id(frame, &headers) != id))
		return false;
	run->payload_len += payload_len;
	run->count++;
	run->ended = payload_len < run->segment_len;
	return true;
}

static bool run_adds(struct run *run, const struct rte_mbuf *mbuf)
{
	return mbuf->port != PSOCK_ALONE &&
	       run_add(run, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len);
}

void run_gather(struct run *run, struct rte_mbuf *const *mbufs, uint32_t n, bool runs)
{
	run_begin(run, rte_pktmbuf_mtod(mbufs[0], const uint8_t *), mbufs[0]->data_len);
	while (runs && mbufs[0]->port != PSOCK_ALONE && run->count < n &&
	       run_adds(run, mbufs[run->count]))
		;
}

void run_describe(const struct run *run, uint8_t header[HEADERS_MAX],
		  struct virtio_net_hdr *offload)
{
	const struct udp_frame *headers = &run->headers;
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(void *)(header + headers->l4_off);
	const void *ip = header + headers->l3_off;
	const uint32_t len = headers->len + run->payload_len;

	memcpy(header, run->first, headers->len);
	udp_frame_set(header, headers, run->payload_len, udp_frame_id(run->first, headers));
	/* The kernel or the NIC completes this checksum for each packet. */
	udp->dgram_cksum = headers->ipv6 ? rte_ipv6_phdr_cksum(ip, 0) : rte_ipv4_phdr_cksum(ip, 0);
	*offload = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = (uint16_t)(len <= SLAB_BYTES ? len : headers->len),
		.gso_size = (uint16_t)run->segment_len,
		.csum_start = headers->l4_off,
		.csum_offset = offsetof(struct rte_udp_hdr, dgram_cksum),
	};
}
