/* SPDX-License-Identifier: BSD-3-Clause */
/* The prebuilt Ethernet, IP and UDP headers of a path. */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/build.h"
#include "wire/gid.h"
#include "wire/opcode.h"
#include "wire/vlan.h"

static_assert(offsetof(struct rte_ipv4_hdr, src_addr) == PATH_IPV4_SRC &&
		      offsetof(struct rte_ipv4_hdr, dst_addr) == PATH_IPV4_DST &&
		      offsetof(struct rte_ipv6_hdr, src_addr) == PATH_IPV6_SRC &&
		      offsetof(struct rte_ipv6_hdr, dst_addr) == PATH_IPV6_DST,
	      "where the addresses are");

static size_t build_ether(uint8_t *hdr, const struct path_attr *attr, uint16_t type)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)hdr;
	struct rte_vlan_hdr *vlan = (struct rte_vlan_hdr *)(eth + 1);

	memcpy(&eth->dst_addr, attr->dst_mac, sizeof(attr->dst_mac));
	memcpy(&eth->src_addr, attr->src_mac, sizeof(attr->src_mac));
	if (attr->vlan_tci < 0) {
		eth->ether_type = rte_cpu_to_be_16(type);
		return sizeof(*eth);
	}
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);
	vlan->vlan_tci = rte_cpu_to_be_16((uint16_t)attr->vlan_tci);
	vlan->eth_proto = rte_cpu_to_be_16(type);
	return sizeof(*eth) + sizeof(*vlan);
}

static size_t build_ipv4(struct path *path, const struct path_attr *attr)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(path->hdr + path->l3_off);

	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->type_of_service = attr->tclass;
	/* A17.4.5.2: RoCE packets are not fragmented. */
	ip->fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
	ip->time_to_live = attr->hop_limit;
	ip->next_proto_id = IPPROTO_UDP;
	memcpy(&ip->src_addr, attr->sgid + GID_IPV4_OFFSET, sizeof(ip->src_addr));
	memcpy(&ip->dst_addr, attr->dgid + GID_IPV4_OFFSET, sizeof(ip->dst_addr));
	path->ipv4_sum = rte_raw_cksum(ip, sizeof(*ip));
	return sizeof(*ip);
}

static size_t build_ipv6(struct path *path, const struct path_attr *attr)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(path->hdr + path->l3_off);

	ip->vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)attr->tclass << RTE_IPV6_HDR_TC_SHIFT |
					(attr->flow_label & RTE_IPV6_HDR_FL_MASK));
	ip->proto = IPPROTO_UDP;
	ip->hop_limits = attr->hop_limit;
	memcpy(&ip->src_addr, attr->sgid, sizeof(ip->src_addr));
	memcpy(&ip->dst_addr, attr->dgid, sizeof(ip->dst_addr));
	return sizeof(*ip);
}

/* Set these bits of the traffic class in prebuilt headers. Return the sum of the IPv4 header, as
 * struct path has it. */
static uint32_t set_tclass(uint8_t *l3, bool ipv6, uint8_t mask, uint8_t bits)
{
	struct rte_ipv4_hdr *ipv4 = (struct rte_ipv4_hdr *)l3;
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)l3;

	if (ipv6) {
		ip->vtc_flow &= ~rte_cpu_to_be_32((uint32_t)mask << RTE_IPV6_HDR_TC_SHIFT);
		ip->vtc_flow |= rte_cpu_to_be_32((uint32_t)bits << RTE_IPV6_HDR_TC_SHIFT);
		return 0;
	}
	ipv4->type_of_service = (uint8_t)((ipv4->type_of_service & ~mask) | bits);
	return rte_raw_cksum(ipv4, sizeof(*ipv4));
}

void path_set_ecn(struct path *path, enum ecn ecn)
{
	path->ipv4_sum = set_tclass(path->hdr + path->l3_off, path->ipv6, ECN_MASK, ecn);
}

void packet_notify(struct packet_out *out, const struct path *path, int dscp, uint16_t pkey,
		   uint32_t dest_qpn)
{
	const uint8_t mask = dscp < 0 ? ECN_MASK : UINT8_MAX;
	const uint8_t tclass = dscp < 0 ? ECN_NOT_CAPABLE : (uint8_t)(dscp << DSCP_SHIFT);
	const struct bth_fields bth = {
		.opcode = OPCODE_CNP, .becn = true, .pkey = pkey, .dest_qpn = dest_qpn};

	packet_begin(out, path, &bth);
	out->ipv4_sum = set_tclass(out->frame + out->l3_off, out->ipv6, mask, tclass);
	memset(packet_extend(out, CNP_RESERVED_LEN), 0, CNP_RESERVED_LEN);
}

int path_init(struct path *path, const struct path_attr *attr)
{
	const bool ipv4 = gid_is_ipv4(attr->sgid);
	struct rte_udp_hdr *udp;

	if (ipv4 != gid_is_ipv4(attr->dgid))
		return -EINVAL;
	memset(path, 0, sizeof(*path));
	path->ipv6 = !ipv4;
	path->l3_off = (uint8_t)build_ether(path->hdr, attr,
					    ipv4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	path->l4_off =
		(uint8_t)(path->l3_off + (ipv4 ? build_ipv4(path, attr) : build_ipv6(path, attr)));
	udp = (struct rte_udp_hdr *)(path->hdr + path->l4_off);
	udp->src_port = rte_cpu_to_be_16(attr->udp_sport);
	udp->dst_port = rte_cpu_to_be_16(WIRE_UDP_PORT);
	path->len = (uint8_t)(path->l4_off + sizeof(*udp));
	path->vlan_id = vlan_of_tci(attr->vlan_tci);
	return 0;
}
