/* SPDX-License-Identifier: BSD-3-Clause */
/* A completer whose peer sends selective acknowledgements: it divides what the peer says, and what
 * it does not, into packets (loss_sack.h). */
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "completer_ooo.h"
#include "transport/loss_sack.h"
#include "transport/requester.h"
#include "transport/sack.h"

/* Most work requests that one selective acknowledgement is compared with. */
#define REQUESTS_MAX 256

/* The part of a request that is in flight. */
struct part {
	const struct send_wqe *wqe;
	struct psn from;
	struct psn to;
};

/* Find the part of the request that contains `psn`, or of the next one, up to `to`. `index` is that
 * of the request before, and advances. Return false if there is none. */
static bool next_part(const struct completer *completer, uint32_t *index, struct psn psn,
		      struct psn to, struct part *part)
{
	const struct sq *sq = completer->sq;

	for (; *index != sq_prod(sq) && psn_before(psn, to); ++*index) {
		const struct send_wqe *wqe = sq_at(sq, *index);

		if (!wqe->started)
			return false;
		if (psn_before(wqe->last_psn, psn))
			continue; /* local work, or complete */
		*part = (struct part){.wqe = wqe, .from = psn, .to = to};
		if (psn_before(wqe->last_psn, to))
			part->to = psn_add(wqe->last_psn, 1);
		return true;
	}
	return false;
}

/* Report the requests of a part of a READ, each for a segment, or another request that has one PSN
 * and is answered by a response. Return the end of the last one. */
static struct psn report_requests(struct loss *loss, const struct packet *sack,
				  const struct part *part)
{
	struct psn psn = part->from;

	while (psn_before(psn, part->to)) {
		const uint32_t psns = requester_segment_psns(part->wqe, psn);
		const struct psn to = psn_add(psn, (int32_t)psns);

		/* In the middle of a segment: its request is executed. */
		if ((uint32_t)psn_diff(psn, part->wqe->first_psn) % REQUESTER_READ_SEGMENT_PKTS !=
		    0) {
			psn = to;
			continue;
		}
		if (sack_word(sack, (uint32_t)psn_diff(psn, sack->psn)) & 1)
			loss_sack_request_came(loss, psn);
		else
			loss_sack_missing(loss, psn, psn_add(psn, 1));
		psn = to;
	}
	return psn;
}

/*
 * Report what a selective acknowledgement says about the packets [psn, to). Only requests that are
 * answered by responses differ from others. So if there are none, the work requests are not looked
 * at; else only so many, because there may be one for each packet. The next acknowledgement tells
 * of the others. Return the end of the last request.
 */
static struct psn report_all(struct completer *completer, const struct packet *sack, struct psn psn,
			     struct psn to)
{
	struct loss *loss = completer->loss;
	struct psn from = psn;
	struct part part;
	uint32_t index;

	if (loss->responses > 0) {
		index = sq_find(completer->sq, psn);
		for (uint32_t i = 0;
		     i < REQUESTS_MAX && next_part(completer, &index, psn, to, &part); i++) {
			psn = part.to;
			if (!requester_wants_response(part.wqe))
				continue;
			loss_sack_packets(loss, sack, from, part.from);
			psn = report_requests(loss, sack, &part);
			from = psn;
		}
		to = psn;
	}
	loss_sack_packets(loss, sack, from, to);
	return to;
}

/* Report what a selective acknowledgement says. */
static void report(struct completer *completer, const struct packet *sack, uint64_t now_ns)
{
	struct loss *loss = completer->loss;
	/* The peer may keep forged packets that we have not sent. They say nothing about ours. */
	const uint32_t sent = (uint32_t)psn_diff(loss->top, sack->psn);
	const struct psn end = psn_add(sack->psn, (int32_t)sack_span(sack, sent));
	struct psn psn = loss->una;

	if (loss_awaits_responses(loss))
		psn = loss->executed;
	if (psn_before(psn, sack->psn))
		psn = sack->psn;
	loss_sack_begin(loss, now_ns);
	/* Something behind the expected packet has come, even if it is not kept. */
	if (sack_span(sack, UINT32_MAX) == 0 && psn_eq(psn, sack->psn) &&
	    psn_before(psn, loss->next))
		loss_sack_missing(loss, psn, psn_add(psn, 1));
	if (psn_before(psn, end))
		psn = report_all(completer, sack, psn, end);
	if (!psn_before(psn, end))
		loss_sack_ends_at(loss, psn);
	loss_sack_end(loss, now_ns);
}

enum fault completer_sack(struct completer *completer, const struct packet *packet, uint64_t now_ns)
{
	struct loss *loss = completer->loss;
	const bool moves = !psn_eq(packet->psn, loss->una);
	/* The peer is known to have executed everything before this PSN. */
	const struct psn known = loss_awaits_responses(loss) ? loss->executed : loss->una;
	enum fault fault = FAULT_NONE;
	const struct packet *kept;

