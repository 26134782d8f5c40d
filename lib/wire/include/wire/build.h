/* SPDX-License-Identifier: BSD-3-Clause */
/* Building of a RoCEv2 frame: a path's prebuilt headers, transport headers, payload by reference,
 * and then one sealing pass. */
#ifndef WIRE_BUILD_H
#define WIRE_BUILD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/psn.h"
#include "wire/gid.h"
#include "wire/headers.h"

/* Room for Ethernet, VLAN, IPv6, UDP, BTH and the longest extended headers. */
#define PACKET_HDR_MAX	 128
#define PACKET_FRAGS_MAX 32
#define PACKET_TAIL_MAX	 8 /* pad and ICRC */
/* Room that a frame buffer needs: headers, payload, pad, ICRC. */
#define PACKET_FRAME_MAX (PACKET_HDR_MAX + WIRE_MTU_MAX + 4 + WIRE_ICRC_LEN)

/* Addresses and other attributes of a queue pair's path: the input of path_init. */
struct path_attr {
	uint8_t src_mac[6];
	uint8_t dst_mac[6];
	int32_t vlan_tci; /* -1: untagged */
	uint8_t sgid[16]; /* ::ffff:a.b.c.d means IPv4; both GIDs of one family */
	uint8_t dgid[16];
	uint8_t tclass;
	uint8_t hop_limit;
	uint32_t flow_label; /* 20 bits, IPv6 only */
	uint16_t udp_sport;
};

/* Prebuilt Ethernet, IP and UDP headers; a packet patches lengths, IP id and checksum. */
struct path {
	uint8_t hdr[66];
	uint8_t len; /* bytes of hdr used */
	uint8_t l3_off;
	uint8_t l4_off;
	bool ipv6;
	uint32_t ipv4_sum; /* ones' complement sum of the IPv4 header with length, id and checksum 0
			    */
	int32_t vlan_id;   /* -1: untagged */
};

/**
 * Prebuild the headers of a path. Not MT-safe per path.
 *
 * @return
 *   0, or -EINVAL when the GIDs are of different families.
 */
int path_init(struct path *path, const struct path_attr *attr);

/* Offsets of the addresses in an IP header. This file does not include rte_ip.h, which brings the
 * names of <sys/socket.h> with it. */
#define PATH_IPV4_SRC 12
#define PATH_IPV4_DST 16
#define PATH_IPV6_SRC 8
#define PATH_IPV6_DST 24

/**
 * Return true if packets of the path go from one GID to another. MT-safe.
 *
 * @param ipv6
 *   Both GIDs are IPv6 addresses; false: both are GIDs of IPv4 addresses.
 */
static inline bool path_is_between(const struct path *path, bool ipv6, const uint8_t from[GID_LEN],
				   const uint8_t to[GID_LEN])
{
	const uint8_t *ip = path->hdr + path->l3_off;

	if (unlikely(path->ipv6 != ipv6))
		return false;
	if (ipv6)
		return memcmp(ip + PATH_IPV6_SRC, from, GID_LEN) == 0 &&
		       memcmp(ip + PATH_IPV6_DST, to, GID_LEN) == 0;
	return memcmp(ip + PATH_IPV4_SRC, from + GID_IPV4_OFFSET, GID_IPV4_LEN) == 0 &&
	       memcmp(ip + PATH_IPV4_DST, to + GID_IPV4_OFFSET, GID_IPV4_LEN) == 0;
}

/** Set the two bits of the traffic class that are for congestion (enum ecn). Not MT-safe per
 * path. */
void path_set_ecn(struct path *path, enum ecn ecn);

/* Source of a fragment's bytes. */
enum frag_kind {
	FRAG_COPY, /* the application's memory, which may be unmapped at any time */
	FRAG_OWN,  /* our own memory */
	FRAG_ZERO, /* `len` zeros; addr is not used */
};

struct packet_frag {
	const uint8_t *addr;
	uint32_t len;
	enum frag_kind kind;
};

