/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls the functions of roce.h for those of transport/cc.h, and lets the pacer obey what they
 * allow. */
#include "given_cc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "roce/roce.h"
#include "transport/cc.h"
#include "transport/pacer.h"

struct given_cc {
	const struct roce_cc_ops *ops;
	struct cc_ops called;  /* of the transport: those that `ops` has */
	struct roce_cc *state; /* ops->bytes */
};

static void obey(struct cc *cc, const struct roce_cc *state)
{
	cc->pacer->window = RTE_MAX(state->window_pkts, 1u);
	cc->rate_kbps = state->rate_kbps;
	cc->wait_ns = state->wait_ns;
	cc->timer_ns = state->timer_ns;
	cc_apply(cc);
}

static void start(struct cc *cc)
{
	struct given_cc *given = cc->given;

	memset(given->state, 0, given->ops->bytes);
	*given->state = (struct roce_cc){
		.link_kbps = cc->link_kbps, .window_pkts = UINT32_MAX, .timer_ns = UINT64_MAX};
	if (given->ops->start)
		given->ops->start(given->state);
	obey(cc, given->state);
}

static void poll(struct cc *cc, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	given->ops->poll(given->state, now_ns);
	obey(cc, given->state);
}

static void sent(struct cc *cc, uint32_t bytes, uint32_t psns, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	given->ops->sent(given->state, bytes, psns, now_ns);
	obey(cc, given->state);
}

/* The transport calls it for each algorithm that times. */
static void answered(struct cc *cc, uint64_t rtt_ns, uint32_t psns, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	if (given->ops->answered)
		given->ops->answered(given->state, rtt_ns, psns, now_ns);
	obey(cc, given->state);
}

static void lost(struct cc *cc, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	given->ops->lost(given->state, now_ns);
	obey(cc, given->state);
}

static bool notified(struct cc *cc, uint64_t now_ns)
{
	struct given_cc *given = cc->given;

	given->ops->notified(given->state, now_ns);
	obey(cc, given->state);
	return true;
}

int given_cc_create(const struct roce_cc_ops *ops, struct cc_attr *attr, struct given_cc **created)
{
	struct given_cc *given;

	if (ops->bytes < sizeof(struct roce_cc))
		return -EINVAL;
	given = calloc(1, sizeof(*given));
	if (!given)
		return -ENOMEM;
	given->state = calloc(1, ops->bytes);
	if (!given->state) {
		free(given);
		return -ENOMEM;
	}
	given->ops = ops;
	given->called = (struct cc_ops){
		.marks = ops->marks,
		.times = ops->times,
		.start = start,
		.poll = ops->poll ? poll : NULL,
		.sent = ops->sent ? sent : NULL,
		.answered = answered,
		.lost = ops->lost ? lost : NULL,
		.notified = ops->notified ? notified : NULL,
	};
	attr->kind = CC_GIVEN;
	attr->given = &given->called;
	attr->given_state = given;
	*created = given;
	return 0;
}

void given_cc_destroy(struct given_cc *given)
{
	if (!given)
		return;
	free(given->state);
	free(given);
}
