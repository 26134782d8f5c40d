/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the headers of packets that the kernel did not split, or has joined. */
#include "psock/split.h"

#include <linux/virtio_net.h>
#include <string.h>

#include <rte_udp.h>

#include "offload.h"
#include "wire/packet.h"

bool split_begin(struct split *split, const uint8_t *frame, uint32_t seen, uint32_t len,
		 const struct virtio_net_hdr *offload)
{
	if ((offload->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) != VIRTIO_NET_HDR_GSO_UDP_L4 ||
	    seen > len || len > SPLIT_ROOM || !udp_frame_find(frame, seen, &split->headers) ||
	    len == split->headers.len || offload->gso_size == 0)
		return false;
	split->frame = frame;
	split->segment_len = offload->gso_size;
	split->payload_len = len - split->headers.len;
	split->count = (split->payload_len - 1) / split->segment_len + 1;
	split->id = udp_frame_id(frame, &split->headers);
	split->id_step = 1;
	return split->count <= SPLIT_PACKETS_MAX;
}

void split_header(const struct split *split, uint32_t index, uint8_t *header)
{
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(void *)(header + split->headers.l4_off);

	memcpy(header, split->frame, split->headers.len);
	udp_frame_set(header, &split->headers, split_payload(split, index),
		      (uint16_t)(split->id + index * split->id_step));
	/* Zero means "not computed": the kernel's value is a partial sum that a NIC would complete.
	 */
	udp->dgram_cksum = 0;
}

static bool fits(const struct split *split, const uint8_t *packet)
{
	struct packet parsed;

	return packet_parse(packet, split->headers.len + split_payload(split, 1), true, &parsed) ==
		       PACKET_OK &&
	       packet_icrc_ok(&parsed);
}

bool split_find_step(struct split *split, uint8_t *second)
{
	if (split->count < 2 || split->headers.ipv6)
		return false;
	if (fits(split, second))
		return true;
	split->id_step = 0;
	split_header(split, 1, second);
	if (fits(split, second))
		return true;
	split->id_step = 1;
	split_header(split, 1, second);
	return false;
}
