/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides what a requester sends again, and learns from the answers what its peer does with packets
 * behind a gap (IBTA 9.7.5.1.1 and 9.7.5.2). */
#include "transport/loss.h"

#include <rte_common.h>

#include "base/cachelines.h"
#include "loss_internal.h"
#include "transport/loss_sack.h"
#include "transport/sack.h"
#include "wire/headers.h"

static_assert(LOSS_WINDOW_MAX == 1 << SIGN_PSNS_LOG, "the shortest window that is announced");
static_assert(LOSS_WINDOW_LIMIT <= LOSS_WINDOW_MAX << BTH_SACK_STEPS, "the longest one");

/* Return the capability bits that advertise this window. */
static uint8_t capability_of(uint32_t window)
{
	uint8_t steps = 0;

	while (window > (uint32_t)LOSS_WINDOW_MAX << steps)
		steps++;
	return BTH_SACK_REQUEST | steps;
}

/* Set how many READs and atomics may be in flight. */
static void loss_allow(struct loss *loss)
{
	loss->allowed_responses = loss->max_responses;
	if (loss->peer == LOSS_PEER_SACK)
		loss->allowed_responses = (uint16_t)sack_resources(loss->max_responses);
}

bool loss_reserve(struct loss *loss)
{
	if (likely(loss->board != NULL))
		return true;
	loss->board = cachelines_alloc(sizeof(*loss->board));
	if (loss->board == NULL)
		return false;
	scoreboard_init(loss->board);
	loss->board->advertised_window = loss->window_max;
	return true;
}

void loss_fini(struct loss *loss)
{
	if (loss->board == NULL)
		return;
	scoreboard_fini(loss->board);
	cachelines_free(loss->board, sizeof(*loss->board));
	loss->board = NULL;
}

void loss_init(struct loss *loss, struct psn first)
{
	loss->una = first;
	loss->next = first;
	loss->top = first;
	loss->grows |= loss->window_max == 0;
	if (loss->window_max == 0 || (loss->grows && loss->window_max > LOSS_WINDOW_MAX))
		loss->window_max = LOSS_WINDOW_MAX;
	loss->sack = loss->sack_use == SACK_ALWAYS;
	loss->asks = BTH_ACK_REQ | (loss->sack ? capability_of(loss->window_max) : 0);
	loss->limited = false;
	loss->window = loss->window_max;
	loss->acked = 0;
	loss->responses = 0;
	loss->state = LOSS_NONE;
	loss->peer = LOSS_PEER_UNKNOWN;
	loss_allow(loss);
	loss->run = 1;
	loss->back = LOSS_STARTED_OVER;
	if (loss->board != NULL) {
		scoreboard_fini(loss->board);
		loss->board->advertised_window = loss->window_max;
	}
	recovery_reset(&loss->recovery);
}

void loss_set_attr(struct loss *loss, const struct loss_attr *attr)
{
	loss->max_responses = (uint16_t)attr->max_responses;
	loss_allow(loss);
	recovery_set_timeout(&loss->recovery, attr->timeout_ns);
	loss->recovery.retry_cnt = attr->retry_cnt;
	loss->recovery.rnr_retry = attr->rnr_retry;
}

void loss_learn(struct loss *loss, enum loss_evidence evidence)
{
	loss->peer = loss_peer_after(loss->peer, evidence);
}

void loss_on_introduction(struct loss *loss)
{
	loss->sack = loss->sack_use != SACK_NEVER;
	if (loss->sack)
		loss->asks = BTH_ACK_REQ | capability_of(loss->window_max);
}

bool loss_on_capability(struct loss *loss, uint8_t capability)
{
	const bool sack_capable = (capability & BTH_SACK_KIND) == BTH_SACK_RESPONSE && loss->sack;

	if (sack_capable && !loss_reserve(loss))
		return false;
	loss_learn(loss, sack_capable ? LOSS_SACK_BEGINS : LOSS_SACK_ENDS);
	loss->recovery.sack_capable = sack_capable;
	loss_allow(loss);
	if (sack_capable) {
		loss->board->far = (uint32_t)LOSS_WINDOW_MAX << (capability & BTH_SACK_STEPS);
		loss->window = loss->window_max;
	}
	return true;
}

void loss_begin(struct loss *loss)
{
	if (loss->state != LOSS_NONE)
		return;
	loss->state = LOSS_SETTLED;
	loss->executed = loss->una;
	loss->recovery_point = loss->una;
	scoreboard_begin(loss->board, loss->una);
	loss->board->answered = loss->una;
	loss->board->scanned = loss->una;
}

void loss_end(struct loss *loss)
{
	scoreboard_replace(loss->board, loss->una, RANGE_MISSING, RANGE_SENT);
	scoreboard_replace(loss->board, loss->una, RANGE_SENT_AGAIN, RANGE_SENT);
	loss->board->scanned = loss->una;
	loss->state = psn_before(loss->next, loss->top) ? loss->back : (uint8_t)LOSS_SETTLED;
}

