/* SPDX-License-Identifier: BSD-3-Clause */
/* Swift: keeps the round trip near its target by the window (SIGCOMM 2020, algorithm 1). */
#include "transport/swift.h"

#include <rte_common.h>

#include "transport/cc.h"
#include "transport/loss.h"
#include "transport/pacer.h"

/* Return 1 / sqrt(x) for x > 0, by Newton's method: exact to 1e-6 for the windows that occur. */
static double inverse_root(double x)
{
	double y = 1;

	/* Begin below the result: from there each step comes nearer. */
	while (x * y * y > 1)
		y /= 2;
	for (int i = 0; i < 8; i++)
		y *= 1.5 - 0.5 * x * y * y;
	return y;
}

/* Return what flow scaling adds to the target at this window. */
static double swift_scale_ns(double cwnd)
{
	const double least = inverse_root(SWIFT_RANGE_MAX);
	const double most = inverse_root(SWIFT_RANGE_MIN);
	double at;

	if (cwnd <= SWIFT_RANGE_MIN)
		return SWIFT_RANGE_NS;
	if (cwnd >= SWIFT_RANGE_MAX)
		return 0;
	at = inverse_root(cwnd);
	return SWIFT_RANGE_NS * (at - least) / (most - least);
}

static struct cc_path *swift_path(struct cc *cc)
{
	return cc->path != NULL ? cc->path : &cc->alone;
}

/* Return the time from the newest packet to the next one: 0 if the window has room for all PSNs of
 * the newest one (a READ's responses) at once, else more than a round trip. */
static uint64_t swift_wait_ns(const struct swift *swift)
{
	double wait_ns;

	if (swift->sent_psns <= swift->cwnd)
		return 0;
	wait_ns = (double)swift->rtt_ns * swift->sent_psns / swift->cwnd;
	return wait_ns < (double)SWIFT_WAIT_MAX_NS ? (uint64_t)wait_ns : SWIFT_WAIT_MAX_NS;
}

/* Let the requester obey the window. */
static void swift_apply(struct cc *cc)
{
	struct swift *swift = &cc->swift;

	swift->cwnd = RTE_MIN(swift->cwnd, (double)LOSS_WINDOW_LIMIT);
	swift->cwnd = RTE_MAX(swift->cwnd, swift_path(cc)->is_late ? 1 : SWIFT_CWND_MIN);
	cc->wait_ns = swift->sent_ns + swift_wait_ns(swift);
	if (swift->sent_psns == 0)
		cc->pacer->window = UINT32_MAX;
	else
		cc->pacer->window = swift->cwnd < 1 ? 1 : (uint32_t)swift->cwnd;
	if (swift->slows && swift->asked)
		cc->pacer->window = RTE_MIN(cc->pacer->window, (uint32_t)SWIFT_SLOW_CWND);
}

static void swift_start(struct cc *cc)
{
	cc->swift = (struct swift){.cwnd = SWIFT_CWND_FIRST, .starts = true};
	swift_apply(cc);
}

/* Multiply the window by this factor, unless it has already shrunk in this round trip. */
static void swift_shrink(struct swift *swift, double part, uint64_t now_ns)
{
	swift->starts = false;
	if (swift->shrank_ns != 0 && now_ns - swift->shrank_ns < swift->rtt_ns)
		return;
	swift->cwnd *= RTE_MAX(part, 1 - SWIFT_MAX_MDF);
	swift->shrank_ns = now_ns;
}

static void swift_grow(struct swift *swift, uint32_t psns)
{
	/* The requester has not used the window. */
	if (2.0 * psns < swift->cwnd)
		return;
	if (swift->starts)
		swift->cwnd += psns;
	else if (swift->cwnd < 1)
		swift->cwnd += SWIFT_AI;
	else
		swift->cwnd += SWIFT_AI * RTE_MIN(psns / swift->cwnd, 1.0);
}

/* End the slowdown if a packet that was sent after the queue was gone took rtt_ns. */
static void swift_measure(struct swift *swift, struct cc_path *path, uint64_t rtt_ns,
			  uint64_t now_ns)
{
	if (now_ns - rtt_ns < swift->empty_ns)
		return;
	swift->slows = false;
	path->ended_ns = now_ns;
}

