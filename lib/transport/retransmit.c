/* SPDX-License-Identifier: BSD-3-Clause */
/* A completer's reaction to a loss: it keeps out-of-order responses, has missing packets
 * retransmitted, and learns what its peer does with packets behind a gap (IBTA 9.7.5.1.1 and
 * 9.7.5.2). */
#include "retransmit.h"

#include <assert.h>

#include "transport/requester.h"
#include "transport/sgl.h"

static_assert(OOO_REACH == FLIGHT_WINDOW_MAX + REQUESTER_READ_SEGMENT_PKTS,
	      "responses in flight are in reach");

/* Go back: retransmit from the oldest unacknowledged packet on. */
static void retransmit_all(struct completer *completer, uint64_t now_ns)
{
	recovery_lost(completer->recovery, now_ns);
	flight_rewind(completer->flight, true);
}

/* Retransmit only what is missing before `to`. */
static void retransmit_missing(struct completer *completer, enum flight_retransmit retransmit,
			       struct psn to, uint64_t now_ns)
{
	flight_retransmit(completer->flight, retransmit, to);
	recovery_retransmit(completer->recovery, now_ns, true);
}

/* Stop the measurement if the answer came before the retransmission: it does not show how long an
 * answer to the retransmission takes. */
static void retransmit_unmeasured(struct completer *completer)
{
	const struct flight *flight = completer->flight;

	if (!flight->retransmit_sent && psn_before(flight->retransmit_from, flight->una))
		completer->recovery->measured = true;
}

/*
 * React to a NAK: the peer misses the packet at una. Retransmit this packet alone. The peer's
 * answer shows whether it keeps packets behind a gap; if it does, nothing else is ever
 * retransmitted. If the answer is a NAK for the next packet, more is retransmitted each time. For a
 * READ or atomic the answer would not show it, because a response does not tell that nothing more
 * follows.
 */
void retransmit_sequence_nak(struct completer *completer, uint64_t now_ns)
{
	struct flight *flight = completer->flight;
	const struct send_wqe *wqe = completer_oldest(completer);
	uint32_t run = 1;

	counters_add(completer->counters, COUNTER_packet_seq_err, 1);
	/*
	 * Ignore a NAK for packets behind one that had no receive request: all of them are
	 * retransmitted when the RNR timer expires, and none before (9.7.5.2.8). Also ignore a NAK
	 * for a packet that is about to be retransmitted, or that was just retransmitted alone,
	 * because that has its own timer.
	 */
	if (completer->recovery->state == RECOVERY_RNR_WAIT || psn_eq(flight->next, flight->una) ||
	    (flight->retransmit != RETRANSMIT_NONE &&
	     psn_before(flight->una, flight->retransmit_to)))
		return;
	if (flight->retransmit == RETRANSMIT_REQUEST || flight->retransmit == RETRANSMIT_RNR) {
		retransmit_unmeasured(completer);
		if (!flight->retransmit_sent)
			run = flight->retransmit_run;
		else if (psn_before(flight->retransmit_to, flight->una))
			flight_peer_keeps(flight);
		else if (flight->peer == FLIGHT_PEER_UNKNOWN && ++flight->doubts > 1)
			flight->peer = FLIGHT_PEER_DROPS;
		else
			run = 2 * flight->retransmit_run;
		recovery_retransmitted(completer->recovery, now_ns);
	}
	if (flight->peer == FLIGHT_PEER_DROPS ||
	    (flight->peer == FLIGHT_PEER_UNKNOWN && requester_wants_response(wqe))) {
		retransmit_all(completer, now_ns);
		flight->went_back = true;
		return;
	}
	if (wqe->opcode == IBV_WR_RDMA_READ)
		run = requester_segment_psns(wqe, flight->una);
	else if (run > FLIGHT_RETRANSMIT_MAX)
		run = FLIGHT_RETRANSMIT_MAX;
	if (run > flight_outstanding(flight))
		run = flight_outstanding(flight);
	flight->retransmit_run = run;
	retransmit_missing(completer, RETRANSMIT_REQUEST, psn_add(flight->una, (int32_t)run),
			   now_ns);
}

