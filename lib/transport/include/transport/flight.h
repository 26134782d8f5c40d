/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester has in the air: its PSNs, and how many packets and responses may be. Shared by
 * requester and completer. */
#ifndef TRANSPORT_FLIGHT_H
#define TRANSPORT_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

#define FLIGHT_WINDOW_MAX \
	256 /* packets; enough for 1 MiB at the largest MTU, and less than the ports' rings */
#define FLIGHT_WINDOW_LIMIT 4096 /* the longest that a queue pair may be made with */
/* Losses do not narrow the window below this; one that is made with less stays as it is. */
#define FLIGHT_WINDOW_MIN  4
#define FLIGHT_WINDOW_STEP 8

/* The longest repair: where packets next to each other were lost, it doubles up to here. */
#define FLIGHT_REPAIR_MAX 32

/* What the peer does with packets that come behind a lost one; learnt from what it answers when the
 * lost one alone is sent again. */
enum flight_peer {
	FLIGHT_PEER_UNKNOWN,
	FLIGHT_PEER_KEEPS, /* they need not be sent again */
	FLIGHT_PEER_DROPS, /* everything is to be sent again (go-back-N) */
};

/*
 * A repair sends again, from una on, what is missing, while `next` stays where it is. It is over
 * when una has come to its end, or at a rewind.
 */
enum flight_repair {
	REPAIR_NONE,
	REPAIR_REQUEST, /* the peer has told what it misses: its answer shows what peer it is */
	REPAIR_RNR, /* the peer was not ready for the packet at una: as REPAIR_REQUEST, but nothing
		       was lost */
	REPAIR_RESPONSE, /* a response is missing: the request for it */
	REPAIR_PROBE,	 /* nothing is known to be missing, but no answer comes */
};

/*
 * Each PSN that is kept here lies between una and top, which are less than 2^23 apart: una moves
 * with each acknowledgement (flight_acked), and moves along what it would leave behind. One that
 * has a meaning for a while only says when that ends.
 */
struct flight {
	struct psn una;	 /* oldest PSN not acknowledged */
	struct psn next; /* PSN of the packet to be sent next; una <= next <= top */
	struct psn top; /* one past the newest PSN ever sent: what is sent below it is sent again */
	uint32_t window;	/* packets that may be unacknowledged */
	uint32_t acked;		/* packets acknowledged since the window last grew */
	uint32_t responses;	/* READ segments and atomics sent and not answered */
	uint32_t max_responses; /* the peer's responder resources: max_rd_atomic */
	uint32_t window_max; /* of the window: 1 to FLIGHT_WINDOW_LIMIT, or 0 for the usual one */

	enum flight_peer peer;
	enum flight_repair repair;
	/* Only while repair is not REPAIR_NONE, which ends when una comes to repair_to
	 * (repair_settle). */
	struct psn repair_from; /* where una was when it began */
	struct psn repair_next; /* to be sent by the repair next; una <= repair_next <= repair_to;
				   flight_acked moves it along */
	struct psn repair_to;	/* its end; una < repair_to <= next */
	bool repair_sent; /* some of it was sent: before, an answer is to what was sent first, and
			     tells nothing of the repair */
	uint32_t repair_run; /* packets of the newest REPAIR_REQUEST */
	uint32_t doubts;     /* of an unknown peer: repairs that were answered with the next gap */
	bool went_back;	     /* since the newest sequence NAK: `next` is what is to be sent again */
	bool waits; /* una waits for READ responses, but the peer has executed everything before
		       `executed`; ends when una comes to that (repair_settle) */
	struct psn executed;  /* only while `waits`; una < executed <= top */
	struct psn slowed_to; /* losses of packets before this have narrowed the window already;
				 una <= slowed_to <= top; flight_acked moves it along */
};

/* Start over at `first`. What the queue pair was made with stays: window_max, max_responses. */
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
	flight->repair = REPAIR_NONE;
	flight->repair_run = 1;
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

/* Packets sent and not acknowledged. */
static inline uint32_t flight_outstanding(const struct flight *flight)
{
	return (uint32_t)psn_diff(flight->next, flight->una);
}

/* Nothing that was ever sent waits for its acknowledgement. */
static inline bool flight_idle(const struct flight *flight)
{
	return psn_eq(flight->una, flight->top);
}

static inline bool flight_full(const struct flight *flight)
{
	return flight_outstanding(flight) >= flight->window;
}

/* The packet `next` was sent, and stands for `count` PSNs (a READ segment stands for its
 * responses). */
static inline void flight_sent(struct flight *flight, uint32_t count)
{
	flight->next = psn_add(flight->next, (int32_t)count);
	if (psn_before(flight->top, flight->next))
		flight->top = flight->next;
}

/* Everything before `psn` is acknowledged. What was sent again and is now known to have come needs
 * no third sending. */
static inline void flight_acked(struct flight *flight, struct psn psn)
{
	if (psn_before(flight->next, psn)) {
		/* The peer has what it did not accept in order, and what was not sent again. But
		 * where nothing was sent again yet, the missing packet was late: any peer takes it,
		 * and what follows it. */
		if (flight->went_back && !psn_eq(flight->next, flight->una))
			flight_peer_keeps(flight);
		flight->next = psn;
	}
	flight->acked += (uint32_t)psn_diff(psn, flight->una);
	flight->una = psn;
	if (psn_before(flight->slowed_to, psn))
		flight->slowed_to = psn;
	if (flight->repair != REPAIR_NONE && psn_before(flight->repair_next, psn))
		flight->repair_next = psn;
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

/* Send everything unacknowledged again; half as fast if that was a loss. */
static inline void flight_rewind(struct flight *flight, bool lost)
{
	flight->next = flight->una;
	flight->responses = 0;
	flight->acked = 0;
	flight->repair = REPAIR_NONE;
	flight->went_back = false;
	if (lost)
		flight_narrow(flight);
}

/* Send again what is missing before `to`; half as fast where it was lost, if that is not so already
 * for losses of the same flight. */
static inline void flight_mend(struct flight *flight, enum flight_repair repair, struct psn to)
{
	flight->repair = repair;
	flight->repair_from = flight->una;
	flight->repair_next = flight->una;
	flight->repair_to = to;
	flight->repair_sent = false;
	if ((repair == REPAIR_REQUEST || repair == REPAIR_RESPONSE) &&
	    !psn_before(flight->una, flight->slowed_to)) {
		flight->slowed_to = flight->next;
		flight_narrow(flight);
	}
}

/* Nothing new is sent to a peer that may drop it, or that was not ready for what it has. */
static inline bool flight_holds(const struct flight *flight)
{
	return flight->repair == REPAIR_RNR ||
	       (flight->repair == REPAIR_REQUEST && flight->peer == FLIGHT_PEER_UNKNOWN);
}

/* Everything before `psn` is executed; responses before it are missing. */
static inline void flight_executed(struct flight *flight, struct psn psn)
{
	if (!flight->waits || psn_before(flight->executed, psn))
		flight->executed = psn;
	flight->waits = true;
}

#endif
