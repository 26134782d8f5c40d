/* SPDX-License-Identifier: BSD-3-Clause */
/* A requester's packets in flight: their PSNs, and how many packets and responses are allowed.
 * Shared by requester and completer. */
#ifndef TRANSPORT_FLIGHT_H
#define TRANSPORT_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

#define FLIGHT_WINDOW_MAX \
	256 /* packets; enough for 1 MiB at the largest MTU, and less than the ports' rings */
#define FLIGHT_WINDOW_LIMIT 4096 /* the longest window that a queue pair may be created with */
/* Losses do not reduce the window below this; a window that is created smaller stays as it is. */
#define FLIGHT_WINDOW_MIN  4
#define FLIGHT_WINDOW_STEP 8

/* The longest selective retransmission: if adjacent packets were lost, it doubles up to here. */
#define FLIGHT_RETRANSMIT_MAX 32

/* What the peer does with packets behind a lost one. It is learnt from the peer's answer to a
 * retransmission of only the lost packet. */
enum flight_peer {
	FLIGHT_PEER_UNKNOWN,
	FLIGHT_PEER_KEEPS, /* they need not be retransmitted */
	FLIGHT_PEER_DROPS, /* everything must be retransmitted (go-back-N) */
};

/*
 * A selective retransmission sends missing packets again, from una on, while `next` stays where it
 * is. It ends when una reaches its end, or when the requester goes back.
 */
enum flight_retransmit {
	RETRANSMIT_NONE,
	RETRANSMIT_REQUEST, /* the peer reported a missing packet: its answer shows what kind of
			       peer it is */
	RETRANSMIT_RNR, /* the peer was not ready for the packet at una: as RETRANSMIT_REQUEST, but
			   nothing was lost */
	RETRANSMIT_RESPONSE, /* a response is missing: send its request */
	RETRANSMIT_PROBE,    /* nothing is known to be missing, but no answer comes */
};

/*
 * Each stored PSN is between una and top, which are less than 2^23 apart. una advances with each
 * acknowledgement (flight_acked), which also advances those that it would leave behind. A PSN that
 * is valid only for a time says when that ends.
 */
struct flight {
	struct psn una;	    /* oldest PSN that is not acknowledged */
	struct psn next;    /* PSN of the next packet to send; una <= next <= top */
	struct psn top;	    /* one past the newest PSN ever sent: below it are retransmissions */
	uint32_t window;    /* most packets that may be unacknowledged */
	uint32_t acked;	    /* packets acknowledged since the window last grew */
	uint32_t responses; /* READ segments and atomics that are sent and not answered */
	uint32_t max_responses; /* the peer's responder resources: max_rd_atomic */
	uint32_t window_max; /* limit of the window: 1 to FLIGHT_WINDOW_LIMIT, or 0 for the default
			      */

	enum flight_peer peer;
	enum flight_retransmit retransmit;
	/* Valid only while `retransmit` is not RETRANSMIT_NONE, which ends when una reaches
	 * retransmit_to (retransmit_settle). */
	struct psn retransmit_from; /* una at its beginning */
	struct psn retransmit_next; /* next PSN to retransmit; una <= retransmit_next <=
				       retransmit_to; flight_acked advances it */
	struct psn retransmit_to;   /* its end; una < retransmit_to <= next */
	bool retransmit_sent;	    /* some of it was sent: before that, an answer is to the first
				       transmission, and tells nothing about the retransmission */
	uint32_t retransmit_run;    /* packets of the newest RETRANSMIT_REQUEST */
	uint32_t doubts; /* unknown peer: retransmissions that were answered by a NAK for the next
			    packet */
	bool went_back; /* since the newest sequence NAK: `next` is the next packet to retransmit */
	bool waits;	/* una waits for READ responses, but the peer has executed everything before
			   `executed`; ends when una reaches it (retransmit_settle) */
	struct psn executed;  /* valid only while `waits`; una < executed <= top */
	struct psn slowed_to; /* losses before this PSN have already reduced the window; una <=
				 slowed_to <= top; flight_acked advances it */
};

