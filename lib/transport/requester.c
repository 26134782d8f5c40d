/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of a connected queue pair: converts posted work into request packets (IBTA
 * 9.7.3). */
#include "transport/requester.h"

#include <rte_bitops.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/reason.h"
#include "request.h"
#include "transport/local.h"
#include "wire/headers.h"
#include "wire/opcode.h"

/* So many copies follow a READ request for this many responses or more while packets get lost. */
#define REQUESTER_COPIES      2
#define REQUESTER_COPIES_PSNS 16

void requester_reset(struct requester *requester, enum requester_state state)
{
	requester->state = state;
	requester->fault = FAULT_NONE;
	request_unlocate(requester);
	/* The first packet asks for an acknowledgement, whose capability bits show if the peer is
	 * uroce. */
	requester->unasked = requester->loss->sack ? REQUESTER_ACK_INTERVAL_PKTS : 0;
	requester->flush_repeats = false;
	requester->absent = false;
	requester->executed = false;
}

/* Return the PSNs that a message uses: one for each packet, at least one (IBTA 9.7.2). */
static uint32_t requester_psns(const struct requester *requester, const struct send_wqe *wqe)
{
	const uint32_t mtu = requester->peer->mtu;

	if (wqe->length <= mtu || sq_is_atomic((enum ibv_wr_opcode)wqe->opcode) ||
	    requester_wants_empty_read(wqe))
		return 1;
	/* The MTU is a power of two. */
	return (uint32_t)(((uint64_t)wqe->length + mtu - 1) >> rte_bsf32(mtu));
}

/* Find the request and the byte of loss->next; after going back, search from the oldest one
 * on. */
static void requester_locate(struct requester *requester)
{
	const struct sq *sq = requester->sq;
	const struct psn next = requester->loss->next;
	const uint32_t prod = sq_prod(sq);
	const uint32_t index = sq_find(sq, next);

	request_stand_at(requester, index);
	if (index != prod) {
		const struct send_wqe *wqe = sq_at(sq, index);
		uint64_t position = 0;

		if (wqe->started)
			position = (uint64_t)psn_diff(next, wqe->first_psn) * requester->peer->mtu;
		sgl_seek(&requester->sgl, wqe->sge, wqe->num_sge, position);
	}
}

/* Return true if only the window, and the request itself, may hold the next packet back. Nothing
 * that is sent in this poll changes that. */
static bool requester_is_calm(const struct requester *requester)
{
	return requester->state == REQUESTER_RUNNING && requester->service == OPCODE_RC &&
	       requester->loss->state == LOSS_NONE && requester->pacer->rate_kbps == 0 &&
	       !requester->absent;
}

/* Return true if the window holds the next packet back. */
static bool requester_is_full(struct requester *requester)
{
	if (likely(!loss_full(requester->loss)))
		return false;
	loss_limit(requester->loss);
	return true;
}

/* Return true if the next packet of this request may leave now. */
static bool requester_may_send(struct requester *requester, const struct send_wqe *wqe)
{
	const struct loss *loss = requester->loss;

	if (requester->state == REQUESTER_DRAINING && !wqe->started)
		return false;
	/* Flow control by acknowledgements is only for reliable services. */
	if (requester->service != OPCODE_UC && requester_is_full(requester))
		return false;
	/* IBTA 10.8.3.3: a fence waits for the earlier READs and atomics. */
	if (unlikely(wqe->flags & IBV_SEND_FENCE) && loss->responses > 0 &&
	    (!wqe->started || psn_eq(wqe->first_psn, loss->next)))
		return false;
	/* The responder has resources for this many READs and atomics. */
	if (requester_wants_response(wqe) && loss->responses >= loss->allowed_responses)
		return false;
	if (likely(requester->pacer->rate_kbps == 0))
		return true;
	return sq_is_local((enum ibv_wr_opcode)wqe->opcode) ||
	       !pacer_waits_new(requester->pacer, loss_in_network(loss));
}

static __rte_always_inline void requester_start(struct requester *requester, struct send_wqe *wqe,
						const bool plain)
{
	wqe->first_psn = requester->loss->next;
	wqe->last_psn = psn_add(wqe->first_psn, (int32_t)requester_psns(requester, wqe) - 1);
	wqe->started = true;
	/* The one entry of a plain request is not empty. */
	if (plain)
		requester->sgl = (struct sgl){.sge = wqe->sge, .num_sge = 1};
	else
		sgl_seek(&requester->sgl, wqe->sge, wqe->num_sge, 0);
}

/*
 * Execute local work once, although it is met again after going back. It uses no PSN, so its last
 * PSN is before its first. Return false if it failed.
 */
static bool requester_execute(struct requester *requester, struct send_wqe *wqe)
{
	if (!wqe->started) {
		const enum fault fault =
			local_execute(requester->pd, requester->qpn, requester->windows, wqe);

		if (fault != FAULT_NONE) {
			request_stop_at(requester, requester->sq->next, fault);
			return false;
		}
		wqe->first_psn = requester->loss->next;
		wqe->last_psn = psn_add(wqe->first_psn, -1);
		wqe->started = true;
		requester->executed = true;
	}
	request_pass(requester);
	return true;
}

/*
 * Return true if copies of a request follow it at once: of a READ of many responses, while packets
 * get lost. If the request were lost, the responder could not answer what it has got behind it for
 * a round trip. It ignores the copies of what has come.
 */
static bool requester_wants_copies(const struct requester *requester, const struct send_wqe *wqe,
				   struct psn psn)
{
	const struct loss *loss = requester->loss;

