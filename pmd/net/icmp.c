/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks what routers tell about packets of ours. */
#include "net/icmp.h"

#include <assert.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/headers.h"

/* RFC 792. DPDK's names for these numbers changed with its release 24.03. */
#define ICMP_ECHO_REQUEST   8
#define ICMP_ECHO_REPLY	    0
#define ICMPV6_ECHO_REQUEST 128
#define ICMPV6_ECHO_REPLY   129

/* Write the Ethernet header of a reply, from us to the sender of the request. */
static void echo_eth(const uint8_t mac[6], const uint8_t *frame, uint8_t *reply)
{
	struct rte_ether_hdr eth;

	memcpy(&eth, frame, sizeof(eth));
	eth.dst_addr = eth.src_addr;
	memcpy(&eth.src_addr, mac, sizeof(eth.src_addr));
	memcpy(reply, &eth, sizeof(eth));
}

static size_t echo_reply_ipv4(const struct addresses *own, int32_t vlan, const uint8_t mac[6],
			      const uint8_t *frame, size_t len, uint8_t *reply)
{
	const size_t l3 = sizeof(struct rte_ether_hdr);
	const size_t l4 = l3 + sizeof(struct rte_ipv4_hdr);
	struct rte_ipv4_hdr ip;
	const size_t l4_len = icmp_check_ipv4(own, vlan, frame + l3, len - l3, &ip);
	struct rte_icmp_hdr icmp;

	if (l4_len == 0)
		return 0;
	memcpy(&icmp, frame + l4, sizeof(icmp));
	if (icmp.icmp_type != ICMP_ECHO_REQUEST || icmp.icmp_code != 0)
		return 0;
	memcpy(reply, frame, l4 + l4_len);
	echo_eth(mac, frame, reply);
	RTE_SWAP(ip.src_addr, ip.dst_addr);
	ip.time_to_live = WIRE_HOP_LIMIT;
	ip.hdr_checksum = 0;
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(reply + l3, &ip, sizeof(ip));
	icmp.icmp_type = ICMP_ECHO_REPLY;
	icmp.icmp_cksum = 0;
	memcpy(reply + l4, &icmp, sizeof(icmp));
	icmp.icmp_cksum = (rte_be16_t)~rte_raw_cksum(reply + l4, l4_len);
	memcpy(reply + l4, &icmp, sizeof(icmp));
	return l4 + l4_len;
}

static size_t echo_reply_ipv6(const struct addresses *own, int32_t vlan, const uint8_t mac[6],
			      const uint8_t *frame, size_t len, uint8_t *reply)
{
	const size_t l3 = sizeof(struct rte_ether_hdr);
	const size_t l4 = l3 + sizeof(struct rte_ipv6_hdr);
	struct rte_ipv6_hdr ip;
	const size_t l4_len = icmp_check_ipv6(own, vlan, frame + l3, len - l3, &ip);
	struct rte_icmp_hdr icmp; /* ICMPv6's echo has the same layout */
	uint8_t to[16];

	if (l4_len == 0 || gid_is_multicast((const uint8_t *)&ip.src_addr))
		return 0;
	memcpy(&icmp, frame + l4, sizeof(icmp));
	if (icmp.icmp_type != ICMPV6_ECHO_REQUEST || icmp.icmp_code != 0)
		return 0;
	memcpy(reply, frame, l4 + l4_len);
	echo_eth(mac, frame, reply);
	memcpy(to, &ip.src_addr, sizeof(to));
	memcpy(&ip.src_addr, &ip.dst_addr, sizeof(ip.src_addr));
	memcpy(&ip.dst_addr, to, sizeof(ip.dst_addr));
	ip.hop_limits = WIRE_HOP_LIMIT;
	memcpy(reply + l3, &ip, sizeof(ip));
	icmp.icmp_type = ICMPV6_ECHO_REPLY;
	icmp.icmp_cksum = 0;
	memcpy(reply + l4, &icmp, sizeof(icmp));
	icmp.icmp_cksum = rte_ipv6_udptcp_cksum(&ip, reply + l4);
	memcpy(reply + l4, &icmp, sizeof(icmp));
	return l4 + l4_len;
}

