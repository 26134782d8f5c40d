/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode incast: many queue pairs SEND into one shared receive queue. The result also shows how
 * evenly the queue pairs progress. */
#include <infiniband/verbs.h>

#include <rte_common.h>

#include "endpoint.h"
#include "mode.h"
#include "passive.h"
#include "pattern.h"
#include "result.h"
#include "run.h"
#include "stream.h"

#define SHARED_WR_MAX UINT64_C(8192)

static const struct stream_ops incast_ops = {
	.opcode = IBV_WR_SEND,
	.fill = stream_fill_pattern,
};

static int incast_begin(struct run *run)
{
	return stream_begin(run, &incast_ops);
}

static void incast_stats(const struct run *run, struct result *result)
{
	stream_spread(run, &result->qp_least, &result->qp_most);
}

static void incast_shape(const struct plan *plan, struct endpoint_config *active,
			 struct endpoint_config *passive)
{
	struct plan one = *plan;
	struct slots slots;

	stream_shape(plan, active, passive);
	passive->shared_receive = true;
	passive->recv_wr = (uint32_t)RTE_MIN(2 * plan->depth * plan->qps, SHARED_WR_MAX);
	one.qps = 1;
	slots = plan_slots(&one, passive->recv_wr);
	passive->region_bytes = slots_bytes(&slots);
}

static int incast_serve_begin(struct passive *passive)
{
	return passive_post_receives(passive, 0);
}

/* Check a message. The message itself names its sender. */
static void incast_check_message(struct passive *passive, uint32_t shared, void *bytes)
{
	uint64_t tag, qp;

	(void)shared;
	if (!pattern_check(bytes, passive->plan.size_bytes, passive->plan.seed, &tag)) {
		passive->wrong++;
		return;
	}
	qp = tag >> PATTERN_COUNT_BITS;
	if (qp >= passive->plan.qps || tag != pattern_tag(qp, passive->expected[qp]++))
		passive->wrong++;
}

static int incast_serve_poll(struct passive *passive)
{
	return passive_receive(passive, passive->plan.verify ? incast_check_message : NULL);
}

const struct mode mode_incast = {
	.name = "incast",
	.help = "SEND of many queue pairs into one shared receive queue",
	.check = stream_check_plan,
	.shape = incast_shape,
	.begin = incast_begin,
	.poll = stream_poll,
	.stats = incast_stats,
	.qp_messages = stream_qp_messages,
	.end = stream_end,
	.serve_begin = incast_serve_begin,
	.serve_poll = incast_serve_poll,
	.serve_end = passive_count_messages,
};
