/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes requests for shared receive queues of other processes on, and processes the answers. */
#include "transport/pass.h"

#include <errno.h>
#include <string.h>

#include "base/reason.h"
#include "execute.h"
#include "refusal.h"
#include "transport/placement.h"
#include "transport/responder.h"
#include "wire/headers.h"

/* A part of a READ is at most this many PSNs before the next request. */
#define PASS_READ_REACH (1 << 22)

void pass_reset(struct pass *pass)
{
	pass->state = PASS_NONE;
	pass->due = false;
	pass->came = false;
	pass->link = NULL;
	pass->srqn = 0;
	pass->epoch++;
}

/* Return true if the request with this PSN is in flight, or its answer has come. */
static bool pass_has(const struct pass *pass, const struct packet *packet)
{
	return pass->state != PASS_NONE && !pass->is_read && psn_eq(pass->psn, packet->psn);
}

bool pass_continues(struct pass *pass, const struct packet *packet)
{
	/* The answer of one request must not be taken for another one's: room for the answer was
	 * reserved by the first one's opcode. */
	if (pass_has(pass, packet) &&
	    (pass->packet.opcode != packet->opcode || pass->packet.xrc_srqn != packet->xrc_srqn))
		return false;
	if (packet->op->flags & OPCODE_FIRST)
		pass->srqn = packet->xrc_srqn;
	return pass->srqn == packet->xrc_srqn;
}

static void pass_begin(struct pass *pass, struct pass_link *link, const struct packet *packet,
		       struct psn psn, struct psn link_psn)
{
	pass->state = PASS_SENT;
	pass->due = true;
	pass->left = false;
	pass->link = link;
	pass->psn = psn;
	pass->link_psn = link_psn;
	pass->packet = *packet;
	pass->packet.payload = pass->bytes;
}

/* Return FAULT_NONE if the answer of a request can be owed. */
static enum fault pass_check_room(struct responder *responder, const struct packet *packet)
{
	const bool placed = placement_is(packet);

	if (packet->op->flags & (OPCODE_IS_SEND | OPCODE_IS_WRITE))
		return FAULT_NONE;
	/* C9-110 */
	if (!placed && !replies_room(responder->replies))
		return refusal_fault(responder, packet, REFUSAL_RESOURCES);
	if (placed ? !replies_reserve_empty_read(responder->replies)
		   : !replies_reserve(responder->replies))
		return execute_later(responder);
	return FAULT_NONE;
}

/* Say why another process refuses a request. The PSN is the one of the way there, which the other
 * process names, too. */
static void explain_failed(const struct pass *pass)
{
	if (pass->left)
		reason_say(
			REASON_FAULT,
			"the process with the shared receive queue %u has ended, or has closed the "
			"XRC domain",
			pass->packet.xrc_srqn);
	else
		reason_say(REASON_FAULT,
			   "the process with the shared receive queue %u refused it; if it has "
			   "--explain, it says why under PSN 0x%06x",
			   pass->packet.xrc_srqn, pass->link_psn.v);
}

/* Take the stand-in's answer for the expected request. */
static enum fault pass_take_outcome(struct responder *responder, const struct packet *packet)
{
	struct pass *pass = responder->pass;
	const uint32_t msn = (responder->msn + 1) & PSN_MASK;
	enum fault fault = FAULT_NONE;

	/* Repeated answers may have used the room meanwhile. Then the request comes again. */
	if (pass->state == PASS_EXECUTED)
		fault = pass_check_room(responder, packet);
	if (fault != FAULT_NONE)
		return fault;
	if (pass->state == PASS_NOT_READY)
		fault = RESPONDER_REFUSED;
	else if (pass->state == PASS_FAILED)
		fault = pass->fault;
	if (pass->state == PASS_FAILED && unlikely(reason_wanted))
		explain_failed(pass);
	pass->state = PASS_NONE;
	if (fault != FAULT_NONE)
		return fault;
	pass->came = false;
	if (packet->op->flags & OPCODE_IS_ATOMIC) {
		const struct reply reply = {.kind = REPLY_ATOMIC,
					    .first = packet->psn,
					    .last = packet->psn,
					    .msn = msn,
					    .original = pass->original};

		replies_add(responder->replies, &reply);
	} else if (placement_is(packet)) {
		replies_empty_read(responder->replies, packet->psn, msn);
	}
	return FAULT_NONE;
}

/* Owe the responses of a READ. The memory is checked where it is, when they are sent. */
static enum fault pass_take_read(struct responder *responder, const struct packet *packet)
{
	struct reply reply = {.pass = responder->pass, .srqn = packet->xrc_srqn};

