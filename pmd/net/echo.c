/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks echo requests and builds their replies. Fragments get no reply. */
#include "net/echo.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "net/icmp.h"
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