/* A packet to be sent. The owner of the sink sets `frame`; packet_begin resets the rest. */
struct packet_out {
	uint8_t *frame; /* at least PACKET_FRAME_MAX bytes, headers first, payload contiguous behind
			 */
	uint32_t ipv4_sum;
	uint8_t l3_off;
	uint8_t l4_off;
	bool ipv6;
	/* From here on packet_begin writes zeros by few stores. */
	uint8_t frags;
	uint32_t payload_len;
	uint32_t copy_len;    /* bytes of it that are read from memory */
	bool guarded;	      /* some of them may not be mapped when they are read */
	bool udp_sum_by_port; /* IPv6: only the pseudo header's sum is written; set before
				 packet_seal */
	bool icrc_repeats;    /* the ICRC covers the transport headers twice; see packet_icrc_ok */
	bool unsealed;	  /* set before packet_seal: the receiver trusts us and checks no ICRC */
	bool past_caches; /* set before packet_seal: store the payload with non-temporal stores */
	bool again; /* a retransmission: its payload is copied, and it gets a packet buffer of its
		       own */
	uint16_t ip_id;	  /* IPv4 identification; 0 unless set before packet_seal (DF is set) */
	uint16_t hdr_len; /* headers written so far */
	struct packet_frag frag[PACKET_FRAGS_MAX];
};

/* Fields of the BTH that differ from packet to packet. */
struct bth_fields {
	uint8_t opcode;
	bool solicited;
	bool migrated; /* 1 on every packet unless a path migrates */
	bool becn;
	uint8_t ack_byte; /* BTH_ACK_REQ and BTH_SACK_* */
	uint16_t pkey;
	uint32_t dest_qpn;
	struct psn psn;
};

/** Reserve `len` bytes for the next extended header; the caller writes all of them. Never NULL. */
static inline void *packet_extend(struct packet_out *out, uint16_t len)
{
	void *p = out->frame + out->hdr_len;

	out->hdr_len = (uint16_t)(out->hdr_len + len);
	return p;
}

/* Extended headers of requests, in their order in a packet. */
static inline void packet_put_be32(struct packet_out *out, rte_be32_t word)
{
	memcpy(packet_extend(out, sizeof(word)), &word, sizeof(word));
}

static inline void packet_put_xrceth(struct packet_out *out, uint32_t srqn)
{
	packet_put_be32(out, rte_cpu_to_be_32(srqn & WIRE_QPN_MASK));
}

static inline void packet_put_feth(struct packet_out *out, uint8_t place, uint8_t select)
{
	packet_put_be32(out, rte_cpu_to_be_32((uint32_t)select << FETH_SELECT_SHIFT | place));
}

static inline void packet_put_reth(struct packet_out *out, uint64_t iova, uint32_t rkey,
				   uint32_t dma_length)
{
	struct reth *reth = packet_extend(out, sizeof(*reth));

	reth->iova = rte_cpu_to_be_64(iova);
	reth->rkey = rte_cpu_to_be_32(rkey);
	reth->dma_length = rte_cpu_to_be_32(dma_length);
}

static inline void packet_put_atomiceth(struct packet_out *out, uint64_t iova, uint32_t rkey,
					uint64_t swap_add, uint64_t compare)
{
	struct atomiceth *atomic = packet_extend(out, sizeof(*atomic));

	atomic->iova = rte_cpu_to_be_64(iova);
	atomic->rkey = rte_cpu_to_be_32(rkey);
	atomic->swap_add = rte_cpu_to_be_64(swap_add);
	atomic->compare = rte_cpu_to_be_64(compare);
}

static inline void packet_put_immdt(struct packet_out *out, rte_be32_t imm)
{
	packet_put_be32(out, imm);
}

static inline void packet_put_ieth(struct packet_out *out, uint32_t rkey)
{
	packet_put_be32(out, rte_cpu_to_be_32(rkey));
}

