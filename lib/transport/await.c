/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that cannot be executed yet: they are kept, or refused (IBTA 9.7.5.2.8). */
#include "await.h"

#include "wire/headers.h"
#include "wire/packet.h"

void await_refuse(struct responder *responder, uint8_t syndrome)
{
	responder->refused = true;
	counters_add(responder->counters, COUNTER_rnr_nak_sent, 1);
	replies_nak(responder->replies, syndrome, responder->epsn, responder->msn);
}

/* Keep the expected packet until its page is there. Whether it is kept. */
static bool await_keep(struct responder *responder, const struct packet *packet)
{
	uint32_t place;

	switch (early_look(&responder->early, packet, psn_add(responder->epsn, -1), &place)) {
	case EARLY_TAKEN:
		early_keep(&responder->early, packet, place, NULL);
		return true;
	case EARLY_THERE:
		return true;
	case EARLY_REFUSED:
	default:
		return false;
	}
}

/* Note that the expected packet waits, and keep it. false where its requester is to be told. */
static bool await_is_patient(struct responder *responder, const struct packet *packet)
{
	const bool is_first = responder->page_wait.since_ns == PAGE_WAIT_NONE;

	if (is_first)
		counters_add(responder->counters, COUNTER_page_waits, 1);
	page_wait_begin(&responder->page_wait);
	responder->page_psn = responder->epsn;
	if (packet == early_first(&responder->early))
		return true;
	return (is_first || !page_wait_asked(&responder->page_wait)) &&
	       await_keep(responder, packet);
}

enum fault await_drop_message(struct responder *responder, const struct packet *packet)
{
	responder->message = MESSAGE_NONE;
	responder->epsn = psn_add(packet->psn, 1);
	return FAULT_NONE;
}

enum fault await_page(struct responder *responder, const struct packet *packet)
{
	if (responder->service == OPCODE_UC) {
		counters_add(responder->counters, COUNTER_page_drops, 1);
		return await_drop_message(responder, packet);
	}
	if (!psn_eq(responder->page_psn, responder->epsn))
		page_wait_end(&responder->page_wait);
	if (await_is_patient(responder, packet)) {
		responder->gap = GAP_PAGE;
		return FAULT_NONE;
	}
	responder->gap = GAP_NOT_READY;
	await_refuse(responder,
		     page_wait_syndrome(&responder->page_wait, responder->min_rnr_timer));
	return FAULT_NONE;
}
