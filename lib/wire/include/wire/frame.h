/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of a frame, up to that of UDP. All who look at frames find them here, so they agree
 * which frames are RoCE: with at most one VLAN tag, without IPv4 options (the ICRC is not defined
 * over them) or IPv6 extension headers, and no fragments.
 *
 * Only the lengths of the headers are checked. Whoever receives the packet checks the rest.
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/headers.h"

/* The fields of an Ethernet header and its tag. The packet begins at l3_off. */
struct ether_frame {
	uint32_t l3_off;
	int32_t vlan_tci; /* -1 without a tag */
	rte_be16_t type;  /* EtherType */
};

struct udp_frame {
	uint8_t l3_off;
	uint8_t l4_off;
	uint8_t len; /* up to the UDP payload */
	bool ipv6;
};

/** Find the end of the Ethernet header. MT-safe. False: the frame is too short. */
static inline bool ether_frame_find(const uint8_t *frame, size_t len, struct ether_frame *ether)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;
	const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)(eth + 1);

	if (len < sizeof(*eth))
		return false;
	*ether = (struct ether_frame){sizeof(*eth), -1, eth->ether_type};
	if (ether->type != RTE_BE16(RTE_ETHER_TYPE_VLAN))
		return true;
	if (len < sizeof(*eth) + sizeof(*tag))
		return false;
	*ether = (struct ether_frame){sizeof(*eth) + sizeof(*tag), rte_be_to_cpu_16(tag->vlan_tci),
				      tag->eth_proto};
	return true;
}

/** Return true if UDP follows this header. MT-safe. */
static inline bool ipv4_has_udp(const struct rte_ipv4_hdr *ip)
{
	const rte_be16_t fragment = RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK);

	return ip->version_ihl == RTE_IPV4_VHL_DEF && ip->next_proto_id == IPPROTO_UDP &&
	       !(ip->fragment_offset & fragment);
}

/** Return true if UDP follows this header. MT-safe. */
static inline bool ipv6_has_udp(const struct rte_ipv6_hdr *ip)
{
	return rte_be_to_cpu_32(ip->vtc_flow) >> 28 == 6 && ip->proto == IPPROTO_UDP;
}

/** Find the headers of a UDP packet of which `len` bytes can be read. MT-safe. False: the frame is
 * none, or not all of its headers can be read. */
static inline bool udp_frame_find(const uint8_t *frame, size_t len, struct udp_frame *headers)
{
	struct ether_frame ether;
	uint32_t l4_off;
	bool ipv6;

	if (!ether_frame_find(frame, len, &ether))
		return false;
	ipv6 = ether.type == RTE_BE16(RTE_ETHER_TYPE_IPV6);
	if (!ipv6 && ether.type != RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return false;
	l4_off = ether.l3_off +
		 (uint32_t)(ipv6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr));
	*headers = (struct udp_frame){.l3_off = (uint8_t)ether.l3_off,
				      .l4_off = (uint8_t)l4_off,
				      .len = (uint8_t)(l4_off + sizeof(struct rte_udp_hdr)),
				      .ipv6 = ipv6};
	if (len < headers->len)
		return false;
	frame += ether.l3_off;
	return ipv6 ? ipv6_has_udp((const struct rte_ipv6_hdr *)frame)
		    : ipv4_has_udp((const struct rte_ipv4_hdr *)frame);
}

/** Find the headers of a RoCE packet, and its BTH. MT-safe. NULL: the frame is none. */
static inline const struct bth *roce_frame_find(const uint8_t *frame, size_t len,
						struct udp_frame *headers)
{
	if (!udp_frame_find(frame, len, headers) || len < headers->len + sizeof(struct bth) ||
	    ((const struct rte_udp_hdr *)(frame + headers->l4_off))->dst_port !=
		    RTE_BE16(WIRE_UDP_PORT))
		return NULL;
	return (const struct bth *)(frame + headers->len);
}

#endif
