/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving half of a connected queue pair: checks requests, executes them, and owes answers
 * (IBTA 9.7.4 and 9.7.5). */
#include "transport/responder.h"

#include <assert.h>

#include <rte_branch_prediction.h>

#include "responder_rnr.h"
#include "base/reason.h"
#include "duplicate.h"
#include "execute.h"
#include "execute_write.h"
#include "refusal.h"
#include "responder_ooo.h"
#include "transport/pass.h"
#include "transport/placement.h"
#include "wire/headers.h"
#include "wire/packet.h"

/* The longest window that a responder keeps packets of, as capability bits say it. */
#define RESPONDER_SACK_STEPS 5
static_assert(LOSS_WINDOW_LIMIT == LOSS_WINDOW_MAX << RESPONDER_SACK_STEPS,
	      "the longest window that a requester uses");

/* No packet has this ack_byte: the first one that asks for an acknowledgement is noted. */
#define ASKS_NOTHING 0x100

void responder_reset(struct responder *responder, struct psn epsn)
{
	responder->epsn = epsn;
	responder->ack_psn = psn_add(epsn, -1);
	responder->gap_psn = epsn;
	responder->gap_hints = 0;
	responder->gap = GAP_NONE;
	responder->refused = false;
	responder->gap_dropped = false;
	responder->asks = ASKS_NOTHING;
	responder->unsacked = 0;
	responder->ooo.reach = 0;
	replies_set_capability(responder->replies, 0);
	responder->replies->sacks = 0;
	responder->replies->introductions =
		responder->replies->kept != NULL ? SACK_INTRODUCTIONS_MAX : 0;
	responder->msn = 0;
	responder->message = MESSAGE_NONE;
	responder->receive->taken = false;
	responder->write_left = 0;
	page_wait_end(&responder->page_wait);
	ooo_clear(&responder->ooo);
	if (responder->pass != NULL)
		pass_reset(responder->pass);
}

static int responder_complete(struct responder *responder, enum ibv_wc_status status,
			      const struct packet *packet)
{
	struct ibv_wc wc = {.qp_num = responder->qpn, .src_qp = responder->peer_qpn};

	counters_add(responder->counters, COUNTER_rx_payload_bytes_written,
		     responder->receive->sgl.stored);
	return receive_complete(responder->receive, responder->cq, &wc, status, packet);
}

static enum fault check_psn(struct responder *responder, const struct packet *packet)
{
	const int32_t ahead = psn_diff(packet->psn, responder->epsn);

	if (ahead != 0 && responder->service == OPCODE_UC) {
		/* 9.8.2.2.1: packets were lost, and so is their message; a new one may begin. */
		responder->message = MESSAGE_NONE;
		responder->epsn = packet->psn;
		return FAULT_NONE;
	}
	if (likely(ahead == 0)) {
		if (unlikely(responder->gap != GAP_NONE))
			responder_ooo_closes(responder, packet);
		return FAULT_NONE;
	}
	if (ahead < 0) {
		duplicate_answer(responder, packet);
		return RESPONDER_DONE;
	}
	responder_ooo_keep(responder, packet);
	return RESPONDER_DONE;
}

/* C9-83: a message continues as it began. */
static enum fault check_sequence(const struct responder *responder, uint32_t flags)
{
	enum responder_message expected = MESSAGE_NONE;

	if (!(flags & OPCODE_FIRST))
		expected = flags & OPCODE_IS_SEND ? MESSAGE_SEND : MESSAGE_WRITE;
	return responder->message == expected ? FAULT_NONE : RESPONDER_REFUSES(REFUSAL_SEQUENCE);
}

/*
 * XRC: find the shared receive queue that the packet names (annex A14). It also decides the
 * protection domain. A message in progress keeps the queue that its first packet named.
 */
static enum fault check_srq(struct responder *responder, const struct packet *packet)
{
	struct srq *srq;

	if (responder->service != OPCODE_XRC)
		return FAULT_NONE;
	srq = responder->find_srq(responder->domain, packet->xrc_srqn);
	if (responder->pass != NULL) {
		if (!pass_continues(responder->pass, packet))
			return RESPONDER_REFUSES(REFUSAL_SEQUENCE);
		if (srq == NULL)
			return RESPONDER_PASSES;
	}
	if (srq == NULL || (responder->receive->taken && srq != responder->srq))
		return RESPONDER_REFUSES(REFUSAL_SRQ);
	responder->srq = srq;
	responder->rq = &srq->rq;
	responder->pd = srq->pd;
	responder->cq = srq->cq;
	return FAULT_NONE;
}

