/* SPDX-License-Identifier: BSD-3-Clause */
/* DCQCN's sender: cuts and raises the rate of a queue pair (SIGCOMM 2015, figure 7). */
#include "transport/dcqcn.h"

#include <rte_common.h>

#include "transport/cc.h"
#include "transport/pacer.h"

/* Each step halves the distance to the link's rate and so never reaches it. A rate above this part
 * of the link's rate counts as reaching it. */
#define NEARLY 0.999
#define KBPS   1000u	      /* of a parameter in Mb/s */
#define NS     UINT64_C(1000) /* of a parameter in us */
#define ONE    1024.0	      /* of a parameter that is a fraction */

/* Return the rate at which the queue pair is free. */
static uint32_t dcqcn_free_kbps(const struct cc *cc)
{
	const uint32_t max_mbps = cc->params->rpg_max_rate;

	return max_mbps == 0 ? cc->link_kbps : RTE_MIN(KBPS * max_mbps, cc->link_kbps);
}

static void dcqcn_set_rate(struct cc *cc, double kbps)
{
	struct dcqcn *dcqcn = &cc->dcqcn;

	if (kbps >= NEARLY * dcqcn_free_kbps(cc)) {
		dcqcn->slowed = false;
		cc->rate_kbps = 0;
		cc->timer_ns = UINT64_MAX;
	} else {
		cc->rate_kbps = RTE_MAX((uint32_t)kbps, KBPS * cc->params->rpg_min_rate);
	}
	cc_apply(cc);
}

static void dcqcn_start(struct cc *cc)
{
	cc->dcqcn = (struct dcqcn){.slowed = false};
}

/* Return true if a notification makes the present rate the target. */
static bool dcqcn_clamps(const struct cc *cc)
{
	const struct dcqcn *dcqcn = &cc->dcqcn;

	return cc->params->clamp_tgt_rate || dcqcn->byte_steps > 0 ||
	       (cc->params->clamp_tgt_rate_after_time_inc && dcqcn->timer_steps > 0);
}

/* Return the rate after a cut of this rate. */
static double dcqcn_cut(const struct cc *cc, double kbps)
{
	const double part = 1 - cc->dcqcn.alpha * ONE / (1u << cc->params->rpg_gd);

	return kbps * RTE_MAX(part, cc->params->rpg_min_dec_fac / 100.0);
}

/* Begin to limit the rate, and return the rate after it. */
static double dcqcn_begin(struct cc *cc, uint64_t now_ns)
{
	const uint32_t first_kbps = KBPS * cc->params->rate_to_set_on_first_cnp;
	struct dcqcn *dcqcn = &cc->dcqcn;

	*dcqcn = (struct dcqcn){.slowed = true,
				.target_kbps = dcqcn_free_kbps(cc),
				.alpha = cc->params->initial_alpha_value / ONE};
	/* Without a limit the pacer did not count packets. Start as if the burst were used up. */
	cc->pacer->paid_ns = RTE_MAX(cc->pacer->paid_ns, now_ns + CC_BURST_NS);
	if (first_kbps == 0)
		return dcqcn_cut(cc, dcqcn->target_kbps);
	dcqcn->target_kbps = RTE_MIN(first_kbps, dcqcn->target_kbps);
	return dcqcn->target_kbps;
}

static bool dcqcn_notified(struct cc *cc, uint64_t now_ns)
{
	const struct cc_params *params = cc->params;
	const double weight = params->dce_tcp_g / ONE;
	struct dcqcn *dcqcn = &cc->dcqcn;
	double kbps;

	if (!dcqcn->slowed) {
		kbps = dcqcn_begin(cc, now_ns);
	} else if (now_ns - dcqcn->cut_ns < NS * params->rate_reduce_monitor_period) {
		return false;
	} else {
		if (dcqcn_clamps(cc))
			dcqcn->target_kbps = cc->rate_kbps;
		kbps = dcqcn_cut(cc, cc->rate_kbps);
	}
	dcqcn->alpha = weight * dcqcn->alpha + 1 - weight;
	dcqcn->cut_ns = now_ns;
	dcqcn->alpha_ns = now_ns + NS * params->dce_tcp_rtt;
	dcqcn->raise_ns = now_ns + NS * params->rpg_time_reset;
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
	const struct cc_params *params = cc->params;
	struct dcqcn *dcqcn = &cc->dcqcn;
	const uint32_t most = RTE_MAX(dcqcn->timer_steps, dcqcn->byte_steps);
	const uint32_t least = RTE_MIN(dcqcn->timer_steps, dcqcn->byte_steps);
	const uint32_t fast = params->rpg_threshold;
	uint64_t target = dcqcn->target_kbps;

	if (least > fast)
		target += (uint64_t)(least - fast) * KBPS * params->rpg_hai_rate;
	else if (most > fast)
		target += KBPS * params->rpg_ai_rate;
	dcqcn->target_kbps = (uint32_t)RTE_MIN(target, dcqcn_free_kbps(cc));
	dcqcn_set_rate(cc, ((double)dcqcn->target_kbps + cc->rate_kbps) / 2);
}

/* Return base^n by squaring: the number of steps may be large after a long pause. */
static double power(double base, uint64_t n)
{
	double result = 1;

	for (; n > 0; n >>= 1, base *= base) {
		if (n & 1)
			result *= base;
	}
	return result;
}

/* Run the timers that have expired since the last engine poll. After a long pause the loop ends as
 * soon as the queue pair is free. */
static void dcqcn_poll(struct cc *cc, uint64_t now_ns)
{
	const uint64_t alpha_ns = NS * cc->params->dce_tcp_rtt;
	struct dcqcn *dcqcn = &cc->dcqcn;

	if (dcqcn->slowed && dcqcn->alpha_ns <= now_ns) {
		const uint64_t steps = (now_ns - dcqcn->alpha_ns) / alpha_ns + 1;

		dcqcn->alpha *= power(cc->params->dce_tcp_g / ONE, steps);
		dcqcn->alpha_ns += steps * alpha_ns;
	}
	while (dcqcn->slowed && dcqcn->raise_ns <= now_ns) {
		dcqcn->timer_steps++;
		dcqcn->raise_ns += NS * cc->params->rpg_time_reset;
		cc->timer_ns = dcqcn->raise_ns;
		dcqcn_raise(cc);
	}
}

static void dcqcn_sent(struct cc *cc, uint32_t bytes, uint32_t psns, uint64_t now_ns)
{
	const uint32_t reset = cc->params->rpg_byte_reset;
	struct dcqcn *dcqcn = &cc->dcqcn;

	(void)psns;
	(void)now_ns;
	if (!dcqcn->slowed || reset == 0)
		return;
	dcqcn->bytes += bytes;
	if (dcqcn->bytes < reset)
		return;
	/* A reset that has become smaller counts once. */
	dcqcn->bytes = RTE_MIN(dcqcn->bytes - reset, bytes);
	dcqcn->byte_steps++;
	dcqcn_raise(cc);
}

const struct cc_ops dcqcn_ops = {
	.name = "dcqcn",
	.marks = true,
	.start = dcqcn_start,
	.poll = dcqcn_poll,
	.sent = dcqcn_sent,
	.notified = dcqcn_notified,
};
