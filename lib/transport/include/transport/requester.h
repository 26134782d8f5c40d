/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of a connected queue pair: converts posted work into request packets (IBTA
 * 9.7.3). */
#ifndef TRANSPORT_REQUESTER_H
#define TRANSPORT_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/sq.h"
#include "telemetry/counters.h"
#include "transport/loss.h"
#include "transport/pacer.h"
#include "transport/peer.h"
#include "transport/sgl.h"
#include "transport/sink.h"
#include "transport/status.h"

/*
 * A READ is requested in segments of this many response packets. Each segment is a request of its
 * own. So the responder's burst is limited, and a lost response costs one segment. The responder
 * cannot see the difference.
 */
#define REQUESTER_READ_SEGMENT_PKTS 64

/* An acknowledgement is requested at least every this many packets, so that the window advances
 * during long messages. */
#define REQUESTER_ACK_INTERVAL_PKTS 32

enum requester_state {
	REQUESTER_STOPPED, /* the state does not send */
	REQUESTER_RUNNING,
	REQUESTER_DRAINING, /* SQD: finishes messages that have begun, begins none (IBTA 10.3.1) */
};

struct requester {
	/* set once */
	struct sq *sq;
	const struct pd *pd;
	const struct peer *peer;
	struct loss *loss;
	struct pacer *pacer;
	struct counters *counters;
	struct mw_list *windows; /* windows of type 2 that the queue pair has bound; NULL for XRC,
				    where requests come to another one */
	uint32_t qpn;		 /* our own; windows are bound for it */
	uint8_t service;	 /* OPCODE_RC, OPCODE_UC or OPCODE_XRC */

	bool flush_repeats; /* the form of a FLUSH's ICRC; see packet_icrc_ok */
	bool absent;	    /* a page of the next packet was not in memory */
	bool executed;	    /* local work was executed in this poll; for qp_run, of RC and XRC */
	enum requester_state state;
	/*
	 * The reason why the request at faulty_index cannot be sent, found in the last engine poll.
	 * It fails when all before it are complete. Each engine poll checks again, because a
	 * request that was sent before may be acknowledged meanwhile, and then nothing is wrong
	 * with it.
	 */
	enum fault fault;
	uint32_t faulty_index; /* only compared with sq->cons */
	/*
	 * loss->next and sq->next at the time when sgl was placed. sgl is valid only while both
	 * are still the same (requester_stands). They are only compared for equality, so nobody has
	 * to advance them. The PSN is psn_none() if nothing was located.
	 */
	struct psn place_psn;
	uint32_t place_index;
	uint32_t unasked; /* packets sent since an acknowledgement was requested */
	struct sgl sgl;	  /* of the request at place_index, at the next byte to send */
};

/* Return true if sq->next and sgl are those of loss->next. */
static inline bool requester_stands(const struct requester *requester)
{
	return psn_eq(requester->place_psn, requester->loss->next) &&
	       requester->place_index == requester->sq->next;
}

/** Start over at loss->next, with the oldest request of the queue. */
void requester_reset(struct requester *requester, enum requester_state state);

/**
 * Send request packets.
 *
 * @param budget
 *   The most packets to send.
 * @param more
 *   Set to true if the budget or the sink ended it, and not the queue, a fence, the window, the
 *   pacer or a page that is not in memory (`absent`).
 * @return
 *   The number of packets sent.
 */
unsigned int requester_send(struct requester *requester, struct packet_sink *sink,
			    unsigned int budget, bool *more);

/** Return true if a fault is due: everything before the faulty request is complete. */
static inline bool requester_fault_due(const struct requester *requester)
{
	return requester->fault != FAULT_NONE && requester->sq->cons == requester->faulty_index;
}

/** Return true if the next posted request to send is a WRITE without a completion at the peer. */
static inline bool requester_writes_next(const struct requester *requester)
{
	const struct sq *sq = requester->sq;

	return sq->next != sq_prod(sq) && sq_at(sq, sq->next)->opcode == IBV_WR_RDMA_WRITE;
}

/** Return true if a draining requester has nothing in flight and no message half sent. */
bool requester_drained(const struct requester *requester);

/** Return the PSNs of the READ request for the responses from `psn` on: a segment, or the rest of
 * one. Segments end at fixed places, so that a segment that is requested again from its middle ends
 * where it did. */
uint32_t requester_segment_psns(const struct send_wqe *wqe, struct psn psn);

/* Return true if the answer to a request has data. */
static inline bool requester_wants_data(const struct send_wqe *wqe)
{
	return sq_is_in(SQ_OPCODE(IBV_WR_RDMA_READ) | SQ_ATOMICS, wqe->opcode);
}

/* Return true if the answer to a request is a READ response without payload (annex A19). */
static inline bool requester_wants_empty_read(const struct send_wqe *wqe)
{
	return sq_is_in(SQ_OPCODE(IBV_WR_ATOMIC_WRITE) | SQ_OPCODE(LATER_WR_FLUSH), wqe->opcode);
}

/* Return true if a request is answered by a response of its own, and not by an acknowledgement. */
static inline bool requester_wants_response(const struct send_wqe *wqe)
{
	return sq_is_in(SQ_OPCODE(IBV_WR_RDMA_READ) | SQ_ATOMICS | SQ_OPCODE(IBV_WR_ATOMIC_WRITE) |
				SQ_OPCODE(LATER_WR_FLUSH),
			wqe->opcode);
}

#endif
