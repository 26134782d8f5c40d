/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of sealing a packet whose receiver checks no ICRC, in a header: where the compiler sees
 * all of a packet's building, its struct packet_out needs no memory. */
#ifndef WIRE_SEAL_H
#define WIRE_SEAL_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "base/guard.h"
#include "wire/build.h"

static __rte_always_inline void seal_ipv4(const struct packet_out *out, uint32_t l4_len)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(out->frame + out->l3_off);
	uint32_t sum;

	ip->total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + l4_len));
	ip->packet_id = rte_cpu_to_be_16(out->ip_id);
	/* RFC 1624: add the two words that change to the sum of those that do not. */
	sum = out->ipv4_sum + ip->total_length + ip->packet_id;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->hdr_checksum = (rte_be16_t)~sum;
}

static __rte_always_inline void seal_ipv6(const struct packet_out *out, uint32_t l4_len)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(out->frame + out->l3_off);

	ip->payload_len = rte_cpu_to_be_16((uint16_t)l4_len);
}

/** Write the lengths of a packet of `len` bytes, which complete the headers. Return the number of
 * pad bytes. Not MT-safe per packet. */
static __rte_always_inline uint32_t seal_lengths(struct packet_out *out, uint32_t len)
{
	const uint32_t pad = -out->payload_len & BTH_PAD_MASK;
	const uint32_t l4_len = len - out->l4_off;
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(out->frame + out->l4_off);
	struct bth *bth = (struct bth *)(udp + 1);

	bth->flags =
		(uint8_t)((bth->flags & ~(BTH_PAD_MASK << BTH_PAD_SHIFT)) | pad << BTH_PAD_SHIFT);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)l4_len);
	if (out->ipv6)
		seal_ipv6(out, l4_len);
	else
		seal_ipv4(out, l4_len);
	return pad;
}

/** Copy a fragment, which may not be mapped. MT-safe. 0 or -EFAULT. */
int seal_copy_piece(uint8_t *to, struct packet_frag frag);

/**
 * Seal an unsealed packet whose payload is in one piece (packet_payload_whole). Not MT-safe per
 * packet.
 *
 * @return
 *   As packet_seal.
 */
static __rte_always_inline int packet_seal_piece(struct packet_out *out)
{
	const uint32_t len = packet_length(out);
	const uint32_t pad = seal_lengths(out, len);
	uint8_t *payload = out->frame + out->hdr_len;
	uint8_t *tail = payload + out->payload_len;
	int rc;

	/* The pad is shorter than the ICRC: two stores cover both. */
	memset(tail, 0, WIRE_ICRC_LEN);
	memset(tail + pad, 0, WIRE_ICRC_LEN);
	if (likely(out->copy_len == sizeof(uint64_t)))
		rc = guard_copy_word(payload, out->frag[0].addr);
	else
		rc = seal_copy_piece(payload, out->frag[0]);
	return unlikely(rc != 0) ? -EFAULT : (int)len;
}

#endif
