/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come to a responder before their turn: they are kept, and what is missing is asked
 * for (IBTA 9.7.4, C9-112). */
#include "gap.h"

#include "mem/mr.h"
#include "mem/place.h"
#include "wire/headers.h"
#include "wire/packet.h"

/* The expected packet is missing, and one behind it is there. */
static void gap_nak(struct responder *responder, struct psn behind)
{
	responder->gap_psn = behind;
	responder->nak_sent = true;
	replies_nak(responder->replies, AETH_NAK | NAK_PSN_SEQUENCE, responder->epsn,
		    responder->msn);
}

/*
 * Place the payload of an early packet of the WRITE in progress, where the region lets bytes come
 * in any order: the message's first packet was checked and executed, so key, rights and range are
 * known, and so is the packet's place. No packet in between is of another message, so that nothing
 * is overtaken that could fail, or that writes the same bytes. All checks are made at the packet's
 * turn once more. Returns where the payload is, or NULL.
 */
static const uint8_t *gap_place(struct responder *responder, const struct packet *packet)
{
	const uint64_t ahead = (uint64_t)psn_diff(packet->psn, responder->epsn) * responder->mtu;
	const uint32_t flags = packet->op->flags;
	uint8_t *addr;
	uint64_t left;

	if (responder->message != MESSAGE_WRITE || !(flags & OPCODE_IS_WRITE) ||
	    (flags & OPCODE_FIRST) || ahead >= responder->write_left ||
	    !(responder->access & IBV_ACCESS_REMOTE_WRITE) || responder->service != OPCODE_RC)
		return NULL;
	left = responder->write_left - ahead;
	if (packet->payload_len != (flags & OPCODE_LAST ? left : responder->mtu) ||
	    packet->payload_len > responder->mtu)
		return NULL;
	if (mr_resolve_remote(responder->pd, responder->qpn, responder->write_rkey,
			      responder->write_iova + ahead, packet->payload_len,
			      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING,
			      &addr) != MR_OK)
		return NULL;
	if (place_guarded(addr, packet->payload, packet->payload_len, 0) != 0)
		return NULL;
	counters_add(responder->counters, COUNTER_rx_payload_bytes_written, packet->payload_len);
	return addr;
}

/* Keep a packet for its turn. false where there is no room (its requester sends it again), or where
 * it is there already. */
static bool gap_store(struct responder *responder, const struct packet *packet)
{
	const uint8_t *placed;
	uint32_t place;

	if (!early_takes(&responder->early, packet, responder->epsn, &place))
		return false;
	placed = gap_place(responder, packet);
	early_keep(&responder->early, packet, place, placed);
	counters_add(responder->counters, placed ? COUNTER_early_placed : COUNTER_early_kept, 1);
	return true;
}

/*
 * One NAK a gap (C9-112); another when the requester has gone back and the expected packet was lost
 * again. Then the gap's first packet comes once more; what the network repeats or delays is hardly
 * that one.
 */
void gap_keep(struct responder *responder, const struct packet *packet)
{
	const bool first = !responder->nak_sent || psn_eq(responder->gap_psn, responder->epsn);
	const bool kept = gap_store(responder, packet);
	const bool again = !first && !kept && psn_diff(packet->psn, responder->gap_psn) <= 0;

	counters_add(responder->counters, COUNTER_out_of_sequence, 1);
	if (again || !responder->nak_sent)
		gap_nak(responder, packet->psn);
	else if (first)
		responder->gap_psn = packet->psn;
}

/* The packet that a NAK was for is there. */
void gap_closes(struct responder *responder)
{
	responder->nak_sent = false;
	replies_withdraw_nak(responder->replies);
}

/*
 * Packets are kept: the next one whose turn it is, or NULL. They are acknowledged unasked, so that
 * a requester that goes back sends none of them again; and if there is another gap behind them, its
 * NAK is due now, for perhaps nothing more comes that would show it.
 */
const struct packet *gap_next(struct responder *responder)
{
	const struct packet *packet;

	if (responder->nak_sent)
		return NULL;
	if (early_drop_before(&responder->early, responder->epsn))
		responder_acknowledge(responder);
	packet = early_first(&responder->early);
	if (packet == NULL || psn_eq(packet->psn, responder->epsn))
		return packet;
	gap_nak(responder, packet->psn);
	return NULL;
}
