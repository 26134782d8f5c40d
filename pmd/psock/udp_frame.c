/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares and fills in the headers of UDP frames. */
#include "psock/udp_frame.h"

#include <string.h>

#define UDP_LEN ((uint32_t)sizeof(struct rte_udp_hdr))

static_assert(HEADERS_MAX == sizeof(struct rte_ether_hdr) + sizeof(struct rte_vlan_hdr) +
				     sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr),
	      "the longest headers fit");

static const struct rte_ipv4_hdr *ipv4_of(const uint8_t *frame, const struct udp_frame *headers)
{
	return (const struct rte_ipv4_hdr *)(const void *)(frame + headers->l3_off);
}

static const struct rte_ipv6_hdr *ipv6_of(const uint8_t *frame, const struct udp_frame *headers)
{
	return (const struct rte_ipv6_hdr *)(const void *)(frame + headers->l3_off);
}

static const struct rte_udp_hdr *udp_of(const uint8_t *frame, const struct udp_frame *headers)
{
	return (const struct rte_udp_hdr *)(const void *)(frame + headers->l4_off);
}

bool udp_frame_lengths_match(const uint8_t *frame, const struct udp_frame *headers,
			     uint32_t payload_len)
{
	const uint32_t l4_len = UDP_LEN + payload_len;
	const uint32_t ip_payload_len =
		headers->ipv6 ? rte_be_to_cpu_16(ipv6_of(frame, headers)->payload_len)
			      : rte_be_to_cpu_16(ipv4_of(frame, headers)->total_length) -
					(uint32_t)sizeof(struct rte_ipv4_hdr);

	return ip_payload_len == l4_len &&
	       rte_be_to_cpu_16(udp_of(frame, headers)->dgram_len) == l4_len;
}

void udp_frame_set(uint8_t *frame, const struct udp_frame *headers, uint32_t payload_len,
		   uint16_t id)
{
	const uint16_t l4_len = (uint16_t)(UDP_LEN + payload_len);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(void *)(frame + headers->l4_off);
	void *l3 = frame + headers->l3_off;
	struct rte_ipv4_hdr *ip = l3;

	udp->dgram_len = rte_cpu_to_be_16(l4_len);
	if (headers->ipv6) {
		((struct rte_ipv6_hdr *)l3)->payload_len = udp->dgram_len;
		return;
	}
	ip->total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + l4_len));
	ip->packet_id = rte_cpu_to_be_16(id);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

uint16_t udp_frame_id(const uint8_t *frame, const struct udp_frame *headers)
{
	return headers->ipv6 ? 0 : rte_be_to_cpu_16(ipv4_of(frame, headers)->packet_id);
}

static bool ipv4_same(const struct rte_ipv4_hdr *a, const struct rte_ipv4_hdr *b)
{
	return a->version_ihl == b->version_ihl && a->type_of_service == b->type_of_service &&
	       a->fragment_offset == b->fragment_offset && a->time_to_live == b->time_to_live &&
	       a->next_proto_id == b->next_proto_id && a->src_addr == b->src_addr &&
	       a->dst_addr == b->dst_addr;
}

static bool ipv6_same(const struct rte_ipv6_hdr *a, const struct rte_ipv6_hdr *b)
{
	return a->vtc_flow == b->vtc_flow && a->proto == b->proto &&
	       a->hop_limits == b->hop_limits &&
	       memcmp(&a->src_addr, &b->src_addr, sizeof(a->src_addr)) == 0 &&
	       memcmp(&a->dst_addr, &b->dst_addr, sizeof(a->dst_addr)) == 0;
}

bool udp_frame_same(const uint8_t *a, const uint8_t *b, const struct udp_frame *headers)
{
	return memcmp(a, b, headers->l3_off) == 0 &&
	       (headers->ipv6 ? ipv6_same(ipv6_of(a, headers), ipv6_of(b, headers))
			      : ipv4_same(ipv4_of(a, headers), ipv4_of(b, headers))) &&
	       udp_of(a, headers)->src_port == udp_of(b, headers)->src_port &&
	       udp_of(a, headers)->dst_port == udp_of(b, headers)->dst_port;
}
