/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses that a peer tells about: all of them are sent again at once. */
#include "transport/loss_sack.h"

#include <stddef.h>

/* Note that a packet that was sent again has come; or perhaps its first transmission, which was
 * late. */
static void note_again(struct loss *loss, const struct scoreboard_range *range, struct psn last)
{
	const uint32_t order = range->order + (uint32_t)psn_diff(last, range->from);

	if (range->order != 0 && (int32_t)(order - loss->board->newest) > 0)
		loss->board->newest = order;
}

/* Note what the arrival of these packets shows about others. */
static void note_came(struct loss *loss, struct psn from, struct psn to)
{
	struct psn end;

	for (struct psn psn = from; psn_before(psn, to); psn = end) {
		const struct scoreboard_range *range = scoreboard_look(loss->board, psn, to, &end);

		if (range->state == RANGE_SENT_AGAIN)
			note_again(loss, range, psn_add(end, -1));
		else if (psn_before(loss->board->came, end))
			loss->board->came = end;
	}
}

void loss_sack_passed(struct loss *loss, struct psn psn)
{
	note_came(loss, loss->una, psn);
}

void loss_sack_response(struct loss *loss, struct psn psn)
{
	note_came(loss, psn, psn_add(psn, 1));
}

void loss_sack_begin(struct loss *loss)
{
	loss_begin(loss);
	loss->board->missed = false;
	/* Another kind of selective retransmission becomes one of this kind. */
	if (loss->recovery.timed != RECOVERY_TIMED_PACKET)
		recovery_untimed(&loss->recovery);
}

void loss_sack_executed(struct loss *loss, struct psn psn)
{
	loss_begin(loss);
	if (psn_before(loss->executed, psn))
		loss->executed = psn;
}

void loss_sack_came(struct loss *loss, struct psn from, struct psn to)
{
	struct psn end;

	/* Most was known before. */
	if (scoreboard_look(loss->board, from, to, &end)->state == RANGE_CAME && psn_eq(end, to))
		return;
	note_came(loss, from, to);
	/* Without memory for this, the packets may be sent again. */
	scoreboard_mark(loss->board, from, to, RANGE_CAME);
}

void loss_sack_request_came(struct loss *loss, struct psn from, struct psn to)
{
	note_came(loss, from, psn_add(from, 1));
	scoreboard_mark(loss->board, from, to, RANGE_SENT);
}

/* Note that these packets are missing, unless they were sent again already; or that they were kept
 * and have been dropped, if `dropped`. */
static void miss(struct loss *loss, struct psn from, struct psn to, bool dropped)
{
	struct psn end;

	for (struct psn psn = from; psn_before(psn, to); psn = end) {
		const enum range_state state = scoreboard_look(loss->board, psn, to, &end)->state;

		/* Without memory for this, a later answer shows it again. */
		if (state == RANGE_SENT || (dropped && state == RANGE_CAME))
			loss->board->missed |=
				scoreboard_mark(loss->board, psn, end, RANGE_MISSING);
	}
}

void loss_sack_missing(struct loss *loss, struct psn from, struct psn to)
{
	miss(loss, from, to, true);
}

void loss_sack_no_response(struct loss *loss, struct psn from, struct psn to)
{
	miss(loss, from, to, false);
}

void loss_sack_ends_at(struct loss *loss, struct psn psn)
{
	struct psn end;

	for (; psn_before(psn, loss->top); psn = end) {
		if (scoreboard_look(loss->board, psn, loss->top, &end)->state == RANGE_CAME)
			scoreboard_mark(loss->board, psn, end, RANGE_SENT);
	}
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
	const struct scoreboard_range *open = scoreboard_last_open(loss->board);

	if (open == NULL) {
		loss->state = LOSS_SETTLED;
		return;
	}
	if (loss->state != LOSS_TOLD)
		loss->from = loss->una;
	loss->state = LOSS_TOLD;
	loss->to = open->to;
}

/* Congestion control slows down once for all losses of a flight. */
static void count_loss(struct loss *loss)
{
	if (!loss->board->missed || psn_before(loss->una, loss->slowed_to))
		return;
	loss->slowed_to = loss->next;
	loss->losses++;
}

bool loss_sack_end(struct loss *loss, uint64_t now_ns)
{
	if (psn_before(loss->board->came, loss->executed))
		loss->board->came = loss->executed;
	scoreboard_lose_again(loss->board, loss->board->came, loss->board->newest);
	measure(loss, now_ns);
	count_loss(loss);
	loss_sack_follow(loss);
	recovery_told(&loss->recovery, now_ns);
	loss_open(loss);
	return loss->board->missed;
}

void loss_sack_probe(struct loss *loss, struct psn from, struct psn to)
{
	struct psn end;

	loss_begin(loss);
	for (struct psn psn = from; psn_before(psn, to); psn = end) {
		if (scoreboard_look(loss->board, psn, to, &end)->state != RANGE_CAME ||
		    psn_eq(psn, loss->una))
			scoreboard_mark(loss->board, psn, end, RANGE_MISSING);
	}
	loss_sack_follow(loss);
}
