/* SPDX-License-Identifier: BSD-3-Clause */
/* The RoCEv2 wire format (IBTA chapter 9 and annex A17): layouts and every protocol constant. */
#ifndef WIRE_HEADERS_H
#define WIRE_HEADERS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>

#define WIRE_UDP_PORT		 4791	/* A17.4.1.2 */
#define WIRE_UDP_SPORT_MIN	 0xc000 /* entropy source ports are taken from the dynamic range */
#define WIRE_HOP_LIMIT		 64	/* of packets whose sender chooses none; Linux's default */
#define WIRE_PKEY_DEFAULT	 0xffff /* 10.9.1: full member of the default partition */
#define WIRE_PKEY_PARTITION_MASK 0x7fff /* 10.9.1: without the membership bit */
#define WIRE_QPN_MASK		 0xffffffu
#define WIRE_QPN_MULTICAST	 0xffffffu /* 3.5.10: all queue pairs that are attached to the group */
#define WIRE_ICRC_LEN		 4
#define WIRE_MTU_MIN		 256
#define WIRE_MTU_MAX		 4096
/* The longest headers around a payload: IPv6, UDP, BTH, XRCETH, AtomicETH, ICRC. Linux subtracts
 * the same. */
#define WIRE_OVERHEAD_MAX (40 + 8 + 12 + 4 + 28 + 4)
#define WIRE_MESSAGE_MAX  0x80000000u /* 9.7.1: 2^31 bytes */

/*
 * The structs are packed and have alignment 1, because headers are not aligned behind Ethernet and
 * IP. Fill and read their fields by the struct, never by a pointer to a field.
 */

/* Base transport header, 9.2. */
struct bth {
	uint8_t opcode;
	uint8_t flags; /* BTH_SOLICITED | BTH_MIGRATED | pad count << 4 | TVER */
	rte_be16_t pkey;
	uint8_t ecn; /* BTH_FECN, BTH_BECN and six reserved bits, outside the ICRC */
	uint8_t dest_qpn[3];
	uint8_t ack_req; /* BTH_ACK_REQ and seven reserved bits (BTH_SACK_MASK), in the ICRC */
	uint8_t psn[3];
} __attribute__((packed));
static_assert(sizeof(struct bth) == 12, "BTH is 12 bytes");

#define BTH_SOLICITED 0x80
#define BTH_MIGRATED  0x40
#define BTH_PAD_SHIFT 4
#define BTH_PAD_MASK  0x3
#define BTH_TVER_MASK 0x0f /* always 0, 9.2.4 */
#define BTH_FECN      0x80
#define BTH_BECN      0x40
#define BTH_ACK_REQ   0x80

/*
 * The SACK capability bits of uroce peers (doc/developer/loss.md), in the seven reserved bits that
 * follow AckReq: senders set them to 0, and receivers ignore them (9.2). Requests and responses
 * have different bits, because older Soft-RoCE copies the bits of a request into its response. The
 * lower three bits are the binary logarithm of a number of packets, less SIGN_PSNS_LOG.
 */
#define BTH_SACK_MASK	  0x7f
#define BTH_SACK_KIND	  0x78
#define BTH_SACK_STEPS	  0x07
#define BTH_SACK_REQUEST  0x50 /* the requester understands OPCODE_SACK */
#define BTH_SACK_RESPONSE 0x60 /* the responder sends OPCODE_SACK */
#define SIGN_PSNS_LOG	  8

/* The lowest two bits of IPv4's type of service and IPv6's traffic class, RFC 3168. */
enum ecn {
	ECN_NOT_CAPABLE = 0,
	ECN_CAPABLE = 2, /* ECT(0) */
	ECN_EXPERIENCED = 3,
	ECN_MASK = 3,
};
#define DSCP_SHIFT 2 /* the bits above them, RFC 2474 */

/* A17.9.3: a congestion notification packet has so many reserved bytes behind its BTH. */
#define CNP_RESERVED_LEN 16

