/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses that selective acknowledgements report: all of them are sent again at once. */
#include "transport/loss_sack.h"

#include <rte_common.h>

void loss_sack_passed(struct loss *loss, struct psn psn)
{
	scoreboard_note_came(loss->board, loss->una, psn, AGAIN_RESPONSE);
}

void loss_sack_response(struct loss *loss, struct psn psn)
{
	scoreboard_note_came(loss->board, psn, psn_add(psn, 1), AGAIN_RESPONSE);
}

/* A peer that says in turn that it keeps a packet and that it does not would have all packets sent
 * again each time. It is believed once in a round trip. */
static bool believes_drops(const struct loss *loss, uint64_t now_ns)
{
	const uint64_t round_ns =
		loss->recovery.srtt_ns != 0 ? loss->recovery.srtt_ns : RECOVERY_RETRANSMIT_NS;

	return now_ns - loss->board->dropped_ns >= RTE_MAX(round_ns, RECOVERY_SACK_PROBE_MIN_NS);
}

/* Another kind of selective retransmission becomes one of this kind: count its packets as sent
 * again now. Without a number they would never be found to be lost again. */
static void loss_sack_take_over(struct loss *loss)
{
	struct scoreboard *board = loss->board;
	struct psn psn, end;

	if (!loss_is_selective(loss) || loss->state == LOSS_SACKED)
		return;
	for (psn = loss->una; psn_before(psn, board->end); psn = end) {
		if (scoreboard_look(board, psn, board->end, &end) == RANGE_SENT_AGAIN)
			scoreboard_mark_again(board, psn, end, loss->next,
					      psn_before(psn, loss->executed) ? AGAIN_RESPONSE
									      : AGAIN_REQUEST);
	}
}

void loss_sack_begin(struct loss *loss, uint64_t now_ns)
{
	loss_begin(loss);
	loss_sack_take_over(loss);
	loss->board->missed = false;
	loss->board->dropped = false;
	loss->board->drops = believes_drops(loss, now_ns);
	if (loss->recovery.timed == RECOVERY_TIMED_RETRANSMISSION)
		recovery_untimed(&loss->recovery);
}

void loss_sack_executed(struct loss *loss, struct psn psn, bool is_answered)
{
	struct scoreboard *board = loss->board;

	loss_begin(loss);
	if (psn_before(loss->executed, psn)) {
		/* Requests before it have come. What is missing from now on are responses. */
		scoreboard_note_came(board, loss->executed, psn, AGAIN_REQUEST);
		if (loss->state == LOSS_SACKED)
			scoreboard_mark(board, loss->executed, psn, RANGE_SENT);
		loss->executed = psn;
	}
	if (is_answered && psn_before(board->answered, psn))
		board->answered = psn;
}

void loss_sack_packets(struct loss *loss, const struct packet *sack, struct psn from, struct psn to)
{
	scoreboard_tell(loss->board, sack, from, to, loss->board->drops);
}

void loss_sack_request_came(struct loss *loss, struct psn psn)
{
	scoreboard_note_came(loss->board, psn, psn_add(psn, 1), AGAIN_REQUEST);
	scoreboard_mark(loss->board, psn, psn_add(psn, 1), RANGE_SENT);
}

void loss_sack_missing(struct loss *loss, struct psn from, struct psn to)
{
	scoreboard_miss(loss->board, from, to, loss->board->drops);
}

void loss_sack_not_kept(struct loss *loss)
{
	loss->board->missed |=
		scoreboard_mark(loss->board, loss->una, psn_add(loss->una, 1), RANGE_MISSING);
}

void loss_sack_no_response(struct loss *loss, struct psn from, struct psn to)
{
	scoreboard_miss(loss->board, from, to, false);
}

void loss_sack_ends_at(struct loss *loss, struct psn psn)
{
	const uint32_t came = loss->board->count[RANGE_CAME];

	if (!loss->board->drops)
		return;
	scoreboard_replace(loss->board, psn, RANGE_CAME, RANGE_SENT);
	loss->board->dropped |= loss->board->count[RANGE_CAME] != came;
}

/* Take a measurement from the packet that is timed, if it is known to have come or to be lost. */
static void measure(struct loss *loss, uint64_t now_ns)
{
	enum range_state state;

	if (loss->recovery.timed != RECOVERY_TIMED_PACKET)
		return;
	state = scoreboard_at(loss->board, loss->recovery.timed_psn);
	if (state == RANGE_CAME)
		recovery_came(&loss->recovery, now_ns);
	else if (state != RANGE_SENT)
		recovery_untimed(&loss->recovery);
}

/* Set the state that follows from the scoreboard. */
static void loss_sack_follow(struct loss *loss)
{
	struct psn last;

	if (!scoreboard_last_open(loss->board, &last)) {
		loss->state = LOSS_SETTLED;
		return;
	}
	loss->state = LOSS_SACKED;
	loss->to = psn_add(last, 1);
}

/* Congestion control slows down once for all losses of a flight. */
static void count_loss(struct loss *loss)
{
	if (!loss->board->missed || psn_before(loss->una, loss->recovery_point))
		return;
	loss->recovery_point = loss->next;
	loss->losses++;
}

bool loss_sack_end(struct loss *loss, uint64_t now_ns)
{
	if (loss->board->dropped)
		loss->board->dropped_ns = now_ns;
	scoreboard_lose_again(loss->board);
	measure(loss, now_ns);
	count_loss(loss);
	loss_sack_follow(loss);
	recovery_told(&loss->recovery, now_ns);
	loss_open(loss, now_ns);
	return loss->board->missed;
}

void loss_sack_probe(struct loss *loss, struct psn from, struct psn to)
{
	struct psn end;

	loss_begin(loss);
	loss_sack_take_over(loss);
	for (struct psn psn = from; psn_before(psn, to); psn = end) {
		if (scoreboard_look(loss->board, psn, to, &end) != RANGE_CAME ||
		    psn_eq(psn, loss->una))
			scoreboard_mark(loss->board, psn, end, RANGE_MISSING);
	}
	loss_sack_follow(loss);
}
