/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a plan that its threads get. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <rte_common.h>

#include "endpoint.h"
#include "mode.h"
#include "plan.h"

/* Return how many of `count` things a thread gets, which are dealt to the threads in turn. */
static uint64_t dealt(const struct plan *plan, uint64_t count, uint64_t thread)
{
	return count / plan->threads + (thread < count % plan->threads);
}

static uint64_t share_region(const struct plan *plan, uint64_t qps)
{
	const uint64_t whole = plan->region_bytes == 0 && plan->mode == MODE_STORAGE
				       ? PLAN_DISK_DEFAULT
				       : plan->region_bytes;

	return whole == 0 ? 0 : RTE_MAX(whole / plan->qps * qps, (uint64_t)1);
}

/*
 * The queue pairs are dealt to the threads, and each keeps the messages that it has in a test of
 * one thread: some queue pairs, the first ones, have one message more than the others. The seeds
 * differ, so a message that arrives at the wrong thread is found to be wrong.
 */
void plan_share(const struct plan *plan, uint64_t thread, struct plan *share)
{
	*share = *plan;
	if (plan->threads <= 1)
		return;
	share->threads = 1;
	share->qps = dealt(plan, plan->qps, thread);
	share->messages = plan->messages / plan->qps * share->qps +
			  dealt(plan, plan->messages % plan->qps, thread);
	share->region_bytes = share_region(plan, share->qps);
	share->spread_bytes = plan->spread_bytes / plan->qps * share->qps;
	share->seed = plan->seed + thread;
}

/* Return the larger region of the two sides. The mode computes both. */
static uint64_t share_memory(const struct plan *share)
{
	struct endpoint_config active = {.qps = (uint32_t)share->qps}, passive = active;

	modes[share->mode]->shape(share, &active, &passive);
	return RTE_MAX(active.region_bytes, passive.region_bytes);
}

int plan_check_shares(const struct plan *plan, char *error, size_t error_size)
{
	uint64_t bytes = 0;
	struct plan share;
	int rc = 0;

	if (plan->threads > plan->qps || (plan->messages > 0 && plan->messages < plan->threads)) {
		snprintf(error, error_size,
			 "%" PRIu64 " threads need at least as many queue pairs and messages",
			 plan->threads);
		return -EINVAL;
	}
	for (uint64_t thread = 0; rc == 0 && thread < plan->threads; thread++) {
		plan_share(plan, thread, &share);
		bytes += share_memory(&share);
		if (bytes > PLAN_REGION_MAX) {
			snprintf(error, error_size,
				 "size, qps, depth and region together take more than %d GiB",
				 (int)(PLAN_REGION_MAX >> 30));
			return -EINVAL;
		}
		rc = modes[share.mode]->check(&share, error, error_size);
	}
	return rc;
}
