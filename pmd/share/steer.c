/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses Ethernet, up to two VLAN tags, IPv4 or IPv6, UDP, and the queue pair number of the BTH. */
#include "share/steer.h"

#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/headers.h"
#include "wire/mad.h"

#define TAGS_MAX 2

/* The rest of a frame that was not parsed yet. */
struct rest {
	const uint8_t *at;
	size_t len;
};

/* Take the next `len` bytes. NULL: there are fewer. */
static const void *rest_take(struct rest *rest, size_t len)
{
	const void *at = rest->at;

	if (rest->len < len)
		return NULL;
	rest->at += len;
	rest->len -= len;
	return at;
}

static bool take_ethernet(struct rest *rest, rte_be16_t *type)
{
	const struct rte_ether_hdr *ether = rest_take(rest, sizeof(*ether));

	if (!ether)
		return false;
	*type = ether->ether_type;
	for (int i = 0; i < TAGS_MAX && *type == RTE_BE16(RTE_ETHER_TYPE_VLAN); i++) {
		const struct rte_vlan_hdr *tag = rest_take(rest, sizeof(*tag));

		if (!tag)
			return false;
		*type = tag->eth_proto;
	}
	return true;
}

static bool take_ipv4(struct rest *rest, struct steering *steering)
{
	const struct rte_ipv4_hdr *ip = rest_take(rest, sizeof(*ip));
	size_t options;

	if (!ip || ip->version_ihl < 0x45 || ip->version_ihl > 0x4f ||
	    ip->next_proto_id != IPPROTO_UDP ||
	    (ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK | RTE_IPV4_HDR_MF_FLAG)))
		return false;
	options = (ip->version_ihl & 0xfu) * 4 - sizeof(*ip);
	gid_from_ipv4(&ip->src_addr, steering->sgid);
	gid_from_ipv4(&ip->dst_addr, steering->dgid);
	return rest_take(rest, options) != NULL;
}

static bool take_ipv6(struct rest *rest, struct steering *steering)
{
	const struct rte_ipv6_hdr *ip = rest_take(rest, sizeof(*ip));

	if (!ip || ip->proto != IPPROTO_UDP)
		return false;
	memcpy(steering->sgid, &ip->src_addr, GID_LEN);
	memcpy(steering->dgid, &ip->dst_addr, GID_LEN);
	return true;
}

enum steer steer_frame(const uint8_t *frame, size_t len, struct steering *steering)
{
	struct rest rest = {.at = frame, .len = len};
	const struct rte_udp_hdr *udp;
	const struct bth *bth;
	rte_be16_t type;
	bool is_ip = false;

	if (!take_ethernet(&rest, &type))
		return STEER_OTHER;
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		is_ip = take_ipv4(&rest, steering);
	else if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		is_ip = take_ipv6(&rest, steering);
	udp = is_ip ? rest_take(&rest, sizeof(*udp)) : NULL;
	if (!udp || udp->dst_port != RTE_BE16(WIRE_UDP_PORT))
		return STEER_OTHER;
	bth = rest_take(&rest, sizeof(*bth));
	if (!bth)
		return STEER_OTHER;
	steering->qpn = wire_get24(bth->dest_qpn);
	return steering->qpn == WIRE_QPN_MULTICAST ? STEER_MULTICAST : STEER_QP;
}

/* Most packets have a length that no MAD has, so their headers need not be read. */
bool steer_is_mad(const uint8_t *frame, size_t len)
{
	struct steering steering;

	return len >= STEER_MAD_FRAME_MIN && len <= STEER_MAD_FRAME_MAX &&
	       steer_frame(frame, len, &steering) == STEER_QP && steering.qpn == GSI_QPN;
}