/* Return the right that a request needs of the queue pair. */
static __rte_always_inline unsigned int need_of(const struct packet *packet, uint32_t flags)
{
	if (flags & OPCODE_IS_WRITE)
		return IBV_ACCESS_REMOTE_WRITE;
	if (packet_operation(packet) == OPCODE_READ_REQUEST)
		return IBV_ACCESS_REMOTE_READ;
	if (placement_is(packet))
		return placement_access(packet);
	return flags & OPCODE_IS_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0;
}

unsigned int responder_need(const struct packet *packet)
{
	return need_of(packet, packet->op->flags);
}

/* C9-86: the operation must be enabled on this queue pair. */
static enum fault check_enabled(const struct responder *responder, const struct packet *packet,
				uint32_t flags)
{
	const unsigned int need = need_of(packet, flags);

	return (responder->access & need) == need ? FAULT_NONE : RESPONDER_REFUSES(REFUSAL_RIGHT);
}

/* C9-89 to C9-93: check the payload length by the packet's place in its message, and the message's
 * length against the RETH. */
static enum fault check_length(const struct responder *responder, const struct packet *packet,
			       uint32_t flags)
{
	const uint32_t len = packet->payload_len;

	if ((!(flags & OPCODE_LAST) && len != responder->mtu) || len > responder->mtu ||
	    (!(flags & OPCODE_FIRST) && len == 0))
		return RESPONDER_REFUSES(REFUSAL_MTU);
	if ((flags & OPCODE_HAS_RETH) && packet->dma_length > WIRE_MESSAGE_MAX)
		return RESPONDER_REFUSES(REFUSAL_LENGTH);
	if (flags & OPCODE_IS_WRITE) {
		const uint32_t left =
			flags & OPCODE_FIRST ? packet->dma_length : responder->write_left;

		if (len > left || ((flags & OPCODE_LAST) && len != left))
			return RESPONDER_REFUSES(REFUSAL_WRITE_LENGTH);
	}
	return FAULT_NONE;
}

/*
 * Owe an RNR NAK (9.7.5.2.8): nothing is executed, and the same PSN stays expected. A packet that
 * was kept behind an earlier refusal gets none when its turn comes. Its requester retransmits it,
 * and would count two RNR NAKs for one packet; so the RNR NAK is owed when it comes again.
 */
static enum fault responder_not_ready(struct responder *responder, const struct packet *packet)
{
	const bool held = responder->refused && packet == ooo_first(&responder->ooo);

	responder->gap = held ? GAP_WAITS : GAP_NOT_READY;
	if (held)
		return RESPONDER_DONE;
	responder_rnr_refuse(responder, (uint8_t)(AETH_RNR_NAK | responder->min_rnr_timer));
	return RESPONDER_DONE;
}

/* Take a receive request if the packet of a SEND, or of a WRITE with immediate data, needs one: not
 * behind a SEND's first packet. */
static enum fault check_receive(struct responder *responder, const struct packet *packet,
				uint32_t flags)
{
	if (!(flags & OPCODE_IS_SEND) || (flags & OPCODE_FIRST)) {
		if (!receive_take(responder->receive, responder->rq, responder->srq))
			return responder->service != OPCODE_UC
				       ? responder_not_ready(responder, packet)
				       : FAULT_INVALID_REQUEST;
	}
	if ((flags & OPCODE_IS_SEND) &&
	    packet->payload_len > RTE_MIN(responder->receive->length, (uint64_t)WIRE_MESSAGE_MAX) -
					  responder->receive->filled)
		return RESPONDER_REFUSES(REFUSAL_SHORT_RECEIVE);
	return FAULT_NONE;
}

/*
 * Advance stored PSNs before they are 2^23 behind epsn, where they would appear to be ahead. Since
 * the last call epsn has advanced by less than RESPONDER_AGE_PSNS, and by a READ's responses, at
 * most 2^23.
 */