/*
 * The peer had no receive request for the packet at una. It may keep the packets behind that one.
 * So the packet at una is retransmitted alone when the RNR timer has expired, as after a loss. A
 * peer that refuses a packet that was not retransmitted has kept it. A peer that drops out-of-order
 * packets gets all of them again; if it refuses the packet at una once more, that packet is sent
 * alone until it is accepted.
 */
void retransmit_rnr_nak(struct completer *completer, enum recovery_state before)
{
	struct flight *flight = completer->flight;
	const bool unsent = flight->retransmit == RETRANSMIT_RNR && !flight->retransmit_sent &&
			    before != RECOVERY_RNR_WAIT;
	const bool behind = (flight->retransmit == RETRANSMIT_REQUEST ||
			     flight->retransmit == RETRANSMIT_RNR) &&
			    flight->retransmit_sent &&
			    !psn_before(flight->una, flight->retransmit_to);

	if (unsent || behind)
		flight_peer_keeps(flight);
	if (psn_eq(flight->una, flight->next) ||
	    (flight->peer == FLIGHT_PEER_DROPS && before == RECOVERY_SMOOTH)) {
		flight_rewind(flight, false);
		return;
	}
	flight->retransmit_run = 1;
	flight_retransmit(flight, RETRANSMIT_RNR, psn_add(flight->una, 1));
}

/* Return the request of a PSN in flight, or NULL. */
static const struct send_wqe *retransmit_find(const struct completer *completer, struct psn psn)
{
	const struct sq *sq = completer->sq;
	const uint32_t prod = sq_prod(sq);

	for (uint32_t i = sq->cons; i != prod && sq_at(sq, i)->started; i++) {
		if (!psn_before(sq_at(sq, i)->last_psn, psn))
			return sq_at(sq, i);
	}
	return NULL;
}

/* Place an out-of-order response of the READ in progress, if its memory has relaxed ordering.
 * Return where it is, or NULL. */
static const uint8_t *retransmit_place(struct completer *completer, const struct send_wqe *wqe,
				       const struct packet *packet)
{
	const uint64_t position = (uint64_t)psn_diff(packet->psn, wqe->first_psn) * completer->mtu;
	const uint8_t *addr;
	struct sgl sgl;

	sgl_seek(&sgl, wqe->sge, wqe->num_sge, position);
	addr = sgl_scatter_ooo(&sgl, completer->pd, packet->payload, packet->payload_len);
	counters_add(completer->counters, COUNTER_rx_payload_bytes_written, sgl.stored);
	return addr;
}

/* Return true if a response fits its request. One that does not is not kept: it is a bad response
 * when it comes in order. */
