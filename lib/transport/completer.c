/* SPDX-License-Identifier: BSD-3-Clause */
/* The half of a requester that takes in responses and completes work requests, in order (IBTA 9.7.5
 * and 9.7.7). */
#include "transport/completer.h"

#include <rte_branch_prediction.h>

#include "transport/requester.h"
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

static struct send_wqe *completer_oldest(const struct completer *completer)
{
	const struct sq *sq = completer->sq;

	return sq->cons == sq_prod(sq) ? NULL : sq_at(sq, sq->cons);
}

/*
 * Complete the oldest request. Its slot is free before the completion can be seen: the program, on
 * another CPU, may post into a full queue as soon as it has polled one.
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
	sq_pop(completer->sq);
	return cq_push(completer->cq, &wc, false);
}

enum fault completer_done(struct completer *completer)
{
	const struct send_wqe *wqe = sq_at(completer->sq, completer->sq->cons);

	if (!(wqe->flags & IBV_SEND_SIGNALED)) {
		sq_pop(completer->sq);
		return FAULT_NONE;
	}
	return completer_retire(completer, wqe, IBV_WC_SUCCESS) == 0 ? FAULT_NONE
								     : FAULT_CQ_OVERRUN;
}

enum fault completer_executed(struct completer *completer)
{
	const struct send_wqe *wqe;
	enum fault fault = FAULT_NONE;

	while (fault == FAULT_NONE && (wqe = completer_oldest(completer)) != NULL &&
	       sq_is_local((enum ibv_wr_opcode)wqe->opcode) && wqe->started)
		fault = completer_done(completer);
	return fault;
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
	early_clear(&completer->early);
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

/* Everything before `psn` is done. */
static void completer_advance(struct completer *completer, struct psn psn, uint64_t now_ns)
{
	struct flight *flight = completer->flight;

	flight_acked(flight, psn);
	recovery_answered(completer->recovery, psn, now_ns);
	recovery_progress(completer->recovery, now_ns, flight_outstanding(flight) > 0);
}

/* Send again from the oldest unacknowledged packet on. */
static void completer_resend(struct completer *completer, uint64_t now_ns)
{
	recovery_lost(completer->recovery, now_ns);
	flight_rewind(completer->flight, true);
}

/* Send again what is missing before `to`, and nothing else. */
static void completer_mend(struct completer *completer, enum flight_repair repair, struct psn to,
			   uint64_t now_ns)
{
	flight_mend(completer->flight, repair, to);
	recovery_repair(completer->recovery, now_ns, true);
}

/*
 * The responder has executed every request before `psn`: complete SENDs and WRITEs that end there.
 *
 * @return
 *   true when all before `psn` is accounted for; false when a READ or atomic before it waits for
 * its data.
 */
static bool completer_acknowledge(struct completer *completer, struct psn psn, uint64_t now_ns,
				  enum fault *fault)
{
	const struct psn una = completer->flight->una;
	struct psn done = una;
	bool answered = true;

	/* The timers begin anew once for all of them. */
	while (psn_before(done, psn)) {
		const struct send_wqe *wqe = completer_oldest(completer);

		if (requester_wants_response(wqe)) {
			answered = false;
			break;
		}
		if (!psn_before(wqe->last_psn, psn)) {
			done = psn;
			break;
		}
		done = psn_add(wqe->last_psn, 1);
		*fault = completer_done(completer);
		if (*fault != FAULT_NONE)
			break;
	}
	if (!psn_eq(done, una))
		completer_advance(completer, done, now_ns);
	if (!answered)
		return false;
	if (*fault != FAULT_NONE)
		return true;
	/* What was executed meanwhile, and waited for these. */
	*fault = completer_executed(completer);
	return true;
}

/* The data of a READ or atomic, of the request that flight->una is in, has come and is stored. */
static enum fault completer_answered(struct completer *completer, struct send_wqe *wqe,
				     uint64_t now_ns)
{
	struct flight *flight = completer->flight;
	const uint32_t done = (uint32_t)psn_diff(flight->una, wqe->first_psn) + 1;
	const bool last = psn_eq(flight->una, wqe->last_psn);
	enum fault fault;

	/* After a rewind, answers to the first sending may come before the second: nothing to count
	 * then. */
	if ((last || done % REQUESTER_READ_SEGMENT_PKTS == 0) && flight->responses > 0)
		flight->responses--;
	completer_advance(completer, psn_add(flight->una, 1), now_ns);
	if (!last)
		return FAULT_NONE;
	fault = completer_done(completer);
	return fault != FAULT_NONE ? fault : completer_executed(completer);
}

