/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving half of a connected queue pair: checks requests, executes them, owes answers
 * (IBTA 9.7.4 and 9.7.5). */
#ifndef TRANSPORT_RESPONDER_H
#define TRANSPORT_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "base/psn.h"
#include "queue/cq.h"
#include "queue/rq.h"
#include "telemetry/counters.h"
#include "transport/early.h"
#include "transport/page_wait.h"
#include "transport/receive.h"
#include "transport/replies.h"
#include "transport/status.h"

struct packet;
struct pd;

/* What kind of message the next packet may go on with. */
enum responder_message {
	MESSAGE_NONE,
	MESSAGE_SEND,
	MESSAGE_WRITE,
};

/* What is known of the expected packet. */
enum responder_gap {
	GAP_NONE,    /* nothing */
	GAP_NAKED,   /* a sequence NAK for it was made: what comes behind it draws none (C9-112) */
	GAP_CLOSING, /* within a turn: a NAK was made for it and it has come; what is kept behind it
			is executed */
	GAP_NOT_READY, /* an RNR NAK for it was made: what is behind it is kept without an answer */
	GAP_WAITS,     /* it is kept, and had no receive request: an RNR NAK is made when it comes
			  again, or a sequence NAK when a packet from behind it comes before */
	GAP_PAGE,      /* it is kept, and a page that it accesses is not in memory: it is executed
			  when that comes (responder_resume); what is behind it is kept */
};

/* What a WRITE needs stands together, behind three pointers (lib/qp/internal.h has the lines). */
struct responder {
	/* narrow pointers, set once */
	struct rq *rq;
	struct srq *srq; /* that rq is of, or NULL */
	struct cq *cq;
	const struct pd *pd; /* of the memory that peers name; a shared queue has one for its own */
	struct receive *receive;
	struct replies *replies;
	struct counters *counters;
	uint32_t qpn;	 /* our own, for completions */
	uint8_t service; /* OPCODE_RC, OPCODE_UC or OPCODE_XRC */

	/* attributes of the queue pair */
	uint8_t min_rnr_timer;
	uint32_t mtu;	     /* path MTU, bytes */
	unsigned int access; /* IBV_ACCESS_REMOTE_*: operations that are enabled */

	struct psn epsn; /* expected PSN */
	/*
	 * Of the newest SEND or WRITE packet executed; what came behind it (READs, atomics) is
	 * answered, not acknowledged. responder_age moves it along: more than RESPONDER_ACK_REACH
	 * behind epsn it is of none, and there is nothing to acknowledge.
	 */
	struct psn ack_psn;
	uint32_t msn; /* messages executed, 24 bits */
	enum responder_message message;
	uint8_t gap;	    /* enum responder_gap */
	uint16_t gap_hints; /* packets kept that no NAK was made for: at most so many are due */
	bool refused;	    /* an RNR NAK was made, and what is kept behind it comes again */
	bool gap_dropped;   /* while a request waited for a page, one from behind it was not kept:
			       it is asked for when all that is kept is executed */
	/* While GAP_NAKED, of the first packet behind the gap; epsn until one comes. That stands
	 * still meanwhile, so nobody has to move this along. */
	struct psn gap_psn;

	/* the WRITE in progress */
	uint64_t write_iova;   /* of the next byte */
	uint32_t write_length; /* bytes of the message */
	uint32_t write_left;   /* bytes */
	uint32_t write_rkey;

	uint32_t peer_qpn; /* an attribute, for completions */

	/* Packets that came out of order. Each time epsn has moved, gap_next drops those before it.
	 */
	struct early early;

	/* XRC: each packet names a shared receive queue of the domain, which gives pd, rq, srq and
	 * cq */
	struct srq *(*find_srq)(void *domain, uint32_t number);
	void *domain;

	/* A request that has met an absent page: its PSN, which is only compared with epsn for
	 * equality, so that nobody has to move it along. */
	struct psn page_psn;
	struct page_wait page_wait;
};

/* How far behind epsn an acknowledgement may be. A requester compares it with what it has sent, so
 * the other half of what PSNs can tell apart is for its packets from epsn on. A SEND or WRITE that
 * is older is acknowledged by the responses of the READs that follow it. */
#define RESPONDER_ACK_REACH (1u << 22)
/* epsn passes a multiple of this at least as often as PSNs that are kept must be moved along. */
#define RESPONDER_AGE_PSNS (1u << 21)

/** Owe an acknowledgement of what was executed, if that has to be acknowledged. */
static inline void responder_acknowledge(struct responder *responder)
{
	if (psn_since(responder->epsn, responder->ack_psn) <= RESPONDER_ACK_REACH)
		replies_ack(responder->replies, responder->ack_psn, responder->msn);
}

/** PSNs that the responses of a READ of so many bytes take up. */
static inline uint32_t responder_psns(const struct responder *responder, uint32_t dma_length)
{
	if (dma_length == 0)
		return 1;
	/* A power of two. */
	return (uint32_t)(((uint64_t)dma_length + responder->mtu - 1) >> rte_bsf32(responder->mtu));
}

/** Start over, expecting `epsn`. */
void responder_reset(struct responder *responder, struct psn epsn);

/**
 * Take in a request packet. What is owed for it is then in `replies`. On an unreliable connection
 * nothing is owed, and a message with a lost or bad packet is dropped silently (9.8.2.2).
 *
 * @return
 *   FAULT_NONE, or why the queue pair fails; the NAK is owed, and a receive request in use
 * completed, already.
 */
enum fault responder_receive(struct responder *responder, const struct packet *packet);

/** Pages have come, perhaps the one that is waited for: execute what is kept. As
 * responder_receive. */
enum fault responder_resume(struct responder *responder);

/** Assert what holds between two packets while the queue pair receives; for builds with assertions.
 */
void responder_check(const struct responder *responder);

/**
 * XRC: a shared receive queue goes. A message that uses it cannot go on, and its receive request
 * vanishes.
 *
 * @param instead
 *   A protection domain that has no keys.
 */
void responder_forget_srq(struct responder *responder, const struct srq *srq,
			  const struct pd *instead);

/** Complete the receive request in use and all posted ones with IBV_WC_WR_FLUSH_ERR; not those of a
 * shared queue. */
void responder_flush(struct responder *responder);

#endif