static void loss_narrow(struct loss *loss)
{
	loss->losses++;
	/* Towards a SACK-capable peer, the window is a limit of memory, and not of speed. */
	if (loss->window > 2 * LOSS_WINDOW_MIN && loss->peer != LOSS_PEER_SACK)
		loss->window /= 2;
}

void loss_go_back(struct loss *loss, enum loss_state state, bool lost)
{
	loss_begin(loss);
	loss_end(loss);
	loss->state = (uint8_t)state;
	loss->back = (uint8_t)state;
	loss->next = loss->una;
	loss->board->answered = loss->una;
	loss->responses = 0;
	loss->acked = 0;
	if (lost)
		loss_narrow(loss);
}

void loss_go_back_lost(struct loss *loss, enum loss_state state, uint64_t now_ns)
{
	recovery_lost(&loss->recovery, now_ns);
	loss_go_back(loss, state, true);
}

void loss_begin_selective(struct loss *loss, enum loss_state state, struct psn to)
{
	loss_begin(loss);
	loss_end(loss);
	loss->state = (uint8_t)state;
	loss->from = loss->una;
	loss->to = to;
	loss->resent = 0;
	/* Without memory for all of this, the timer finds the rest. */
	scoreboard_mark(loss->board, loss->una, to, RANGE_MISSING);
	if ((state == LOSS_REQUEST || state == LOSS_RESPONSE) &&
	    !psn_before(loss->una, loss->recovery_point)) {
		loss->recovery_point = loss->next;
		loss_narrow(loss);
	}
}

void loss_send_missing(struct loss *loss, enum loss_state state, struct psn to, uint64_t now_ns)
{
	loss_begin_selective(loss, state, to);
	recovery_retransmit(&loss->recovery, now_ns, true);
}

bool loss_next(const struct loss *loss, struct loss_range *range)
{
	struct psn came, end;

	if (!loss_is_selective(loss) ||
	    !scoreboard_first(loss->board, RANGE_MISSING, &range->from, &range->to))
		return false;
	range->is_executed = psn_before(range->from, loss->executed);
	/* Each range is a request of its own. The peer has resources for those in flight, which do
	 * not have gaps: the next gap waits until una passes what has come before it. */
	return loss->state == LOSS_SACKED ||
	       !scoreboard_first(loss->board, RANGE_CAME, &came, &end) ||
	       psn_before(range->from, came);
}

void loss_sent_again(struct loss *loss, struct psn from, uint32_t count)
{
	const struct psn to = psn_add(from, (int32_t)count);

	if (loss->state != LOSS_SACKED) {
		scoreboard_mark(loss->board, from, to, RANGE_SENT_AGAIN);
	} else if (psn_before(from, loss->executed)) {
		scoreboard_mark_again(loss->board, from, to, loss->next, AGAIN_RESPONSE);
	} else {
		/* Nothing is known about the responses to a READ request. */
		scoreboard_mark(loss->board, from, to, RANGE_SENT);
		scoreboard_mark_again(loss->board, from, psn_add(from, 1), loss->next,
				      AGAIN_REQUEST);
	}
	recovery_sent_again(&loss->recovery, from, to);
	if (psn_before(loss->to, to))
		loss->to = to;
	loss->resent++;
}

void loss_advance(struct loss *loss, struct psn psn)
{
	if (psn_before(loss->next, psn)) {
		/* The acknowledgement covers packets that were not sent again, so the peer keeps
		 * out-of-order packets. But if nothing was sent again yet, the missing packet was
		 * only late: any peer then accepts it and what follows. */
		if (loss->state == LOSS_WENT_BACK && !psn_eq(loss->next, loss->una))
			loss_learn(loss, LOSS_ANSWER_LEAPS);
		loss->next = psn;
	}
	loss_sack_executed(loss, psn, false);
	if (psn_before(loss->recovery_point, psn))
		loss->recovery_point = psn;
	loss_sack_passed(loss, psn);
	for (int kind = 0; kind < AGAIN_KINDS; kind++) {
		if (psn_before(loss->board->came[kind], psn))
			loss->board->came[kind] = psn;
	}
	if (psn_before(loss->board->answered, psn))
		loss->board->answered = psn;
	if (psn_before(loss->board->scanned, psn))
		loss->board->scanned = psn;
	scoreboard_forget(loss->board, psn);
	if (!loss_is_selective(loss) && psn_eq(loss->next, loss->top))
		loss->state = LOSS_SETTLED;
}

void loss_unmeasured(struct loss *loss)
{
	if (loss->resent == 0 && psn_before(loss->from, loss->una))
		recovery_unmeasured(&loss->recovery);
}

/* React to a NAK of a SACK-capable peer. It has not seen yet that we understand more than a NAK. */
static void loss_on_nak_of_sack_peer(struct loss *loss, uint64_t now_ns)
{
	loss_sack_begin(loss, now_ns);
	loss_sack_missing(loss, loss->una, psn_add(loss->una, 1));
	loss_sack_end(loss, now_ns);
}