static enum fault completer_store(struct completer *completer, const struct send_wqe *wqe,
				  uint64_t position, const void *data, uint32_t len)
{
	struct sgl sgl;

	sgl_seek(&sgl, wqe->sge, wqe->num_sge, position);
	/* It came early and was placed: by now the memory may have been taken away, or the key may
	 * lead to other memory (ibv_rereg_mr(3)), which the bytes are not in. */
	if (data == NULL && len > 0)
		return sgl_leads_to(&sgl, completer->pd, len, early_placed(&completer->early))
			       ? FAULT_NONE
			       : FAULT_SEND_PROTECTION;
	sgl.next = (uint32_t)(wqe->length - position - len);
	if (sgl_scatter(&sgl, completer->pd, data, len) != MR_OK)
		return FAULT_SEND_PROTECTION;
	counters_add(completer->counters, COUNTER_rx_payload_bytes_written, sgl.stored);
	return FAULT_NONE;
}

/* The word that an ATOMIC WRITE or a FLUSH is executed: a READ response without data. */
static enum fault completer_word(struct completer *completer, struct send_wqe *wqe,
				 const struct packet *packet, uint64_t now_ns)
{
	const uint8_t operation = packet->opcode & OPCODE_OPERATION_MASK;

	if (operation != OPCODE_READ_RESPONSE_ONLY || packet->payload_len != 0)
		return FAULT_BAD_RESPONSE;
	return completer_answered(completer, wqe, now_ns);
}

/* Bytes of the response with this PSN. */
static uint32_t completer_expected(const struct completer *completer, const struct send_wqe *wqe,
				   struct psn psn)
{
	const uint64_t position = (uint64_t)psn_diff(psn, wqe->first_psn) * completer->mtu;

	return psn_eq(psn, wqe->last_psn) ? (uint32_t)(wqe->length - position) : completer->mtu;
}

static enum fault completer_read_response(struct completer *completer, const struct packet *packet,
					  uint64_t now_ns)
{
	struct send_wqe *wqe = completer_oldest(completer);
	uint64_t position;
	uint32_t expected;
	enum fault fault;

	if (wqe != NULL && requester_wants_word(wqe))
		return completer_word(completer, wqe, packet, now_ns);
	if (wqe == NULL || wqe->opcode != IBV_WR_RDMA_READ)
		return FAULT_BAD_RESPONSE;
	position = (uint64_t)psn_diff(packet->psn, wqe->first_psn) * completer->mtu;
	expected = completer_expected(completer, wqe, packet->psn);
	/* C9-105: a response of another length than asked for is a bad response. */
	if (packet->payload_len != expected)
		return FAULT_BAD_RESPONSE;
	fault = completer_store(completer, wqe, position, packet->payload, expected);
	return fault != FAULT_NONE ? fault : completer_answered(completer, wqe, now_ns);
}

static enum fault completer_atomic_response(struct completer *completer,
					    const struct packet *packet, uint64_t now_ns)
{
	struct send_wqe *wqe = completer_oldest(completer);
	const uint64_t original = packet->atomic_original;
	enum fault fault;

	if (wqe == NULL || !sq_is_atomic((enum ibv_wr_opcode)wqe->opcode))
		return FAULT_BAD_RESPONSE;
	/* The result is in host order (ibv_post_send(3)); packet_parse has turned it. */
	fault = completer_store(completer, wqe, 0, &original, sizeof(original));
	return fault != FAULT_NONE ? fault : completer_answered(completer, wqe, now_ns);
}

/*
 * The peer misses what una stands for. Whether it keeps what is behind shows in its answer to that
 * one packet alone; if so, nothing else is ever sent again. If the answer is that the next packet
 * is missing too, more is sent each time. Of a READ or atomic it would not show: responses alone do
 * not tell that nothing more follows.
 */
