/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults of refused requests, and the sentences that say why. */
#include "refusal.h"

#include <inttypes.h>

#include "base/reason.h"
#include "mem/mr.h"
#include "wire/headers.h"
#include "wire/packet.h"

static enum fault fault_of(const struct responder *responder, enum refusal refusal)
{
	switch (refusal) {
	case REFUSAL_UNMAPPED:
	case REFUSAL_CHANGED:
		return FAULT_ACCESS;
	case REFUSAL_SHORT_RECEIVE:
		/* 9.7.1: a message that is too long for any list is the peer's fault, and not the
		 * list's. */
		return responder->receive->length > WIRE_MESSAGE_MAX ? FAULT_INVALID_REQUEST
								     : FAULT_MESSAGE_TOO_LONG;
	default:
		return FAULT_INVALID_REQUEST;
	}
}

static uint32_t rkey_of(const struct responder *responder, const struct packet *packet)
{
	return (packet->op->flags & OPCODE_IS_WRITE) ? responder->write_rkey : packet->rkey;
}

#define SAY(...) reason_say(REASON_FAULT, __VA_ARGS__)

static void explain(const struct responder *responder, const struct packet *packet,
		    enum refusal refusal)
{
	switch (refusal) {
	case REFUSAL_SEQUENCE:
		SAY("%s (IBTA C9-83)", responder->message != MESSAGE_NONE
					       ? "it does not continue the message in progress"
					       : "it continues a message that has not begun");
		break;
	case REFUSAL_SRQ:
		SAY("the XRC domain has no shared receive queue %u, or a message in progress uses "
		    "another one",
		    packet->xrc_srqn);
		break;
	case REFUSAL_RIGHT:
		SAY("the queue pair's qp_access_flags lack %s",
		    mr_right_name(responder_need(packet) & ~responder->access));
		break;
	case REFUSAL_MTU:
		if (packet->payload_len == 0)
			SAY("a packet behind the first one of its message has no payload");
		else
			SAY("a packet has %u bytes of payload, and the queue pair's path_mtu is %u "
			    "bytes: both sides need the same",
			    packet->payload_len, responder->mtu);
		break;
	case REFUSAL_LENGTH:
		SAY("%u bytes are more than a message may have", packet->dma_length);
		break;
	case REFUSAL_WRITE_LENGTH:
		SAY("a packet of a WRITE has %u bytes, more or fewer than are left",
		    packet->payload_len);
		break;
	case REFUSAL_SHORT_RECEIVE:
		SAY("the message is longer than the receive request (wr_id %" PRIu64
		    "), which has room for %" PRIu64 " bytes",
		    responder->receive->wr_id, responder->receive->length);
		break;
	case REFUSAL_RESOURCES:
		SAY("more READs and atomics are outstanding than the queue pair's "
		    "max_dest_rd_atomic of %u: the peer's max_rd_atomic must not exceed it",
		    responder->replies->said);
		break;
	case REFUSAL_ALIGNMENT:
		if (packet->iova % sizeof(uint64_t) != 0)
			SAY("the address 0x%" PRIx64 " is no multiple of 8", packet->iova);
		else
			SAY(REFUSAL_SAY_ALIGNMENT, packet->iova, packet->rkey);
		break;
	case REFUSAL_UNMAPPED:
		SAY(REFUSAL_SAY_UNMAPPED, rkey_of(responder, packet));
		break;
	case REFUSAL_CHANGED:
		SAY("the region 0x%x changed while it was written", rkey_of(responder, packet));
		break;
	}
}

enum fault refusal_fault(const struct responder *responder, const struct packet *packet,
			 enum refusal refusal)
{
	if (reason_wanted)
		explain(responder, packet, refusal);
	return fault_of(responder, refusal);
}