/*
 * React to a NAK. Send the missing packet again, alone. The peer's answer shows whether it keeps
 * packets behind a gap; if it does, nothing else is ever sent again. If the answer is a NAK for the
 * next packet, more is sent again each time. For a READ or atomic the answer would not show it,
 * because a response does not tell that nothing more follows.
 */
void loss_on_nak(struct loss *loss, const struct loss_request *oldest, uint64_t now_ns)
{
	uint32_t run = 1;

	if (!loss_reserve(loss))
		return;
	if (loss_sack_applies(loss) && !psn_eq(loss->next, loss->una)) {
		loss_on_nak_of_sack_peer(loss, now_ns);
		return;
	}
	/*
	 * Ignore a NAK for packets behind one that had no receive request: all of them are sent
	 * again when the RNR timer expires, and none before (9.7.5.2.8). Also ignore a NAK for a
	 * packet that is about to be sent again, or that was just sent again alone, because that
	 * has its own timer.
	 */
	if (loss->recovery.state == RECOVERY_RNR_WAIT || psn_eq(loss->next, loss->una) ||
	    (loss_is_selective(loss) && psn_before(loss->una, loss->to)))
		return;
	if (loss->state == LOSS_REQUEST || loss->state == LOSS_RNR) {
		loss_unmeasured(loss);
		if (loss->resent == 0) {
			run = loss->run;
		} else if (psn_before(loss->to, loss->una)) {
			loss_learn(loss, LOSS_ANSWER_LEAPS);
		} else {
			run = 2u * loss->run;
			loss_learn(loss, LOSS_NAK_FOLLOWS);
		}
		recovery_retransmitted(&loss->recovery, now_ns);
	}
	if (loss->peer == LOSS_PEER_DROPS ||
	    (loss_peer_is_unknown(loss->peer) && oldest->wants_response)) {
		loss_go_back_lost(loss, LOSS_WENT_BACK, now_ns);
		return;
	}
	run = oldest->segment_psns != 0 ? oldest->segment_psns : RTE_MIN(run, LOSS_RUN_MAX);
	run = RTE_MIN(run, loss_outstanding(loss));
	loss->run = (uint8_t)run;
	loss_send_missing(loss, LOSS_REQUEST, psn_add(loss->una, (int32_t)run), now_ns);
}

bool loss_on_nak_ahead(struct loss *loss, uint64_t now_ns)
{
	if (loss->recovery.state == RECOVERY_RNR_WAIT || psn_eq(loss->next, loss->una) ||
	    !loss_reserve(loss))
		return false;
	loss_go_back_lost(loss, LOSS_STARTED_OVER, now_ns);
	return true;
}

/*
 * The peer had no receive request for the packet at una. It may keep the packets behind that one.
 * So the packet at una is sent again alone when the RNR timer has expired, as after a loss. A peer
 * that refuses a packet that was not sent again has kept it. A peer that drops out-of-order packets
 * gets all of them again; if it refuses the packet at una once more, that packet is sent alone
 * until it is accepted.
 */
bool loss_on_rnr(struct loss *loss, uint8_t timer_code, uint64_t now_ns)
{
	const enum recovery_state before = loss->recovery.state;
	const bool unsent =
		loss->state == LOSS_RNR && loss->resent == 0 && before != RECOVERY_RNR_WAIT;
	const bool behind = (loss->state == LOSS_REQUEST || loss->state == LOSS_RNR) &&
			    loss->resent > 0 && !psn_before(loss->una, loss->to);

	if (!loss_reserve(loss))
		return true;
	if (!recovery_rnr(&loss->recovery, timer_code, now_ns))
		return false;
	if (unsent || behind)
		loss_learn(loss, LOSS_ANSWER_LEAPS);
	if (psn_eq(loss->una, loss->next) ||
	    (loss->peer == LOSS_PEER_DROPS && before == RECOVERY_SMOOTH)) {
		loss_go_back(loss, LOSS_STARTED_OVER, false);
		return true;
	}
	loss->run = 1;
	loss_begin_selective(loss, LOSS_RNR, psn_add(loss->una, 1));
	loss_shrink(loss, now_ns);
	return true;
}

void loss_on_out_of_order(struct loss *loss, struct psn psn, bool kept)
{
	const struct psn behind = psn_add(psn, 1);

	loss_begin(loss);
	/* Some of the responses that were requested again have arrived, and now one is missing. */
	if (loss->state == LOSS_RESPONSE && psn_before(loss->from, loss->una) &&
	    psn_before(psn, loss->to))
		loss_end(loss);
	loss_sack_executed(loss, behind, true);
	loss_sack_response(loss, psn);
	/* If there is no memory to note it, the response may be requested again. */
	if (kept)
		scoreboard_mark(loss->board, psn, behind, RANGE_CAME);
	else if (scoreboard_at(loss->board, psn) == RANGE_CAME)
		scoreboard_mark(loss->board, psn, behind, RANGE_SENT);
}