static void completer_sequence_nak(struct completer *completer, uint64_t now_ns)
{
	struct flight *flight = completer->flight;
	const struct send_wqe *wqe = completer_oldest(completer);
	uint32_t run = 1;

	counters_add(completer->counters, COUNTER_packet_seq_err, 1);
	/* About packets behind one that was not received for lack of a buffer: all of them are sent
	 * again when the RNR timer runs out, and none before (9.7.5.2.8). What is to be sent again
	 * next is no news, and what was just sent again alone has its own timer. */
	if (completer->recovery->state == RECOVERY_RNR_WAIT || psn_eq(flight->next, flight->una) ||
	    (flight->repair != REPAIR_NONE && psn_before(flight->una, flight->repair_to)))
		return;
	if (flight->repair == REPAIR_REQUEST) {
		if (psn_before(flight->repair_to, flight->una))
			flight_peer_keeps(flight);
		else if (flight->peer == FLIGHT_PEER_UNKNOWN && ++flight->doubts > 1)
			flight->peer = FLIGHT_PEER_DROPS;
		else
			run = 2 * flight->repair_run;
		recovery_repaired(completer->recovery, now_ns);
	}
	if (flight->peer == FLIGHT_PEER_DROPS ||
	    (flight->peer == FLIGHT_PEER_UNKNOWN && requester_wants_response(wqe))) {
		completer_resend(completer, now_ns);
		flight->went_back = true;
		return;
	}
	if (wqe->opcode == IBV_WR_RDMA_READ)
		run = requester_segment_psns(wqe, flight->una);
	else if (run > FLIGHT_REPAIR_MAX)
		run = FLIGHT_REPAIR_MAX;
	if (run > flight_outstanding(flight))
		run = flight_outstanding(flight);
	flight->repair_run = run;
	completer_mend(completer, REPAIR_REQUEST, psn_add(flight->una, (int32_t)run), now_ns);
}

static enum fault completer_nak(struct completer *completer, const struct packet *packet,
				uint64_t now_ns)
{
	const uint8_t value = packet->syndrome & AETH_VALUE_MASK;

	switch (packet->syndrome & AETH_KIND_MASK) {
	case AETH_RNR_NAK:
		counters_add(completer->counters, COUNTER_rnr_nak_retry_err, 1);
		if (!recovery_rnr(completer->recovery, value, now_ns))
			return FAULT_RNR_RETRIES_EXHAUSTED;
		flight_rewind(completer->flight, false);
		return FAULT_NONE;
	case AETH_NAK:
		if (value != NAK_PSN_SEQUENCE)
			return fault_of_nak(value);
		completer_sequence_nak(completer, now_ns);
		return FAULT_NONE;
	default:
		/* A reserved syndrome: not an answer that can be used. */
		return FAULT_BAD_RESPONSE;
	}
}

