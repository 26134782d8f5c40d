/* SPDX-License-Identifier: BSD-3-Clause */
/* A received frame out of memory that others may write, read once. */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/headers.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define HEAD_LEN (sizeof(struct rte_ether_hdr) + ICRC_HEADERS_MAX)
#define LONG_LEN 512 /* what is shorter is copied, and then checked, as soon */

/* Where the IP header of an untagged RoCE packet is that fills the frame to its end: its length, or
 * 0. */
static size_t roce_l3_len(const uint8_t *frame, size_t len)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;
	const struct rte_ipv4_hdr *ipv4 = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_ipv6_hdr *ipv6 = (const struct rte_ipv6_hdr *)(eth + 1);
	const struct rte_udp_hdr *udp;
	size_t ip_len, l3_len;

	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)) {
		l3_len = sizeof(*ipv4);
		ip_len = rte_be_to_cpu_16(ipv4->total_length);
		if (ipv4->version_ihl != RTE_IPV4_VHL_DEF || ipv4->next_proto_id != IPPROTO_UDP)
			return 0;
	} else if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)) {
		l3_len = sizeof(*ipv6);
		ip_len = l3_len + rte_be_to_cpu_16(ipv6->payload_len);
		if (ipv6->proto != IPPROTO_UDP)
			return 0;
	} else {
		return 0;
	}
	udp = (const struct rte_udp_hdr *)(frame + sizeof(*eth) + l3_len);
	if (ip_len != len - sizeof(*eth) || rte_be_to_cpu_16(udp->dgram_len) != ip_len - l3_len ||
	    udp->dst_port != rte_cpu_to_be_16(WIRE_UDP_PORT))
		return 0;
	return l3_len;
}

bool packet_copy(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t l3_len;
	uint32_t state;

	if (len < LONG_LEN) {
		memcpy(to, from, len);
		return false;
	}
	memcpy(to, from, HEAD_LEN);
	l3_len = roce_l3_len(to, len);
	if (l3_len == 0) {
		memcpy(to + HEAD_LEN, from + HEAD_LEN, len - HEAD_LEN);
		return false;
	}
	/* Behind the BTH nothing is masked: whether headers or payload, it is the same to the CRC.
	 */
	state = icrc_headers(to + sizeof(struct rte_ether_hdr), l3_len, ICRC_HEADERS_MAX);
	state = icrc_copy(state, to + HEAD_LEN, from + HEAD_LEN, len - HEAD_LEN - WIRE_ICRC_LEN);
	memcpy(to + len - WIRE_ICRC_LEN, from + len - WIRE_ICRC_LEN, WIRE_ICRC_LEN);
	return icrc_load(to + len - WIRE_ICRC_LEN) == state;
}