static __rte_noinline void responder_age(struct responder *responder)
{
	if (psn_since(responder->epsn, responder->ack_psn) > RESPONDER_ACK_REACH)
		responder->ack_psn = psn_add(responder->epsn, -(int32_t)RESPONDER_ACK_REACH - 1);
	replies_forget_old(responder->replies, responder->epsn);
	if (replies_withdraw_ack(responder->replies))
		responder_acknowledge(responder);
}

/*
 * Note whether the peer understands selective acknowledgements, and how far ahead of the oldest
 * packet it sends. Only an executed packet shows that: a forged one would have to have the expected
 * PSN. The peer may be one that a packet of an unknown opcode harms, as older Soft-RoCE.
 */
static __rte_noinline void responder_note_capability(struct responder *responder,
						     uint8_t capability)
{
	const uint32_t window = (uint32_t)LOSS_WINDOW_MAX << (capability & BTH_SACK_STEPS);
	const bool sack_capable = (capability & BTH_SACK_KIND) == BTH_SACK_REQUEST &&
				  responder->replies->kept != NULL &&
				  responder->service != OPCODE_UC;

	responder->asks = BTH_ACK_REQ | capability;
	/* Packets that were sent before the peer knew us have no bits, and may come behind others.
	 * What the peer uses now must not be taken back. */
	if (!sack_capable && replies_sack(responder->replies))
		return;
	if (!sack_capable)
		replies_introduce(responder->replies, responder->epsn);
	replies_set_capability(responder->replies,
			       sack_capable ? BTH_SACK_RESPONSE | RESPONDER_SACK_STEPS : 0);
	responder->ooo.reach = sack_capable ? RTE_MIN(window, (uint32_t)LOSS_WINDOW_LIMIT) +
						      (OOO_REACH - OOO_LIST_PKTS)
					    : 0;
}

/* Finish an executed packet: expect the next one, and owe an acknowledgement if it asks for one. */
static __rte_always_inline void finish(struct responder *responder, const struct packet *packet,
				       uint32_t flags)
{
	if (flags & (OPCODE_IS_SEND | OPCODE_IS_WRITE))
		responder->ack_psn = responder->epsn;
	responder->epsn = psn_add(responder->epsn, 1);
	if (unlikely((responder->epsn.v ^ packet->psn.v) & ~(RESPONDER_AGE_PSNS - 1)))
		responder_age(responder);
	if (flags & OPCODE_LAST) {
		responder->message = MESSAGE_NONE;
		responder->msn = (responder->msn + 1) & PSN_MASK;
		if ((flags & OPCODE_IS_WRITE) && unlikely(responder->counts))
			comp_cntr_add(responder->receive->cntrs, COMP_CNTR_REMOTE_RDMA_WRITE, true,
				      responder->write_length);
	} else {
		responder->message = flags & OPCODE_IS_SEND ? MESSAGE_SEND : MESSAGE_WRITE;
	}
	if (packet->ack_byte != responder->asks) {
		if (likely(!packet->ack_req))
			return;
		responder_note_capability(responder, packet->capability);
	}
	if (responder->service != OPCODE_UC && (flags & (OPCODE_IS_SEND | OPCODE_IS_WRITE)))
		replies_ack(responder->replies, responder->ack_psn, responder->msn);
}

static enum fault responder_complete_message(struct responder *responder,
					     const struct packet *packet, uint32_t flags)
{
	if (!(flags & OPCODE_LAST) || !(flags & (OPCODE_IS_SEND | OPCODE_HAS_IMM)))
		return FAULT_NONE;
	return responder_complete(responder, IBV_WC_SUCCESS, packet) == 0 ? FAULT_NONE
									  : FAULT_CQ_OVERRUN;
}

/* Owe a NAK, and complete the receive request in use, if there is one, with the fault's status. */
static enum fault responder_fail(struct responder *responder, enum fault fault)
{
	const struct fault_info *info = fault_info(fault);

	counters_add(responder->counters, info->counter, 1);
	if (responder->service != OPCODE_UC && info->nak != FAULT_SILENT)
		replies_nak(responder->replies, (uint8_t)(AETH_NAK | info->nak), responder->epsn,
			    responder->msn);
	if (responder->receive->taken) {
		counters_add(responder->counters, COUNTER_resp_cqe_error, 1);
		responder_complete(responder, info->status, NULL);
	}
	return fault;
}

