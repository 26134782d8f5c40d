/* SPDX-License-Identifier: BSD-3-Clause */
/* What routers tell about packets of ours: a better gateway, or that a packet was too long. */
#ifndef NET_ICMP_H
#define NET_ICMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_ip.h>

#include "netdev/netdev.h"

#define ICMP_MIN 8 /* bytes of the shortest message */

enum icmp_kind {
	ICMP_REDIRECT, /* RFC 792 type 5; RFC 4861 type 137 */
	ICMP_TOO_LONG, /* RFC 1191; RFC 4443 type 2 */
};

struct icmp_notice {
	enum icmp_kind kind;
	uint8_t mac[6];		  /* that the frame came from */
	uint8_t from[GID_LEN];	  /* the router that tells */
	uint8_t to[GID_LEN];	  /* where the packet goes that it is about */
	uint8_t gateway[GID_LEN]; /* ICMP_REDIRECT: the better one; `to` itself: it is on the link
				   */
	uint32_t mtu_bytes; /* ICMP_TOO_LONG: the longest IP packet that passes; 0: not told */
};

/** Check the headers and the checksums of an ICMP packet to one of our addresses in a VLAN, which
 * is no fragment and has no IP options. MT-safe. Returns the length of the message behind the IP
 * header, at least ICMP_MIN; 0: it is none. */
size_t icmp_check_ipv4(const struct addresses *own, int32_t vlan, const uint8_t *l3, size_t len,
		       struct rte_ipv4_hdr *ip);

/** The same for ICMPv6. */
size_t icmp_check_ipv6(const struct addresses *own, int32_t vlan, const uint8_t *l3, size_t len,
		       struct rte_ipv6_hdr *ip);

/**
 * Parse a message to one of our addresses in a VLAN. The frame has no tag. MT-safe.
 *
 * @return
 *   False if it is none of these, or malformed, or not about a RoCE packet that we can have sent.
 * An IPv6 redirect need not contain the packet.
 */
bool icmp_parse(const struct addresses *own, int32_t vlan, const uint8_t *frame, size_t len,
		struct icmp_notice *notice);

/**
 * Build the reply to an echo request for one of our addresses in a VLAN. The frame has no tag.
 * MT-safe.
 *
 * @param reply
 *   Room for the reply, which is at most as long as the request.
 * @return
 *   Its length; 0: the frame is not an echo request for us, is malformed, or does not fit.
 */
size_t echo_reply(const struct addresses *own, int32_t vlan, const uint8_t mac[6],
		  const uint8_t *frame, size_t len, uint8_t *reply, size_t room);

#endif
