/* SPDX-License-Identifier: BSD-3-Clause */
/* Pacing of queue pairs that have a limit or congestion control. */
#include "transport/pacer.h"

bool pacer_waits(struct pacer *pacer)
{
	const struct cc *cc = pacer->cc;
	uint64_t until_ns = 0;

	if (pacer->rate_kbps != PACER_FREE_KBPS &&
	    pacer->paid_ns >= pacer->now_ns + pacer->burst_ns)
		until_ns = pacer->paid_ns - pacer->burst_ns + 1;
	if (cc != NULL && until_ns < cc->wait_ns)
		until_ns = cc->wait_ns;
	if (until_ns <= pacer->now_ns)
		return false;
	/* Congestion control may raise the rate before that time. */
	if (cc != NULL && cc->timer_ns < until_ns)
		until_ns = cc->timer_ns;
	pacer->deadline_ns = until_ns;
	return true;
}

bool pacer_waits_new(struct pacer *pacer, uint32_t outstanding)
{
	return (pacer->cc != NULL && outstanding >= pacer->window) || pacer_waits(pacer);
}

bool pacer_wants_ack(const struct pacer *pacer, uint32_t unasked)
{
	return pacer->rate_kbps != PACER_FREE_KBPS || cc_times_next(pacer->cc) ||
	       unasked + 1 >= pacer->window / 4;
}

void pacer_sent_request(struct pacer *pacer, struct psn psn, uint32_t psns, uint32_t bytes,
			bool again)
{
	pacer_sent(pacer, bytes);
	if (pacer->cc != NULL)
		cc_sent(pacer->cc, psn, psns, bytes, again, pacer->now_ns);
}