/* Pass a request on, or take the answer of the other process. */
static enum fault responder_pass(struct responder *responder, const struct packet *packet)
{
	const enum fault fault = pass_take(responder, packet);

	if (fault != RESPONDER_REFUSED)
		return fault;
	page_wait_end(&responder->page_wait);
	/* responder_not_ready gives a kept request no RNR NAK. This one gets it if the requester
	 * has sent it again since the last RNR NAK. */
	responder->refused &= !responder->pass->came;
	responder->pass->came = false;
	return responder_not_ready(responder, packet);
}

/* Return true if a packet is the expected one, and nothing is missing or kept. */
static bool is_plain(const struct responder *responder, const struct packet *packet)
{
	return psn_eq(packet->psn, responder->epsn) && responder->gap == GAP_NONE &&
	       responder->ooo.count == 0 && responder->service == OPCODE_RC;
}

/* A check has failed. */
static __rte_noinline __rte_cold enum fault judge(struct responder *responder,
						  const struct packet *packet, enum fault fault)
{
	if (fault >= RESPONDER_REFUSES(0))
		fault = refusal_fault(responder, packet, fault - RESPONDER_REFUSES(0));
	if (responder->service != OPCODE_UC || fault == FAULT_RECEIVE_PROTECTION)
		return responder_fail(responder, fault);
	reason_drop();
	return responder_rnr_drop_message(responder, packet);
}

/* Process a packet whose turn it may be. The order of the checks is the specification's. `flags`
 * are those of its opcode. Of a plain packet the compiler knows some, and leaves out the checks
 * that it cannot fail. */
static __rte_always_inline enum fault take(struct responder *responder, const struct packet *packet,
					   uint32_t flags, const bool plain)
{
	enum fault fault = plain ? FAULT_NONE : check_psn(responder, packet);
	bool passes = false;

	if (fault == FAULT_NONE)
		fault = check_sequence(responder, flags);
	if (!plain && fault == FAULT_NONE)
		fault = check_srq(responder, packet);
	if (!plain && unlikely(fault == RESPONDER_PASSES)) {
		passes = true;
		fault = check_enabled(responder, packet, flags);
		if (fault == FAULT_NONE)
			fault = responder_pass(responder, packet);
		goto checked;
	}
	if (fault == FAULT_NONE)
		fault = check_enabled(responder, packet, flags);
	if (fault == FAULT_NONE)
		fault = check_length(responder, packet, flags);
	if (fault == FAULT_NONE && (flags & (OPCODE_IS_SEND | OPCODE_HAS_IMM)))
		fault = check_receive(responder, packet, flags);
	if (fault == FAULT_NONE)
		fault = plain ? execute_write(responder, packet, flags)
			      : execute_request(responder, packet);
checked:
	if (fault == RESPONDER_DONE)
		return FAULT_NONE;
	if (unlikely(fault == RESPONDER_ABSENT))
		return responder_rnr_page(responder, packet);
	if (unlikely(fault != FAULT_NONE))
		return judge(responder, packet, fault);
	/* Push the completion before owing the acknowledgement: an overrun is not acknowledged. */
	if (likely(!passes))
		fault = responder_complete_message(responder, packet, flags);
	if (fault == FAULT_NONE)
		finish(responder, packet, flags);
	return fault;
}

static enum fault responder_take(struct responder *responder, const struct packet *packet)
{
	return take(responder, packet, packet->op->flags, false);
}

void responder_check(const struct responder *responder)
{
#ifndef NDEBUG
	const struct packet *first = ooo_first(&responder->ooo);

	ooo_check(&responder->ooo);
	replies_check(responder->replies);
	assert(responder->gap != GAP_CLOSING);
	assert((responder->gap != GAP_NOT_READY && responder->gap != GAP_WAITS &&
		responder->gap != GAP_PAGE) ||
	       first == NULL || !psn_before(first->psn, responder->epsn));
	/* Kept packets that were executed remain only while nothing can be executed. */
	assert(responder->gap != GAP_NONE || first == NULL ||
	       psn_before(responder->epsn, first->psn));
	assert(!responder->replies->nak_due ||
	       (responder->gap != GAP_NONE &&
		psn_eq(responder->replies->nak_psn, responder->epsn)));
	/* An unreliable connection acknowledges nothing. */
	assert(responder->service == OPCODE_UC || psn_since(responder->epsn, responder->ack_psn) <=
							  RESPONDER_ACK_REACH + RESPONDER_AGE_PSNS);
#else
	(void)responder;
#endif
}

