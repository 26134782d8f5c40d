/* SPDX-License-Identifier: BSD-3-Clause */
/* Flips bits of RoCE packets, as a bad cable does, and marks them, as a congested switch does. */
#include "damage.h"

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "wire/headers.h"

#define ICRC_BYTES 4
#define TC_SHIFT   20 /* of the traffic class in an IPv6 header's first word */

static struct rte_udp_hdr *udp_of(const struct rte_mbuf *mbuf, const struct udp_frame *headers)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct rte_udp_hdr *, headers->l4_off);
}

bool damage_find(const struct rte_mbuf *mbuf, struct udp_frame *headers)
{
	return roce_frame_find(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len, headers);
}

/* Any bit from the BTH to the end of the UDP payload may be flipped, but only in the first buffer:
 * later ones may be the application's memory (port/dma.h), which must not change. */
bool damage_flip(struct rte_mbuf *mbuf, const struct udp_frame *headers,
		 uint32_t (*random)(void *arg, uint32_t n), void *arg)
{
	const uint32_t udp_len = rte_be_to_cpu_16(udp_of(mbuf, headers)->dgram_len);
	const uint32_t end = RTE_MIN(headers->l4_off + udp_len, (uint32_t)mbuf->data_len);
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	uint32_t bit;

	if (udp_len < sizeof(struct rte_udp_hdr) + sizeof(struct bth) + ICRC_BYTES ||
	    end < headers->len + sizeof(struct bth))
		return false;
	/* The ICRC does not cover one byte of the BTH. Draw from the others. */
	bit = random(arg, (end - headers->len - 1) * 8);
	if (bit >= offsetof(struct bth, ecn) * 8)
		bit += 8;
	frame[headers->len + bit / 8] ^= (uint8_t)(1u << bit % 8);
	return true;
}

void damage_mark(struct rte_mbuf *mbuf, const struct udp_frame *headers)
{
	void *l3 = rte_pktmbuf_mtod_offset(mbuf, void *, headers->l3_off);
	struct rte_ipv4_hdr *ip = l3;

	if (headers->ipv6) {
		((struct rte_ipv6_hdr *)l3)->vtc_flow |=
			rte_cpu_to_be_32((uint32_t)ECN_EXPERIENCED << TC_SHIFT);
		return;
	}
	ip->type_of_service |= ECN_EXPERIENCED;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}
