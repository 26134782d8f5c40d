/* SPDX-License-Identifier: BSD-3-Clause */
/* The window towards a SACK-capable peer: it follows the measured rate. */
#include <rte_common.h>

#include "transport/loss.h"
#include "wire/headers.h"

/* At least one packet in so many PSNs asks for an acknowledgement, and so advertises a window. It
 * may be a READ request for a segment (transport/requester.h). */
#define ANNOUNCEMENT_PSNS 96
/* The window does not grow for so many full windows after a refusal. */
#define LOSS_REFUSED_ROUNDS 64
/* After so many full windows of the least length, with a queue, the shortest round trip is measured
 * anew. */
#define SHORTEST_ROUNDS 64
/* So many measurements count for the window, and none that took so many round trips. */
#define RATE_ROUNDS 8

/* Return the window that this requester advertises. */
static uint32_t loss_advertises(const struct loss *loss)
{
	return (uint32_t)LOSS_WINDOW_MAX << (loss->asks & BTH_SACK_STEPS);
}

/* Return true if answers take longer than they can: packets wait in a queue. */
static bool loss_is_queued(const struct loss *loss)
{
	const struct recovery *recovery = &loss->recovery;

	return recovery->srtt_ns - recovery->srtt_ns / 8 > recovery->min_rtt_ns;
}

/*
 * Measure how many packets come in the time of the shortest round trip, while the window holds
 * packets back. The greatest of the last measurements counts, because losses hold packets back,
 * too. Return true if there is a new one.
 */
static bool loss_rate(struct loss *loss, uint64_t now_ns)
{
	struct scoreboard *board = loss->board;
	const uint64_t took_ns = now_ns - board->rated_ns;
	const uint64_t min_rtt_ns = loss->recovery.min_rtt_ns;
	const uint32_t came = board->count[RANGE_CAME];
	const int32_t count =
		psn_diff(loss->una, board->rated_psn) + (int32_t)(came - board->rated_came);
	/* If that is too long ago, the window has not held packets back since. */
	const bool is_valid = took_ns <= RATE_ROUNDS * min_rtt_ns && count > 0;

	if (took_ns < min_rtt_ns || took_ns == 0)
		return false;
	board->rated_ns = now_ns;
	board->rated_psn = loss->una;
	board->rated_came = came;
	if (!is_valid)
		return false;
	board->rate = RTE_MAX(board->rate, (uint32_t)((uint64_t)count * min_rtt_ns / took_ns));
	if (++board->ratings % RATE_ROUNDS == 0) {
		board->rate_before = board->rate;
		board->rate = 0;
	}
	return true;
}

/*
 * Return the window that keeps the network busy with a short queue. What is lost waits in the
 * queue, too, when it is sent again, and meanwhile the advertised window fills. Grow fast until
 * there is a queue.
 */
static uint32_t loss_best_window(const struct loss *loss)
{
	const uint32_t rate = RTE_MAX(loss->board->rate, loss->board->rate_before);
	const uint32_t best = (loss_is_queued(loss) ? rate : 2 * rate) + rate / 4;

	return RTE_MIN(RTE_MAX(best, (uint32_t)LOSS_WINDOW_MAX), loss->board->advertised_window);
}

/*
 * A path that has become longer looks like a queue that no window is short enough for. So the
 * window falls to its least length and stays there. Then forget the shortest round trip. If there
 * is a queue after all, this window is its shortest from now on, and the window becomes a quarter
 * longer, so that this does not come again.
 */
static void loss_doubt_path(struct loss *loss)
{
	if (loss->window_max > LOSS_WINDOW_MAX || !loss_is_queued(loss)) {
		loss->board->shortest = 0;
		return;
	}
	if (++loss->board->shortest < SHORTEST_ROUNDS)
		return;
	loss->board->shortest = 0;
	loss->recovery.min_rtt_ns = UINT32_MAX;
}

void loss_widen(struct loss *loss, bool is_round, uint64_t now_ns)
{
	uint32_t far;
	bool is_rated;

	if (loss_is_widening(loss) &&
	    psn_diff(loss->una, loss->board->announced) > ANNOUNCEMENT_PSNS) {
		loss->board->widening = false;
		loss->board->advertised_window = loss_advertises(loss);
	}
	if (!loss->limited || !loss->grows || loss->peer != LOSS_PEER_SACK)
		return;
	far = RTE_MIN(loss->board->far, (uint32_t)LOSS_WINDOW_LIMIT);
	loss->limited = false;
	is_rated = loss_rate(loss, now_ns);
	if (loss->board->rounds > 0) {
		loss->board->rounds -= is_round;
		return;
	}
	if (is_rated)
		loss->window_max = loss_best_window(loss);
	if (is_round) {
		loss->window = loss->window_max;
		loss_doubt_path(loss);
	}
	if (loss->board->widening || loss->window < loss->board->advertised_window ||
	    (loss->state == LOSS_NONE && loss_is_queued(loss)) || 2 * loss_advertises(loss) > far)
		return;
	/* Twice as far or, if it is possible, four times. */
	loss->asks += 4 * loss_advertises(loss) > far ? 1 : 2;
	loss->board->widening = true;
	loss->board->announced = loss->next;
}

void loss_shrink(struct loss *loss, uint64_t now_ns)
{
	if (!loss->grows || loss->peer != LOSS_PEER_SACK)
		return;
	loss->board->rounds = LOSS_REFUSED_ROUNDS;
	loss->window_max = RTE_MIN(loss->window_max, (uint32_t)LOSS_WINDOW_MAX);
	if (loss->acked >= loss->window_max)
		loss->acked = 0;
	loss_open(loss, now_ns);
}

/* Let the packets that are not in the network any more not count. */
static void loss_set_window(struct loss *loss)
{
	loss->window = RTE_MIN(loss->board->advertised_window,
			       loss->window_max + scoreboard_settled(loss->board));
}

void loss_open(struct loss *loss, uint64_t now_ns)
{
	if (loss->peer != LOSS_PEER_SACK)
		return;
	loss_set_window(loss);
	if (loss->limited | loss->board->widening) {
		loss_widen(loss, false, now_ns);
		/* loss_widen may have changed window_max or the advertised window. */
		loss_set_window(loss);
	}
}
