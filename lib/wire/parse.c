/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing of a frame into a struct packet, with every check that needs no state. */
#include "wire/packet.h"

#include <assert.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "base/tuning.h"
#include "wire/frame.h"
#include "wire/gid.h"
#include "wire/icrc.h"
#include "wire/vlan.h"

#define UDP_LEN	     sizeof(struct rte_udp_hdr)
#define ROCE_LEN_MIN (UDP_LEN + sizeof(struct bth) + WIRE_ICRC_LEN)

/* A frame during parsing: its length, and the layers found so far. */
struct frame {
	const uint8_t *l3;
	size_t l3_room; /* bytes from l3 to the end of the frame */
	const uint8_t *l4;
	size_t l4_len; /* bytes of UDP header and payload by the IP header */
	bool checksums_known_good;
};

/* Return true if the destination port is RoCE's. From here on, wrong lengths count as errors of a
 * RoCE packet. */
static bool is_roce_port(const struct frame *f, size_t l3_len)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(f->l3 + l3_len);

	return f->l3_room >= l3_len + UDP_LEN && udp->dst_port == rte_cpu_to_be_16(WIRE_UDP_PORT);
}

/* Check the IPv4 checksum. The ones' complement sum does not depend on the byte order (RFC
 * 1071). */
static bool ipv4_sum_ok(const struct rte_ipv4_hdr *ip)
{
	uint32_t words[sizeof(*ip) / sizeof(uint32_t)];
	uint64_t sum = 0;

	memcpy(words, ip, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		sum += words[i];
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* Check length and checksum of an IPv4 header that can be read, and find what follows it. */
static __rte_always_inline enum packet_status measure_ipv4(struct frame *f)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)f->l3;
	const size_t ip_len = rte_be_to_cpu_16(ip->total_length);

	if (ip_len < sizeof(*ip) + ROCE_LEN_MIN || ip_len > f->l3_room)
		return PACKET_BAD_LENGTH;
	if (!f->checksums_known_good && unlikely(!ipv4_sum_ok(ip)))
		return PACKET_BAD_CHECKSUM;
	f->l4 = f->l3 + sizeof(*ip);
	f->l4_len = ip_len - sizeof(*ip);
	return PACKET_OK;
}

/* Do the same for an IPv6 header, which has no checksum. */
static __rte_always_inline enum packet_status measure_ipv6(struct frame *f)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)f->l3;

	f->l4 = f->l3 + sizeof(*ip);
	f->l4_len = rte_be_to_cpu_16(ip->payload_len);
	return f->l4_len < ROCE_LEN_MIN || f->l4_len > f->l3_room - sizeof(*ip) ? PACKET_BAD_LENGTH
										: PACKET_OK;
}

static __rte_always_inline enum packet_status parse_ipv4(struct frame *f, struct packet *p)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)f->l3;
	enum packet_status status;

	if (f->l3_room < sizeof(*ip) || !ipv4_has_udp(ip) || !is_roce_port(f, sizeof(*ip)))
		return PACKET_NOT_ROCE;
	status = measure_ipv4(f);
	if (status != PACKET_OK)
		return status;
	p->ipv6 = false;
	p->l3_len = sizeof(*ip);
	p->tclass = ip->type_of_service;
	p->hop_limit = ip->time_to_live;
	gid_from_ipv4(&ip->src_addr, p->sgid);
	gid_from_ipv4(&ip->dst_addr, p->dgid);
	return PACKET_OK;
}

static __rte_always_inline enum packet_status parse_ipv6(struct frame *f, struct packet *p)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)f->l3;

	if (f->l3_room < sizeof(*ip) || !ipv6_has_udp(ip) || !is_roce_port(f, sizeof(*ip)))
		return PACKET_NOT_ROCE;
	if (measure_ipv6(f) != PACKET_OK)
		return PACKET_BAD_LENGTH;
	p->ipv6 = true;
	p->l3_len = sizeof(*ip);
	p->tclass = (uint8_t)(rte_be_to_cpu_32(ip->vtc_flow) >> RTE_IPV6_HDR_TC_SHIFT);
	p->hop_limit = ip->hop_limits;
	memcpy(p->sgid, &ip->src_addr, sizeof(p->sgid));
	memcpy(p->dgid, &ip->dst_addr, sizeof(p->dgid));
	return PACKET_OK;
}

/* Not inline: most packets have no checksum, or one that the port has verified. */
static __rte_noinline bool udp_sum_ok(const struct frame *f, bool ipv6)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)f->l4;

	return (ipv6 ? rte_ipv6_udptcp_cksum_verify((const struct rte_ipv6_hdr *)f->l3, udp)
		     : rte_ipv4_udptcp_cksum_verify((const struct rte_ipv4_hdr *)f->l3, udp)) == 0;
}

