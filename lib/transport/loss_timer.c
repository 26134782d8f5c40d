/* SPDX-License-Identifier: BSD-3-Clause */
/* A timer has expired, or pauses: choose what is retransmitted. */
#include "loss_internal.h"
#include "transport/loss_sack.h"

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
