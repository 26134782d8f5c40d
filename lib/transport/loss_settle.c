/* SPDX-License-Identifier: BSD-3-Clause */
/* An answer settles a retransmission: learn from it, and choose what is retransmitted next. */
#include <rte_common.h>

#include "loss_internal.h"
#include "transport/loss_sack.h"

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
