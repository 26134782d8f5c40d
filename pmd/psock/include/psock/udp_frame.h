/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers of a UDP frame: their lengths and identification, and a comparison of two frames. */
#ifndef PSOCK_UDP_FRAME_H
#define PSOCK_UDP_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

#define HEADERS_MAX 66 /* Ethernet, a VLAN tag, IPv6, UDP */

/** Return true if the lengths in the IP and UDP headers both match this UDP payload. MT-safe. */
bool udp_frame_lengths_match(const uint8_t *frame, const struct udp_frame *headers,
			     uint32_t payload_len);

/** Write the IP and UDP lengths for a UDP payload of this length, and an IPv4 packet's
 * identification and checksum. MT-safe. */
void udp_frame_set(uint8_t *frame, const struct udp_frame *headers, uint32_t payload_len,
		   uint16_t id);

/** Return the identification of an IPv4 packet; 0 for IPv6. MT-safe. */
uint16_t udp_frame_id(const uint8_t *frame, const struct udp_frame *headers);

/** Return true if the headers of two frames differ at most in lengths, identification and
 * checksums; `headers` are those of `a`. MT-safe. */
bool udp_frame_same(const uint8_t *a, const uint8_t *b, const struct udp_frame *headers);

#endif