/* Start over at `first`. The attributes from creation stay: window_max, max_responses. */
static inline void flight_init(struct flight *flight, struct psn first)
{
	flight->una = first;
	flight->next = first;
	flight->top = first;
	if (flight->window_max == 0)
		flight->window_max = FLIGHT_WINDOW_MAX;
	flight->window = flight->window_max;
	flight->acked = 0;
	flight->responses = 0;
	flight->peer = FLIGHT_PEER_UNKNOWN;
	flight->retransmit = RETRANSMIT_NONE;
	flight->retransmit_run = 1;
	flight->doubts = 0;
	flight->went_back = false;
	flight->waits = false;
	flight->slowed_to = first;
}

static inline void flight_peer_keeps(struct flight *flight)
{
	flight->peer = FLIGHT_PEER_KEEPS;
	flight->doubts = 0;
}

/* Return the number of packets sent and not acknowledged. */
static inline uint32_t flight_outstanding(const struct flight *flight)
{
	return (uint32_t)psn_diff(flight->next, flight->una);
}

/* Return true if no packet that was ever sent is unacknowledged. */
static inline bool flight_idle(const struct flight *flight)
{
	return psn_eq(flight->una, flight->top);
}

static inline bool flight_full(const struct flight *flight)
{
	return flight_outstanding(flight) >= flight->window;
}

/* Note that the packet `next` was sent. It stands for `count` PSNs (a READ segment stands for its
 * responses). */
static inline void flight_sent(struct flight *flight, uint32_t count)
{
	flight->next = psn_add(flight->next, (int32_t)count);
	if (psn_before(flight->top, flight->next))
		flight->top = flight->next;
}

/* Note that everything before `psn` is acknowledged. A packet that is now known to have arrived is
 * not retransmitted a second time. */
static inline void flight_acked(struct flight *flight, struct psn psn)
{
	if (psn_before(flight->next, psn)) {
		/* The acknowledgement covers packets that were not retransmitted, so the peer keeps
		 * out-of-order packets. But if nothing was retransmitted yet, the missing packet
		 * was only late: any peer then accepts it and what follows. */
		if (flight->went_back && !psn_eq(flight->next, flight->una))
			flight_peer_keeps(flight);
		flight->next = psn;
	}
	flight->acked += (uint32_t)psn_diff(psn, flight->una);
	flight->una = psn;
	if (psn_before(flight->slowed_to, psn))
		flight->slowed_to = psn;
	if (flight->retransmit != RETRANSMIT_NONE && psn_before(flight->retransmit_next, psn))
		flight->retransmit_next = psn;
	if (flight->acked >= flight->window) {
		flight->acked = 0;
		flight->window += FLIGHT_WINDOW_STEP;
		if (flight->window > flight->window_max)
			flight->window = flight->window_max;
	}
}

static inline void flight_narrow(struct flight *flight)
{
	if (flight->window > 2 * FLIGHT_WINDOW_MIN)
		flight->window /= 2;
}

/* Go back: retransmit everything unacknowledged. If it was a loss, halve the window. */
static inline void flight_rewind(struct flight *flight, bool lost)
{
	flight->next = flight->una;
	flight->responses = 0;
	flight->acked = 0;
	flight->retransmit = RETRANSMIT_NONE;
	flight->went_back = false;
	if (lost)
		flight_narrow(flight);
}

/* Begin a selective retransmission of what is missing before `to`. If it was lost, halve the
 * window, unless losses of the same flight have already done so. */
static inline void flight_retransmit(struct flight *flight, enum flight_retransmit retransmit,
				     struct psn to)
{
	flight->retransmit = retransmit;
	flight->retransmit_from = flight->una;
	flight->retransmit_next = flight->una;
	flight->retransmit_to = to;
	flight->retransmit_sent = false;
	if ((retransmit == RETRANSMIT_REQUEST || retransmit == RETRANSMIT_RESPONSE) &&
	    !psn_before(flight->una, flight->slowed_to)) {
		flight->slowed_to = flight->next;
		flight_narrow(flight);
	}
}

/* Return true if nothing new may be sent, because the peer may drop it, or was not ready for
 * earlier packets. */
static inline bool flight_holds(const struct flight *flight)
{
	return flight->retransmit == RETRANSMIT_RNR ||
	       (flight->retransmit == RETRANSMIT_REQUEST && flight->peer == FLIGHT_PEER_UNKNOWN);
}

/* Note that everything before `psn` is executed, but responses before it are missing. */
static inline void flight_executed(struct flight *flight, struct psn psn)
{
	if (!flight->waits || psn_before(flight->executed, psn))
		flight->executed = psn;
	flight->waits = true;
}

#endif
