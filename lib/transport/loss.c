/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides what a requester sends again, and learns from the answers what its peer does with packets
 * behind a gap (IBTA 9.7.5.1.1 and 9.7.5.2). */
#include "transport/loss.h"

#include <string.h>

#include <rte_common.h>

#include "base/cachelines.h"
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

/* Let the scoreboard know nothing, and its advertised window be the window. */
static void loss_clear_board(struct loss *loss)
{
	struct scoreboard *board = loss->board;

	board->widening = false;
	board->rounds = 0;
	board->shortest = 0;
	board->advertised_window = loss->window_max;
	board->serial = 0;
	board->dropped_ns = 0;
	board->rated_ns = 0;
	board->rate = 0;
	board->rate_before = 0;
	scoreboard_clear(board);
}

bool loss_reserve(struct loss *loss)
{
	if (likely(loss->board != NULL))
		return true;
	loss->board = cachelines_alloc(sizeof(*loss->board));
	if (loss->board == NULL)
		return false;
	memset(loss->board, 0, sizeof(*loss->board));
	scoreboard_init(loss->board);
	loss_clear_board(loss);
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
	if (loss->board != NULL)
		loss_clear_board(loss);
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

static void loss_learn(struct loss *loss, enum loss_evidence evidence)
{
	loss->peer = loss_peer_after(loss->peer, evidence);
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
	loss->from = loss->una;
	loss->to = loss->una;
	scoreboard_begin(loss->board, loss->una);
	loss->board->answered = loss->una;
	loss->board->scanned = loss->una;
}

/* End the retransmission: nothing more is sent again, or only what is behind `next`. */
static void loss_end(struct loss *loss)
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

/* Go back: send everything unacknowledged again. If it was a loss, halve the window. */
static void loss_go_back(struct loss *loss, enum loss_state state, bool lost)
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

static void loss_go_back_lost(struct loss *loss, enum loss_state state, uint64_t now_ns)
{
	recovery_lost(&loss->recovery, now_ns);
	loss_go_back(loss, state, true);
}

/* Begin a selective retransmission of what is missing before `to`. If it was lost, halve the
 * window, unless losses of the same flight have already done so. */
static void loss_begin_selective(struct loss *loss, enum loss_state state, struct psn to)
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

/* Send only what is missing before `to` again. */
static void loss_send_missing(struct loss *loss, enum loss_state state, struct psn to,
			      uint64_t now_ns)
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

/* Stop the measurement if the answer came before the retransmission: it does not show how long an
 * answer to the retransmission takes. */
static void loss_unmeasured(struct loss *loss)
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

/*
 * Request what is missing up to the first response that has come, once. A response has come that
 * the responder sends only after one that did not come: that one was lost (9.7.5.1.1, implied NAK).
 */
static bool loss_ask(struct loss *loss, const struct loss_request *oldest, uint64_t now_ns)
{
	struct psn to = psn_add(oldest->last, 1), came, end;

	if (loss->recovery.state == RECOVERY_RNR_WAIT || psn_eq(loss->una, loss->next))
		return false;
	/* The response arrived, but there was no room to keep it until its turn. */
	if (scoreboard_look(loss->board, loss->una, loss->top, &end) == RANGE_CAME)
		scoreboard_mark(loss->board, loss->una, end, RANGE_SENT);
	if (scoreboard_first(loss->board, RANGE_CAME, &came, &end) && psn_before(came, to))
		to = came;
	if (psn_before(loss->executed, to))
		to = loss->executed;
	if (psn_before(loss->next, to))
		to = loss->next;
	loss_send_missing(loss, LOSS_RESPONSE, to, now_ns);
	return true;
}

/*
 * The peer accepted a packet that it had refused. It may have no receive request for the next
 * message, and refuse that message's first packet too. So that packet is also sent alone, until
 * nothing is in flight. But if the answers do not cover packets that were sent before, the peer has
 * dropped those.
 */
static void loss_refusal_ended(struct loss *loss, bool leaps, uint64_t now_ns)
{
	const enum loss_peer before = loss->peer;

	if (leaps && loss->resent > 0)
		loss_learn(loss, LOSS_ANSWER_LEAPS);
	if (psn_eq(loss->una, loss->next))
		return;
	if (!leaps)
		loss_learn(loss, LOSS_REFUSAL_ENDS);
	/* A peer may keep packets behind a loss, and drop packets behind a refusal. */
	if (leaps || before == LOSS_PEER_UNKNOWN || before == LOSS_PEER_KEEPS ||
	    before == LOSS_PEER_SACK) {
		loss_send_missing(loss, LOSS_RNR, psn_add(loss->una, 1), now_ns);
		return;
	}
	recovery_lost(&loss->recovery, now_ns);
	loss_go_back(loss, LOSS_STARTED_OVER, false);
}

/* Send nothing until the RNR timer expires: the packet that is the oldest then is sent first. */
static void loss_wait(struct loss *loss)
{
	if (!loss_is_selective(loss) || psn_before(loss->una, loss->to))
		return;
	loss_end(loss);
	if (!psn_eq(loss->una, loss->next))
		loss_begin_selective(loss, LOSS_RNR, psn_add(loss->una, 1));
}

void loss_sack_accepted(struct loss *loss, uint64_t now_ns)
{
	if (loss->state != LOSS_RNR || loss->peer != LOSS_PEER_SACK ||
	    loss->recovery.state == RECOVERY_RNR_WAIT || psn_before(loss->una, loss->to))
		return;
	loss_unmeasured(loss);
	loss_end(loss);
	recovery_retransmitted(&loss->recovery, now_ns);
}

/*
 * The answer to a request that was sent again alone shows the peer's kind. If the answer covers
 * more, the peer keeps out-of-order packets. If it covers just that request, the peer does not keep
 * them, or not this time: packets behind it are sent again. A response shows neither; if nothing
 * follows it, the retransmission timer asks.
 */
static void loss_request_ended(struct loss *loss, bool leaps, bool acknowledged, uint64_t now_ns)
{
	if (leaps) {
		if (loss->resent > 0)
			loss_learn(loss, LOSS_ANSWER_LEAPS);
		return;
	}
	if (psn_eq(loss->una, loss->next))
		return;
	if (acknowledged) {
		loss_learn(loss, LOSS_ANSWER_STOPS);
		loss_go_back_lost(loss, LOSS_WENT_BACK, now_ns);
		return;
	}
	loss_send_missing(loss, LOSS_REQUEST, psn_add(loss->una, 1), now_ns);
	scoreboard_replace(loss->board, loss->una, RANGE_MISSING, RANGE_SENT_AGAIN);
}

/*
 * The answer to a probe covers nothing behind it. An acknowledgement shows that the peer had
 * nothing more. A response does not, because answers to what follows may be on their way; the next
 * probe will show it. But in the middle of a READ's segment, the rest of its responses was lost,
 * too.
 */
static void loss_probe_ended(struct loss *loss, const struct loss_request *oldest,
			     bool acknowledged, uint64_t now_ns)
{
	const uint32_t rest = RTE_MIN(oldest->segment_psns, loss_outstanding(loss));

	if (acknowledged)
		loss_go_back_lost(loss, LOSS_STARTED_OVER, now_ns);
	else if (oldest->segment_began)
		loss_send_missing(loss, LOSS_RESPONSE, psn_add(loss->una, (int32_t)rest), now_ns);
}

/* The end of a selective retransmission is reached. */
static void loss_selective_ended(struct loss *loss, const struct loss_request *oldest,
				 bool acknowledged, uint64_t now_ns)
{
	const bool leaps = psn_before(loss->to, loss->una);
	const enum loss_state state = loss->state;

	loss_end(loss);
	if (state != LOSS_PROBE && state != LOSS_SACKED)
		recovery_retransmitted(&loss->recovery, now_ns);
	if (state == LOSS_RNR)
		loss_refusal_ended(loss, leaps, now_ns);
	else if (state == LOSS_REQUEST)
		loss_request_ended(loss, leaps, acknowledged, now_ns);
	else if (state == LOSS_PROBE && !leaps && !psn_eq(loss->una, loss->next))
		loss_probe_ended(loss, oldest, acknowledged, now_ns);
}

bool loss_settle(struct loss *loss, const struct loss_request *oldest, bool acknowledged,
		 uint64_t now_ns)
{
	bool asks = false;

	if (loss->recovery.state == RECOVERY_RNR_WAIT) {
		loss_wait(loss);
		return false;
	}
	if (loss_is_selective(loss)) {
		if (loss->state != LOSS_SACKED)
			loss_unmeasured(loss);
		if (!psn_before(loss->una, loss->to))
			loss_selective_ended(loss, oldest, acknowledged, now_ns);
	}
	if (loss_awaits_responses(loss) && !loss_is_selective(loss) && !loss_sack_applies(loss))
		asks = loss_ask(loss, oldest, now_ns);
	if (loss->state == LOSS_SETTLED && psn_eq(loss->executed, loss->una) &&
	    psn_eq(loss->recovery_point, loss->una) && scoreboard_is_empty(loss->board))
		loss->state = LOSS_NONE;
	loss_open(loss, now_ns);
	/* Progress has turned the retransmission timer into the timer of a probe. */
	if (loss_is_selective(loss) && loss->state != LOSS_SACKED &&
	    loss->recovery.waits_for == RECOVERY_FOR_ANSWER)
		recovery_retransmit(&loss->recovery, now_ns, false);
	return asks;
}

void loss_hold(struct loss *loss)
{
	/* Without memory the timers go on. They begin a retransmission when there is memory. A
	 * queue pair without timeouts has its memory from the beginning. */
	if (!loss_reserve(loss))
		return;
	loss_go_back(loss, LOSS_STARTED_OVER, false);
	loss->executed = loss->una;
	/* Responses that have come are between una and `executed`. They are requested again. */
	scoreboard_clear(loss->board);
	recovery_hold(&loss->recovery);
}

void loss_release(struct loss *loss, uint64_t now_ns)
{
	recovery_release(&loss->recovery, now_ns);
}

/* The selective retransmission was lost; or, if there is none, the oldest packet may be. */
static enum loss_timeout loss_send_once_more(struct loss *loss, uint64_t now_ns)
{
	if (loss_sack_applies(loss) && !psn_eq(loss->una, loss->next)) {
		recovery_probe_sack_peer(&loss->recovery, loss->una, now_ns);
		return LOSS_TIMEOUT_TAIL;
	}
	if (loss_is_selective(loss)) {
		scoreboard_replace(loss->board, loss->una, RANGE_SENT_AGAIN, RANGE_MISSING);
		/* The packet at una is missing in any case: a response that had come may have been
		 * dropped since, for lack of room or because another one with its PSN differed. */
		if (scoreboard_at(loss->board, loss->una) != RANGE_MISSING)
			scoreboard_mark(loss->board, loss->una, psn_add(loss->una, 1),
					RANGE_MISSING);
		return LOSS_TIMEOUT_NONE;
	}
	if (psn_eq(loss->una, loss->next))
		return LOSS_TIMEOUT_NONE;
	loss_begin_selective(loss, LOSS_PROBE, psn_add(loss->una, 1));
	recovery_probe(&loss->recovery, loss->una, now_ns);
	return LOSS_TIMEOUT_PROBE;
}

/* If the retransmission timer has asked for the oldest packet, it did leave, and was not answered.
 */
bool loss_owes_oldest(const struct loss *loss)
{
	if (!loss_is_selective(loss))
		return psn_eq(loss->una, loss->next);
	return loss->recovery.retransmit_tries == 0 &&
	       scoreboard_at(loss->board, loss->una) == RANGE_MISSING;
}

void loss_on_still_poll(struct loss *loss, uint64_t now_ns)
{
	if (loss_owes_oldest(loss))
		recovery_pause(&loss->recovery, now_ns);
	else
		recovery_unpause(&loss->recovery, now_ns);
}

enum loss_timeout loss_on_timer(struct loss *loss, bool excused, uint64_t now_ns)
{
	switch (recovery_expire(&loss->recovery, excused, now_ns)) {
	case RECOVERY_WAIT:
		return LOSS_TIMEOUT_NONE;
	case RECOVERY_RNR_OVER:
		if (loss_is_selective(loss))
			recovery_retransmit(&loss->recovery, now_ns, true);
		return LOSS_TIMEOUT_NONE;
	case RECOVERY_RETRANSMIT:
		return loss_reserve(loss) ? loss_send_once_more(loss, now_ns) : LOSS_TIMEOUT_NONE;
	case RECOVERY_RESEND:
		/* Without memory nothing is sent again before the next timeout. */
		if (loss_reserve(loss))
			loss_go_back(loss, LOSS_STARTED_OVER, !excused);
		return LOSS_TIMEOUT_EXPIRED;
	case RECOVERY_GIVE_UP:
	default:
		return LOSS_TIMEOUT_GIVE_UP;
	}
}