	if (unlikely(completer->page_absent) || !loss->sack || loss_idle(loss) ||
	    psn_before(packet->psn, loss->una) || psn_before(loss->top, packet->psn) ||
	    packet->payload_len > SACK_BYTES_MAX || !loss_reserve(loss))
		return FAULT_NONE;
	counters_add(completer->counters, COUNTER_sacks_received, 1);
	/* This packet may be the first answer that comes. While packets get lost, the peer sends no
	 * other.
	 */
	completer_note_capability(completer, packet);
	if (moves && !completer_acknowledge(completer, packet->psn, now_ns, &fault))
		loss_sack_executed(loss, packet->psn, packet->solicited);
	if (fault != FAULT_NONE)
		return fault;
	loss_sack_accepted(loss, now_ns);
	/* A late acknowledgement says what was true before. */
	if (loss_sack_applies(loss) && !loss_idle(loss) &&
	    (psn_before(known, packet->psn) ||
	     sack_is_newer(packet->sack_serial, loss->board->serial))) {
		loss->board->serial = packet->sack_serial;
		report(completer, packet, now_ns);
	}
	if (loss->state == LOSS_NONE)
		return FAULT_NONE;
	kept = completer_settle(completer, true, now_ns, &fault);
	if (kept == NULL || fault != FAULT_NONE)
		return fault;
	return completer_take_kept(completer, kept, now_ns);
}

void told_responses(struct completer *completer, uint64_t now_ns)
{
	struct loss *loss = completer->loss;
	const struct psn to = loss->board->answered;
	struct psn psn = loss->board->scanned;
	struct part part;
	uint32_t index;

	loss_sack_begin(loss, now_ns);
	/* The oldest response came, but was not kept until its turn, for lack of room. */
	if (scoreboard_at(loss->board, loss->una) == RANGE_CAME)
		loss_sack_not_kept(loss);
	index = sq_find(completer->sq, psn);
	while (next_part(completer, &index, psn, to, &part)) {
		psn = part.to;
		if (requester_wants_response(part.wqe))
			loss_sack_no_response(loss, part.from, part.to);
	}
	if (psn_before(loss->board->scanned, to))
		loss->board->scanned = to;
	if (loss_sack_end(loss, now_ns))
		counters_add(completer->counters, COUNTER_implied_nak_seq_err, 1);
}

/* Return how many of the responses that a READ's segment still lacks are requested: one, or twice
 * as many as by the probe before, if nothing came but the answer to that. */
static uint32_t probe_run(struct loss *loss, uint32_t lacks)
{
	struct scoreboard *board = loss->board;

	if (board->probe_run > 0 && psn_eq(board->probed, loss->una))
		board->probe_run *= 2;
	else
		board->probe_run = 1;
	board->probe_run = RTE_MIN(board->probe_run, lacks);
	board->probed = psn_add(loss->una, (int32_t)board->probe_run);
	return board->probe_run;
}

/*
 * Choose the newest packet: whatever was lost before it, the answer shows it. If that has come, or
 * is a request that is answered by responses, choose the oldest packet, or responses that a READ's
 * segment still lacks, because nothing came behind them. If no answer comes to the newest packet,
 * or it shows nothing, choose both: the peer may have refused the oldest one, and says so only
 * once; or it has no room to keep packets, and the oldest one was lost again.
 */
void told_probe(struct completer *completer)
{
	struct loss *loss = completer->loss;
	const struct psn newest = psn_add(loss->top, -1);
	const struct sq *sq = completer->sq;
	const struct send_wqe *wqe = sq_at(sq, sq_find(sq, newest));
	uint32_t psns = 1;

	if (!requester_wants_response(wqe) && scoreboard_at(loss->board, newest) != RANGE_CAME) {
		const bool again = psn_eq(loss->board->tail, loss->una);

		loss_sack_probe(loss, newest, loss->top);
		loss->board->tail = loss->una;
		if (!again)
			return;
	}
	wqe = completer_oldest(completer);
	if (wqe->opcode == IBV_WR_RDMA_READ) {
		const uint32_t rest = requester_segment_psns(wqe, loss->una);
		const struct psn end = psn_add(loss->una, (int32_t)rest);

		/* If a response of this segment has come, its request is executed. */
		if ((uint32_t)psn_diff(loss->una, wqe->first_psn) % REQUESTER_READ_SEGMENT_PKTS !=
		    0)
			loss_sack_executed(loss, end, false);
		if (loss_awaits_responses(loss))
			psns = probe_run(loss, rest);
	}
	loss_sack_probe(loss, loss->una, psn_add(loss->una, (int32_t)psns));
}