void responder_tell(struct responder *responder)
{
	if (!replies_sack(responder->replies) ||
	    (responder->gap != GAP_NONE && responder->gap != GAP_NAKED))
		return;
	if (responder->gap == GAP_NONE)
		responder->gap_psn = responder->epsn;
	responder->gap = GAP_NAKED;
	replies_nak(responder->replies, AETH_NAK | NAK_PSN_SEQUENCE, responder->epsn,
		    responder->msn);
}

void responder_forget_old(struct responder *responder, uint64_t now_ns)
{
	const uint64_t age_ns =
		replies_sack(responder->replies) ? RESPONDER_KEEP_SACK_NS : RESPONDER_KEEP_NS;

	/* A packet that waits for a receive request or for a page does not expire. */
	if (responder->gap == GAP_NONE || responder->gap == GAP_NAKED)
		counters_add(responder->counters, COUNTER_out_of_order_late,
			     ooo_drop_old(&responder->ooo, age_ns, now_ns));
}

/* Process a packet, and then the kept packets whose turn it is. */
static enum fault responder_take_all(struct responder *responder, const struct packet *packet)
{
	enum fault fault;

	do
		fault = responder_take(responder, packet);
	while (unlikely(responder->ooo.count > 0) && fault == FAULT_NONE &&
	       (packet = responder_ooo_next(responder)) != NULL);
	return fault;
}

#define KIND \
	(OPCODE_IS_WRITE | OPCODE_IS_SEND | OPCODE_HAS_IMM | OPCODE_HAS_IETH | OPCODE_IS_ATOMIC)

#define WRITE_ONLY                                                                      \
	(OPCODE_KNOWN | OPCODE_REQUEST | OPCODE_FIRST | OPCODE_LAST | OPCODE_IS_WRITE | \
	 OPCODE_PAYLOAD | OPCODE_HAS_RETH)

static __rte_noinline enum fault responder_take_plain(struct responder *responder,
						      const struct packet *packet, uint32_t flags)
{
	return take(responder, packet, (flags & ~KIND) | OPCODE_IS_WRITE, true);
}

static __rte_noinline enum fault responder_take_write_only(struct responder *responder,
							   const struct packet *packet)
{
	return take(responder, packet, WRITE_ONLY, true);
}

enum fault responder_receive(struct responder *responder, const struct packet *packet)
{
	const uint32_t flags = packet->op->flags;

	if (unlikely((flags & KIND) != OPCODE_IS_WRITE || !is_plain(responder, packet)))
		return responder_take_all(responder, packet);
	return flags == WRITE_ONLY ? responder_take_write_only(responder, packet)
				   : responder_take_plain(responder, packet, flags);
}

enum fault responder_resume(struct responder *responder)
{
	const struct packet *packet = ooo_first(&responder->ooo);

	if (responder->gap != GAP_PAGE)
		return FAULT_NONE;
	if (packet != NULL && psn_eq(packet->psn, responder->epsn))
		return responder_take_all(responder, packet);
	/* Another queue pair's packets have taken its place. */
	execute_later(responder);
	return FAULT_NONE;
}

void responder_forget_srq(struct responder *responder, const struct srq *srq,
			  const struct pd *instead)
{
	if (responder->srq != srq)
		return;
	responder->srq = NULL;
	responder->rq = NULL;
	responder->cq = NULL;
	responder->pd = instead;
	responder->receive->taken = false;
	/* The message's next packet is out of sequence (C9-83). */
	responder->message = MESSAGE_NONE;
}

void responder_flush(struct responder *responder)
{
	ooo_clear(&responder->ooo);
	while (responder->receive->taken ||
	       (responder->srq == NULL && responder->service != OPCODE_XRC &&
		receive_take(responder->receive, responder->rq, NULL))) {
		counters_add(responder->counters, COUNTER_resp_cqe_flush_error, 1);
		responder_complete(responder, IBV_WC_WR_FLUSH_ERR, NULL);
	}
}
