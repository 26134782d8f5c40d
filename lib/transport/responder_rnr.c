/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that cannot be executed yet: they are kept, or refused (IBTA 9.7.5.2.8). */
#include "responder_rnr.h"

#include "responder_ooo.h"
#include "transport/pass.h"
#include "wire/headers.h"
#include "wire/packet.h"

void responder_rnr_refuse(struct responder *responder, uint8_t syndrome)
{
	responder->refused = true;
	counters_add(responder->counters, COUNTER_rnr_nak_sent, 1);
	replies_nak(responder->replies, syndrome, responder->epsn, responder->msn);
}

/* Keep the expected packet until its page is in memory. A packet with the same PSN that came out of
 * order and was kept is not the requester's if the two differ. Return true if it is kept. */
static bool responder_rnr_keep(struct responder *responder, const struct packet *packet)
{
	const struct psn before = psn_add(responder->epsn, -1);
	struct ooo *ooo = &responder->ooo;
	enum ooo_verdict verdict;
	uint32_t place;

	verdict = ooo_look(ooo, packet, before, &place);
	if (verdict == OOO_THERE && !responder_ooo_is_same(responder, place, packet)) {
		counters_add(responder->counters, COUNTER_out_of_order_differed, 1);
		ooo_remove(ooo, place);
		verdict = ooo_look(ooo, packet, before, &place);
	}
	if (verdict == OOO_TAKEN)
		ooo_keep(ooo, packet, place, NULL);
	return verdict != OOO_REFUSED;
}

/* Note that the expected packet waits, and keep it. Return false if its requester must be told. */
static bool responder_rnr_may_wait(struct responder *responder, const struct packet *packet)
{
	const bool is_first = responder->page_wait.since_ns == PAGE_WAIT_NONE;

	if (is_first && (responder->pass == NULL || responder->pass->state != PASS_SENT))
		counters_add(responder->counters, COUNTER_page_waits, 1);
	page_wait_begin(&responder->page_wait);
	responder->page_psn = responder->epsn;
	if (packet == ooo_first(&responder->ooo))
		return true;
	return (is_first || !page_wait_asked(&responder->page_wait)) &&
	       responder_rnr_keep(responder, packet);
}

enum fault responder_rnr_drop_message(struct responder *responder, const struct packet *packet)
{
	responder->message = MESSAGE_NONE;
	responder->epsn = psn_add(packet->psn, 1);
	return FAULT_NONE;
}

enum fault responder_rnr_page(struct responder *responder, const struct packet *packet)
{
	if (responder->service == OPCODE_UC) {
		counters_add(responder->counters, COUNTER_page_drops, 1);
		return responder_rnr_drop_message(responder, packet);
	}
	if (!psn_eq(responder->page_psn, responder->epsn))
		page_wait_end(&responder->page_wait);
	if (responder_rnr_may_wait(responder, packet)) {
		responder->gap = GAP_PAGE;
		return FAULT_NONE;
	}
	responder->gap = GAP_NOT_READY;
	responder_rnr_refuse(responder,
			     page_wait_syndrome(&responder->page_wait, responder->min_rnr_timer));
	return FAULT_NONE;
}
