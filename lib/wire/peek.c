/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the destination of a frame before anything of it is checked. */
#include <netinet/in.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/headers.h"
#include "wire/packet.h"

/* Return the length of the headers before IP, and set the EtherType; 0: the frame is too short. */
static size_t peek_ether(const uint8_t *frame, size_t len, rte_be16_t *type)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;
	const struct rte_vlan_hdr *vlan = (const struct rte_vlan_hdr *)(eth + 1);

	if (len < sizeof(*eth))
		return 0;
	*type = eth->ether_type;
	if (*type != rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))
		return sizeof(*eth);
	if (len < sizeof(*eth) + sizeof(*vlan))
		return 0;
	*type = vlan->eth_proto;
	return sizeof(*eth) + sizeof(*vlan);
}

/* Return true if UDP follows a header without options, of a packet that is no fragment:
 * packet_parse accepts no others. */
static bool peek_ipv4(const struct rte_ipv4_hdr *ip)
{
	const rte_be16_t fragment =
		rte_cpu_to_be_16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK);

	return ip->version_ihl == RTE_IPV4_VHL_DEF && ip->next_proto_id == IPPROTO_UDP &&
	       !(ip->fragment_offset & fragment);
}

static bool peek_ipv6(const struct rte_ipv6_hdr *ip)
{
	return rte_be_to_cpu_32(ip->vtc_flow) >> 28 == 6 && ip->proto == IPPROTO_UDP;
}

/* Return the length of the IP header if UDP follows it, else 0. */
static size_t peek_ip(const uint8_t *ip, size_t room, rte_be16_t type)
{
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) && room >= sizeof(struct rte_ipv4_hdr) &&
	    peek_ipv4((const struct rte_ipv4_hdr *)ip))
		return sizeof(struct rte_ipv4_hdr);
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) && room >= sizeof(struct rte_ipv6_hdr) &&
	    peek_ipv6((const struct rte_ipv6_hdr *)ip))
		return sizeof(struct rte_ipv6_hdr);
	return 0;
}

bool packet_peek_qpn(const uint8_t *frame, size_t len, uint32_t *qpn)
{
	const struct rte_udp_hdr *udp;
	const struct bth *bth;
	rte_be16_t type;
	size_t off = peek_ether(frame, len, &type);
	size_t ip_len;

	if (off == 0)
		return false;
	ip_len = peek_ip(frame + off, len - off, type);
	off += ip_len;
	if (ip_len == 0 || len < off + sizeof(*udp) + sizeof(*bth))
		return false;
	udp = (const struct rte_udp_hdr *)(frame + off);
	bth = (const struct bth *)(udp + 1);
	if (udp->dst_port != rte_cpu_to_be_16(WIRE_UDP_PORT))
		return false;
	*qpn = wire_get24(bth->dest_qpn);
	return true;
}