/* RDMA extended transport header, 9.3.3. */
struct reth {
	rte_be64_t iova;
	rte_be32_t rkey;
	rte_be32_t dma_length;
} __attribute__((packed));
static_assert(sizeof(struct reth) == 16, "RETH is 16 bytes");

/* Atomic extended transport header, 9.3.4. */
struct atomiceth {
	rte_be64_t iova;
	rte_be32_t rkey;
	rte_be64_t swap_add; /* CmpSwap: the swap value; FetchAdd: the addend */
	rte_be64_t compare;
} __attribute__((packed));
static_assert(sizeof(struct atomiceth) == 28, "AtomicETH is 28 bytes");

/* ACK extended transport header, 9.3.5: syndrome and 24-bit message sequence number. */
struct aeth {
	uint8_t syndrome;
	uint8_t msn[3];
};
static_assert(sizeof(struct aeth) == 4, "AETH is 4 bytes");

/* FLUSH extended transport header, A19: 26 reserved bits, then selectivity level and placement
 * type. */
struct feth {
	rte_be32_t bits; /* FETH_SELECT_* << FETH_SELECT_SHIFT | FETH_PLACE_* */
} __attribute__((packed));
static_assert(sizeof(struct feth) == 4, "FETH is 4 bytes");

#define FETH_PLACE_GLOBAL     0x1u /* placement type: written data is visible to all */
#define FETH_PLACE_PERSISTENT 0x2u /* written data survives a power failure */
#define FETH_PLACE_MASK	      0xfu
#define FETH_SELECT_SHIFT     4
#define FETH_SELECT_RANGE     0u /* selectivity level: the range of the RETH */
#define FETH_SELECT_REGION    1u /* the whole region; the RETH's address and length are ignored */
#define FETH_SELECT_MASK      0x3u

#define ATOMIC_WRITE_BYTES 8u /* A19: payload and alignment */

/* The header of our selective acknowledgement; a bitmap follows as payload. */
struct sacketh {
	rte_be32_t serial; /* counts those that were sent on this connection */
} __attribute__((packed));
static_assert(sizeof(struct sacketh) == 4, "our header is 4 bytes");

/* Datagram extended transport header, 9.3.2. */
struct deth {
	rte_be32_t qkey;
	uint8_t reserved;
	uint8_t src_qpn[3];
} __attribute__((packed));
static_assert(sizeof(struct deth) == 8, "DETH is 8 bytes");

/* Bits 6:5 of the AETH syndrome: the kind of acknowledgement, table 44. */
enum aeth_kind {
	AETH_ACK = 0x00,
	AETH_RNR_NAK = 0x20,
	AETH_NAK = 0x60,
	AETH_KIND_MASK = 0x60,
	AETH_VALUE_MASK = 0x1f,
};

#define AETH_CREDIT_NONE 0x1f /* 9.7.7.2: the responder does not send credits */

/* NAK codes, table 45. */
enum nak_code {
	NAK_PSN_SEQUENCE = 0,
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATIONAL = 3,
};

/** Return the nanoseconds of an RNR NAK timer code below 32, 9.7.5.2.8 table 46. MT-safe. */
uint64_t rnr_timer_ns(uint8_t code);

/** Return the code of the shortest RNR NAK timer that is at least this long, or of the longest.
 * MT-safe. */
uint8_t rnr_timer_code(uint64_t ns);

/** Return the nanoseconds of a local ACK timeout exponent (4.096 us * 2^exponent), 9.7.6.1.3; 0
 * means none. MT-safe. */
uint64_t ack_timeout_ns(uint8_t exponent);

/** Return true if a partition key is of the default partition, of a full or a limited member. We
 * are a full member, which may talk to both (10.9.3). MT-safe. */
static inline bool wire_is_our_pkey(uint16_t pkey)
{
	return (pkey & WIRE_PKEY_PARTITION_MASK) == (WIRE_PKEY_DEFAULT & WIRE_PKEY_PARTITION_MASK);
}

static inline uint32_t wire_get24(const uint8_t p[3])
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline void wire_put24(uint8_t p[3], uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)v;
}

#endif
