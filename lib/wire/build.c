/* SPDX-License-Identifier: BSD-3-Clause */
/* Building a frame: prebuilt headers, BTH, payload fragments, and the pass that seals it. */
#include "wire/build.h"

#include <errno.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include "base/guard.h"
#include "wire/icrc.h"

static_assert(PACKET_HDR_MAX >= sizeof(((struct path *)0)->hdr) + sizeof(struct bth) + 4 +
					sizeof(struct atomiceth),
	      "the longest headers, XRC's atomics over tagged IPv6, fit");
static_assert(PACKET_HDR_MAX <= ICRC_HEADERS_MAX, "icrc_headers takes any headers");

void packet_begin(struct packet_out *out, const struct path *path, const struct bth_fields *fields)
{
	struct bth *bth;

	/* All of hdr, not path->len of it: a copy of constant length. What is too much is
	 * overwritten. */
	memcpy(out->frame, path->hdr, sizeof(path->hdr));
	out->hdr_len = path->len;
	out->ip_id = 0;
	out->payload_len = 0;
	out->copy_len = 0;
	out->l3_off = path->l3_off;
	out->l4_off = path->l4_off;
	out->ipv6 = path->ipv6;
	out->udp_sum_by_port = false;
	out->icrc_repeats = false;
	out->frags = 0;
	out->ipv4_sum = path->ipv4_sum;
	bth = packet_extend(out, sizeof(*bth));
	bth->opcode = fields->opcode;
	bth->flags = (uint8_t)((fields->solicited ? BTH_SOLICITED : 0) |
			       (fields->migrated ? BTH_MIGRATED : 0));
	bth->pkey = rte_cpu_to_be_16(fields->pkey);
	bth->ecn = fields->becn ? BTH_BECN : 0;
	wire_put24(bth->dest_qpn, fields->dest_qpn);
	bth->ack_req = fields->ack_req ? BTH_ACK_REQ : 0;
	wire_put24(bth->psn, fields->psn.v);
}

int packet_payload(struct packet_out *out, enum frag_kind kind, const void *addr, uint32_t len)
{
	if (len == 0)
		return 0;
	if (len > WIRE_MTU_MAX - out->payload_len)
		return -EMSGSIZE;
	if (out->frags == PACKET_FRAGS_MAX)
		return -ENOSPC;
	out->frag[out->frags++] = (struct packet_frag){.addr = addr, .len = len, .kind = kind};
	out->payload_len += len;
	if (kind == FRAG_COPY)
		out->copy_len += len;
	return 0;
}

static void seal_ipv4(const struct packet_out *out, uint32_t l4_len)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(out->frame + out->l3_off);
	uint32_t sum;

	ip->total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + l4_len));
	ip->packet_id = rte_cpu_to_be_16(out->ip_id);
	/* RFC 1624: the two words that change are added to the sum of those that do not. */
	sum = out->ipv4_sum + ip->total_length + ip->packet_id;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->hdr_checksum = (rte_be16_t)~sum;
}

static void seal_ipv6(const struct packet_out *out, uint32_t l4_len)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(out->frame + out->l3_off);

	ip->payload_len = rte_cpu_to_be_16((uint16_t)l4_len);
}

static void seal_udp_checksum(const struct packet_out *out)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)(out->frame + out->l3_off);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(out->frame + out->l4_off);

	udp->dgram_cksum = out->udp_sum_by_port ? rte_ipv6_phdr_cksum(ip, 0)
						: rte_ipv6_udptcp_cksum(ip, udp);
}

/* What the guarded part of sealing works on. */
struct seal {
	const struct packet_out *out;
	uint32_t state; /* of the CRC */
};

/* Put the fragments behind the headers, and advance the CRC over them. */
static void seal_payload(void *arg)
{
	struct seal *seal = arg;
	const struct packet_out *out = seal->out;
	uint8_t *at = out->frame + out->hdr_len;
	const struct packet_frag *frag;
	uint32_t state = seal->state;

	for (frag = out->frag; frag < out->frag + out->frags; frag++) {
		if (frag->kind == FRAG_ZERO) {
			memset(at, 0, frag->len);
			state = icrc_zeros(state, frag->len);
		} else {
			state = icrc_copy(state, at, frag->addr, frag->len);
		}
		at += frag->len;
	}
	seal->state = state;
}

int packet_seal(struct packet_out *out)
{
	const uint32_t pad = -out->payload_len & BTH_PAD_MASK;
	const uint32_t covered = out->hdr_len + out->payload_len + pad;
	const uint32_t l4_len = covered + WIRE_ICRC_LEN - out->l4_off;
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(out->frame + out->l4_off);
	struct bth *bth = (struct bth *)(udp + 1);
	uint8_t *tail = out->frame + covered - pad;
	struct seal seal = {.out = out};

	bth->flags =
		(uint8_t)((bth->flags & ~(BTH_PAD_MASK << BTH_PAD_SHIFT)) | pad << BTH_PAD_SHIFT);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)l4_len);
	if (out->ipv6)
		seal_ipv6(out, l4_len);
	else
		seal_ipv4(out, l4_len);
	seal.state = icrc_headers(out->frame + out->l3_off, out->l4_off - out->l3_off,
				  out->hdr_len - out->l3_off);
	if (out->icrc_repeats)
		seal.state = icrc_update(seal.state, (const uint8_t *)bth,
					 (uint32_t)(out->frame + out->hdr_len - (uint8_t *)bth));
	if (out->copy_len == 0)
		seal_payload(&seal);
	else if (guard_run(seal_payload, &seal) != 0)
		return -EFAULT;
	memset(tail, 0, pad);
	seal.state = icrc_update(seal.state, tail, pad);
	icrc_store(seal.state, tail + pad);
	/* Last: it covers the ICRC, which leaves it out. */
	if (out->ipv6)
		seal_udp_checksum(out);
	return (int)(covered + WIRE_ICRC_LEN);
}
