/* SPDX-License-Identifier: BSD-3-Clause */
/* Execution of requests by their opcode, after all earlier checks have passed. */
#include "execute.h"
#include "execute_write.h"

#include <rte_branch_prediction.h>

#include "mem/atomics.h"
#include "mem/mr.h"
#include "mem/mw.h"
#include "refusal.h"
#include "transport/placement.h"
#include "wire/headers.h"
#include "wire/packet.h"

enum fault execute_later(struct responder *responder)
{
	replies_nak(responder->replies, AETH_NAK | NAK_PSN_SEQUENCE, responder->epsn,
		    responder->msn);
	responder->gap = GAP_NAKED;
	responder->gap_psn = responder->epsn;
	return RESPONDER_DONE;
}

static enum fault execute_send(struct responder *responder, const struct packet *packet)
{
	enum mr_status status;

	/* 9.5: requests are executed in order. A READ is executed when its responses are sent,
	 * because they read the memory. So do not invalidate its key before that. */
	if ((packet->op->flags & OPCODE_HAS_IETH) &&
	    unlikely(replies_owe_read(responder->replies, packet->rkey)))
		return execute_later(responder);
	responder->receive->sgl.next = packet->op->flags & OPCODE_LAST ? 0 : responder->mtu;
	status = receive_store(responder->receive, srq_buffers_pd(responder->srq, responder->pd),
			       packet->payload, packet->payload_len);
	if (unlikely(status != MR_OK))
		return status == MR_ABSENT ? RESPONDER_ABSENT : FAULT_RECEIVE_PROTECTION;
	/* Invalidate before completing: a program that sees the completion finds the window
	 * invalid. */
	if ((packet->op->flags & OPCODE_HAS_IETH) &&
	    mw_invalidate(responder->pd, responder->qpn, packet->rkey) != 0)
		return FAULT_INVALIDATE;
	return FAULT_NONE;
}

enum fault execute_reach_write(const struct responder *responder, const struct packet *packet,
			       uint32_t rkey, uint64_t iova, uint32_t length, uint32_t left,
			       uint8_t **addr)
{
	struct mr_touch touch = {0};
	enum mr_status status;

	/* Bytes that were placed out of order need no page any more. */
	if (packet->payload != NULL)
		touch = (struct mr_touch){.now = packet->payload_len,
					  .ahead = left - packet->payload_len};
	status = mr_reach_remote(responder->pd, responder->qpn, rkey, iova, length,
				 IBV_ACCESS_REMOTE_WRITE, touch, addr);
	if (status == MR_OK)
		return FAULT_NONE;
	return status == MR_ABSENT ? RESPONDER_ABSENT : FAULT_ACCESS;
}

void execute_owe_read(struct responder *responder, const struct packet *packet, struct reply *reply)
{
	const int32_t further = (int32_t)responder_psns(responder, packet->dma_length) - 1;

	reply->kind = REPLY_READ;
	reply->first = packet->psn;
	reply->last = psn_add(packet->psn, further);
	reply->msn = (responder->msn + 1) & PSN_MASK;
	reply->iova = packet->iova;
	reply->rkey = packet->rkey;
	reply->length = packet->dma_length;
	replies_add(responder->replies, reply);
	responder->epsn = psn_add(responder->epsn, further);
}

static enum fault execute_read(struct responder *responder, const struct packet *packet)
{
	struct reply reply = {.pd = responder->pd};
	uint8_t *addr;

	/* C9-110: more READs and atomics than the agreed resources. */
	if (unlikely(!replies_room(responder->replies)))
		return RESPONDER_REFUSES(REFUSAL_RESOURCES);
	if (unlikely(!replies_reserve(responder->replies)))
		return execute_later(responder);
	if (mr_resolve_remote(responder->pd, responder->qpn, packet->rkey, packet->iova,
			      packet->dma_length, IBV_ACCESS_REMOTE_READ, &addr) != MR_OK)
		return FAULT_ACCESS;
	execute_owe_read(responder, packet, &reply);
	return FAULT_NONE;
}

static enum fault execute_atomic(struct responder *responder, const struct packet *packet)
{
	struct reply reply = {
		.kind = REPLY_ATOMIC,
		.first = packet->psn,
		.last = packet->psn,
		.msn = (responder->msn + 1) & PSN_MASK,
	};
	const struct mr_touch touch = {.now = sizeof(reply.original)};
	enum mr_status status;
	uint64_t *addr;
	uint8_t *bytes;
	int rc;

	/* 9.4.5: the address must be a multiple of eight. */
	if (!replies_room(responder->replies))
		return RESPONDER_REFUSES(REFUSAL_RESOURCES);
	if (packet->iova % sizeof(*addr) != 0)
		return RESPONDER_REFUSES(REFUSAL_ALIGNMENT);
	if (unlikely(!replies_reserve(responder->replies)))
		return execute_later(responder);
	status = mr_reach_remote(responder->pd, responder->qpn, packet->rkey, packet->iova,
				 sizeof(*addr), IBV_ACCESS_REMOTE_ATOMIC, touch, &bytes);
	if (unlikely(status != MR_OK))
		return status == MR_ABSENT ? RESPONDER_ABSENT : FAULT_ACCESS;
	addr = (uint64_t *)(void *)bytes;
	/* A region may begin at an odd address of this process and an even one in the key's address
	 * space. */
	if ((uintptr_t)addr % sizeof(*addr) != 0)
		return RESPONDER_REFUSES(REFUSAL_ALIGNMENT);
	if (packet_operation(packet) == OPCODE_FETCH_ADD)
		rc = atomics_fetch_add(addr, packet->swap_add, &reply.original);
	else
		rc = atomics_compare_swap(addr, packet->compare, packet->swap_add, &reply.original);
	if (rc != 0)
		return RESPONDER_REFUSES(REFUSAL_UNMAPPED);
	counters_add(responder->counters, COUNTER_rx_payload_bytes_written, sizeof(*addr));
	replies_add(responder->replies, &reply);
	return FAULT_NONE;
}

static enum fault execute_placement(struct responder *responder, const struct packet *packet)
{
	enum fault fault;
	bool absent;

	if (!replies_reserve_empty_read(responder->replies))
		return execute_later(responder);
	fault = placement_execute(responder->pd, responder->qpn, packet, &absent);
	if (fault != FAULT_NONE)
		return absent ? RESPONDER_ABSENT : fault;
	counters_add(responder->counters, COUNTER_rx_payload_bytes_written, packet->payload_len);
	replies_empty_read(responder->replies, packet->psn, (responder->msn + 1) & PSN_MASK);
	return FAULT_NONE;
}

enum fault execute_request(struct responder *responder, const struct packet *packet)
{
	const uint32_t flags = packet->op->flags;

	if (flags & OPCODE_IS_SEND)
		return execute_send(responder, packet);
	if (flags & OPCODE_IS_WRITE)
		return execute_write(responder, packet, flags);
	if (flags & OPCODE_IS_ATOMIC)
		return execute_atomic(responder, packet);
	if (placement_is(packet))
		return execute_placement(responder, packet);
	return execute_read(responder, packet);
}
