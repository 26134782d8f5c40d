/* SPDX-License-Identifier: BSD-3-Clause */
/* Assertions of the invariants of a requester, its completer, and the owner of loss. */
#include "transport/check.h"

#ifndef NDEBUG

#include <assert.h>

#include <rte_common.h>

#include "transport/completer.h"
#include "transport/loss.h"
#include "transport/requester.h"

/* Return true if `from` <= psn <= `to`, which are less than 2^23 apart. */
static bool between(struct psn from, struct psn psn, struct psn to)
{
	return !psn_before(psn, from) && !psn_before(to, psn);
}

/* PSNs that are compared with others must not be left behind. */
static void loss_check_board(const struct loss *loss)
{
	const struct scoreboard *board = loss->board;

	scoreboard_check(board, loss->una, loss->top);
	for (int kind = 0; kind < AGAIN_KINDS; kind++)
		assert(between(loss->una, board->came[kind], loss->top));
	assert(between(loss->una, board->answered, loss->top));
	assert(between(loss->una, board->scanned, loss->top));
}

static void loss_check_state(const struct loss *loss)
{
	if (loss->state == LOSS_NONE) {
		assert(psn_eq(loss->next, loss->top));
		assert(loss->board == NULL || scoreboard_is_empty(loss->board));
		return;
	}
	assert(between(loss->una, loss->recovery_point, loss->top));
	assert(between(loss->una, loss->executed, loss->top));
	loss_check_board(loss);
	if (!loss_is_selective(loss))
		return;
	assert(psn_before(loss->una, loss->to));
	assert(!psn_before(loss->next, loss->to));
	assert(loss->state == LOSS_SACKED || !psn_before(loss->una, loss->from));
	assert(loss->run >= 1);
}

static void loss_check_timers(const struct loss *loss)
{
	const struct recovery *recovery = &loss->recovery;

	assert(recovery->retransmit_tries <= RECOVERY_RETRANSMIT_DOUBLINGS);
	if (recovery->timed == RECOVERY_TIMED_PACKET || recovery->timed == RECOVERY_TIMED_PROBE)
		assert(!psn_before(recovery->timed_psn, loss->una) &&
		       psn_before(recovery->timed_psn, loss->top));
	/* A packet in flight has a timer, if the acknowledgement timer is in use. */
	if (recovery->state == RECOVERY_RNR_WAIT)
		assert(recovery->deadline_ns != RECOVERY_NEVER &&
		       recovery->retransmit_ns == RECOVERY_NEVER);
	else if (recovery->state == RECOVERY_PAUSED)
		assert(recovery_deadline_ns(recovery) == RECOVERY_NEVER);
	else if (loss_idle(loss))
		assert(!loss_is_selective(loss));
	else if (!psn_eq(loss->una, loss->next) && recovery->timeout_ns != 0)
		assert(recovery->deadline_ns != RECOVERY_NEVER);
}

void loss_check(const struct loss *loss)
{
	assert(between(loss->una, loss->next, loss->top));
	/* The last packet may be a READ request for a segment. */
	assert((uint32_t)psn_diff(loss->top, loss->una) <
	       RTE_MAX(loss->window_max, loss_advertised_window(loss)) +
		       REQUESTER_READ_SEGMENT_PKTS);
	assert(loss->window >= 1 &&
	       loss->window <= RTE_MAX(loss->window_max, loss_advertised_window(loss)));
	assert(loss->acked < RTE_MAX(loss->window_max, loss_advertised_window(loss)));
	loss_check_state(loss);
	loss_check_timers(loss);
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
	const struct loss *loss = requester->loss;
	const struct sq *sq = requester->sq;
	const uint32_t prod = sq_prod(sq);
	struct psn end = loss->una;
	uint32_t responses = 0;
	uint32_t i = sq->cons;

	for (; i != prod && sq_at(sq, i)->started; i++) {
		const struct send_wqe *wqe = sq_at(sq, i);

		assert(i == sq->cons ? between(wqe->first_psn, loss->una, wqe->last_psn)
				     : psn_eq(wqe->first_psn, end));
		end = psn_add(wqe->last_psn, 1);
		if (requester_wants_response(wqe))
			responses += responses_between(wqe, loss->una, loss->next);
	}
	assert(!psn_before(end, loss->top));
	assert(loss->responses == responses);
	/* The other requests are not started. */
	for (; i != prod; i++)
		assert(!sq_at(sq, i)->started);
}

void requester_check(const struct requester *requester)
{
	const struct loss *loss = requester->loss;
	const struct sq *sq = requester->sq;
	const struct send_wqe *wqe;

	requester_check_requests(requester);
	if (!requester_stands(requester) || sq->next == sq_prod(sq))
		return;
	wqe = sq_at(sq, sq->next);
	/* A local request has its last PSN before its first. */
	if (wqe->started && sq_is_local((enum ibv_wr_opcode)wqe->opcode))
		assert(psn_eq(wqe->first_psn, loss->next));
	else if (wqe->started)
		assert(between(wqe->first_psn, loss->next, wqe->last_psn));
	else
		assert(psn_eq(loss->next, loss->top));
}

void completer_check(const struct completer *completer)
{
	const struct packet *first = ooo_first(&completer->ooo);

	ooo_check(&completer->ooo);
	assert(first == NULL || loss_awaits_responses(completer->loss));
}

#endif
