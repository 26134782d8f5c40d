/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6 neighbour discovery (RFC 4861): solicitations and advertisements, to and from structs. */
#ifndef NET_ND_H
#define NET_ND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ND_FRAME_LEN 86 /* Ethernet, IPv6, ICMPv6 with target, one link-layer address option */

struct nd {
	bool solicitation;  /* else an advertisement */
	uint8_t src_ip[16]; /* all zero: the sender is checking that the target has no owner
			       (duplicate address detection) */
	uint8_t target[16];
	bool has_mac;	/* the message has the option with a link-layer address */
	uint8_t mac[6]; /* solicitation: the sender's; advertisement: the target's */
	bool overrides; /* advertisement: it replaces an address that is already known */
};

/** Return true if this is the address of one host: not a group, and not zero. */
bool nd_mac_valid(const uint8_t mac[6]);

/** Parse a frame and check it as RFC 4861, 7.1 requires. MT-safe. */
bool nd_parse(const uint8_t *frame, size_t len, struct nd *nd);

/** Build a solicitation for `target` to its group; `frame` has room for ND_FRAME_LEN. MT-safe.
 * Returns the length. */
size_t nd_build_solicitation(uint8_t *frame, const uint8_t mac[6], const uint8_t ip[16],
			     const uint8_t target[16]);

/** Build the advertisement that answers a solicitation; the target is at `mac`. MT-safe. Returns
 * the length. */
size_t nd_build_advertisement(uint8_t *frame, const uint8_t mac[6], const struct nd *solicitation);

#endif