	if (packet->dma_length > WIRE_MESSAGE_MAX)
		return refusal_fault(responder, packet, REFUSAL_LENGTH);
	responder->pass->came = false;
	execute_owe_read(responder, packet, &reply);
	return FAULT_NONE;
}

enum fault pass_take(struct responder *responder, const struct packet *packet)
{
	const bool is_read = packet_operation(packet) == OPCODE_READ_REQUEST;
	/* Else it was kept. */
	const bool comes = packet != ooo_first(&responder->ooo);
	struct pass *pass = responder->pass;
	struct pass_link *link;
	enum fault fault;
	int rc;

	pass->came |= comes;
	if (pass_has(pass, packet)) {
		if (pass->state != PASS_SENT)
			return pass_take_outcome(responder, packet);
		/* Its requester sends it again: either the request or its answer may be lost. */
		pass->due |= comes;
		return RESPONDER_ABSENT;
	}
	if (packet->payload_len > responder->mtu)
		return refusal_fault(responder, packet, REFUSAL_MTU);
	/* 9.5: a READ is executed when its responses are sent, so they come first. */
	if (!is_read && (pass->state == PASS_SENT || replies_owe_passed(responder->replies))) {
		pass->due |= comes && pass->state == PASS_SENT;
		return RESPONDER_ABSENT;
	}
	rc = pass->find(pass->user, packet->xrc_srqn, &link);
	if (rc != 0)
		return rc == -EAGAIN ? RESPONDER_ABSENT
				     : refusal_fault(responder, packet, REFUSAL_SRQ);
	fault = pass_check_room(responder, packet);
	if (fault != FAULT_NONE)
		return fault;
	if (is_read)
		return pass_take_read(responder, packet);
	pass->is_read = false;
	memcpy(pass->bytes, packet->payload, packet->payload_len);
	pass_begin(pass, link, packet, packet->psn, link->psn);
	/* What it has waited for until now says nothing about how soon the answer comes. */
	page_wait_end(&responder->page_wait);
	return RESPONDER_ABSENT;
}

/* Return the PSN of the next part of a READ. Each has another one, so a late answer is not taken
 * for the answer of another part. */
static struct psn pass_next_read(struct pass_link *link)
{
	const struct psn next = psn_add(link->read_psn, 1);
	const int32_t behind = psn_diff(link->psn, next);

	link->read_psn = behind > 0 && behind <= PASS_READ_REACH
				 ? next
				 : psn_add(link->psn, -PASS_READ_REACH);
	return link->read_psn;
}

enum mr_status pass_read(struct pass *pass, const struct packet *request, struct psn psn,
			 uint8_t **addr)
{
	struct pass_link *link;
	int rc;

	if (pass->state != PASS_NONE && pass->is_read && psn_eq(pass->psn, psn) &&
	    pass->packet.iova == request->iova && pass->packet.rkey == request->rkey &&
	    pass->packet.dma_length == request->dma_length) {
		*addr = pass->bytes;
		if (pass->state != PASS_FAILED)
			return pass->state == PASS_EXECUTED ? MR_OK : MR_ABSENT;
		if (unlikely(reason_wanted))
			explain_failed(pass);
		pass->state = PASS_NONE;
		return MR_NO_ACCESS;
	}
	/* What was fetched for a response that is not the next one any more is of no use. */
	if (pass->state != PASS_NONE && (!pass->is_read || pass->state == PASS_SENT))
		return MR_ABSENT;
	rc = pass->find(pass->user, request->xrc_srqn, &link);
	if (rc != 0)
		return rc == -EAGAIN
			       ? MR_ABSENT
			       : FAULT_REASON(MR_NO_ACCESS,
					      "the XRC domain has no shared receive queue %u any "
					      "more",
					      request->xrc_srqn);
	pass->is_read = true;
	pass_begin(pass, link, request, psn, pass_next_read(link));
	return MR_ABSENT;
}

void pass_read_done(struct pass *pass)
{
	pass->state = PASS_NONE;
}

void pass_again(struct pass *pass)
{
	if (pass->state == PASS_SENT)
		pass->due = true;
}

static enum fault pass_fault(uint8_t code)
{
	switch (code) {
	case NAK_REMOTE_ACCESS:
		return FAULT_ACCESS;
	case NAK_REMOTE_OPERATIONAL:
		return FAULT_RECEIVE_PROTECTION;
	default:
		return FAULT_INVALID_REQUEST;
	}
}

