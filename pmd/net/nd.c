/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses and builds neighbour solicitations and advertisements. Numbers of sections are those of
 * RFC 4861. */
#include "net/nd.h"

#include <assert.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "netdev/netdev.h"

#define ICMPV6_SOLICITATION  135
#define ICMPV6_ADVERTISEMENT 136
#define OPTION_SOURCE_MAC    1
#define OPTION_TARGET_MAC    2
#define FLAG_SOLICITED	     0x40000000u
#define FLAG_OVERRIDE	     0x20000000u
#define ND_HOP_LIMIT	     255 /* 11.2: a router would have decremented it */
#define OPTION_UNIT	     8
#define ND_GROUP_PREFIX_LEN  13 /* of ff02::1:ff00:0/104 */

struct nd_message {
	uint8_t type;
	uint8_t code;
	rte_be16_t checksum;
	rte_be32_t flags;
	uint8_t target[16];
};
static_assert(sizeof(struct nd_message) == 24, "4.3");

struct nd_mac_option {
	uint8_t type;
	uint8_t units; /* of 8 bytes */
	uint8_t mac[6];
};
static_assert(sizeof(struct nd_mac_option) == OPTION_UNIT, "4.6.1");

struct nd_frame {
	struct rte_ether_hdr eth;
	struct rte_ipv6_hdr ip;
	struct nd_message message;
	struct nd_mac_option option;
} __attribute__((packed, aligned(2)));
static_assert(sizeof(struct nd_frame) == ND_FRAME_LEN, "no holes");

static const uint8_t unspecified[16];

/* Write the group that a host joins for its address, RFC 4291 2.7.1. */
static void nd_group(const uint8_t address[16], uint8_t group[16])
{
	static const uint8_t prefix[ND_GROUP_PREFIX_LEN] = {0xff, 0x02, [11] = 0x01, [12] = 0xff};

	memcpy(group, prefix, sizeof(prefix));
	memcpy(group + sizeof(prefix), address + sizeof(prefix), 16 - sizeof(prefix));
}

/* Return true if a message with these flags may have these addresses (7.1.1, 7.1.2). */
static bool nd_addresses_fit(const struct rte_ipv6_hdr *ip, bool solicitation, rte_be32_t flags)
{
	uint8_t group[16];

	if (!solicitation)
		return !gid_is_multicast((const uint8_t *)&ip->dst_addr) ||
		       !(flags & rte_cpu_to_be_32(FLAG_SOLICITED));
	nd_group((const uint8_t *)&ip->dst_addr, group);
	return memcmp(&ip->src_addr, unspecified, sizeof(unspecified)) != 0 ||
	       memcmp(&ip->dst_addr, group, sizeof(group)) == 0;
}

/* Read the link-layer address from the option of this kind. Return false if the options are
 * malformed. */
static bool nd_parse_options(const uint8_t *options, size_t len, uint8_t kind, struct nd *nd)
{
	nd->has_mac = false;
	while (len > 0) {
		size_t size;

		if (len < OPTION_UNIT || options[1] == 0)
			return false;
		size = (size_t)options[1] * OPTION_UNIT;
		if (size > len)
			return false;
		if (options[0] == kind && size == OPTION_UNIT) {
			memcpy(nd->mac, options + 2, sizeof(nd->mac));
			nd->has_mac = true;
		}
		options += size;
		len -= size;
	}
	return true;
}

bool nd_mac_valid(const uint8_t mac[6])
{
	struct rte_ether_addr addr; /* its members must be at an even address */

	memcpy(&addr, mac, sizeof(addr));
	return rte_is_valid_assigned_ether_addr(&addr);
}

