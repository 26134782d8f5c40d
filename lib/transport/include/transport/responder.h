/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving half of a connected queue pair: checks requests, executes them, and owes answers
 * (IBTA 9.7.4 and 9.7.5). */
#ifndef TRANSPORT_RESPONDER_H
#define TRANSPORT_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "base/psn.h"
#include "queue/cq.h"
#include "queue/rq.h"
#include "telemetry/counters.h"
#include "transport/ooo.h"
#include "transport/page_wait.h"
#include "transport/receive.h"
#include "transport/replies.h"
#include "transport/status.h"

struct packet;
struct pass;
struct pd;

/* The kind of message that the next packet may continue. */
enum responder_message {
	MESSAGE_NONE,
	MESSAGE_SEND,
	MESSAGE_WRITE,
};

/* The state of the expected packet. */
enum responder_gap {
	GAP_NONE,      /* nothing */
	GAP_NAKED,     /* a sequence NAK for it was made: packets behind it cause none (C9-112) */
	GAP_CLOSING,   /* within an engine poll: a NAK was made for it and it has come; kept packets
			  behind it   are being executed */
	GAP_NOT_READY, /* an RNR NAK for it was made: packets behind it are kept without an answer
			*/
	GAP_WAITS,     /* it is kept, and had no receive request: an RNR NAK is made when it comes
			  again, or a sequence NAK if a packet behind it comes first */
	GAP_PAGE, /* it is kept, and a page that it accesses is not in memory, or another process
		     has to answer (transport/pass.h): it is executed when the page or answer
		     comes (responder_resume); packets behind it are kept */
};

/* The fields that a WRITE needs come first (lib/qp/qp_internal.h explains the cache lines). */
struct responder {
	/* set once */
	const struct pd *pd; /* domain of the memory that peers name; a shared queue's own buffers
				have its domain */
	struct replies *replies;
	struct counters *counters;
	uint32_t qpn;	 /* our own, for completions */
	uint8_t service; /* OPCODE_RC, OPCODE_UC or OPCODE_XRC */

	/* attributes of the queue pair */
	uint8_t min_rnr_timer;
	bool counts;	     /* peers' WRITEs, in receive->cntrs */
	uint32_t mtu;	     /* path MTU, bytes */
	unsigned int access; /* IBV_ACCESS_REMOTE_*: enabled operations */

	struct psn epsn; /* expected PSN */
	/*
	 * PSN of the newest executed SEND or WRITE packet; later requests (READs, atomics) are
	 * answered, and not acknowledged. responder_age advances it: if it is more than
	 * RESPONDER_ACK_REACH behind epsn, it belongs to no packet, and there is nothing to
	 * acknowledge.
	 */
	struct psn ack_psn;
	uint32_t msn; /* messages executed, 24 bits */
	enum responder_message message;
	uint8_t gap;	    /* enum responder_gap */
	bool refused;	    /* an RNR NAK was made, and the kept packets behind it come again */
	uint16_t gap_hints; /* kept packets for which no NAK was made: at most this many NAKs are
			       due */
	uint16_t asks;	    /* packet.ack_byte of the newest executed packet that asked for an
			       acknowledgement */
	uint8_t unsacked;   /* packets kept since a selective acknowledgement was owed */
	bool gap_dropped; /* while a request waited for a page, a packet behind it was not kept: it
			     is requested when all kept packets are executed */
	/* While GAP_NAKED: PSN of the first packet behind the gap; epsn until one comes. epsn does
	 * not advance meanwhile, so nobody has to advance this. */
	struct psn gap_psn;

	/* the WRITE in progress */
	uint64_t write_iova;   /* address of the next byte */
	uint32_t write_length; /* bytes of the message */
	uint32_t write_left;   /* bytes left */
	uint32_t write_rkey;

	uint32_t peer_qpn; /* an attribute, for completions */

	/* Packets that came out of order. Each time epsn has advanced, responder_ooo_next drops
	 * those before it. */
	struct ooo ooo;

	/* A SEND needs these fields, too; set once. */
	struct rq *rq;
	struct srq *srq; /* shared receive queue that contains rq, or NULL */
	struct cq *cq;
	struct receive *receive;