static bool retransmit_fits(const struct completer *completer, const struct send_wqe *wqe,
			    const struct packet *packet)
{
	if (!(packet->op->flags & OPCODE_IS_READ_RESPONSE))
		return sq_is_atomic((enum ibv_wr_opcode)wqe->opcode) &&
		       (packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ATOMIC_ACKNOWLEDGE;
	if (wqe->opcode == IBV_WR_RDMA_READ)
		return packet->payload_len == completer_expected(completer, wqe, packet->psn);
	return requester_wants_data(wqe) || requester_wants_empty_read(wqe);
}

/* Return true if a response has the data of the kept one. Its opcode (FIRST to ONLY) and the MSN
 * may have changed since (9.7.5.1.3). */
static bool retransmit_same(const struct completer *completer, const struct send_wqe *wqe,
			    uint32_t place, const struct packet *packet)
{
	const struct packet *kept = ooo_at(&completer->ooo, place);
	const void *placed = ooo_placed_at(&completer->ooo, place);

	if ((kept->op->flags ^ packet->op->flags) & OPCODE_IS_READ_RESPONSE)
		return false;
	if (!(packet->op->flags & OPCODE_IS_READ_RESPONSE))
		return kept->atomic_original == packet->atomic_original;
	if (placed != NULL) {
		struct sgl sgl;

		sgl_seek(&sgl, wqe->sge, wqe->num_sge,
			 (uint64_t)psn_diff(packet->psn, wqe->first_psn) * completer->mtu);
		if (!sgl_leads_to(&sgl, completer->pd, packet->payload_len, placed))
			return false;
	}
	return ooo_same_payload(&completer->ooo, place, packet);
}

/* Keep a response for its turn. If two differ, neither is trusted: both are dropped, and requested
 * again. */
static void retransmit_keep(struct completer *completer, const struct packet *packet)
{
	const struct send_wqe *wqe = retransmit_find(completer, packet->psn);
	const uint8_t *placed = NULL;
	uint32_t place;

	if (wqe == NULL || !retransmit_fits(completer, wqe, packet))
		return;
	switch (ooo_look(&completer->ooo, packet, completer->flight->una, &place)) {
	case OOO_TAKEN:
		if (wqe->opcode == IBV_WR_RDMA_READ && wqe == completer_oldest(completer))
			placed = retransmit_place(completer, wqe, packet);
		ooo_keep(&completer->ooo, packet, place, placed);
		counters_add(completer->counters,
			     placed != NULL ? COUNTER_out_of_order_placed
					    : COUNTER_out_of_order_kept,
			     1);
		break;
	case OOO_THERE:
		if (retransmit_same(completer, wqe, place, packet))
			break;
		ooo_remove(&completer->ooo, place);
		counters_add(completer->counters, COUNTER_out_of_order_differed, 1);
		break;
	case OOO_REFUSED:
	default:
		break;
	}
}

/*
 * Return the next kept response whose turn it is, or NULL, while responses before
 * `flight->executed` are missing.
 */
static const struct packet *retransmit_next(struct completer *completer, uint64_t now_ns,
					    enum fault *fault)
{
	struct flight *flight = completer->flight;
	const struct packet *packet;

	if (completer_acknowledge(completer, flight->executed, now_ns, fault)) {
		flight->waits = false;
		ooo_clear(&completer->ooo);
		return NULL;
	}
	ooo_drop_before(&completer->ooo, flight->una);
	packet = ooo_first(&completer->ooo);
	return packet != NULL && psn_eq(packet->psn, flight->una) ? packet : NULL;
}

/*
 * Request what is missing up to the first kept response, once. A response has come that the
 * responder sends only after one that did not come: that one was lost (9.7.5.1.1, implied NAK).
 */
static void retransmit_ask(struct completer *completer, uint64_t now_ns)
{
	const struct send_wqe *wqe = completer_oldest(completer);
	const struct packet *kept = ooo_first(&completer->ooo);
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
	retransmit_missing(completer, RETRANSMIT_RESPONSE, to, now_ns);
}

/*
 * The peer accepted a packet that it had refused. It may have no receive request for the next
 * message, and refuse that message's first packet too. So that packet is also sent alone, until
 * nothing is in flight. But if the answers do not cover packets that were sent before, the peer has
 * dropped those.
 */
static void retransmit_refused(struct completer *completer, bool leaps, uint64_t now_ns)
{
	struct flight *flight = completer->flight;

	if (leaps && flight->retransmit_sent)
		flight_peer_keeps(flight);
	if (psn_eq(flight->una, flight->next))
		return;
	if (leaps || (flight->peer != FLIGHT_PEER_DROPS && ++flight->doubts <= 1)) {
		retransmit_missing(completer, RETRANSMIT_RNR, psn_add(flight->una, 1), now_ns);
		return;
	}
	/* A peer may keep packets behind a loss, and drop packets behind a refusal. */
	if (flight->peer == FLIGHT_PEER_UNKNOWN)
		flight->peer = FLIGHT_PEER_DROPS;
	flight->doubts = 0;
	recovery_lost(completer->recovery, now_ns);
	flight_rewind(flight, false);
}

/* Send nothing until the RNR timer expires: the packet that is the oldest then is sent first. */
static void retransmit_wait(struct completer *completer)
{
	struct flight *flight = completer->flight;

	if (flight->retransmit == RETRANSMIT_NONE || psn_before(flight->una, flight->retransmit_to))
		return;
	flight->retransmit = RETRANSMIT_NONE;
	if (!psn_eq(flight->una, flight->next))
		flight_retransmit(flight, RETRANSMIT_RNR, psn_add(flight->una, 1));
}

/*
 * The end of a selective retransmission is reached. The peer's answer to a request that was
 * retransmitted alone shows its kind. If the answer covers more, the peer keeps out-of-order
 * packets. If it covers just that request, the peer does not keep them, or not this time: packets
 * behind it are retransmitted. A response shows neither; if nothing follows it, the retransmission
 * timer asks.
 */
static void retransmit_ended(struct completer *completer, bool acknowledged, uint64_t now_ns)
{
	struct flight *flight = completer->flight;
	const bool leaps = psn_before(flight->retransmit_to, flight->una);
	const enum flight_retransmit retransmit = flight->retransmit;

	flight->retransmit = RETRANSMIT_NONE;
	if (retransmit != RETRANSMIT_PROBE)
		recovery_retransmitted(completer->recovery, now_ns);
	if (retransmit == RETRANSMIT_RESPONSE || (retransmit == RETRANSMIT_PROBE && leaps))
		return;
	if (retransmit == RETRANSMIT_RNR) {
		retransmit_refused(completer, leaps, now_ns);
		return;
	}
	if (leaps) {
		if (flight->retransmit_sent)
			flight_peer_keeps(flight);
		return;
	}
	if (psn_eq(flight->una, flight->next))
		return;
	if (retransmit == RETRANSMIT_PROBE) {
		retransmit_all(completer, now_ns);
		return;
	}
	if (!acknowledged) {
		retransmit_missing(completer, RETRANSMIT_REQUEST, psn_add(flight->una, 1), now_ns);
		flight->retransmit_next = flight->retransmit_to;
		return;
	}
	flight->peer = flight->peer == FLIGHT_PEER_KEEPS ? FLIGHT_PEER_UNKNOWN : FLIGHT_PEER_DROPS;
	retransmit_all(completer, now_ns);
	flight->went_back = true;
}

const struct packet *retransmit_settle(struct completer *completer, bool acknowledged,
				       uint64_t now_ns, enum fault *fault)
{
	struct flight *flight = completer->flight;

	if (flight->waits) {
		const struct packet *packet = retransmit_next(completer, now_ns, fault);

		if (packet != NULL || *fault != FAULT_NONE)
			return packet;
	}
	if (completer->recovery->state == RECOVERY_RNR_WAIT) {
		retransmit_wait(completer);
		return NULL;
	}
	if (flight->retransmit != RETRANSMIT_NONE)
		retransmit_unmeasured(completer);
	if (flight->retransmit != RETRANSMIT_NONE &&
	    !psn_before(flight->una, flight->retransmit_to))
		retransmit_ended(completer, acknowledged, now_ns);
	if (flight->waits && flight->retransmit == RETRANSMIT_NONE)
		retransmit_ask(completer, now_ns);
	/* Progress has turned its timer into one for probes. */
	if (flight->retransmit != RETRANSMIT_NONE && completer->recovery->probing)
		recovery_retransmit(completer->recovery, now_ns, false);
	return NULL;
}

void retransmit_ooo_response(struct completer *completer, const struct packet *packet,
			     uint64_t now_ns)
{
	struct flight *flight = completer->flight;

	/* A NAK is for a packet behind una, too: everything is retransmitted. */
	if ((packet->opcode & OPCODE_OPERATION_MASK) == OPCODE_ACKNOWLEDGE &&
	    !completer_is_ack(packet)) {
		if (completer->recovery->state != RECOVERY_RNR_WAIT &&
		    !psn_eq(flight->next, flight->una)) {
			counters_add(completer->counters, COUNTER_implied_nak_seq_err, 1);
			retransmit_all(completer, now_ns);
		}
		return;
	}
	/* Its turn will show what it is. */
	if (!completer_aeth_fits(packet))
		return;
	/* Some of the requested responses have come, and now one is missing. */
	if (flight->retransmit == RETRANSMIT_RESPONSE &&
	    psn_before(flight->retransmit_from, flight->una) &&
	    psn_before(packet->psn, flight->retransmit_to))
		flight->retransmit = RETRANSMIT_NONE;
	retransmit_keep(completer, packet);
	flight_executed(flight, psn_add(packet->psn, 1));
}

void retransmit_again(struct completer *completer, uint64_t now_ns)
{
	struct flight *flight = completer->flight;

	if (flight->retransmit != RETRANSMIT_NONE) {
		flight->retransmit_next = flight->una;
	} else if (!psn_eq(flight->una, flight->next)) {
		flight_retransmit(flight, RETRANSMIT_PROBE, psn_add(flight->una, 1));
		recovery_probe(completer->recovery, flight->una, now_ns);
		counters_add(completer->counters, COUNTER_probes, 1);
	}
}