size_t echo_reply(const struct addresses *own, int32_t vlan, const uint8_t mac[6],
		  const uint8_t *frame, size_t len, uint8_t *reply, size_t room)
{
	struct rte_ether_hdr eth;

	if (len < sizeof(eth) || len > room)
		return 0;
	memcpy(&eth, frame, sizeof(eth));
	if (memcmp(&eth.dst_addr, mac, sizeof(eth.dst_addr)) != 0)
		return 0;
	if (eth.ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return echo_reply_ipv4(own, vlan, mac, frame, len, reply);
	if (eth.ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6))
		return echo_reply_ipv6(own, vlan, mac, frame, len, reply);
	return 0;
}

/* RFC 792, RFC 1191, RFC 4443 and RFC 4861. DPDK's names for some of these changed with its release
 * 24.03. */
#define TYPE_UNREACHABLE 3
#define CODE_TOO_LONG	 4
#define TYPE_REDIRECT	 5
#define TYPE6_TOO_LONG	 2
#define TYPE6_REDIRECT	 137
#define HOP_LIMIT_LINK	 255 /* RFC 4861, 8.1: a router would have decremented it */

/* The first eight bytes are alike in all of these messages. What `word` is depends on the type. */
struct message {
	uint8_t type;
	uint8_t code;
	rte_be16_t checksum;
	uint8_t word[4];
};

static_assert(sizeof(struct message) == ICMP_MIN, "the shortest message");

/* RFC 4861, 4.5: behind the message. */
struct redirect6 {
	uint8_t target[GID_LEN];
	uint8_t to[GID_LEN];
};

size_t icmp_check_ipv4(const struct addresses *own, int32_t vlan, const uint8_t *l3, size_t len,
		       struct rte_ipv4_hdr *ip)
{
	uint8_t gid[GID_LEN];
	size_t total;

	if (len < sizeof(*ip) + ICMP_MIN)
		return 0;
	memcpy(ip, l3, sizeof(*ip));
	total = rte_be_to_cpu_16(ip->total_length);
	gid_from_ipv4(&ip->dst_addr, gid);
	/* Packets with IP options are rare, and not taken. */
	if (ip->version_ihl != RTE_IPV4_VHL_DEF || ip->next_proto_id != IPPROTO_ICMP ||
	    (ip->fragment_offset &
	     rte_cpu_to_be_16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)) ||
	    total < sizeof(*ip) + ICMP_MIN || total > len ||
	    rte_raw_cksum(l3, sizeof(*ip)) != 0xffff ||
	    rte_raw_cksum(l3 + sizeof(*ip), total - sizeof(*ip)) != 0xffff ||
	    !addresses_have(own, vlan, gid))
		return 0;
	return total - sizeof(*ip);
}

size_t icmp_check_ipv6(const struct addresses *own, int32_t vlan, const uint8_t *l3, size_t len,
		       struct rte_ipv6_hdr *ip)
{
	size_t l4_len;

	if (len < sizeof(*ip) + ICMP_MIN)
		return 0;
	memcpy(ip, l3, sizeof(*ip));
	l4_len = rte_be_to_cpu_16(ip->payload_len);
	if ((rte_be_to_cpu_32(ip->vtc_flow) >> 28) != 6 || ip->proto != IPPROTO_ICMPV6 ||
	    l4_len < ICMP_MIN || l4_len > len - sizeof(*ip) ||
	    !addresses_have(own, vlan, (const uint8_t *)&ip->dst_addr) ||
	    rte_ipv6_udptcp_cksum_verify(ip, l3 + sizeof(*ip)) != 0)
		return 0;
	return l4_len;
}

static bool is_roce(const uint8_t *l4)
{
	struct rte_udp_hdr udp;

	memcpy(&udp, l4, sizeof(udp));
	return udp.dst_port == rte_cpu_to_be_16(WIRE_UDP_PORT);
}

/* Read the beginning of the packet that a message is about. Return true if it is ours. */
static bool is_our_ipv4(const struct addresses *own, int32_t vlan, const uint8_t *l3, size_t len,
			uint8_t to[GID_LEN])
{
	struct rte_ipv4_hdr ip;
	uint8_t from[GID_LEN];

	if (len < sizeof(ip) + sizeof(struct rte_udp_hdr))
		return false;
	memcpy(&ip, l3, sizeof(ip));
	gid_from_ipv4(&ip.src_addr, from);
	gid_from_ipv4(&ip.dst_addr, to);
	return ip.version_ihl == RTE_IPV4_VHL_DEF && ip.next_proto_id == IPPROTO_UDP &&
	       addresses_have(own, vlan, from) && !gid_is_multicast(to) && is_roce(l3 + sizeof(ip));
}

