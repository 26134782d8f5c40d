/* SPDX-License-Identifier: BSD-3-Clause */
/* Assertions of the invariants of a requester, its flight, its timers and its completer. */
#include "transport/check.h"

#ifndef NDEBUG

#include <assert.h>

#include "transport/completer.h"
#include "transport/flight.h"
#include "transport/recovery.h"
#include "transport/requester.h"

/* Return true if `from` <= psn <= `to`, which are less than 2^23 apart. */
static bool between(struct psn from, struct psn psn, struct psn to)
{
	return !psn_before(psn, from) && !psn_before(to, psn);
}

static void flight_check_retransmit(const struct flight *flight)
{
	if (flight->retransmit == RETRANSMIT_NONE)
		return;
	assert(psn_before(flight->una, flight->retransmit_to));
	assert(!psn_before(flight->next, flight->retransmit_to));
	assert(between(flight->una, flight->retransmit_next, flight->retransmit_to));
	assert(!psn_before(flight->una, flight->retransmit_from));
	assert(flight->retransmit_run >= 1);
}

void flight_check(const struct flight *flight)
{
	assert(between(flight->una, flight->next, flight->top));
	/* The last packet may be a READ request for a segment. */
	assert((uint32_t)psn_diff(flight->top, flight->una) <
	       flight->window_max + REQUESTER_READ_SEGMENT_PKTS);
	assert(flight->window >= 1 && flight->window <= flight->window_max);
	assert(flight->acked < flight->window_max);
	assert(between(flight->una, flight->slowed_to, flight->top));
	assert(!flight->waits || (psn_before(flight->una, flight->executed) &&
				  !psn_before(flight->top, flight->executed)));
	flight_check_retransmit(flight);
}

void recovery_check(const struct recovery *recovery, const struct flight *flight)
{
	const bool in_air = !psn_eq(flight->una, flight->top);

	assert(recovery->retransmit_tries <= RECOVERY_RETRANSMIT_DOUBLINGS);
	assert(!recovery->timing || (!psn_before(recovery->timed, flight->una) &&
				     psn_before(recovery->timed, flight->top)));
	/* A packet in flight has a timer, if the acknowledgement timer is in use. */
	if (recovery->state == RECOVERY_RNR_WAIT)
		assert(recovery->deadline_ns != RECOVERY_NEVER &&
		       recovery->retransmit_ns == RECOVERY_NEVER);
	else if (!in_air)
		assert(flight->retransmit == RETRANSMIT_NONE);
	else if (!psn_eq(flight->una, flight->next) && recovery->timeout_ns != 0)
		assert(recovery->deadline_ns != RECOVERY_NEVER);
}

/* Count READ segments and other requests in [from, to) that are answered by responses of their
 * own. */
static uint32_t responses_between(const struct send_wqe *wqe, struct psn from, struct psn to)
{
	uint32_t first, last;

	if (psn_before(from, wqe->first_psn))
		from = wqe->first_psn;
	if (psn_before(wqe->last_psn, to))
		to = psn_add(wqe->last_psn, 1);
	if (!psn_before(from, to))
		return 0;
	first = (uint32_t)psn_diff(from, wqe->first_psn) / REQUESTER_READ_SEGMENT_PKTS;
	last = ((uint32_t)psn_diff(to, wqe->first_psn) - 1) / REQUESTER_READ_SEGMENT_PKTS;
	return last - first + 1;
}

/*
 * Requests that were started follow each other without a gap in their PSNs. The oldest contains
 * una, if anything is in flight, and the newest ends at top or behind it.
 */
static void requester_check_requests(const struct requester *requester)
{
	const struct flight *flight = requester->flight;
	const struct sq *sq = requester->sq;
	const uint32_t prod = sq_prod(sq);
	struct psn end = flight->una;
	uint32_t responses = 0;
	uint32_t i = sq->cons;

	for (; i != prod && sq_at(sq, i)->started; i++) {
		const struct send_wqe *wqe = sq_at(sq, i);

		assert(i == sq->cons ? between(wqe->first_psn, flight->una, wqe->last_psn)
				     : psn_eq(wqe->first_psn, end));
		end = psn_add(wqe->last_psn, 1);
		if (requester_wants_response(wqe))
			responses += responses_between(wqe, flight->una, flight->next);
	}
	assert(!psn_before(end, flight->top));
	assert(flight->responses == responses);
	/* The other requests are not started. */
	for (; i != prod; i++)
		assert(!sq_at(sq, i)->started);
}

void requester_check(const struct requester *requester)
{
	const struct flight *flight = requester->flight;
	const struct sq *sq = requester->sq;
	const struct send_wqe *wqe;

	requester_check_requests(requester);
	if (!requester_stands(requester) || sq->next == sq_prod(sq))
		return;
	wqe = sq_at(sq, sq->next);
	/* A local request has its last PSN before its first. */
	if (wqe->started && sq_is_local((enum ibv_wr_opcode)wqe->opcode))
		assert(psn_eq(wqe->first_psn, flight->next));
	else if (wqe->started)
		assert(between(wqe->first_psn, flight->next, wqe->last_psn));
	else
		assert(psn_eq(flight->next, flight->top));
}

void completer_check(const struct completer *completer)
{
	const struct packet *first = ooo_first(&completer->ooo);

	ooo_check(&completer->ooo);
	assert(first == NULL || completer->flight->waits);
}

#endif