/* Whether a response says that the request with its own PSN was executed, beside those before. */
static bool completer_is_ack(const struct packet *packet)
{
	return (packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE &&
	       (packet->syndrome & AETH_KIND_MASK) == AETH_ACK;
}

/* The AETH of a response with data says that the request was executed, or the two contradict. */
static bool completer_means_what_it_is(const struct packet *packet)
{
	return (packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE ||
	       !(packet->op->flags & OPCODE_HAS_AETH) ||
	       (packet->syndrome & AETH_KIND_MASK) == AETH_ACK;
}

/* What a response, or a NAK, is about is flight->una. */
static enum fault completer_answer(struct completer *completer, const struct packet *packet,
				   uint64_t now_ns)
{
	if (!completer_means_what_it_is(packet))
		return FAULT_BAD_RESPONSE;
	switch (packet->opcode & OPCODE_OPERATION_MASK) {
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

/* The request that a PSN in the air is of, or NULL. */
static const struct send_wqe *completer_find(const struct completer *completer, struct psn psn)
{
	const struct sq *sq = completer->sq;
	const uint32_t prod = sq_prod(sq);

	for (uint32_t i = sq->cons; i != prod && sq_at(sq, i)->started; i++) {
		if (!psn_before(sq_at(sq, i)->last_psn, psn))
			return sq_at(sq, i);
	}
	return NULL;
}

/* Place an early response of the READ in progress where its memory lets bytes come in any order.
 * Returns where it is, or NULL. */
static const uint8_t *completer_place_early(struct completer *completer, const struct send_wqe *wqe,
					    const struct packet *packet)
{
	const uint64_t position = (uint64_t)psn_diff(packet->psn, wqe->first_psn) * completer->mtu;
	const uint8_t *addr;
	struct sgl sgl;

	sgl_seek(&sgl, wqe->sge, wqe->num_sge, position);
	addr = sgl_scatter_early(&sgl, completer->pd, packet->payload, packet->payload_len);
	counters_add(completer->counters, COUNTER_rx_payload_bytes_written, sgl.stored);
	return addr;
}

/* Keep a response for its turn. One that does not fit its request is not worth it: when it comes
 * in its turn, it is a bad response. */
static void completer_keep(struct completer *completer, const struct packet *packet)
{
	const struct send_wqe *wqe = completer_find(completer, packet->psn);
	const uint8_t *placed = NULL;
	uint32_t place;

	if (wqe == NULL || !early_takes(&completer->early, packet, completer->flight->una, &place))
		return;
	if (packet->op->flags & OPCODE_IS_READ_RESPONSE) {
		if (!requester_wants_data(wqe) && !requester_wants_word(wqe))
			return;
		if (wqe->opcode == IBV_WR_RDMA_READ &&
		    packet->payload_len != completer_expected(completer, wqe, packet->psn))
			return;
		if (wqe->opcode == IBV_WR_RDMA_READ && wqe == completer_oldest(completer))
			placed = completer_place_early(completer, wqe, packet);
	} else if (!sq_is_atomic((enum ibv_wr_opcode)wqe->opcode) ||
		   (packet->opcode & OPCODE_OPERATION_MASK) != OPCODE_ATOMIC_ACKNOWLEDGE) {
		return;
	}
	early_keep(&completer->early, packet, place, placed);
	counters_add(completer->counters,
		     placed != NULL ? COUNTER_early_placed : COUNTER_early_kept, 1);
}

/*
 * Responses before `flight->executed` are missing: the next one that is kept, and whose turn it is,
 * or NULL.
 */
static const struct packet *completer_next(struct completer *completer, uint64_t now_ns,
					   enum fault *fault)
{
	struct flight *flight = completer->flight;
	const struct packet *packet;

	if (completer_acknowledge(completer, flight->executed, now_ns, fault)) {
		flight->waits = false;
		early_clear(&completer->early);
		return NULL;
	}
	early_drop_before(&completer->early, flight->una);
	packet = early_first(&completer->early);
	return packet != NULL && psn_eq(packet->psn, flight->una) ? packet : NULL;
}

/*
 * A response came that the responder sends only after one that did not come: that one was lost
 * (9.7.5.1.1, implied NAK). Ask for what is missing up to the first that is kept, once.
 */
static void completer_ask_again(struct completer *completer, uint64_t now_ns)
{
	const struct send_wqe *wqe = completer_oldest(completer);
	const struct packet *kept = early_first(&completer->early);
	const struct flight *flight = completer->flight;
	struct psn to = psn_add(wqe->last_psn, 1);

	if (completer->recovery->state == RECOVERY_RNR_WAIT || psn_eq(flight->una, flight->next))
		return;
	counters_add(completer->counters, COUNTER_implied_nak_seq_err, 1);
	if (kept != NULL && psn_before(kept->psn, to))
		to = kept->psn;
	if (psn_before(flight->executed, to))
		to = flight->executed;
	if (psn_before(flight->next, to))
		to = flight->next;
	completer_mend(completer, REPAIR_RESPONSE, to, now_ns);
}

/*
 * The repair's end is reached. What the peer said to a request that was sent again alone: more than
 * that (it keeps what comes early), or just that (it does not, or not this time: what is behind is
 * to be sent again). A response leaves it open; if nothing follows it, the repair timer asks.
 */
static void completer_repaired(struct completer *completer, bool acknowledged, uint64_t now_ns)
{
	struct flight *flight = completer->flight;
	const bool leaps = psn_before(flight->repair_to, flight->una);
	const enum flight_repair repair = flight->repair;

	flight->repair = REPAIR_NONE;
	if (repair != REPAIR_PROBE)
		recovery_repaired(completer->recovery, now_ns);
	if (repair == REPAIR_RESPONSE || (repair == REPAIR_PROBE && leaps))
		return;
	if (leaps) {
		flight_peer_keeps(flight);
		return;
	}
	if (psn_eq(flight->una, flight->next))
		return;
	if (repair == REPAIR_PROBE) {
		completer_resend(completer, now_ns);
		return;
	}
	if (!acknowledged) {
		completer_mend(completer, REPAIR_REQUEST, psn_add(flight->una, 1), now_ns);
		flight->repair_next = flight->repair_to;
		return;
	}
	flight->peer = flight->peer == FLIGHT_PEER_KEEPS ? FLIGHT_PEER_UNKNOWN : FLIGHT_PEER_DROPS;
	completer_resend(completer, now_ns);
	flight->went_back = true;
}

/*
 * Something is missing: see what the newest answer has changed about that.
 *
 * @return
 *   A response that is kept, and whose turn it is now, or NULL.
 */
static const struct packet *completer_settle(struct completer *completer, bool acknowledged,
					     uint64_t now_ns, enum fault *fault)
{
	struct flight *flight = completer->flight;

	if (flight->waits) {
		const struct packet *packet = completer_next(completer, now_ns, fault);

		if (packet != NULL || *fault != FAULT_NONE)
			return packet;
	}
	if (flight->repair != REPAIR_NONE && !psn_before(flight->una, flight->repair_to))
		completer_repaired(completer, acknowledged, now_ns);
	if (flight->waits && flight->repair == REPAIR_NONE)
		completer_ask_again(completer, now_ns);
	/* Progress has made its timer one for probes. */
	if (flight->repair != REPAIR_NONE && completer->recovery->probing)
		recovery_repair(completer->recovery, now_ns, false);
	return NULL;
}

/* An answer from behind missing responses. */
static void completer_early(struct completer *completer, const struct packet *packet,
			    uint64_t now_ns)
{
	struct flight *flight = completer->flight;

	/* What a NAK asks for is behind una, too: everything is sent again. */
	if ((packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE &&
	    !completer_is_ack(packet)) {
		if (completer->recovery->state != RECOVERY_RNR_WAIT &&
		    !psn_eq(flight->next, flight->una)) {
			counters_add(completer->counters, COUNTER_implied_nak_seq_err, 1);
			completer_resend(completer, now_ns);
		}
		return;
	}
	/* What it is in its turn shows then. */
	if (!completer_means_what_it_is(packet))
		return;
	/* Of the responses that were asked for again, some have come, and now one is missing. */
	if (flight->repair == REPAIR_RESPONSE && psn_before(flight->repair_from, flight->una) &&
	    psn_before(packet->psn, flight->repair_to))
		flight->repair = REPAIR_NONE;
	completer_keep(completer, packet);
	flight_executed(flight, psn_add(packet->psn, 1));
}

/* Take in an answer to what is in the air. */
static enum fault completer_take(struct completer *completer, const struct packet *packet,
				 bool is_ack, uint64_t now_ns)
{
	enum fault fault = FAULT_NONE;
	/* Everything before this was executed. */
	const struct psn before = psn_add(packet->psn, is_ack);

	/* Responses come one by one: mostly nothing is before them. */
	if (!psn_eq(before, completer->flight->una) &&
	    !completer_acknowledge(completer, before, now_ns, &fault)) {
		completer_early(completer, packet, now_ns);
		return FAULT_NONE;
	}
	return fault != FAULT_NONE || is_ack ? fault : completer_answer(completer, packet, now_ns);
}

enum fault completer_receive(struct completer *completer, const struct packet *packet,
			     uint64_t now_ns)
{
	struct flight *flight = completer->flight;
	enum fault fault;
	bool is_ack;

	/* Not about anything in the air: an answer that came twice, or to nothing (9.7.5.1, ghost).
	 */
	if (psn_before(packet->psn, flight->una) || !psn_before(packet->psn, flight->top))
		return FAULT_NONE;
	do {
		is_ack = completer_is_ack(packet);
		fault = completer_take(completer, packet, is_ack, now_ns);
		if (likely(!flight->waits && flight->repair == REPAIR_NONE) || fault != FAULT_NONE)
			return fault;
		packet = completer_settle(completer, is_ack, now_ns, &fault);
	} while (packet != NULL && fault == FAULT_NONE);
	return fault;
}

enum fault completer_sent(struct completer *completer, uint64_t now_ns)
{
	enum fault fault = FAULT_NONE;

	completer_acknowledge(completer, completer->flight->next, now_ns, &fault);
	return fault;
}

/* The repair was lost; or, where there is none, the oldest packet may be. */
static void completer_repair_again(struct completer *completer, uint64_t now_ns)
{
	struct flight *flight = completer->flight;

	if (flight->repair != REPAIR_NONE) {
		flight->repair_next = flight->una;
	} else if (!psn_eq(flight->una, flight->next)) {
		flight_mend(flight, REPAIR_PROBE, psn_add(flight->una, 1));
		recovery_probe(completer->recovery, flight->una, now_ns);
		counters_add(completer->counters, COUNTER_probes, 1);
	}
}

enum fault completer_timeout(struct completer *completer, uint64_t now_ns)
{
	switch (recovery_expire(completer->recovery, now_ns)) {
	case RECOVERY_WAIT:
		return FAULT_NONE;
	case RECOVERY_RNR_OVER:
		return FAULT_NONE;
	case RECOVERY_REPAIR:
		completer_repair_again(completer, now_ns);
		return FAULT_NONE;
	case RECOVERY_RESEND:
		counters_add(completer->counters, COUNTER_local_ack_timeout_err, 1);
		flight_rewind(completer->flight, true);
		return FAULT_NONE;
	case RECOVERY_GIVE_UP:
	default:
		counters_add(completer->counters, COUNTER_local_ack_timeout_err, 1);
		return FAULT_RETRIES_EXHAUSTED;
	}
}
