/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP for IPv4 over Ethernet (RFC 826): frames to and from structs. */
#ifndef NET_ARP_H
#define NET_ARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARP_FRAME_LEN 42

struct arp {
	bool request; /* else a reply */
	uint8_t sender_mac[6];
	uint8_t sender_ip[4];
	uint8_t target_ip[4];
};

/** Parse a frame. MT-safe. Return false if it is not ARP for IPv4 over Ethernet, or if the
 * sender is not a host's address.
 */
bool arp_parse(const uint8_t *frame, size_t len, struct arp *arp);

/** Build a broadcast request; `frame` has room for ARP_FRAME_LEN. MT-safe. Returns the length. */
size_t arp_build_request(uint8_t *frame, const uint8_t mac[6], const uint8_t ip[4],
			 const uint8_t target_ip[4]);

/** Build the reply to a request for target_ip, which is at `mac`. MT-safe. Returns the length. */
size_t arp_build_reply(uint8_t *frame, const uint8_t mac[6], const struct arp *request);

#endif