	return unlikely(loss->state == LOSS_SACKED) && wqe->opcode == IBV_WR_RDMA_READ &&
	       requester->pacer->rate_kbps == 0 &&
	       requester_segment_psns(wqe, psn) >= REQUESTER_COPIES_PSNS;
}

/* Send the copies of a packet that was sent just now, if it has any, up to `budget`. Return their
 * number. */
static unsigned int requester_send_copies(struct requester *requester, struct packet_sink *sink,
					  const struct send_wqe *wqe, struct psn psn,
					  const struct loss_range *again, unsigned int budget,
					  enum put *put)
{
	unsigned int sent = 0;

	if (!requester_wants_copies(requester, wqe, psn))
		return 0;
	while (*put == PUT_DONE && sent < RTE_MIN(budget, (unsigned int)REQUESTER_COPIES)) {
		*put = request_put(requester, sink, wqe, psn, again, true);
		sent += *put == PUT_DONE;
	}
	return sent;
}

/*
 * Send packets again that are missing. The place of new packets does not move: neither window nor
 * fences apply to packets that were already sent. Return the number of packets.
 */
static unsigned int requester_send_missing(struct requester *requester, struct packet_sink *sink,
					   unsigned int budget, bool *more, bool *absent)
{
	const struct sq *sq = requester->sq;
	enum put put = PUT_DONE;
	struct loss_range range;
	unsigned int sent = 0;

	while (put == PUT_DONE && requester->state != REQUESTER_STOPPED &&
	       loss_next(requester->loss, &range) && !pacer_holds(requester->pacer)) {
		const struct send_wqe *wqe = sq_at(sq, sq_find(sq, range.from));

		if (sent == budget) {
			*more = true;
			break;
		}
		put = request_put(requester, sink, wqe, range.from, &range, false);
		sent += put == PUT_DONE;
		if (put == PUT_DONE && !range.is_executed)
			sent += requester_send_copies(requester, sink, wqe, range.from, &range,
						      budget - sent, &put);
	}
	*absent = put == PUT_ABSENT;
	*more |= put == PUT_NO_ROOM;
	return sent;
}

/* Do what requester_send does, except noting an absent page. */
static unsigned int requester_send_all(struct requester *requester, struct packet_sink *sink,
				       unsigned int budget, bool *more, bool *absent)
{
	unsigned int sent = 0;
	bool calm;

	*more = false;
	*absent = false;
	requester->fault = FAULT_NONE;
	if (unlikely(loss_is_selective(requester->loss))) {
		sent = requester_send_missing(requester, sink, budget, more, absent);
		if (*more || *absent || requester->fault != FAULT_NONE ||
		    loss_holds(requester->loss))
			return sent;
	}
	if (!requester_stands(requester))
		requester_locate(requester);
	calm = requester_is_calm(requester);
	while (requester->state != REQUESTER_STOPPED) {
		const struct psn psn = requester->loss->next;
		struct send_wqe *wqe;
		enum put put;
		bool plain;

		if (requester->sq->next == sq_prod(requester->sq))
			break;
		wqe = sq_at(requester->sq, requester->sq->next);
		plain = calm && request_is_plain(wqe);
		/* The peer allows no READ or atomic (ibv_modify_qp(3), max_rd_atomic). */
		if (!plain && requester_wants_response(wqe) &&
		    requester->loss->max_responses == 0) {
			request_stop_at(requester, requester->sq->next,
					requester->service == OPCODE_UC
						? FAULT_REASON(FAULT_SEND_OPERATION,
							       "a UC queue pair has no READ and no "
							       "atomic")
						: FAULT_REASON(FAULT_SEND_OPERATION,
							       "the queue pair's max_rd_atomic is "
							       "0, so it sends no READ and no "
							       "atomic"));
			break;
		}
		if (plain ? requester_is_full(requester) : !requester_may_send(requester, wqe))
			break;
		if (sent == budget) {
			*more = true;
			break;
		}
		if (!plain && sq_is_local((enum ibv_wr_opcode)wqe->opcode)) {
			if (!requester_execute(requester, wqe))
				break;
			continue;
		}
		if (plain) {
			if (!wqe->started)
				requester_start(requester, wqe, true);
			put = request_put_plain(requester, sink, wqe);
		} else {
			if (!wqe->started)
				requester_start(requester, wqe, false);
			put = request_put(requester, sink, wqe, psn, NULL, false);
		}
		sent += put == PUT_DONE;
		if (put == PUT_DONE && unlikely(requester->loss->state == LOSS_SACKED))
			sent += requester_send_copies(requester, sink, wqe, psn, NULL,
						      budget - sent, &put);
		if (put != PUT_DONE) {
			*more = put == PUT_NO_ROOM;
			*absent = put == PUT_ABSENT;
			break;
		}
	}
	return sent;
}

unsigned int requester_send(struct requester *requester, struct packet_sink *sink,
			    unsigned int budget, bool *more)
{
	bool absent;
	const unsigned int sent = requester_send_all(requester, sink, budget, more, &absent);

	if (unlikely(absent) && !requester->absent)
		counters_add(requester->counters, COUNTER_page_waits, 1);
	requester->absent = absent;
	return sent;
}

bool requester_drained(const struct requester *requester)
{
	const struct sq *sq = requester->sq;

	if (requester->state != REQUESTER_DRAINING)
		return false;
	return sq->cons == sq_prod(sq) || !sq_at(sq, sq->cons)->started;
}