static __rte_always_inline enum packet_status check_udp(const struct frame *f,
							const struct packet *p)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)f->l4;

	if (rte_be_to_cpu_16(udp->dgram_len) != f->l4_len)
		return PACKET_BAD_LENGTH;
	/* 0 means "not computed"; it is accepted on IPv6 too (RFC 6935), because the ICRC covers
	 * the packet. */
	return f->checksums_known_good || udp->dgram_cksum == 0 || udp_sum_ok(f, p->ipv6)
		       ? PACKET_OK
		       : PACKET_BAD_CHECKSUM;
}

static __rte_always_inline enum packet_status parse_bth(const struct bth *bth, struct packet *p)
{
	rte_be32_t word;

	if (bth->flags & BTH_TVER_MASK)
		return PACKET_BAD_VERSION;
	p->opcode = bth->opcode;
	p->op = &opcode_infos[bth->opcode];
	if (!(p->op->flags & OPCODE_KNOWN))
		return PACKET_BAD_OPCODE;
	p->bth_flags = bth->flags;
	p->ack_byte = bth->ack_req;
	memcpy(&word, &bth->ack_req, sizeof(word));
	p->psn = psn_make(rte_be_to_cpu_32(word));
	return PACKET_OK;
}

/* Parse the fields of UDP header and BTH that are the same in all packets of a flow. */
static __rte_always_inline void parse_flow(const struct frame *f, const struct bth *bth,
					   struct packet *p)
{
	rte_be32_t word;

	p->udp_sport = rte_be_to_cpu_16(((const struct rte_udp_hdr *)f->l4)->src_port);
	p->ecn_byte = bth->ecn;
	p->pkey = rte_be_to_cpu_16(bth->pkey);
	memcpy(&word, &bth->ecn, sizeof(word));
	p->dest_qpn = rte_be_to_cpu_32(word) & WIRE_QPN_MASK;
}

/* Split the bytes behind the BTH into extended headers, payload and pad. */
static __rte_always_inline enum packet_status parse_lengths(const struct frame *f, struct packet *p)
{
	const size_t headers_len = UDP_LEN + sizeof(struct bth) + p->op->ext_len;
	size_t rest;

	if (f->l4_len < headers_len + WIRE_ICRC_LEN)
		return PACKET_BAD_LENGTH;
	rest = f->l4_len - headers_len - WIRE_ICRC_LEN;
	/* 9.2.3: pad bytes fill the payload to a multiple of four. */
	if (rest % 4 != 0 || p->pad > rest)
		return PACKET_BAD_LENGTH;
	if (rest != 0 && !(p->op->flags & OPCODE_PAYLOAD))
		return PACKET_BAD_LENGTH;
	p->headers_len = (uint16_t)(p->l3_len + headers_len);
	p->payload = f->l3 + p->headers_len;
	p->payload_len = (uint32_t)(rest - p->pad);
	return PACKET_OK;
}

/* Copy a header, because headers are not aligned in a frame. */
#define TAKE(header, at) (memcpy(&(header), (at), sizeof(header)), (at) += sizeof(header))

#define BEFORE_RETH (OPCODE_HAS_XRCETH | OPCODE_HAS_DETH | OPCODE_HAS_FETH)
#define BEHIND_RETH                                                                          \
	(OPCODE_HAS_ATOMICETH | OPCODE_HAS_AETH | OPCODE_HAS_ATOMICACKETH | OPCODE_HAS_IMM | \
	 OPCODE_HAS_IETH | OPCODE_HAS_SACKETH)

static __rte_always_inline const uint8_t *parse_before_reth(const uint8_t *at, struct packet *p)
{
	const uint32_t flags = p->op->flags;
	struct deth deth;
	struct feth feth;
	rte_be32_t word;

	if (flags & OPCODE_HAS_XRCETH) {
		TAKE(word, at);
		p->xrc_srqn = rte_be_to_cpu_32(word) & WIRE_QPN_MASK;
	}
	if (flags & OPCODE_HAS_DETH) {
		TAKE(deth, at);
		p->qkey = rte_be_to_cpu_32(deth.qkey);
		p->src_qpn = wire_get24(deth.src_qpn);
	}
	if (flags & OPCODE_HAS_FETH) {
		uint32_t bits;

		TAKE(feth, at);
		bits = rte_be_to_cpu_32(feth.bits);
		p->flush_place = bits & FETH_PLACE_MASK;
		p->flush_select = bits >> FETH_SELECT_SHIFT & FETH_SELECT_MASK;
	}
	return at;
}

