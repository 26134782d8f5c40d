/* SPDX-License-Identifier: BSD-3-Clause */
/* Sealing of a frame: write payload, lengths, checksums and ICRC in one pass. */
#include "wire/build.h"

#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "base/copy.h"
#include "base/tuning.h"
#include "wire/icrc.h"
#include "wire/seal.h"

static_assert(PACKET_HDR_MAX >= sizeof(((struct path *)0)->hdr) + sizeof(struct bth) + 4 +
					sizeof(struct atomiceth),
	      "the longest headers, XRC's atomics over tagged IPv6, fit");
static_assert(PACKET_HDR_MAX <= ICRC_HEADERS_MAX, "icrc_headers takes any headers");

static void seal_udp_checksum(const struct packet_out *out)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)(out->frame + out->l3_off);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(out->frame + out->l4_off);

	udp->dgram_cksum =
		out->udp_sum_by_port ? rte_ipv6_phdr_cksum(ip, 0) : rte_ipv6_udptcp_cksum(ip, udp);
}

/* Arguments of the guarded part of sealing. */
struct seal {
	struct packet_out *out;
	uint32_t state; /* of the CRC */
};

static uint32_t copy_and_crc(const struct packet_out *out, uint32_t state, uint8_t *to,
			     const uint8_t *from, uint32_t len)
{
	if (likely(tuning.fused_copy))
		return out->past_caches ? icrc_copy_past_caches(state, to, from, len)
					: icrc_copy(state, to, from, len);
	memcpy(to, from, len);
	return icrc_update(state, to, len);
}

/* Copy the fragments behind the headers, and advance the CRC over them. */
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
			state = copy_and_crc(out, state, at, frag->addr, frag->len);
		}
		at += frag->len;
	}
	seal->state = state;
}

/* Copy the fragments behind the headers, without a CRC. */
static void gather_payload(void *arg)
{
	const struct packet_out *out = arg;
	uint8_t *at = out->frame + out->hdr_len;
	const struct packet_frag *frag;

	for (frag = out->frag; frag < out->frag + out->frags; frag++) {
		if (frag->kind == FRAG_ZERO)
			memset(at, 0, frag->len);
		else if (unlikely(out->past_caches))
			copy_past_caches(at, frag->addr, frag->len);
		else
			copy_ahead(at, frag->addr, frag->len, 0);
		at += frag->len;
	}
}

/* Copy the fragments behind the headers, some of which may not be mapped. */
static int gather_guarded(struct packet_out *out)
{
	if (out->frags == 1 && out->copy_len == sizeof(uint64_t))
		return guard_copy_word(out->frame + out->hdr_len, out->frag[0].addr);
	if (out->guarded)
		return guard_run(gather_payload, out);
	gather_payload(out);
	return 0;
}

/* Seal a packet whose payload and pad are so short that the CRC takes headers and payload in one
 * piece. */
static int seal_short(struct seal *seal, uint8_t *tail, uint32_t pad)
{
	struct packet_out *out = seal->out;

	if (unlikely(gather_guarded(out) != 0))
		return -EFAULT;
	memset(tail, 0, BTH_PAD_MASK); /* the ICRC follows here */
	seal->state = icrc_headers(out->frame + out->l3_off, out->l4_off - out->l3_off,
				   (size_t)(tail + pad - (out->frame + out->l3_off)));
	return 0;
}

static int seal_long(struct seal *seal, const struct bth *bth, uint8_t *tail, uint32_t pad)
{
	const struct packet_out *out = seal->out;

	seal->state = icrc_headers(out->frame + out->l3_off, out->l4_off - out->l3_off,
				   out->hdr_len - out->l3_off);
	if (out->icrc_repeats)
		seal->state =
			icrc_update(seal->state, (const uint8_t *)bth,
				    (uint32_t)(out->frame + out->hdr_len - (const uint8_t *)bth));
	if (!out->guarded)
		seal_payload(seal);
	else if (guard_run(seal_payload, seal) != 0)
		return -EFAULT;
	if (pad > 0) {
		memset(tail, 0, pad);
		seal->state = icrc_update(seal->state, tail, pad);
	}
	return 0;
}

/* Write the ICRC; the last step, because the UDP checksum covers the ICRC, but not the reverse. */
static void seal_icrc(const struct seal *seal, uint8_t *at)
{
	icrc_store(seal->state, at);
	if (seal->out->ipv6)
		seal_udp_checksum(seal->out);
}

/* Finish an unsealed packet: the receiver checks neither ICRC nor UDP checksum, so write zeros. */
static int seal_nothing(struct packet_out *out)
{
	const uint32_t len = packet_length(out);
	const uint32_t pad = seal_lengths(out, len);
	uint8_t *tail = out->frame + out->hdr_len + out->payload_len;

	/* The pad is shorter than the ICRC: two stores cover both. */
	memset(tail, 0, WIRE_ICRC_LEN);
	memset(tail + pad, 0, WIRE_ICRC_LEN);
	return unlikely(gather_guarded(out) != 0) ? -EFAULT : (int)len;
}

static __rte_noinline int seal_with_icrc(struct packet_out *out)
{
	const uint32_t len = packet_length(out);
	const uint32_t pad = seal_lengths(out, len);
	uint8_t *tail = out->frame + out->hdr_len + out->payload_len;
	const struct bth *bth =
		(const struct bth *)(out->frame + out->l4_off + sizeof(struct rte_udp_hdr));
	struct seal seal = {.out = out};
	int rc;

	if ((uint32_t)(tail + pad - out->frame) - out->l3_off <= ICRC_HEADERS_MAX &&
	    !out->icrc_repeats && tuning.short_icrc)
		rc = seal_short(&seal, tail, pad);
	else
		rc = seal_long(&seal, bth, tail, pad);
	if (unlikely(rc != 0))
		return rc;
	seal_icrc(&seal, tail + pad);
	return (int)len;
}

int packet_seal(struct packet_out *out)
{
	return out->unsealed ? seal_nothing(out) : seal_with_icrc(out);
}

/* Advance the CRC over the fragments without copying them. */
static void seal_in_place(void *arg)
{
	struct seal *seal = arg;
	const struct packet_frag *frag;

	for (frag = seal->out->frag; frag < seal->out->frag + seal->out->frags; frag++)
		seal->state = icrc_update(seal->state, frag->addr, frag->len);
}

int packet_seal_in_place(struct packet_out *out, uint8_t *tail)
{
	const uint32_t pad = seal_lengths(out, packet_length(out));
	struct seal seal = {
		.out = out,
		.state = icrc_headers(out->frame + out->l3_off, out->l4_off - out->l3_off,
				      out->hdr_len - out->l3_off),
	};

	if (guard_run(seal_in_place, &seal) != 0)
		return -EFAULT;
	memset(tail, 0, pad);
	seal.state = icrc_update(seal.state, tail, pad);
	seal_icrc(&seal, tail + pad);
	return (int)(pad + WIRE_ICRC_LEN);
}
