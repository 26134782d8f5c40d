/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come to a responder out of order: it keeps them, and asks for the missing ones
 * (IBTA 9.7.4, C9-112). */
#include "responder_ooo.h"

#include <rte_common.h>

#include "base/reason.h"
#include "mem/mr.h"
#include "mem/place.h"
#include "transport/sack.h"
#include "wire/headers.h"
#include "wire/packet.h"

/* Owe a NAK: the expected packet is missing, and one behind it has come. */
static void responder_ooo_nak(struct responder *responder, struct psn behind)
{
	responder->gap = GAP_NAKED;
	responder->refused = false;
	responder->gap_psn = behind;
	replies_nak(responder->replies, AETH_NAK | NAK_PSN_SEQUENCE, responder->epsn,
		    responder->msn);
	replies_introduce(responder->replies, responder->epsn);
}

/*
 * Return where the payload of a packet of the WRITE in progress belongs, if its region has relaxed
 * ordering; else NULL. The message's first packet was checked and executed, so key, rights and
 * range are known, and so is the packet's place. All packets in between are of the same message, so
 * the packet overtakes nothing that could fail or that writes the same bytes. All checks are made
 * again when the packet's turn comes.
 */
static uint8_t *responder_ooo_spot(const struct responder *responder, const struct packet *packet)
{
	const uint64_t ahead = (uint64_t)psn_diff(packet->psn, responder->epsn) * responder->mtu;
	const uint32_t flags = packet->op->flags;
	struct mr_touch touch = {0};
	uint8_t *addr;
	uint64_t left;

	if (responder->message != MESSAGE_WRITE || !(flags & OPCODE_IS_WRITE) ||
	    (flags & OPCODE_FIRST) || ahead >= responder->write_left ||
	    !(responder->access & IBV_ACCESS_REMOTE_WRITE) || responder->service != OPCODE_RC)
		return NULL;
	left = responder->write_left - ahead;
	if (packet->payload_len != (flags & OPCODE_LAST ? left : responder->mtu) ||
	    packet->payload_len > RTE_MIN(left, responder->mtu))
		return NULL;
	touch.now = packet->payload_len;
	if (mr_reach_remote(responder->pd, responder->qpn, responder->write_rkey,
			    responder->write_iova + ahead, packet->payload_len,
			    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING, touch,
			    &addr) != MR_OK) {
		reason_drop();
		return NULL;
	}
	return addr;
}

/* Place the payload if that is allowed now. Return where it is, or NULL. */
static const uint8_t *responder_ooo_place(struct responder *responder, const struct packet *packet)
{
	uint8_t *spot = responder_ooo_spot(responder, packet);

	if (spot == NULL || place_guarded(spot, packet->payload, packet->payload_len, 0) != 0)
		return NULL;
	counters_add(responder->counters, COUNTER_rx_payload_bytes_written, packet->payload_len);
	return spot;
}

/* Return true if a packet behind the gap must be told about at once: the first one behind a hole,
 * one that fills a hole or came again, one whose requester asks, or a marked READ request. */
static bool responder_ooo_is_news(struct responder *responder, const struct packet *packet,
				  bool is_kept, bool follows)
{
	if (is_kept && follows && packet->ack_byte == 0 &&
	    ++responder->unsacked < SACK_INTERVAL_PKTS)
		return false;
	responder->unsacked = 0;
	return true;
}

static bool responder_ooo_same_headers(const struct packet *a, const struct packet *b)
{
	const uint32_t flags = a->op->flags;

	/* Ignore AckReq, which requesters add when they retransmit. */
	if (a->opcode != b->opcode || a->solicited != b->solicited)
		return false;
	if ((flags & (OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH)) && a->iova != b->iova)
		return false;
	if ((flags & (OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH | OPCODE_HAS_IETH)) &&
	    a->rkey != b->rkey)
		return false;
	if ((flags & OPCODE_HAS_RETH) && a->dma_length != b->dma_length)
		return false;
	if ((flags & OPCODE_HAS_ATOMICETH) &&
	    (a->swap_add != b->swap_add || a->compare != b->compare))
		return false;
	if ((flags & OPCODE_HAS_FETH) &&
	    (a->flush_place != b->flush_place || a->flush_select != b->flush_select))
		return false;
	if ((flags & OPCODE_HAS_IMM) && a->imm_be != b->imm_be)
		return false;
	return !(flags & OPCODE_HAS_XRCETH) || a->xrc_srqn == b->xrc_srqn;
}

bool responder_ooo_is_same(const struct responder *responder, uint32_t place,
			   const struct packet *packet)
{
	const struct ooo *ooo = &responder->ooo;
	const void *placed = ooo_placed_at(ooo, place);

	return responder_ooo_same_headers(ooo_at(ooo, place), packet) &&
	       (placed == NULL || responder_ooo_spot(responder, packet) == placed) &&
	       ooo_same_payload(ooo, place, packet);
}

/* The fate of a packet behind the gap. */
enum fate {
	KEPT,
	NOT_KEPT, /* out of reach, or no room: its requester must retransmit it */
	REPEATED, /* it is already kept */
	DIFFERED, /* it differs from the kept one: neither is trusted, both must be retransmitted */
};