/** Begin a packet: copy the path's headers and write the BTH. Not MT-safe per packet. */
static inline void packet_begin(struct packet_out *out, const struct path *path,
				const struct bth_fields *fields)
{
	rte_be32_t word;
	uint8_t *at;

	/* Copy all of hdr, not only path->len bytes: a copy of constant length is faster. The
	 * surplus is overwritten. */
	memcpy(out->frame, path->hdr, sizeof(path->hdr));
	out->hdr_len = path->len;
	out->ipv4_sum = path->ipv4_sum;
	out->l3_off = path->l3_off;
	out->l4_off = path->l4_off;
	out->ipv6 = path->ipv6;
	out->frags = 0;
	out->payload_len = 0;
	out->copy_len = 0;
	out->guarded = false;
	out->udp_sum_by_port = false;
	out->icrc_repeats = false;
	out->unsealed = false;
	out->past_caches = false;
	out->again = false;
	out->ip_id = 0;
	/* Write struct bth by whole words, and not by an array of words: a larger load from an
	 * array that was written in smaller pieces would wait until the store buffer is empty. */
	at = packet_extend(out, sizeof(struct bth));
	word = rte_cpu_to_be_32((uint32_t)fields->opcode << 24 |
				(fields->solicited ? (uint32_t)BTH_SOLICITED << 16 : 0) |
				(fields->migrated ? (uint32_t)BTH_MIGRATED << 16 : 0) |
				fields->pkey);
	memcpy(at, &word, sizeof(word));
	word = rte_cpu_to_be_32((fields->becn ? (uint32_t)BTH_BECN << 24 : 0) | fields->dest_qpn);
	memcpy(at + sizeof(word), &word, sizeof(word));
	word = rte_cpu_to_be_32((uint32_t)fields->ack_byte << 24 | fields->psn.v);
	memcpy(at + 2 * sizeof(word), &word, sizeof(word));
}

/**
 * Write a congestion notification packet to this peer. Not MT-safe per packet. It is not
 * ECN-capable itself, because nobody would react to its marks.
 *
 * @param dscp
 *   Its DSCP; -1: that of the path.
 */
void packet_notify(struct packet_out *out, const struct path *path, int dscp, uint16_t pkey,
		   uint32_t dest_qpn);

/**
 * Add the next bytes of payload; packet_seal reads them. Not MT-safe per packet.
 *
 * @return
 *   0, -ENOSPC if the packet has PACKET_FRAGS_MAX fragments, or -EMSGSIZE if the payload would be
 *   longer than WIRE_MTU_MAX.
 */
static inline int packet_payload(struct packet_out *out, enum frag_kind kind, const void *addr,
				 uint32_t len)
{
	if (len == 0)
		return 0;
	if (len > WIRE_MTU_MAX - out->payload_len)
		return -EMSGSIZE;
	if (out->frags == PACKET_FRAGS_MAX)
		return -ENOSPC;
	out->frag[out->frags++] =
		(struct packet_frag){.addr = (const uint8_t *)addr, .len = len, .kind = kind};
	out->payload_len += len;
	if (kind != FRAG_ZERO)
		out->copy_len += len;
	out->guarded |= kind == FRAG_COPY;
	return 0;
}

/** Give a packet its whole payload, at most WIRE_MTU_MAX bytes, in one piece. Not MT-safe per
 * packet. */
static inline void packet_payload_whole(struct packet_out *out, const struct packet_frag *frag)
{
	const uint32_t len = RTE_MIN(frag->len, (uint32_t)WIRE_MTU_MAX);

	out->frag[0] = (struct packet_frag){.addr = frag->addr, .len = len, .kind = frag->kind};
	out->frags = 1;
	out->payload_len = len;
	out->copy_len = frag->kind != FRAG_ZERO ? len : 0;
	out->guarded = frag->kind == FRAG_COPY;
}

/** Return the bytes of the frame that a packet becomes, before and after it is sealed. */
static inline uint32_t packet_length(const struct packet_out *out)
{
	return out->hdr_len + RTE_ALIGN_CEIL(out->payload_len, 4) + WIRE_ICRC_LEN;
}

/**
 * Finish a packet: copy the payload, add the pad, and write lengths, checksums and ICRC. Not
 * MT-safe per packet. The application may unmap the payload's memory at any time, so the copy is
 * guarded. The UDP checksum is 0 on IPv4; on IPv6 it is computed (RFC 8200, 8.1), or left for the
 * port to complete. An unsealed packet has zeros for ICRC and UDP checksum.
 *
 * @return
 *   Bytes of the frame, without Ethernet FCS and without padding to the Ethernet minimum; or
 *   -EFAULT if the payload cannot be read: the packet does not exist then.
 */
int packet_seal(struct packet_out *out);

/**
 * Finish a packet without copying its payload (all FRAG_COPY): headers are in out->frame, and pad
 * and ICRC go to `tail`, which has PACKET_TAIL_MAX bytes. Over IPv6 the port must compute the UDP
 * checksum.
 *
 * @return
 *   Bytes at `tail`, or -EFAULT.
 */
int packet_seal_in_place(struct packet_out *out, uint8_t *tail);

#endif
