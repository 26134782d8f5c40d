/* SPDX-License-Identifier: BSD-3-Clause */
/* Classifies frames by their headers. Only the lengths of headers that are read here are checked;
 * the receiver of the frame checks the rest. */
#include "share/claim.h"

#include <string.h>

#include <rte_arp.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "share/steer.h"
#include "wire/frame.h"
#include "wire/vlan.h"

#define ND_TARGET_OFFSET 8 /* in a solicitation and an advertisement (RFC 4861, 4.3, 4.4) */
#define ND_SOLICITATION	 135
#define ND_ADVERTISEMENT 136
#define MLD_QUERY	 130

/* The part of a frame after its Ethernet header and VLAN tag. */
struct inner {
	const uint8_t *at;
	size_t len;
	int32_t vlan;
	rte_be16_t type;
};

static bool inner_find(const uint8_t *frame, size_t len, struct inner *inner)
{
	struct ether_frame ether;

	if (!ether_frame_find(frame, len, &ether))
		return false;
	*inner = (struct inner){.at = frame + ether.l3_off,
				.len = len - ether.l3_off,
				.vlan = vlan_of_tci(ether.vlan_tci),
				.type = ether.type};
	return true;
}

static bool is_ours(const struct addresses *own, const struct inner *inner, const void *ipv4)
{
	uint8_t gid[GID_LEN];

	gid_from_ipv4(ipv4, gid);
	return addresses_have(own, inner->vlan, gid);
}

static enum claim claim_arp(const struct addresses *own, const struct inner *inner)
{
	const struct rte_arp_hdr *arp = (const void *)inner->at;

	if (inner->len < sizeof(*arp))
		return CLAIM_NOTHING;
	if (arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY))
		return CLAIM_COPY;
	return is_ours(own, inner, &arp->arp_data.arp_tip) ? CLAIM_ALL : CLAIM_NOTHING;
}

static enum claim claim_ipv4(const struct addresses *own, const struct inner *inner)
{
	const struct rte_ipv4_hdr *ip = (const void *)inner->at;

	if (inner->len < sizeof(*ip))
		return CLAIM_NOTHING;
	if (ip->next_proto_id == IPPROTO_IGMP)
		return CLAIM_COPY;
	return is_ours(own, inner, &ip->dst_addr) ? CLAIM_ALL : CLAIM_NOTHING;
}

static enum claim claim_ipv6(const struct addresses *own, const struct inner *inner)
{
	const struct rte_ipv6_hdr *ip = (const void *)inner->at;
	const uint8_t *icmp = (const uint8_t *)(ip + 1);

	if (inner->len < sizeof(*ip))
		return CLAIM_NOTHING;
	if (addresses_have(own, inner->vlan, (const uint8_t *)&ip->dst_addr))
		return CLAIM_ALL;
	if (ip->proto == IPPROTO_HOPOPTS) /* MLD queries have this extension header */
		return CLAIM_COPY;
	if (ip->proto != IPPROTO_ICMPV6 || inner->len < sizeof(*ip) + ND_TARGET_OFFSET + GID_LEN)
		return CLAIM_NOTHING;
	if (icmp[0] == ND_SOLICITATION)
		return addresses_have(own, inner->vlan, icmp + ND_TARGET_OFFSET) ? CLAIM_ALL
										 : CLAIM_NOTHING;
	return icmp[0] == ND_ADVERTISEMENT || icmp[0] == MLD_QUERY ? CLAIM_COPY : CLAIM_NOTHING;
}

enum claim claim_frame(const struct addresses *own, const uint8_t mac[6], const uint8_t *frame,
		       size_t len)
{
	struct steering steering;
	struct inner inner;

	switch (steer_frame(frame, len, &steering)) {
	case STEER_QP:
		return memcmp(frame, mac, RTE_ETHER_ADDR_LEN) == 0 ? CLAIM_ALL : CLAIM_NOTHING;
	case STEER_MULTICAST:
		return CLAIM_COPY;
	case STEER_OTHER:
		break;
	}
	if (!inner_find(frame, len, &inner))
		return CLAIM_NOTHING;
	switch (inner.type) {
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		return claim_arp(own, &inner);
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
		return claim_ipv4(own, &inner);
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		return claim_ipv6(own, &inner);
	default:
		return CLAIM_NOTHING;
	}
}
