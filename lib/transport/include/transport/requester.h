/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of a connected queue pair: turns posted work into request packets (IBTA 9.7.3).
 */
#ifndef TRANSPORT_REQUESTER_H
#define TRANSPORT_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/sq.h"
#include "telemetry/counters.h"
#include "transport/flight.h"
#include "transport/pacer.h"
#include "transport/peer.h"
#include "transport/sgl.h"
#include "transport/sink.h"
#include "transport/status.h"

/*
 * A READ is requested in segments of so many response packets, each a request of its own on the
 * wire: the responder's burst is bounded, and a lost response costs a segment. The responder cannot
 * tell the difference.
 */
#define REQUESTER_READ_SEGMENT_PKTS 64

/* An acknowledgement is asked for at least every so many packets, so that long messages move the
 * window. */
#define REQUESTER_ACK_INTERVAL_PKTS 32

enum requester_state {
	REQUESTER_STOPPED, /* not in a state that sends */
	REQUESTER_RUNNING,
	REQUESTER_DRAINING, /* SQD: finishes messages that are begun, begins none (IBTA 10.3.1) */
};

struct requester {
	/* narrow pointers, set once */
	struct sq *sq;
	const struct pd *pd;
	const struct peer *peer;
	struct flight *flight;
	struct pacer *pacer;
	struct counters *counters;
	struct mw_list *windows; /* of type 2 that the queue pair has bound; NULL for XRC, where
				    requests come to another one */
	uint32_t qpn;		 /* our own, which windows are bound for */
	uint8_t service;	 /* OPCODE_RC, OPCODE_UC or OPCODE_XRC */

	enum requester_state state;
	/*
	 * Why the request at faulty_index cannot be sent, found in the last turn: it fails when all
	 * before it are complete. Each turn judges anew, because a request that was sent before may
	 * be acknowledged meanwhile, and then there is nothing wrong with it.
	 */
	enum fault fault;
	uint32_t faulty_index; /* only compared with sq->cons */
	/*
	 * flight->next and sq->next as they were when sgl was placed. sgl is valid only while both
	 * are still the same (requester_stands). Neither is ever compared for order, so nobody has
	 * to move them along. The PSN is psn_none() where nothing was located.
	 */
	struct psn place_psn;
	uint32_t place_index;
	struct sgl sgl;	    /* of the request at place_index, at the next byte to send */
	bool flush_repeats; /* the form of FLUSHes' ICRC; see packet_icrc_ok */
	bool absent;	    /* a page of what is to be sent next was not in memory */
	uint32_t unasked;   /* packets sent since an acknowledgement was asked for */
};

/* sq->next and sgl stand for flight->next. */
static inline bool requester_stands(const struct requester *requester)
{
	return psn_eq(requester->place_psn, requester->flight->next) &&
	       requester->place_index == requester->sq->next;
}

/** Start over at flight->next, with the oldest request of the queue. */
void requester_reset(struct requester *requester, enum requester_state state);

/**
 * Send request packets.
 *
 * @param budget
 *   How many at most.
 * @param more
 *   Set true when budget or sink ended it, not the queue, a fence, the window, the pacer or a page
 * that is not in memory (`absent`).
 * @return
 *   How many were sent.
 */
unsigned int requester_send(struct requester *requester, struct packet_sink *sink,
			    unsigned int budget, bool *more);

/** Whether a fault is due: everything before the faulty request is complete. */
static inline bool requester_fault_due(const struct requester *requester)
{
	return requester->fault != FAULT_NONE && requester->sq->cons == requester->faulty_index;
}

/** Whether what is posted and sent next is a WRITE that no completion tells the peer of. */
static inline bool requester_writes_next(const struct requester *requester)
{
	const struct sq *sq = requester->sq;

	return sq->next != sq_prod(sq) && sq_at(sq, sq->next)->opcode == IBV_WR_RDMA_WRITE;
}

/** Whether a draining requester has nothing left in the air or half sent. */
bool requester_drained(const struct requester *requester);

/** PSNs of the READ request that goes out for the responses from `psn` on: a segment, or what is
 * left of it. Segments end at fixed places, so that one sent again from its middle ends where it
 * did. */
uint32_t requester_segment_psns(const struct send_wqe *wqe, struct psn psn);

/* Whether the answer to a request brings data. */
static inline bool requester_wants_data(const struct send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || sq_is_atomic((enum ibv_wr_opcode)wqe->opcode);
}

/* Whether the answer to a request is an empty READ response (annex A19). */
static inline bool requester_wants_word(const struct send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_WRITE || wqe->opcode == LATER_WR_FLUSH;
}

/* Whether a request is answered by a response of its own, not by an acknowledgement. */
static inline bool requester_wants_response(const struct send_wqe *wqe)
{
	return requester_wants_data(wqe) || requester_wants_word(wqe);
}

#endif