static __rte_always_inline const uint8_t *parse_reth(const uint8_t *at, struct packet *p)
{
	struct reth reth;

	TAKE(reth, at);
	p->iova = rte_be_to_cpu_64(reth.iova);
	p->rkey = rte_be_to_cpu_32(reth.rkey);
	p->dma_length = rte_be_to_cpu_32(reth.dma_length);
	return at;
}

static __rte_always_inline void parse_behind_reth(const uint8_t *at, struct packet *p)
{
	const uint32_t flags = p->op->flags;
	struct atomiceth atomic;
	rte_be64_t original;
	struct aeth aeth;
	rte_be32_t word;

	if (flags & OPCODE_HAS_ATOMICETH) {
		TAKE(atomic, at);
		p->iova = rte_be_to_cpu_64(atomic.iova);
		p->rkey = rte_be_to_cpu_32(atomic.rkey);
		p->swap_add = rte_be_to_cpu_64(atomic.swap_add);
		p->compare = rte_be_to_cpu_64(atomic.compare);
	}
	if (flags & OPCODE_HAS_AETH) {
		TAKE(aeth, at);
		p->syndrome = aeth.syndrome;
		p->msn = wire_get24(aeth.msn);
	}
	if (flags & OPCODE_HAS_ATOMICACKETH) {
		TAKE(original, at);
		p->atomic_original = rte_be_to_cpu_64(original);
	}
	if (flags & OPCODE_HAS_IMM)
		TAKE(p->imm_be, at);
	if (flags & (OPCODE_HAS_IETH | OPCODE_HAS_SACKETH)) {
		TAKE(word, at);
		p->rkey = rte_be_to_cpu_32(word);
	}
}

/* Parse the headers in the order of enum opcode_flag, which is their order in the packet.
 * parse_lengths has checked that the packet has them. */
static __rte_always_inline void parse_extended(const uint8_t *at, struct packet *p)
{
	const uint32_t flags = p->op->flags;

	if (unlikely(flags & BEFORE_RETH))
		at = parse_before_reth(at, p);
	if (flags & OPCODE_HAS_RETH)
		at = parse_reth(at, p);
	if (flags & BEHIND_RETH)
		parse_behind_reth(at, p);
}

/* Parse what follows the IP header. `is_next` is constant: the packet is of the same flow as the
 * one that was parsed before. */
static __rte_always_inline enum packet_status parse_l4(const struct frame *f, const uint8_t *frame,
						       const bool is_next, struct packet *packet)
{
	const struct bth *bth = (const struct bth *)(f->l4 + UDP_LEN);
	enum packet_status status = check_udp(f, packet);

	if (status != PACKET_OK)
		return status;
	packet->src_mac = ((const struct rte_ether_hdr *)frame)->src_addr.addr_bytes;
	packet->l3 = f->l3;
	status = parse_bth(bth, packet);
	if (status == PACKET_OK && !is_next)
		parse_flow(f, bth, packet);
	if (status == PACKET_OK)
		status = parse_lengths(f, packet);
	if (status == PACKET_OK)
		parse_extended((const uint8_t *)(bth + 1), packet);
	return status;
}

/* Parse a frame. For one whose checksums are known to be good that is constant, and the compiler
 * leaves out the calls that check them, and what these calls need. */