static bool is_our_ipv6(const struct addresses *own, int32_t vlan, const uint8_t *l3, size_t len,
			uint8_t to[GID_LEN])
{
	struct rte_ipv6_hdr ip;

	if (len < sizeof(ip) + sizeof(struct rte_udp_hdr))
		return false;
	memcpy(&ip, l3, sizeof(ip));
	memcpy(to, &ip.dst_addr, GID_LEN);
	return (rte_be_to_cpu_32(ip.vtc_flow) >> 28) == 6 && ip.proto == IPPROTO_UDP &&
	       addresses_have(own, vlan, (const uint8_t *)&ip.src_addr) && !gid_is_multicast(to) &&
	       is_roce(l3 + sizeof(ip));
}

static bool parse_ipv4(const struct addresses *own, int32_t vlan, const uint8_t *l3, size_t len,
		       struct icmp_notice *notice)
{
	struct rte_ipv4_hdr ip;
	const size_t l4_len = icmp_check_ipv4(own, vlan, l3, len, &ip);
	const uint8_t *l4 = l3 + sizeof(ip);
	struct message message;
	rte_be16_t mtu;

	if (l4_len == 0)
		return false;
	memcpy(&message, l4, sizeof(message));
	if (!is_our_ipv4(own, vlan, l4 + sizeof(message), l4_len - sizeof(message), notice->to))
		return false;
	gid_from_ipv4(&ip.src_addr, notice->from);
	if (message.type == TYPE_REDIRECT) {
		notice->kind = ICMP_REDIRECT;
		gid_from_ipv4(message.word, notice->gateway);
		return true;
	}
	notice->kind = ICMP_TOO_LONG;
	memcpy(&mtu, message.word + 2, sizeof(mtu));
	notice->mtu_bytes = rte_be_to_cpu_16(mtu);
	return message.type == TYPE_UNREACHABLE && message.code == CODE_TOO_LONG;
}

static bool parse_ipv6(const struct addresses *own, int32_t vlan, const uint8_t *l3, size_t len,
		       struct icmp_notice *notice)
{
	struct rte_ipv6_hdr ip;
	size_t left = icmp_check_ipv6(own, vlan, l3, len, &ip);
	const uint8_t *rest = l3 + sizeof(ip) + sizeof(struct message);
	struct redirect6 redirect;
	struct message message;
	rte_be32_t mtu;

	if (left == 0)
		return false;
	memcpy(&message, l3 + sizeof(ip), sizeof(message));
	if (message.code != 0)
		return false;
	memcpy(notice->from, &ip.src_addr, sizeof(notice->from));
	left -= sizeof(message);
	if (message.type == TYPE6_TOO_LONG) {
		notice->kind = ICMP_TOO_LONG;
		memcpy(&mtu, message.word, sizeof(mtu));
		notice->mtu_bytes = rte_be_to_cpu_32(mtu);
		return is_our_ipv6(own, vlan, rest, left, notice->to);
	}
	if (message.type != TYPE6_REDIRECT || left < sizeof(redirect) ||
	    ip.hop_limits != HOP_LIMIT_LINK || !gid_is_link_local(notice->from))
		return false;
	memcpy(&redirect, rest, sizeof(redirect));
	notice->kind = ICMP_REDIRECT;
	memcpy(notice->to, redirect.to, sizeof(notice->to));
	memcpy(notice->gateway, redirect.target, sizeof(notice->gateway));
	return !gid_is_multicast(redirect.to) &&
	       (gid_is_link_local(redirect.target) ||
		memcmp(redirect.target, redirect.to, GID_LEN) == 0);
}

bool icmp_parse(const struct addresses *own, int32_t vlan, const uint8_t *frame, size_t len,
		struct icmp_notice *notice)
{
	struct rte_ether_hdr eth;

	if (len < sizeof(eth))
		return false;
	memset(notice, 0, sizeof(*notice));
	memcpy(&eth, frame, sizeof(eth));
	memcpy(notice->mac, &eth.src_addr, sizeof(notice->mac));
	if (eth.ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return parse_ipv4(own, vlan, frame + sizeof(eth), len - sizeof(eth), notice);
	if (eth.ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6))
		return parse_ipv6(own, vlan, frame + sizeof(eth), len - sizeof(eth), notice);
	return false;
}