	/* XRC: each packet names a shared receive queue of the domain, which has pd, rq, srq and
	 * cq. */
	struct srq *(*find_srq)(void *domain, uint32_t number);
	void *domain;
	struct pass *pass; /* passes requests for queues of other processes on; NULL: there are no
			      others */
	const struct pd *stand_in; /* of a queue pair to which another process passes requests: a
				      protection domain without keys; else NULL */

	/* PSN of a request that has met an absent page; it is only compared with epsn for equality,
	 * so nobody has to advance it. */
	struct psn page_psn;
	struct page_wait page_wait;
};

/* How far behind epsn an acknowledgement may be. A requester compares it with what it has sent, so
 * the other half of the PSNs is for its packets from epsn on. An older SEND or WRITE is
 * acknowledged by the responses of the READs that follow it. */
#define RESPONDER_ACK_REACH (1u << 22)
/* epsn passes a multiple of this at least as often as stored PSNs must be advanced. */
#define RESPONDER_AGE_PSNS (1u << 21)

/*
 * How long a packet behind a gap is kept. A genuine one was sent after those before it, so these
 * are on their way, or their retransmission comes within a round trip. A forged one, to a peer that
 * sends nothing at present, would wait for the peer's next packets, and be executed behind them. A
 * SACK-capable peer may be farther away: it has chosen to take part.
 */
#define RESPONDER_KEEP_NS      UINT64_C(20000000)
#define RESPONDER_KEEP_SACK_NS UINT64_C(200000000)

/** Owe an acknowledgement of what was executed, if it needs one. */
static inline void responder_acknowledge(struct responder *responder)
{
	if (psn_since(responder->epsn, responder->ack_psn) <= RESPONDER_ACK_REACH)
		replies_ack(responder->replies, responder->ack_psn, responder->msn);
}

/** Return the PSNs that the responses of a READ of this length use. */
static inline uint32_t responder_psns(const struct responder *responder, uint32_t dma_length)
{
	if (dma_length == 0)
		return 1;
	/* The MTU is a power of two. */
	return (uint32_t)(((uint64_t)dma_length + responder->mtu - 1) >> rte_bsf32(responder->mtu));
}

/** Drop packets behind a gap that were kept for too long. All have been stamped (ooo_stamp). Call
 * it before a request is received. */
void responder_forget_old(struct responder *responder, uint64_t now_ns);

/** Tell a SACK-capable peer what has come, although no packet asks for it: packets of both sides
 * may have been lost, and the peer then sends again what is missing. Other peers are told nothing.
 */
void responder_tell(struct responder *responder);

/** Start over, expecting `epsn`. */
void responder_reset(struct responder *responder, struct psn epsn);

/** Return the right (enum ibv_access_flags) that a request needs of its queue pair, or 0. MT-safe.
 */
unsigned int responder_need(const struct packet *packet);

/**
 * Process a request packet. Its answer is then owed in `replies`. On an unreliable connection
 * nothing is owed, and a message with a lost or bad packet is dropped silently (9.8.2.2).
 *
 * @return
 *   FAULT_NONE, or the fault with which the queue pair fails; the NAK is already owed, and a
 *   receive request in use is completed.
 */
enum fault responder_receive(struct responder *responder, const struct packet *packet);

/** Note that pages or an answer have come, perhaps the awaited one: execute kept packets. As
 * responder_receive. */
enum fault responder_resume(struct responder *responder);

/** Assert the invariants between two packets while the queue pair receives; for builds with
 * assertions. */
void responder_check(const struct responder *responder);

/**
 * XRC: forget a shared receive queue that is destroyed. A message that uses it cannot continue, and
 * its receive request vanishes.
 *
 * @param instead
 *   A protection domain that has no keys.
 */
void responder_forget_srq(struct responder *responder, const struct srq *srq,
			  const struct pd *instead);

/** Complete the receive request in use and all posted ones with IBV_WC_WR_FLUSH_ERR, except those
 * of a shared queue. */
void responder_flush(struct responder *responder);

#endif