bool nd_parse(const uint8_t *frame, size_t len, struct nd *nd)
{
	struct rte_ether_hdr eth;
	struct rte_ipv6_hdr ip;
	struct nd_message message;
	const size_t l4 = sizeof(eth) + sizeof(ip);
	size_t l4_len;

	if (len < l4 + sizeof(message))
		return false;
	memcpy(&eth, frame, sizeof(eth));
	memcpy(&ip, frame + sizeof(eth), sizeof(ip));
	memcpy(&message, frame + l4, sizeof(message));
	if (eth.ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) ||
	    (rte_be_to_cpu_32(ip.vtc_flow) >> 28) != 6 || ip.proto != IPPROTO_ICMPV6 ||
	    ip.hop_limits != ND_HOP_LIMIT || message.code != 0)
		return false;
	l4_len = rte_be_to_cpu_16(ip.payload_len);
	if (l4_len < sizeof(message) || l4_len > len - l4)
		return false;
	if (message.type != ICMPV6_SOLICITATION && message.type != ICMPV6_ADVERTISEMENT)
		return false;
	if (rte_ipv6_udptcp_cksum_verify(&ip, frame + l4) != 0)
		return false;
	nd->solicitation = message.type == ICMPV6_SOLICITATION;
	nd->overrides = message.flags & rte_cpu_to_be_32(FLAG_OVERRIDE);
	memcpy(nd->src_ip, &ip.src_addr, sizeof(nd->src_ip));
	memcpy(nd->target, message.target, sizeof(nd->target));
	if (gid_is_multicast(nd->target) || !nd_addresses_fit(&ip, nd->solicitation, message.flags))
		return false;
	if (!nd_parse_options(frame + l4 + sizeof(message), l4_len - sizeof(message),
			      nd->solicitation ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC, nd))
		return false;
	if (nd->has_mac && !nd_mac_valid(nd->mac))
		return false;
	/* 7.1.1: a sender without an IP address must not include its link-layer address. */
	return !(nd->solicitation && nd->has_mac &&
		 memcmp(nd->src_ip, unspecified, sizeof(unspecified)) == 0);
}

static size_t nd_build(uint8_t *frame, struct nd_frame *out)
{
	out->eth.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
	out->ip.vtc_flow = rte_cpu_to_be_32(6u << 28);
	out->ip.payload_len = rte_cpu_to_be_16(sizeof(out->message) + sizeof(out->option));
	out->ip.proto = IPPROTO_ICMPV6;
	out->ip.hop_limits = ND_HOP_LIMIT;
	out->option.units = 1;
	memcpy(frame, out, sizeof(*out));
	out->message.checksum =
		rte_ipv6_udptcp_cksum(&out->ip, frame + sizeof(out->eth) + sizeof(out->ip));
	memcpy(frame, out, sizeof(*out));
	return sizeof(*out);
}

size_t nd_build_solicitation(uint8_t *frame, const uint8_t mac[6], const uint8_t ip[16],
			     const uint8_t target[16])
{
	struct nd_frame out = {.message.type = ICMPV6_SOLICITATION,
			       .option.type = OPTION_SOURCE_MAC};
	uint8_t group[16];

	nd_group(target, group);
	address_multicast_mac(group, out.eth.dst_addr.addr_bytes);
	memcpy(&out.eth.src_addr, mac, sizeof(out.eth.src_addr));
	memcpy(&out.ip.src_addr, ip, sizeof(out.ip.src_addr));
	memcpy(&out.ip.dst_addr, group, sizeof(out.ip.dst_addr));
	memcpy(out.message.target, target, sizeof(out.message.target));
	memcpy(out.option.mac, mac, sizeof(out.option.mac));
	return nd_build(frame, &out);
}

size_t nd_build_advertisement(uint8_t *frame, const uint8_t mac[6], const struct nd *solicitation)
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 0x01};
	const bool unicast = memcmp(solicitation->src_ip, unspecified, sizeof(unspecified)) != 0 &&
			     solicitation->has_mac;
	struct nd_frame out = {.message.type = ICMPV6_ADVERTISEMENT,
			       .option.type = OPTION_TARGET_MAC};

	/* 7.2.4: if the sender has no IP address, the answer goes to all nodes, and does not count
	 * as solicited. The same if its link-layer address is unknown, because a unicast answer
	 * needs it. */
	if (unicast) {
		memcpy(&out.eth.dst_addr, solicitation->mac, sizeof(out.eth.dst_addr));
		memcpy(&out.ip.dst_addr, solicitation->src_ip, sizeof(out.ip.dst_addr));
		out.message.flags = rte_cpu_to_be_32(FLAG_SOLICITED | FLAG_OVERRIDE);
	} else {
		address_multicast_mac(all_nodes, out.eth.dst_addr.addr_bytes);
		memcpy(&out.ip.dst_addr, all_nodes, sizeof(out.ip.dst_addr));
		out.message.flags = rte_cpu_to_be_32(FLAG_OVERRIDE);
	}
	memcpy(&out.eth.src_addr, mac, sizeof(out.eth.src_addr));
	memcpy(&out.ip.src_addr, solicitation->target, sizeof(out.ip.src_addr));
	memcpy(out.message.target, solicitation->target, sizeof(out.message.target));
	memcpy(out.option.mac, mac, sizeof(out.option.mac));
	return nd_build(frame, &out);
}