static __rte_always_inline enum packet_status
parse(const uint8_t *frame, size_t len, const bool checksums_known_good, struct packet *packet)
{
	struct frame f = {.checksums_known_good = checksums_known_good};
	enum packet_status status = PACKET_NOT_ROCE;
	struct ether_frame ether;

	if (!ether_frame_find(frame, len, &ether))
		return PACKET_NOT_ROCE;
	packet->vlan_tci = ether.vlan_tci;
	packet->vlan_id = vlan_of_tci(ether.vlan_tci);
	f.l3 = frame + ether.l3_off;
	f.l3_room = len - ether.l3_off;
	if (ether.type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		status = parse_ipv4(&f, packet);
	else if (ether.type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		status = parse_ipv6(&f, packet);
	return status == PACKET_OK ? parse_l4(&f, frame, false, packet) : status;
}

static __rte_noinline enum packet_status parse_with_sums(const uint8_t *frame, size_t len,
							 struct packet *packet)
{
	return parse(frame, len, false, packet);
}

enum packet_status packet_parse(const uint8_t *frame, size_t len, bool checksums_known_good,
				struct packet *packet)
{
	return checksums_known_good ? parse(frame, len, true, packet)
				    : parse_with_sums(frame, len, packet);
}

/* Eight bytes of a frame, as far as all packets of a flow have them in common. */
struct part {
	uint8_t at;
	rte_be64_t common; /* their bits */
};

#define ALL	UINT64_MAX
#define ID_SUM	RTE_BE64(0x0000ffffffff0000) /* all between identification and checksum */
#define BTH_QPN RTE_BE64(0xe000ffffffffffff) /* service, partition, ECN, queue pair */

/* Untagged frames over IPv4 and IPv6. Lengths, checksums and identification are left out. */
static const struct part ipv4_parts[] = {{0, ALL},  {8, ALL},  {18, ID_SUM},
					 {26, ALL}, {30, ALL}, {42, BTH_QPN}};
static const struct part ipv6_parts[] = {{0, ALL},  {8, ALL},  {10, ALL}, {20, ALL},	{28, ALL},
					 {36, ALL}, {44, ALL}, {50, ALL}, {62, BTH_QPN}};

static_assert(RTE_DIM(ipv6_parts) <= PACKET_FLOW_PARTS && RTE_DIM(ipv4_parts) <= PACKET_FLOW_PARTS,
	      "a flow has room for the parts");

static __rte_always_inline uint64_t common_of(const uint8_t *frame, const struct part *part)
{
	uint64_t bytes;

	memcpy(&bytes, frame + part->at, sizeof(bytes));
	return bytes & part->common;
}

/* Return true if a frame has what the packets of a flow have in common. */
static __rte_always_inline bool is_of_flow(const struct packet_flow *flow, const uint8_t *frame,
					   const struct part *parts, size_t n)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= common_of(frame, &parts[i]) ^ flow->common[i];
	return differ == 0;
}

void packet_flow_begin(struct packet_flow *flow, const uint8_t *frame)
{
	const struct packet *packet = &flow->packet;
	const struct part *parts = packet->ipv6 ? ipv6_parts : ipv4_parts;
	const size_t n = packet->ipv6 ? RTE_DIM(ipv6_parts) : RTE_DIM(ipv4_parts);

	flow->begun = packet->vlan_tci < 0;
	for (size_t i = 0; i < n && flow->begun; i++)
		flow->common[i] = common_of(frame, &parts[i]);
}

static __rte_always_inline bool parse_next(struct packet_flow *flow, const uint8_t *frame,
					   size_t len, const bool checksums_known_good)
{
	struct packet *packet = &flow->packet;
	struct frame f = {.l3 = frame + RTE_ETHER_HDR_LEN,
			  .l3_room = len - RTE_ETHER_HDR_LEN,
			  .checksums_known_good = checksums_known_good};

	if (len < RTE_ETHER_HDR_LEN + packet->l3_len + ROCE_LEN_MIN)
		return false;
	if (packet->ipv6)
		return is_of_flow(flow, frame, ipv6_parts, RTE_DIM(ipv6_parts)) &&
		       measure_ipv6(&f) == PACKET_OK &&
		       parse_l4(&f, frame, true, packet) == PACKET_OK;
	return is_of_flow(flow, frame, ipv4_parts, RTE_DIM(ipv4_parts)) &&
	       measure_ipv4(&f) == PACKET_OK && parse_l4(&f, frame, true, packet) == PACKET_OK;
}

static __rte_noinline bool parse_next_with_sums(struct packet_flow *flow, const uint8_t *frame,
						size_t len)
{
	return parse_next(flow, frame, len, false);
}

bool packet_parse_next(struct packet_flow *flow, const uint8_t *frame, size_t len,
		       bool checksums_known_good)
{
	return checksums_known_good ? parse_next(flow, frame, len, true)
				    : parse_next_with_sums(flow, frame, len);
}

bool packet_peek_qpn(const uint8_t *frame, size_t len, uint32_t *qpn)
{
	struct udp_frame headers;
	const struct bth *bth = roce_frame_find(frame, len, &headers);

	if (bth)
		*qpn = wire_get24(bth->dest_qpn);
	return bth != NULL;
}

bool packet_icrc_ok(const struct packet *packet)
{
	const uint32_t covered = packet->payload_len + packet->pad;
	const uint32_t icrc = icrc_load(packet->payload + covered);
	const size_t bth_off = packet->l3_len + UDP_LEN;
	uint32_t headers;

	/* A packet that icrc_headers can take in one piece need not be split. */
	if (tuning.short_icrc && packet->headers_len + covered <= ICRC_HEADERS_MAX &&
	    icrc_headers(packet->l3, packet->l3_len, packet->headers_len + covered) == icrc)
		return true;
	headers = icrc_headers(packet->l3, packet->l3_len, packet->headers_len);
	if (icrc_update(headers, packet->payload, covered) == icrc)
		return true;
	return (packet->op->flags & OPCODE_HAS_FETH) &&
	       icrc_update(headers, packet->l3 + bth_off,
			   (uint32_t)(packet->headers_len - bth_off)) == icrc;
}