/* `*follows` is set to whether it directly follows another kept packet. */
static enum fate responder_ooo_store(struct responder *responder, const struct packet *packet,
				     bool *follows)
{
	const uint8_t *placed;
	uint32_t place;

	*follows = false;
	switch (ooo_look(&responder->ooo, packet, responder->epsn, &place)) {
	case OOO_TAKEN:
		*follows = ooo_follows(&responder->ooo, place, packet->psn) &&
			   place == responder->ooo.count;
		placed = responder_ooo_place(responder, packet);
		ooo_keep(&responder->ooo, packet, place, placed);
		counters_add(responder->counters,
			     placed != NULL ? COUNTER_out_of_order_placed
					    : COUNTER_out_of_order_kept,
			     1);
		return KEPT;
	case OOO_THERE:
		if (responder_ooo_is_same(responder, place, packet))
			return REPEATED;
		ooo_remove(&responder->ooo, place);
		counters_add(responder->counters, COUNTER_out_of_order_differed, 1);
		return DIFFERED;
	case OOO_REFUSED:
	default:
		return NOT_KEPT;
	}
}

/* Return true if the first kept packet's turn has come, but it may not be executed yet. */
static bool responder_ooo_holds_back(const struct responder *responder)
{
	const struct packet *first = ooo_first(&responder->ooo);

	return first != NULL && psn_eq(first->psn, responder->epsn);
}

/*
 * Keep a packet behind the gap. To a peer that understands selective acknowledgements, owe one
 * often. To others owe one NAK for each gap (C9-112), and another one when the requester has gone
 * back and the expected packet was lost again. Then the gap's first packet comes once more; a
 * packet that the network duplicates or delays is hardly that one.
 */
void responder_ooo_keep(struct responder *responder, const struct packet *packet)
{
	enum fate fate;
	bool follows;

	counters_add(responder->counters, COUNTER_out_of_sequence, 1);
	fate = responder_ooo_store(responder, packet, &follows);
	if (responder->gap == GAP_NOT_READY || responder->gap == GAP_PAGE) {
		/* The request that waits for its page was retransmitted, and so are by now all
		 * packets behind it. */
		responder->refused &= responder->gap == GAP_NOT_READY;
		responder->gap_hints += fate == KEPT;
		/* The requester retransmits this packet by itself only after an RNR NAK. */
		responder->gap_dropped |=
			responder->gap == GAP_PAGE && fate != REPEATED && fate != KEPT;
		return;
	}
	if (responder->gap == GAP_NONE || responder->gap == GAP_WAITS) {
		responder_ooo_nak(responder, packet->psn);
		return;
	}
	if (fate == KEPT) {
		responder->gap_hints++;
		/* A packet behind the one that is held back has come, and no other packet with that
		 * PSN: execute it. */
		if (responder_ooo_holds_back(responder)) {
			replies_withdraw_nak(responder->replies);
			responder->gap = GAP_CLOSING;
			return;
		}
	}
	if (replies_sack(responder->replies)) {
		if ((fate != REPEATED || !responder_ooo_is_marked(responder, packet)) &&
		    responder_ooo_is_news(responder, packet, fate == KEPT, follows))
			responder_ooo_nak(responder, packet->psn);
		return;
	}
	if (psn_eq(responder->gap_psn, responder->epsn))
		responder->gap_psn = packet->psn;
	else if ((fate == REPEATED || fate == NOT_KEPT) &&
		 psn_diff(packet->psn, responder->gap_psn) <= 0)
		responder_ooo_nak(responder, packet->psn);
}

void responder_ooo_closes(struct responder *responder, const struct packet *packet)
{
	replies_withdraw_nak(responder->replies);
	responder->gap = responder->ooo.count > 0 ? GAP_CLOSING : GAP_NONE;
	responder->refused &= responder->ooo.count > 0;
	/* This requester did not send the packet that is held back, so that packet says nothing
	 * about the others. */
	if (responder_ooo_holds_back(responder) && ooo_first(&responder->ooo) != packet &&
	    !responder_ooo_is_same(responder, 0, packet)) {
		counters_add(responder->counters, COUNTER_out_of_order_differed, 1);
		responder->gap = GAP_NONE;
	}
}

/*
 * Return the next kept packet to execute, or NULL. The gap is closed, so packets behind it are
 * executed, and acknowledged without AckReq, so that a go-back-N requester retransmits none of
 * them. If there is another gap behind them, its NAK is due now, because perhaps nothing more comes
 * that would show the gap. But each packet is evidence of one gap only. A packet that is far ahead,
 * and may never have been sent by the requester, must not cause a NAK for each packet that comes in
 * order before it.
 *
 * Without a gap, requests have come in order up to a kept packet. If that packet is not the
 * requester's, the genuine one comes next. So the responder asks for it, and executes it if it
 * comes. The kept packet is held back until then, or until a packet behind it comes.
 */
const struct packet *responder_ooo_next(struct responder *responder)
{
	const bool sack_capable = replies_sack(responder->replies);
	const bool closing = responder->gap == GAP_CLOSING;
	const struct packet *packet;

	if (responder->gap == GAP_NAKED || responder->gap == GAP_NOT_READY ||
	    responder->gap == GAP_WAITS || responder->gap == GAP_PAGE)
		return NULL;
	if (ooo_drop_before(&responder->ooo, responder->epsn))
		responder_acknowledge(responder);
	packet = ooo_first(&responder->ooo);
	responder->gap_hints = RTE_MIN(responder->gap_hints, responder->ooo.count);
	if (responder_ooo_holds_back(responder)) {
		if (closing)
			return packet;
		responder_ooo_nak(responder, responder->epsn);
	} else if (closing && (responder->gap_hints > 0 || (packet != NULL && sack_capable))) {
		responder->gap_hints -= responder->gap_hints > 0;
		responder_ooo_nak(responder, packet->psn);
	} else if (packet == NULL && responder->gap_dropped) {
		responder->gap_dropped = false;
		responder_ooo_nak(responder, responder->epsn);
	} else {
		responder->gap = GAP_NONE;
		responder->refused &= responder->ooo.count > 0;
	}
	return NULL;
}
