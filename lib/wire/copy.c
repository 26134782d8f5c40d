/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying of a received frame from memory that others may write: each byte is read once. */
#include <string.h>

#include <rte_branch_prediction.h>

#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define ETH_LEN	 sizeof(struct rte_ether_hdr)
#define HEAD_LEN (ETH_LEN + ICRC_HEADERS_MAX)
#define LONG_LEN 512 /* below this, copying first and checking later is as fast */

/* Return the length of the IP header that the frame's Ethernet type announces; 0 if it announces
 * none. */
static size_t expected_l3_len(const uint8_t *frame)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;

	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return sizeof(struct rte_ipv4_hdr);
	return eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)
		       ? sizeof(struct rte_ipv6_hdr)
		       : 0;
}

/* Return true if an untagged frame with an IP header of this length is a RoCE packet that fills the
 * frame to its end. */
static bool is_roce(const uint8_t *frame, size_t len, size_t l3_len)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;
	const struct rte_ipv4_hdr *ipv4 = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_ipv6_hdr *ipv6 = (const struct rte_ipv6_hdr *)(eth + 1);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(frame + sizeof(*eth) + l3_len);
	size_t ip_len;

	if (l3_len == sizeof(*ipv4) ? !ipv4_has_udp(ipv4) : !ipv6_has_udp(ipv6))
		return false;
	ip_len = l3_len == sizeof(*ipv4) ? rte_be_to_cpu_16(ipv4->total_length)
					 : l3_len + rte_be_to_cpu_16(ipv6->payload_len);
	return ip_len == len - sizeof(*eth) &&
	       rte_be_to_cpu_16(udp->dgram_len) == ip_len - l3_len &&
	       udp->dst_port == rte_cpu_to_be_16(WIRE_UDP_PORT);
}

bool packet_copy(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t l3_len;
	uint32_t state;

	if (len < LONG_LEN) {
		memcpy(to, from, len);
		return false;
	}
	memcpy(to, from, ETH_LEN);
	l3_len = expected_l3_len(to);
	if (unlikely(l3_len == 0)) {
		memcpy(to + ETH_LEN, from + ETH_LEN, len - ETH_LEN);
		return false;
	}
	/*
	 * Nothing behind the BTH is masked, so the CRC need not know where headers end and payload
	 * begins. Reading these bytes again as vectors, just after they were written in smaller
	 * pieces, would stall until all earlier stores are done.
	 */
	state = icrc_copy_headers(to + ETH_LEN, from + ETH_LEN, l3_len, ICRC_HEADERS_MAX);
	if (unlikely(!is_roce(to, len, l3_len))) {
		memcpy(to + HEAD_LEN, from + HEAD_LEN, len - HEAD_LEN);
		return false;
	}
	state = icrc_copy(state, to + HEAD_LEN, from + HEAD_LEN, len - HEAD_LEN - WIRE_ICRC_LEN);
	memcpy(to + len - WIRE_ICRC_LEN, from + len - WIRE_ICRC_LEN, WIRE_ICRC_LEN);
	return icrc_load(to + len - WIRE_ICRC_LEN) == state;
}