/* Process an acknowledgement or NAK. Return the state that follows. */
static enum pass_state pass_acknowledged(struct pass *pass, const struct packet *packet)
{
	const uint8_t code = packet->syndrome & AETH_VALUE_MASK;

	switch (packet->syndrome & AETH_KIND_MASK) {
	case AETH_ACK:
		return pass->packet.op->flags & (OPCODE_IS_SEND | OPCODE_IS_WRITE) ? PASS_EXECUTED
										   : PASS_SENT;
	case AETH_RNR_NAK:
		/* A READ is asked for again when its requester asks again. */
		return pass->is_read ? PASS_SENT : PASS_NOT_READY;
	case AETH_NAK:
		if (code == NAK_PSN_SEQUENCE)
			return PASS_SENT;
		pass->fault = pass_fault(code);
		return PASS_FAILED;
	default:
		return PASS_SENT;
	}
}

/* Process the response to a READ, ATOMIC WRITE or FLUSH. */
static enum pass_state pass_responded(struct pass *pass, const struct packet *packet)
{
	const uint32_t expected = pass->is_read ? pass->packet.dma_length : 0;

	if ((!pass->is_read && !placement_is(&pass->packet)) || packet->payload_len != expected)
		return PASS_SENT;
	memcpy(pass->bytes, packet->payload, expected);
	return PASS_EXECUTED;
}

bool pass_answer(struct pass *pass, const struct packet *packet)
{
	enum pass_state state = PASS_SENT;

	if (pass->state != PASS_SENT || packet->dest_qpn != pass->link->alias ||
	    !psn_eq(packet->psn, pass->link_psn))
		return false;
	if (packet_operation(packet) == OPCODE_ACKNOWLEDGE) {
		state = pass_acknowledged(pass, packet);
	} else if (packet_operation(packet) == OPCODE_READ_RESPONSE_ONLY) {
		state = pass_responded(pass, packet);
	} else if (packet_operation(packet) == OPCODE_ATOMIC_ACKNOWLEDGE &&
		   (pass->packet.op->flags & OPCODE_IS_ATOMIC)) {
		pass->original = packet->atomic_original;
		state = PASS_EXECUTED;
	}
	if (state == PASS_SENT)
		return false;
	if (state == PASS_EXECUTED && !pass->is_read)
		pass->link->psn = psn_add(pass->link->psn, 1);
	pass->state = state;
	pass->due = false;
	pass->link = NULL;
	return true;
}

void pass_forget_link(struct pass *pass, const struct pass_link *link)
{
	if (pass->link != link)
		return;
	pass->link = NULL;
	pass->due = false;
	pass->left = true;
	pass->state = PASS_FAILED;
	pass->fault = FAULT_INVALID_REQUEST;
}

static void pass_put_headers(struct packet_out *out, const struct packet *packet)
{
	const uint32_t flags = packet->op->flags;

	packet_put_xrceth(out, packet->xrc_srqn);
	if (flags & OPCODE_HAS_FETH)
		packet_put_feth(out, packet->flush_place, packet->flush_select);
	if (flags & OPCODE_HAS_RETH)
		packet_put_reth(out, packet->iova, packet->rkey, packet->dma_length);
	if (flags & OPCODE_HAS_ATOMICETH)
		packet_put_atomiceth(out, packet->iova, packet->rkey, packet->swap_add,
				     packet->compare);
	if (flags & OPCODE_HAS_IMM)
		packet_put_immdt(out, packet->imm_be);
	if (flags & OPCODE_HAS_IETH)
		packet_put_ieth(out, packet->rkey);
}

bool pass_send(struct pass *pass, struct packet_sink *sink)
{
	struct packet_out *out;
	struct bth_fields bth;

	if (!pass->due)
		return true;
	bth = (struct bth_fields){.opcode = pass->packet.opcode,
				  .solicited = pass->packet.solicited,
				  .migrated = true,
				  .ack_byte = BTH_ACK_REQ,
				  .pkey = WIRE_PKEY_DEFAULT,
				  .dest_qpn = pass->link->qpn,
				  .psn = pass->link_psn};
	out = sink->get(sink);
	if (out == NULL)
		return false;
	packet_begin(out, &pass->link->path, &bth);
	pass_put_headers(out, &pass->packet);
	packet_payload(out, FRAG_OWN, pass->bytes, pass->packet.payload_len);
	/* Our own memory can be read. */
	sink->put(sink, out);
	counters_add(pass->counters, COUNTER_xrc_passed, 1);
	pass->due = false;
	return true;
}
