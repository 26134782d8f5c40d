/* SPDX-License-Identifier: BSD-3-Clause */
/* DCQCN's sender: cuts and raises the rate of a queue pair (SIGCOMM 2015, figure 7). */
#include "transport/dcqcn.h"

#include <rte_common.h>

#include "transport/cc.h"
#include "transport/pacer.h"

/* Each step halves the distance to the link's rate and so never reaches it. A rate above this part
 * of the link's rate counts as reaching it. */
#define NEARLY 0.999

static void dcqcn_set_rate(struct cc *cc, double kbps)
{
	struct dcqcn *dcqcn = &cc->dcqcn;

	if (kbps >= NEARLY * cc->link_kbps) {
		dcqcn->slowed = false;
		cc->rate_kbps = 0;
		cc->timer_ns = UINT64_MAX;
	} else {
		cc->rate_kbps = RTE_MAX((uint32_t)kbps, DCQCN_MIN_KBPS);
	}
	cc_apply(cc);
}

static void dcqcn_start(struct cc *cc)
{
	cc->dcqcn = (struct dcqcn){.slowed = false};
}

static bool dcqcn_notified(struct cc *cc, uint64_t now_ns)
{
	struct dcqcn *dcqcn = &cc->dcqcn;
	double kbps = cc->rate_kbps;

	if (!dcqcn->slowed) {
		*dcqcn = (struct dcqcn){.slowed = true, .alpha = 1};
		kbps = cc->link_kbps;
		/* Without a limit the pacer did not count packets. Start as if the burst were used
		 * up. */
		cc->pacer->paid_ns = RTE_MAX(cc->pacer->paid_ns, now_ns + CC_BURST_NS);
	} else if (now_ns - dcqcn->cut_ns < DCQCN_APART_NS) {
		return false;
	}
	dcqcn->target_kbps = (uint32_t)kbps;
	kbps *= 1 - dcqcn->alpha / 2;
	dcqcn->alpha = (1 - DCQCN_G) * dcqcn->alpha + DCQCN_G;
	dcqcn->cut_ns = now_ns;
	dcqcn->alpha_ns = now_ns + DCQCN_ALPHA_NS;
	dcqcn->raise_ns = now_ns + DCQCN_TIMER_NS;
	dcqcn->bytes = 0;
	dcqcn->timer_steps = 0;
	dcqcn->byte_steps = 0;
	cc->timer_ns = dcqcn->raise_ns;
	dcqcn_set_rate(cc, kbps);
	return true;
}

/* Raise the rate by a step of the timer or of the byte counter. */
static void dcqcn_raise(struct cc *cc)
{
	struct dcqcn *dcqcn = &cc->dcqcn;
	const uint32_t most = RTE_MAX(dcqcn->timer_steps, dcqcn->byte_steps);
	const uint32_t least = RTE_MIN(dcqcn->timer_steps, dcqcn->byte_steps);
	uint64_t target = dcqcn->target_kbps;

	if (least > DCQCN_FAST)
		target += (uint64_t)(least - DCQCN_FAST) * DCQCN_HAI_KBPS;
	else if (most > DCQCN_FAST)
		target += DCQCN_AI_KBPS;
	dcqcn->target_kbps = (uint32_t)RTE_MIN(target, cc->link_kbps);
	dcqcn_set_rate(cc, ((double)dcqcn->target_kbps + cc->rate_kbps) / 2);
}

/* Run the timers that have expired since the last turn. After a long pause the loop ends as soon as
 * the rate is the link's. */
static void dcqcn_turn(struct cc *cc, uint64_t now_ns)
{
	struct dcqcn *dcqcn = &cc->dcqcn;

	while (dcqcn->slowed && RTE_MIN(dcqcn->alpha_ns, dcqcn->raise_ns) <= now_ns) {
		if (dcqcn->alpha_ns <= dcqcn->raise_ns) {
			dcqcn->alpha *= 1 - DCQCN_G;
			dcqcn->alpha_ns += DCQCN_ALPHA_NS;
			continue;
		}
		dcqcn->timer_steps++;
		dcqcn->raise_ns += DCQCN_TIMER_NS;
		cc->timer_ns = dcqcn->raise_ns;
		dcqcn_raise(cc);
	}
}

static void dcqcn_sent(struct cc *cc, uint32_t bytes, uint32_t psns, uint64_t now_ns)
{
	struct dcqcn *dcqcn = &cc->dcqcn;

	(void)psns;
	(void)now_ns;
	if (!dcqcn->slowed)
		return;
	dcqcn->bytes += bytes;
	if (dcqcn->bytes < DCQCN_BYTES)
		return;
	dcqcn->bytes -= DCQCN_BYTES;
	dcqcn->byte_steps++;
	dcqcn_raise(cc);
}

const struct cc_ops dcqcn_ops = {
	.name = "dcqcn",
	.marks = true,
	.start = dcqcn_start,
	.turn = dcqcn_turn,
	.sent = dcqcn_sent,
	.notified = dcqcn_notified,
};