/* Begin a slowdown if one is due, or if another queue pair to the host has begun one. */
static void swift_slow_down(struct swift *swift, struct cc_path *path, uint64_t rtt_ns,
			    uint64_t now_ns)
{
	if (path->due_ns == 0)
		path->due_ns = now_ns + 2 * rtt_ns;
	if (now_ns >= path->due_ns) {
		path->due_ns = now_ns + RTE_MAX(SWIFT_SLOW_NS, SWIFT_SLOW_RTTS * rtt_ns);
		/* The first packets after a slowdown still find no queue. A late host is measured
		 * each time: a few short round trips do not tell that it is late no more. */
		if (path->slow_ns == 0 || path->is_late ||
		    path->near_ns <= path->ended_ns + SWIFT_SLOW_MAX_RTTS * rtt_ns)
			path->slow_ns = now_ns;
		else
			path->ended_ns = now_ns;
	}
	if (path->slow_ns == swift->slow_ns || now_ns - path->slow_ns > 2 * rtt_ns ||
	    swift->cwnd <= SWIFT_SLOW_CWND)
		return;
	swift->slows = true;
	swift->asked = false;
	swift->slow_ns = path->slow_ns;
	swift->empty_ns = now_ns + rtt_ns;
}

/* Return true if a packet that was alone in flight took so long that queues do not explain it. */
static bool swift_is_long(const struct swift *swift, uint64_t rtt_ns, double target_ns)
{
	if (swift->cwnd <= 2 * SWIFT_CWND_MIN)
		return (double)rtt_ns > target_ns;
	return (double)rtt_ns > SWIFT_LONG * target_ns;
}

static void swift_answered(struct cc *cc, uint64_t rtt_ns, uint32_t psns, uint64_t now_ns)
{
	struct cc_path *path = swift_path(cc);
	struct swift *swift = &cc->swift;
	const uint64_t min_rtt_ns = cc_path_note(path, rtt_ns, now_ns);
	const bool slowed = swift->slows;
	double target_ns = (double)min_rtt_ns + SWIFT_QUEUE_NS + swift_scale_ns(swift->cwnd);

	swift->losses = 0;
	swift->rtt_ns = rtt_ns;
	if (slowed)
		swift_measure(swift, path, rtt_ns, now_ns);
	if (slowed ? !swift->slows : cc->timed_alone && swift->cwnd < SWIFT_SLOW_CWND)
		cc_path_note_single(path, &swift->doubts, min_rtt_ns, rtt_ns,
				    swift_is_long(swift, rtt_ns, target_ns));
	target_ns += (double)cc_path_late_ns(path);
	if (slowed)
		;
	else if ((double)rtt_ns < target_ns)
		swift_grow(swift, psns);
	else
		swift_shrink(swift, 1 - SWIFT_BETA * ((double)rtt_ns - target_ns) / (double)rtt_ns,
			     now_ns);
	if (!swift->slows && !swift->starts)
		swift_slow_down(swift, path, rtt_ns, now_ns);
	swift_apply(cc);
}

/* End a slowdown in which there was nothing to measure. */
static void swift_poll(struct cc *cc, uint64_t now_ns)
{
	struct swift *swift = &cc->swift;

	if (!swift->slows || now_ns < swift->empty_ns + SWIFT_SLOW_MAX_RTTS * swift->rtt_ns)
		return;
	swift->slows = false;
	swift_apply(cc);
}

static void swift_lost(struct cc *cc, uint64_t now_ns)
{
	struct swift *swift = &cc->swift;

	swift->slows = false;
	if (++swift->losses >= SWIFT_RETRIES)
		swift->cwnd = SWIFT_CWND_MIN;
	else
		swift_shrink(swift, 1 - SWIFT_MAX_MDF, now_ns);
	swift_apply(cc);
}

static void swift_sent(struct cc *cc, uint32_t bytes, uint32_t psns, uint64_t now_ns)
{
	struct swift *swift = &cc->swift;
	const bool changes = swift->sent_psns == 0 || (swift->slows && !swift->asked);

	(void)bytes;
	swift->sent_ns = now_ns;
	swift->sent_psns = psns;
	swift->asked |= swift->slows;
	if (changes || psns > swift->cwnd)
		swift_apply(cc);
}

const struct cc_ops swift_ops = {
	.name = "swift",
	.times = true,
	.start = swift_start,
	.poll = swift_poll,
	.sent = swift_sent,
	.answered = swift_answered,
	.lost = swift_lost,
};
