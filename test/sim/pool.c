/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared receive queue of a host. */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "queue/srq.h"
#include "sim.h"

#define SURPLUS_MAX 8
#define SGE_MAX	    32

static void *allocate(struct sim *sim, size_t count, size_t size)
{
	void *p = calloc(count + 1, size);

	sim_check(sim, p != NULL, "out of memory");
	return p;
}

/* Room for the longest message that any peer sends. */
static uint32_t longest(const struct host *host, uint32_t *messages)
{
	const struct sim *sim = host->sim;
	uint32_t room = 0;

	*messages = 0;
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		const struct flow *flow = &sim->flow[i];

		for (uint32_t w = 0; w < flow->work_count && flow->to->host == host; w++) {
			*messages += flow->works[w].receive >= 0;
			if (flow->works[w].receive >= 0 && flow->works[w].length > room)
				room = flow->works[w].length;
		}
	}
	return room;
}

void pool_make(struct host *host)
{
	struct pool *pool = &host->pool;
	struct rng *rng = &host->rng;
	uint32_t pieces[SGE_MAX], room;

	room = longest(host, &pool->count);
	pool->count += (uint32_t)rng_below(rng, SURPLUS_MAX + 1);
	pool->max_wr = (uint32_t)rng_range(rng, 1, 64);
	pool->max_sge = (uint32_t)rng_range(rng, 1, rng_chance(rng, 500000) ? SGE_MAX : 4);
	pool->gap_ns = rng_chance(rng, 300000) ? rng_range(rng, 1, 500000) : 0;
	pool->limit = (uint32_t)rng_below(rng, pool->max_wr + 1);
	pool->inbox = memory_add_region(&host->memory, IBV_ACCESS_LOCAL_WRITE);
	pool->receives = allocate(host->sim, pool->count, sizeof(*pool->receives));
	pool->spans =
		allocate(host->sim, (size_t)pool->count * pool->max_sge, sizeof(*pool->spans));
	pool->taken = allocate(host->sim, pool->count, sizeof(*pool->taken));
	for (uint32_t i = 0; i < pool->count; i++) {
		struct receive *receive = &pool->receives[i];

		receive->room = room + (uint32_t)rng_below(rng, 100);
		receive->first_span = i * pool->max_sge;
		receive->spans = flow_cut(rng, receive->room, pool->max_sge, pieces);
		for (uint32_t k = 0; k < receive->spans; k++) {
			if (pieces[k] > 0)
				pool->spans[receive->first_span + k] =
					region_take(pool->inbox, pieces[k], 1, rng);
		}
	}
}

void pool_free(struct host *host)
{
	free(host->pool.receives);
	free(host->pool.spans);
	free(host->pool.taken);
	host->pool = (struct pool){0};
}

/* In the middle of a turn: what it counts may be behind, not ahead. */
static void pool_low(void *user)
{
	struct host *host = user;
	struct pool *pool = &host->pool;

	sim_check(host->sim, pool->limit > 0 && !pool->low, "host %d: limit event not asked for",
		  host->number);
	pool->low = true;
}

void pool_start(struct host *host)
{
	struct pool *pool = &host->pool;

	sim_check(host->sim, srq_create(pool->max_wr, pool->max_sge, host->pd, &pool->srq) == 0,
		  "srq_create");
	pool->srq->low = pool_low;
	pool->srq->user = host;
	while (pool->gap_ns == 0 && pool_post(host))
		continue;
	/* Armed only where it is not due at once. */
	if (pool->limit > pool->posted)
		pool->limit = 0;
	if (pool->limit > 0)
		sim_check(host->sim, srq_set_limit(pool->srq, pool->limit) == 0, "srq_set_limit");
}

void pool_stop(struct host *host)
{
	sim_check(host->sim, srq_destroy(host->pool.srq) == 0, "host %d: srq_destroy",
		  host->number);
}

bool pool_post(struct host *host)
{
	const uint64_t now_ns = host->clock->now_ns;
	struct pool *pool = &host->pool;
	struct ibv_sge sge[SGE_MAX];
	struct ibv_recv_wr wr = {.sg_list = sge}, *bad;
	const struct receive *receive = &pool->receives[pool->posted];

	if (pool->posted == pool->count || pool->posted - pool->complete == pool->max_wr ||
	    now_ns < pool->next_ns)
		return false;
	if (pool->gap_ns > 0)
		pool->next_ns = now_ns + rng_range(&host->rng, 1, pool->gap_ns);
	for (uint32_t i = 0; i < receive->spans; i++)
		sge[i] = post_entry(&pool->spans[receive->first_span + i]);
	wr.num_sge = (int)receive->spans;
	wr.wr_id = check_id(POOL_FLOW + (unsigned int)host->number, true, pool->posted);
	sim_check(host->sim, rq_post(&pool->srq->rq, &wr, &bad) == 0, "host %d: post_srq_recv",
		  host->number);
	pool->posted++;
	return true;
}

static struct flow *flow_to(const struct host *host, uint32_t qpn)
{
	struct sim *sim = host->sim;

	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		if (sim->end[i].host == host && sim->end[i].qpn == qpn)
			return sim->end[i].in;
	}
	return NULL;
}

bool pool_complete(struct host *host, uint32_t index, const struct ibv_wc *wc)
{
	struct flow *flow = flow_to(host, wc->qp_num);
	struct pool *pool = &host->pool;
	struct receive *receive;
	const struct work *work;

	sim_check(host->sim, flow != NULL && index < pool->posted && !pool->taken[index],
		  "host %d: shared receive %u completes at qp %06x", host->number, index,
		  wc->qp_num);
	sim_check(host->sim, wc->status == IBV_WC_SUCCESS && flow->received < flow->consumed_count,
		  "flow %d: shared receive %u: %s", flow->number, index, status_text(wc->status));
	pool->taken[index] = true;
	pool->complete++;
	/* The flow's next message is in this request's memory: from here on as if it were its own.
	 */
	receive = &flow->receives[flow->received];
	receive->first_span = flow->span_count;
	receive->spans = pool->receives[index].spans;
	for (uint32_t i = 0; i < receive->spans; i++)
		flow_add_span(flow, pool->spans[pool->receives[index].first_span + i]);
	work = &flow->works[receive->work];
	if (work->bytes != NULL)
		model_scatter(flow, receive, work->bytes, work->length);
	flow->receives_posted++;
	check_receive(flow, flow->received, wc);
	return work->flags & IBV_SEND_SOLICITED;
}

void pool_check(struct host *host)
{
	const struct pool *pool = &host->pool;
	const uint32_t left = pool->posted - pool->complete;

	/* What is left only grows when something is posted, and that is over. */
	if (pool->limit > 0 && left < pool->limit)
		sim_check(host->sim, pool->low, "host %d: %u receives left, and no event below %u",
			  host->number, left, pool->limit);
}
