/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits a long packet of the kernel into the packets that it stands for. */
#ifndef PSOCK_SPLIT_H
#define PSOCK_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "psock/udp_frame.h"

struct virtio_net_hdr;

#define SPLIT_PACKETS_MAX 128	/* Linux's UDP_MAX_SEGMENTS */
#define SPLIT_ROOM	  65536 /* longer than any IP frame, because IP lengths have 16 bits */

struct split {
	const uint8_t *frame; /* its headers can be read */
	struct udp_frame headers;
	uint32_t segment_len; /* UDP payload of each packet but the last */
	uint32_t payload_len; /* of all */
	uint32_t count;
	uint16_t id;	  /* IPv4 identification of the first */
	uint16_t id_step; /* from one packet to the next */
};

/**
 * Interpret what a packet socket says about a packet. Nothing of it is trusted. MT-safe.
 *
 * @param seen
 *   Bytes of the frame that can be read.
 * @param len
 *   Bytes that the frame has.
 * @return
 *   False if the packet cannot be split. Do not call this for an ordinary packet, whose
 *   offload->gso_type is VIRTIO_NET_HDR_GSO_NONE.
 */
bool split_begin(struct split *split, const uint8_t *frame, uint32_t seen, uint32_t len,
		 const struct virtio_net_hdr *offload);

/** Return the length of a packet's UDP payload. MT-safe. */
static inline uint32_t split_payload(const struct split *split, uint32_t index)
{
	return index + 1 < split->count ? split->segment_len
					: split->payload_len - index * split->segment_len;
}

/** Write the headers of a packet, without a UDP checksum. MT-safe. */
void split_header(const struct split *split, uint32_t index, uint8_t *header);

/**
 * Find out how the IPv4 identification counts. The kernel also joins packets that it received, and
 * does not report whether these had the same identification or one that counted up, if both were
 * allowed (DF). The ICRC of the second packet decides. MT-safe.
 *
 * @param second
 *   The second packet whole, with a header by split_header. Gets the header by which its ICRC is
 * right, if one is.
 * @return
 *   True if the ICRC was computed, and is right.
 */
bool split_find_step(struct split *split, uint8_t *second);

#endif
