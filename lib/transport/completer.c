/* SPDX-License-Identifier: BSD-3-Clause */
/* The half of a requester that receives responses and completes work requests, in order (IBTA 9.7.5
 * and 9.7.7). */
#include "transport/completer.h"

#include <rte_branch_prediction.h>

#include "base/reason.h"
#include "completer_ooo.h"
#include "transport/loss_sack.h"
#include "transport/requester.h"
#include "transport/sack.h"
#include "transport/sgl.h"
#include "wire/headers.h"
#include "wire/packet.h"

static const uint8_t completion_opcodes[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
	[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
	[LATER_WR_FLUSH] = LATER_WC_FLUSH,
	[IBV_WR_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
};

static __rte_noinline void pop_counted(struct completer *completer, const struct send_wqe *wqe,
				       bool succeeded)
{
	const uint8_t opcode = completion_opcodes[sq_posted_opcode(wqe)];
	const uint32_t length = wqe->length;

	sq_pop(completer->sq);
	if (opcode == IBV_WC_SEND)
		comp_cntr_add(completer->cntrs, COMP_CNTR_SEND, succeeded, length);
	else if (opcode == IBV_WC_RDMA_WRITE)
		comp_cntr_add(completer->cntrs, COMP_CNTR_RDMA_WRITE, succeeded, length);
	else if (opcode == IBV_WC_RDMA_READ)
		comp_cntr_add(completer->cntrs, COMP_CNTR_RDMA_READ, succeeded, length);
}

/* Free the slot of the oldest request, and then count it: a program that sees the new value may
 * post into a queue that was full. */
static __rte_always_inline void pop(struct completer *completer, const struct send_wqe *wqe,
				    bool succeeded)
{
	if (likely(!completer->counts))
		sq_pop(completer->sq);
	else
		pop_counted(completer, wqe, succeeded);
}

/*
 * Complete the oldest request. Free its slot before the completion becomes visible: as soon as the
 * program has polled it, on another CPU, it may post into a queue that was full.
 */
static int completer_retire(struct completer *completer, const struct send_wqe *wqe,
			    enum ibv_wc_status status)
{
	struct ibv_wc wc = {.wr_id = wqe->wr_id,
			    .status = status,
			    .opcode = (enum ibv_wc_opcode)completion_opcodes[wqe->opcode],
			    .qp_num = completer->qpn};

	if (status == IBV_WC_SUCCESS)
		wc.byte_len = requester_wants_data(wqe) ? wqe->length : 0;
	pop(completer, wqe, status == IBV_WC_SUCCESS);
	return cq_push(completer->cq, &wc, false);
}

/* Do what completer_done does; inline where many requests complete together. */
static __rte_always_inline enum fault done(struct completer *completer)
{
	const struct send_wqe *wqe = sq_at(completer->sq, completer->sq->cons);

	if (!(wqe->flags & IBV_SEND_SIGNALED)) {
		pop(completer, wqe, true);
		return FAULT_NONE;
	}
	return completer_retire(completer, wqe, IBV_WC_SUCCESS) == 0 ? FAULT_NONE
								     : FAULT_CQ_OVERRUN;
}

enum fault completer_done(struct completer *completer)
{
	return done(completer);
}

static __rte_always_inline enum fault executed(struct completer *completer)
{
	const struct send_wqe *wqe;
	enum fault fault = FAULT_NONE;

	while (fault == FAULT_NONE && (wqe = completer_oldest(completer)) != NULL &&
	       sq_is_local((enum ibv_wr_opcode)wqe->opcode) && wqe->started)
		fault = completer_done(completer);
	return fault;
}

enum fault completer_executed(struct completer *completer)
{
	return executed(completer);
}

enum fault completer_fail(struct completer *completer, enum fault fault)
{
	const struct fault_info *info = fault_info(fault);
	const struct send_wqe *wqe = completer_oldest(completer);
	int pushed;

	if (wqe == NULL)
		return FAULT_NONE;
	counters_add(completer->counters, COUNTER_req_cqe_error, 1);
	pushed = completer_retire(completer, wqe, info->status);
	return pushed == 0 ? FAULT_NONE : FAULT_CQ_OVERRUN;
}

void completer_reset(struct completer *completer)
{
	ooo_clear(&completer->ooo);
	completer->page_absent = false;
	completer->ack_byte = 0;
}

void completer_flush(struct completer *completer)
{
	const struct send_wqe *wqe;

	completer_reset(completer);
	while ((wqe = completer_oldest(completer)) != NULL) {
		counters_add(completer->counters, COUNTER_req_cqe_flush_error, 1);
		completer_retire(completer, wqe, IBV_WC_WR_FLUSH_ERR);
	}
}

/*
 * Complete SENDs and WRITEs that end before `psn`: the responder has executed every request before
 * it. Return true if everything before `psn` is complete; false if a READ or atomic before it waits
 * for its data.
 */
bool completer_acknowledge(struct completer *completer, struct psn psn, uint64_t now_ns,
			   enum fault *fault)
{
	const struct psn una = completer->loss->una;
	struct psn end = una;
	bool answered = true;

	/* Restart the timers once for all of these requests. */
	while (psn_before(end, psn)) {
		const struct send_wqe *wqe = completer_oldest(completer);

		if (requester_wants_response(wqe)) {
			answered = false;
			break;
		}
		if (!psn_before(wqe->last_psn, psn)) {
			end = psn;
			break;
		}
		end = psn_add(wqe->last_psn, 1);
		*fault = done(completer);
		if (*fault != FAULT_NONE)
			break;
	}
	if (!psn_eq(end, una))
		loss_on_ack(completer->loss, end, now_ns);
	if (!answered)
		return false;
	if (*fault != FAULT_NONE)
		return true;
	/* Complete local work that was executed meanwhile, and waited for these requests. */
	*fault = completer_executed(completer);
	return true;
}

/* Note that the data of a READ or atomic has come and is stored. The request contains
 * loss->una. */
static enum fault completer_answered(struct completer *completer, struct send_wqe *wqe,
				     uint64_t now_ns)
{
	struct loss *loss = completer->loss;
	const uint32_t done = (uint32_t)psn_diff(loss->una, wqe->first_psn) + 1;
	const bool last = psn_eq(loss->una, wqe->last_psn);
	enum fault fault;

	/* After go-back-N, answers to the first transmission may come before the second one: then
	 * there is nothing to count. */
	if ((last || done % REQUESTER_READ_SEGMENT_PKTS == 0) && loss->responses > 0)
		loss->responses--;
	loss_on_ack(loss, psn_add(loss->una, 1), now_ns);
	if (!last)
		return FAULT_NONE;
	fault = completer_done(completer);
	return fault != FAULT_NONE ? fault : executed(completer);
}

/*
 * Hold back the answer to una, because it cannot be stored before a page is in memory. Until then
 * nothing is received or sent. Afterwards all unanswered requests are sent again, as if their
 * answers were lost.
 */
static void completer_hold(struct completer *completer)
{
	counters_add(completer->counters, COUNTER_page_waits, 1);
	ooo_clear(&completer->ooo);
	completer->page_absent = true;
	loss_hold(completer->loss);
}

/* Return true if the page for the answer to una is still absent. */
static bool completer_still_absent(const struct completer *completer)
{
	const struct send_wqe *wqe = completer_oldest(completer);
	uint64_t position = 0;
	struct sgl sgl;

	if (wqe == NULL || !requester_wants_data(wqe))
		return false;
	if (wqe->opcode == IBV_WR_RDMA_READ)
		position =
			(uint64_t)psn_diff(completer->loss->una, wqe->first_psn) * completer->mtu;
	sgl_seek(&sgl, wqe->sge, wqe->num_sge, position);
	return sgl_is_absent(&sgl, completer->pd,
			     wqe->opcode == IBV_WR_RDMA_READ
				     ? completer_expected(completer, wqe, completer->loss->una)
				     : sizeof(uint64_t));
}

static enum fault completer_store(struct completer *completer, const struct send_wqe *wqe,
				  uint64_t position, const void *data, uint32_t len)
{
	struct sgl sgl;

	sgl_seek(&sgl, wqe->sge, wqe->num_sge, position);
	/* The response came out of order and was placed. By now the memory may be unmapped, or the
	 * key may lead to other memory (ibv_rereg_mr(3)), which does not have the bytes. */
	if (data == NULL && len > 0)
		return sgl_leads_to(&sgl, completer->pd, len, ooo_placed(&completer->ooo))
			       ? FAULT_NONE
			       : FAULT_REASON(
					 FAULT_SEND_PROTECTION,
					 "the region of the list changed while responses came");
	sgl.next = (uint32_t)(wqe->length - position - len);
	switch (sgl_scatter(&sgl, completer->pd, data, len)) {
	case MR_OK:
		counters_add(completer->counters, COUNTER_rx_payload_bytes_written, sgl.stored);
		return FAULT_NONE;
	case MR_ABSENT:
		completer_hold(completer);
		return FAULT_NONE;
	default:
		return FAULT_SEND_PROTECTION;
	}
}

/* Continue after completer_store. */
static enum fault completer_stored(struct completer *completer, struct send_wqe *wqe,
				   enum fault fault, uint64_t now_ns)
{
	if (fault != FAULT_NONE || unlikely(completer->page_absent))
		return fault;
	return completer_answered(completer, wqe, now_ns);
}

static enum fault bad_response(const struct packet *packet)
{
	return FAULT_REASON(FAULT_BAD_RESPONSE,
			    "the answer with opcode 0x%02x and syndrome 0x%02x does not fit the "
			    "request: the peer breaks the protocol",
			    packet->opcode, packet->syndrome);
}

/* Process a READ response without payload: an ATOMIC WRITE or a FLUSH is executed. */
static enum fault completer_empty_read(struct completer *completer, struct send_wqe *wqe,
				       const struct packet *packet, uint64_t now_ns)
{
	const uint8_t operation = packet_operation(packet);

	if (operation != OPCODE_READ_RESPONSE_ONLY || packet->payload_len != 0)
		return bad_response(packet);
	return completer_answered(completer, wqe, now_ns);
}

static enum fault completer_read_response(struct completer *completer, const struct packet *packet,
					  uint64_t now_ns)
{
	struct send_wqe *wqe = completer_oldest(completer);
	uint64_t position;
	uint32_t expected;
	enum fault fault;

	if (wqe != NULL && requester_wants_empty_read(wqe))
		return completer_empty_read(completer, wqe, packet, now_ns);
	if (wqe == NULL || wqe->opcode != IBV_WR_RDMA_READ)
		return bad_response(packet);
	position = (uint64_t)psn_diff(packet->psn, wqe->first_psn) * completer->mtu;
	expected = completer_expected(completer, wqe, packet->psn);
	/* C9-105: a response whose length is not the requested one is a bad response. */
	if (packet->payload_len != expected)
		return FAULT_REASON(
			FAULT_BAD_RESPONSE,
			"a response of %u bytes came where %u are due: the peer's path_mtu may "
			"differ",
			packet->payload_len, expected);
	fault = completer_store(completer, wqe, position, packet->payload, expected);
	return completer_stored(completer, wqe, fault, now_ns);
}

static enum fault completer_atomic_response(struct completer *completer,
					    const struct packet *packet, uint64_t now_ns)
{
	struct send_wqe *wqe = completer_oldest(completer);
	const uint64_t original = packet->atomic_original;
	enum fault fault;

	if (wqe == NULL || !sq_is_atomic((enum ibv_wr_opcode)wqe->opcode))
		return bad_response(packet);
	/* The result is in host order (ibv_post_send(3)); packet_parse has converted it. */
	fault = completer_store(completer, wqe, 0, &original, sizeof(original));
	return completer_stored(completer, wqe, fault, now_ns);
}

/* Describe the oldest request to the owner of loss. */
static struct loss_request completer_describe(const struct completer *completer)
{
	const struct send_wqe *wqe = completer_oldest(completer);
	struct loss_request request = {.last = completer->loss->una};

	if (wqe == NULL)
		return request;
	request.wants_response = requester_wants_response(wqe);
	request.last = wqe->last_psn;
	if (wqe->opcode == IBV_WR_RDMA_READ) {
		const uint32_t done = (uint32_t)psn_diff(completer->loss->una, wqe->first_psn);

		request.segment_psns = requester_segment_psns(wqe, completer->loss->una);
		request.segment_began = done % REQUESTER_READ_SEGMENT_PKTS != 0;
	}
	return request;
}

/* Return true if the oldest request takes a receive of the peer's. */
static bool completer_takes_receive(const struct completer *completer)
{
	const struct send_wqe *wqe = completer_oldest(completer);

	return wqe != NULL &&
	       (wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM ||
		wqe->opcode == IBV_WR_SEND_WITH_INV || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
}

static enum fault completer_nak(struct completer *completer, const struct packet *packet,
				uint64_t now_ns)
{
	const uint8_t value = packet->syndrome & AETH_VALUE_MASK;
	struct loss_request oldest;

	switch (packet->syndrome & AETH_KIND_MASK) {
	case AETH_RNR_NAK:
		counters_add(completer->counters, COUNTER_rnr_nak_retry_err, 1);
		completer->refused = completer_takes_receive(completer);
		if (loss_on_rnr(completer->loss, value, now_ns))
			return FAULT_NONE;
		return FAULT_REASON(
			FAULT_RNR_RETRIES_EXHAUSTED,
			"the peer was not ready at %u attempts (rnr_retry): it had no receive "
			"request, or a page of its memory was absent",
			completer->loss->recovery.rnr_retry + 1u);
	case AETH_NAK:
		if (value != NAK_PSN_SEQUENCE)
			return FAULT_REASON(
				fault_of_nak(value),
				"the peer refused it; if that is uroce with --explain, it says "
				"why under PSN 0x%06x",
				packet->psn.v);
		counters_add(completer->counters, COUNTER_packet_seq_err, 1);
		oldest = completer_describe(completer);
		loss_on_nak(completer->loss, &oldest, now_ns);
		return FAULT_NONE;
	default:
		/* A reserved syndrome: this answer cannot be used. */
		return bad_response(packet);
	}
}

/* Process an answer behind missing responses. */
static void completer_out_of_order(struct completer *completer, const struct packet *packet,
				   uint64_t now_ns)
{
	/* A NAK is for a packet behind una, too: everything is sent again. */
	if (packet_operation(packet) == OPCODE_ACKNOWLEDGE && !completer_is_ack(packet)) {
		if (loss_on_nak_ahead(completer->loss, now_ns))
			counters_add(completer->counters, COUNTER_implied_nak_seq_err, 1);
		return;
	}
	/* Ignore a response whose AETH does not fit. It is a fault only when its PSN is the
	 * expected one. */
	if (!completer_aeth_fits(packet))
		return;
	if (!loss_reserve(completer->loss))
		return;
	loss_on_out_of_order(completer->loss, packet->psn, completer_ooo_keep(completer, packet));
}

/* Return the next kept response whose turn it is, or NULL, while responses are missing. */
static const struct packet *completer_next_kept(struct completer *completer, uint64_t now_ns,
						enum fault *fault)
{
	const struct loss *loss = completer->loss;
	const struct packet *packet;

	if (completer_acknowledge(completer, loss->executed, now_ns, fault))
		return NULL;
	ooo_drop_before(&completer->ooo, loss->una);
	packet = ooo_first(&completer->ooo);
	return packet != NULL && psn_eq(packet->psn, loss->una) ? packet : NULL;
}

/*
 * Something is missing: find out what the newest answer has changed. Return a kept response whose
 * turn it is now, or NULL.
 */
const struct packet *completer_settle(struct completer *completer, bool acknowledged,
				      uint64_t now_ns, enum fault *fault)
{
	struct loss_request oldest;

	if (loss_awaits_responses(completer->loss)) {
		const struct packet *packet = completer_next_kept(completer, now_ns, fault);

		if (packet != NULL || *fault != FAULT_NONE)
			return packet;
	}
	if (!loss_awaits_responses(completer->loss))
		ooo_clear(&completer->ooo);
	else if (loss_sack_applies(completer->loss))
		told_responses(completer, now_ns);
	oldest = completer_describe(completer);
	if (loss_settle(completer->loss, &oldest, acknowledged, now_ns))
		counters_add(completer->counters, COUNTER_implied_nak_seq_err, 1);
	return NULL;
}

/* Process a response or a NAK that is about loss->una. */
static enum fault completer_answer(struct completer *completer, const struct packet *packet,
				   uint64_t now_ns)
{
	if (!completer_aeth_fits(packet))
		return bad_response(packet);
	switch (packet_operation(packet)) {
	case OPCODE_READ_RESPONSE_FIRST:
	case OPCODE_READ_RESPONSE_MIDDLE:
	case OPCODE_READ_RESPONSE_LAST:
	case OPCODE_READ_RESPONSE_ONLY:
		return completer_read_response(completer, packet, now_ns);
	case OPCODE_ATOMIC_ACKNOWLEDGE:
		return completer_atomic_response(completer, packet, now_ns);
	case OPCODE_ACKNOWLEDGE:
		return completer_nak(completer, packet, now_ns);
	default:
		return FAULT_NONE;
	}
}

/* Process an answer to a packet in flight. */
static enum fault completer_take(struct completer *completer, const struct packet *packet,
				 bool is_ack, uint64_t now_ns)
{
	enum fault fault = FAULT_NONE;
	/* Everything before this PSN was executed. */
	const struct psn before = psn_add(packet->psn, is_ack);

	/* Responses come one by one: usually nothing is before them. */
	if (!psn_eq(before, completer->loss->una) &&
	    !completer_acknowledge(completer, before, now_ns, &fault)) {
		completer_out_of_order(completer, packet, now_ns);
		return FAULT_NONE;
	}
	return fault != FAULT_NONE || is_ack ? fault : completer_answer(completer, packet, now_ns);
}

/*
 * Return true for a sequence NAK for the next PSN, which was never sent: the peer has received a
 * packet that was not ours. The NAK may replace the only acknowledgement of packets that were sent
 * before (9.7.5.1.1).
 */
static bool completer_is_about_all(const struct loss *loss, const struct packet *packet)
{
	return psn_eq(packet->psn, loss->top) && !loss_idle(loss) &&
	       packet_operation(packet) == OPCODE_ACKNOWLEDGE &&
	       packet->syndrome == (AETH_NAK | NAK_PSN_SEQUENCE);
}

enum fault completer_take_kept(struct completer *completer, const struct packet *packet,
			       uint64_t now_ns)
{
	const struct loss *loss = completer->loss;
	enum fault fault;
	bool is_ack;

	do {
		is_ack = completer_is_ack(packet);
		fault = completer_take(completer, packet, is_ack, now_ns);
		if (likely(loss->state == LOSS_NONE) || fault != FAULT_NONE ||
		    completer->page_absent)
			return fault;
		packet = completer_settle(completer, is_ack, now_ns, &fault);
	} while (packet != NULL && fault == FAULT_NONE);
	return fault;
}

/* Process an answer to nothing that is in flight: it came twice, or it answers nothing (9.7.5.1,
 * ghost). Only an introduction says something. */
static __rte_noinline void completer_ghost(struct completer *completer, const struct packet *packet)
{
	struct loss *loss = completer->loss;
	const struct psn expected = psn_add(packet->psn, SACK_INTRODUCTION_PSNS);

	/* Packets that came after it was owed may be acknowledged, too. */
	if (!loss->sack && completer_is_ack(packet) &&
	    psn_diff(expected, loss->una) >= -LOSS_WINDOW_MAX && !psn_before(loss->top, expected) &&
	    packet->msn == sack_introduction_msn(expected, completer->qpn))
		loss_on_introduction(loss);
}

enum fault completer_receive(struct completer *completer, const struct packet *packet,
			     uint64_t now_ns)
{
	const struct loss *loss = completer->loss;

	/* Drop it: it will be requested again. */
	if (unlikely(completer->page_absent))
		return FAULT_NONE;
	if (psn_before(packet->psn, loss->una) ||
	    (!psn_before(packet->psn, loss->top) && !completer_is_about_all(loss, packet))) {
		completer_ghost(completer, packet);
		return FAULT_NONE;
	}
	completer_note_capability(completer, packet);
	return completer_take_kept(completer, packet, now_ns);
}

void completer_resume(struct completer *completer, uint64_t now_ns)
{
	/* Check first, because another page may have come: do not request a response that could not
	 * be stored. */
	if (!completer->page_absent || completer_still_absent(completer))
		return;
	completer->page_absent = false;
	loss_release(completer->loss, now_ns);
}

enum fault completer_sent(struct completer *completer, uint64_t now_ns)
{
	enum fault fault = FAULT_NONE;

	completer_acknowledge(completer, completer->loss->next, now_ns, &fault);
	return fault;
}

static enum fault given_up(const struct recovery *recovery)
{
	return FAULT_REASON(FAULT_RETRIES_EXHAUSTED,
			    "no answer came in %.1f ms (timeout), %u times in a row (retry_cnt)%s",
			    (double)recovery->timeout_ns / 1e6, recovery->retry_cnt + 1u,
			    recovery->answered
				    ? ": the peer's process, host or queue pair is gone, or the "
				      "network loses all packets"
				    : ", and perhaps none ever: look at the GID, at the number of "
				      "the peer's queue pair and its state, and at firewalls of "
				      "UDP port 4791");
}

enum fault completer_timeout(struct completer *completer, bool excused, uint64_t now_ns)
{
	switch (loss_on_timer(completer->loss, excused, now_ns)) {
	case LOSS_TIMEOUT_NONE:
		return FAULT_NONE;
	case LOSS_TIMEOUT_PROBE:
		counters_add(completer->counters, COUNTER_probes, 1);
		return FAULT_NONE;
	case LOSS_TIMEOUT_TAIL:
		counters_add(completer->counters, COUNTER_probes, 1);
		told_probe(completer);
		return FAULT_NONE;
	case LOSS_TIMEOUT_EXPIRED:
		counters_add(completer->counters, COUNTER_local_ack_timeout_err, 1);
		return FAULT_NONE;
	case LOSS_TIMEOUT_GIVE_UP:
	default:
		counters_add(completer->counters, COUNTER_local_ack_timeout_err, 1);
		return given_up(&completer->loss->recovery);
	}
}
