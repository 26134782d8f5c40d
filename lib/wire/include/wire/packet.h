/* SPDX-License-Identifier: BSD-3-Clause */
/* A received RoCEv2 frame after parsing: all lengths are checked, all fields are in host order, and
 * nothing is copied. */
#ifndef WIRE_PACKET_H
#define WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/psn.h"
#include "wire/opcode.h"

/* Outcome of packet_parse. */
enum packet_status {
	PACKET_OK,
	PACKET_NOT_ROCE,   /* not IP, not UDP, not port 4791, or a fragment: not for RoCE */
	PACKET_BAD_LENGTH, /* lengths of frame, IP, UDP and headers contradict each other, or a bad
			      pad count */
	PACKET_BAD_CHECKSUM, /* IPv4 header checksum, or a UDP checksum that is set and wrong */
	PACKET_BAD_VERSION,  /* BTH TVER is not 0 */
	PACKET_BAD_OPCODE,   /* an opcode that IBTA does not define */
};

struct packet {
	const uint8_t *l3;	/* IP header */
	const uint8_t *payload; /* behind the last extended header */
	const uint8_t *src_mac; /* in the frame */
	uint32_t payload_len;	/* bytes, without pad and ICRC */
	uint16_t headers_len;	/* from l3 to payload */
	uint8_t l3_len;		/* 20 or 40 */
	bool ipv6;
	uint8_t tclass; /* DSCP and ECN */
	uint8_t hop_limit;
	int32_t vlan_tci; /* -1 without a tag */
	int32_t vlan_id;  /* as vlan_of_tci returns it */
	uint16_t udp_sport;
	/* IPv6 form; an IPv4 address as ::ffff:a.b.c.d (A17.4.5.1.2) */
	uint8_t sgid[16];
	uint8_t dgid[16];

	const struct opcode_info *op;
	uint8_t opcode;
	union {
		uint8_t bth_flags;
		struct {
			uint8_t version : 4; /* always 0 */
			uint8_t pad : 2;     /* bytes between payload and ICRC */
			uint8_t migrated : 1;
			uint8_t solicited : 1;
		};
	};
	union {
		uint8_t ecn_byte;
		struct {
			uint8_t ecn_reserved : 6;
			uint8_t becn : 1;
			uint8_t fecn : 1;
		};
	};
	uint16_t pkey;
	union {
		uint8_t ack_byte; /* AckReq, and the seven reserved bits that follow it */
		struct {
			uint8_t capability : 7; /* BTH_SACK_* */
			uint8_t ack_req : 1;
		};
	};
	uint32_t dest_qpn;
	struct psn psn;

	/* Valid where op->flags has the header. */
	uint8_t flush_place;  /* FETH: FETH_PLACE_* */
	uint8_t flush_select; /* FETH: FETH_SELECT_* */
	uint64_t iova;	      /* RETH, AtomicETH */
	union {
		uint32_t rkey;	      /* RETH, AtomicETH; IETH: the key to invalidate */
		uint32_t sack_serial; /* SACKETH */
	};
	uint32_t dma_length;	  /* RETH */
	uint64_t swap_add;	  /* AtomicETH */
	uint64_t compare;	  /* AtomicETH */
	uint64_t atomic_original; /* AtomicAckETH */
	uint8_t syndrome;	  /* AETH */
	uint32_t msn;		  /* AETH */
	uint32_t imm_be;	  /* ImmDt, still in network order as verbs want it */
	uint32_t qkey;		  /* DETH */
	uint32_t src_qpn;	  /* DETH */
	uint32_t xrc_srqn;	  /* XRCETH */
};

/** Return the opcode without its service. */
static inline uint8_t packet_operation(const struct packet *packet)
{
	return packet->opcode & OPCODE_OPERATION_MASK;
}

#define PACKET_FLOW_PARTS 9

/* Packets of one sender to one queue pair. They have in common all headers up to the number of the
 * queue pair, except lengths, checksums, IPv4 identification, and of the BTH the flags and what of
 * the opcode is not the service. */
struct packet_flow {
	bool begun;
	struct packet packet;		    /* the last one */
	uint64_t common[PACKET_FLOW_PARTS]; /* parts of the headers, by parse.c */
};

/**
 * Parse a frame from its Ethernet header on. MT-safe. Does not look at the ICRC.
 *
 * @param frame
 *   The frame; may be longer than its IP packet (Ethernet padding).
 * @param checksums_known_good
 *   The port has already verified the IPv4 and UDP checksums.
 * @param packet
 *   Filled on PACKET_OK; points into `frame`.
 */
enum packet_status packet_parse(const uint8_t *frame, size_t len, bool checksums_known_good,
				struct packet *packet);

/**
 * Begin a flow with flow->packet, from its frame. Not MT-safe per flow. No flow begins with a VLAN
 * tag: such packets are parsed one by one.
 */
void packet_flow_begin(struct packet_flow *flow, const uint8_t *frame);

/**
 * Parse a frame that may be the next one of a flow that has begun: where it is from and which queue
 * pair it is to is then as it was. Not MT-safe per flow. Lengths, checksums and transport headers
 * are checked as by packet_parse.
 *
 * @return
 *   True: it is flow->packet. False: it is not of the flow, or not a good packet; use packet_parse.
 *   Then flow->packet is none.
 */
bool packet_parse_next(struct packet_flow *flow, const uint8_t *frame, size_t len,
		       bool checksums_known_good);

/**
 * Read the number of the destination queue pair of a frame that nothing is known of. For every
 * frame that packet_parse finds to be a RoCE packet it is the number that packet_parse finds.
 * MT-safe. Returns false if the frame is not RoCE.
 */
bool packet_peek_qpn(const uint8_t *frame, size_t len, uint32_t *qpn);

/**
 * Copy a frame that somebody else may be writing, and check in the same pass if it is a packet with
 * a right ICRC. MT-safe; ranges do not overlap.
 *
 * @return
 *   True: the copy is such a packet. False says nothing about the copy; parse it, and call
 *   packet_icrc_ok.
 */
bool packet_copy(uint8_t *to, const uint8_t *from, size_t len);

/**
 * Return true if the packet's invariant CRC is right. MT-safe. Only after packet_parse returned
 * PACKET_OK.
 *
 * Linux's rxe (as of 6.12) treats the headers of a FLUSH as its payload too. It computes the CRC
 * over them twice, the second time with nothing masked. That CRC is accepted, too.
 */
bool packet_icrc_ok(const struct packet *packet);

#endif
