/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that a responder has executed before: it answers them again. */
#include "duplicate.h"

#include <rte_branch_prediction.h>

#include "responder_ooo.h"
#include "queue/srq.h"
#include "transport/pass.h"
#include "transport/placement.h"
#include "wire/headers.h"
#include "wire/packet.h"

/* A stand-in answers a part of a READ. Its target keeps the order of the requests, and each part
 * may be the first one or a repeated one. */
static void duplicate_fetch(struct responder *responder, const struct packet *packet)
{
	const struct srq *srq = responder->find_srq(responder->domain, packet->xrc_srqn);
	const struct reply reply = {
		.kind = REPLY_READ,
		.pd = srq != NULL ? srq->pd : responder->stand_in,
		.first = packet->psn,
		.last = packet->psn,
		.msn = responder->msn,
		.iova = packet->iova,
		.rkey = packet->rkey,
		.length = packet->dma_length,
	};

	if (packet->dma_length > responder->mtu)
		return;
	replies_ask_to_wait(responder->replies, packet->psn, false, responder->min_rnr_timer);
	replies_repeat(responder->replies, &reply);
}

/* Answer duplicates (9.7.5.1.3): acknowledge SENDs and WRITEs again, and answer READs and atomics
 * from the stored replies. ATOMIC WRITEs and FLUSHes were executed, as was everything before the
 * expected PSN. */
void duplicate_answer(struct responder *responder, const struct packet *packet)
{
	const bool is_acked = packet->op->flags & (OPCODE_IS_SEND | OPCODE_IS_WRITE);
	const struct reply *known;
	struct reply reply;

	if (unlikely(responder->stand_in != NULL) &&
	    packet_operation(packet) == OPCODE_READ_REQUEST) {
		duplicate_fetch(responder, packet);
		return;
	}
	counters_add(responder->counters, COUNTER_duplicate_request, 1);
	if (unlikely(responder->pass != NULL))
		pass_again(responder->pass);
	if (responder_ooo_is_marked(responder, packet))
		return;
	replies_introduce(responder->replies, responder->epsn);
	replies_ask_to_wait(responder->replies, packet->psn, is_acked, responder->min_rnr_timer);
	if (is_acked) {
		responder_acknowledge(responder);
		/* Its requester has had no answer for a while. */
		if (responder->gap == GAP_NAKED && replies_sack(responder->replies))
			replies_nak(responder->replies, AETH_NAK | NAK_PSN_SEQUENCE,
				    responder->epsn, responder->msn);
		return;
	}
	if (placement_is(packet)) {
		replies_repeat_empty_read(responder->replies, packet->psn, responder->msn);
		return;
	}
	known = replies_find(responder->replies, packet->psn);
	if (known == NULL)
		return;
	reply = *known;
	reply.msn = responder->msn;
	if (packet->op->flags & OPCODE_IS_ATOMIC) {
		if (reply.kind == REPLY_ATOMIC)
			replies_repeat(responder->replies, &reply);
		return;
	}
	/* A READ may be repeated from its middle on; the PSN must then stand for the same bytes. */
	reply.first = packet->psn;
	reply.iova = packet->iova;
	reply.length = packet->dma_length;
	reply.last =
		psn_add(packet->psn, (int32_t)responder_psns(responder, packet->dma_length) - 1);
	if (reply.kind == REPLY_READ && packet->rkey == known->rkey &&
	    packet->iova - known->iova ==
		    (uint64_t)psn_diff(packet->psn, known->first) * responder->mtu &&
	    packet->dma_length <= known->length - (packet->iova - known->iova))
		replies_repeat(responder->replies, &reply);
}
