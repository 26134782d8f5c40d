/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared receive queue of a host: its requests, and which message each must receive. */
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/device_share.h"
#include "queue/srq.h"
#include "sim.h"

#define SURPLUS_MAX 8
#define SGE_MAX	    32
#define REPEATS_MAX 40 /* messages that are repeated, of a flow with few works */

static void *allocate(struct sim *sim, size_t count, size_t size)
{
	void *p = calloc(count + 1, size);

	sim_check(sim, p != NULL, "out of memory");
	return p;
}

/* Return how many messages of a flow may be repeated. */
static uint32_t repeats(const struct flow *flow)
{
	return flow->work_count > 2 * WORKS_USUAL ? REPEATS_MAX + flow->work_count : REPEATS_MAX;
}

static uint32_t group_works(const struct sim *sim)
{
	uint32_t works = 0;

	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		works += sim->flow[i].group ? sim->flow[i].work_count + repeats(&sim->flow[i]) : 0;
	return works;
}

/* Return the room for the longest message that any peer sends, and the number of messages. */
static uint32_t longest(const struct pool *pool, uint32_t *messages)
{
	const struct sim *sim = pool->host->sim;
	uint32_t room = 0;

	*messages = 0;
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		const struct flow *flow = &sim->flow[i];

		for (uint32_t w = 0; w < flow->work_count && flow->pool == pool; w++) {
			*messages += flow->works[w].receive >= 0;
			if (flow->works[w].receive >= 0 && flow->works[w].length > room)
				room = flow->works[w].length;
		}
		/* Repeated messages consume requests too, and so do messages to the group. */
		if (flow->pool == pool && !flow_reliable(flow))
			*messages += repeats(flow);
		if (flow->pool == pool && flow->to->in_group)
			*messages += group_works(sim);
	}
	return room + SIM_GRH_BYTES;
}

void pool_make(struct pool *pool)
{
	struct host *host = pool->host;
	struct rng *rng = &host->rng;
	uint32_t pieces[SGE_MAX], room;

	room = longest(pool, &pool->count);
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

void pool_free(struct pool *pool)
{
	free(pool->receives);
	free(pool->spans);
	free(pool->taken);
	*pool = (struct pool){0};
}

/* The limit event. In the middle of an engine poll the model's count may be behind, so only check
 * that an event was asked for. */
static void pool_low(void *user)
{
	struct pool *pool = user;

	sim_check(pool->host->sim, pool->limit > 0 && !pool->low,
		  "host %d: limit event not asked for", pool->host->number);
	pool->low = true;
}

/* XRC: the queue has a number in a domain, and its own completion queue. */
static void join_domain(struct pool *pool)
{
	struct host *host = pool->host;
	struct device *device = host->device;

	pool->srq->cq = host->cqs[rng_below(&host->rng, host->cq_count)].cq;
	sim_check(host->sim, xrcd_open(device, -1, O_CREAT, &host->xrcd) == 0, "xrcd_open");
	device_lock(device);
	device_share_xrc(device, pool->srq);
	sim_check(host->sim, xrcd_add_srq(host->xrcd, pool->srq) == 0, "xrcd_add_srq");
	device_unlock(device);
}

void pool_start(struct pool *pool)
{
	struct host *host = pool->host;

	sim_check(host->sim,
		  srq_create_in(&host->rings.domain, pool->max_wr, pool->max_sge, host->pd,
				&pool->srq) == 0,
		  "srq_create_in");
	pool->home = NULL;
	if (pool->kind == POOL_XRC)
		join_domain(pool);
	pool->srq->low = pool_low;
	pool->srq->user = pool;
	while (pool->gap_ns == 0 && pool_post(pool))
		continue;
	/* Arm the event only if it is not due at once. */
	if (pool->limit > pool->posted)
		pool->limit = 0;
	if (pool->limit > 0)
		sim_check(host->sim, srq_set_limit(pool->srq, pool->limit) == 0, "srq_set_limit");
}

void pool_stop(struct pool *pool)
{
	struct host *host = pool->host;
	struct device *device = host->device;

	if (pool->kind == POOL_XRC) {
		device_lock(device);
		xrcd_remove_srq(host->xrcd, pool->srq);
		device_unlock(device);
		xrcd_close(host->xrcd);
	}
	sim_check(host->sim, srq_destroy(pool->srq) == 0, "host %d: srq_destroy", host->number);
}

bool pool_post(struct pool *pool)
{
	struct host *host = pool->host;
	const uint64_t now_ns = host->clock->now_ns;
	struct ibv_sge sge[SGE_MAX];
	struct ibv_recv_wr wr = {.sg_list = sge}, *bad;
	const struct receive *receive = &pool->receives[pool->posted];
	int err;

	if (pool->posted == pool->count || now_ns < pool->next_ns)
		return false;
	if (pool->gap_ns > 0)
		pool->next_ns = now_ns + rng_range(&host->rng, 1, pool->gap_ns);
	for (uint32_t i = 0; i < receive->spans; i++)
		sge[i] = post_entry(&pool->spans[receive->first_span + i]);
	wr.num_sge = (int)receive->spans;
	wr.wr_id = check_id(POOL_FLOW + POOLS * (unsigned int)host->number + pool->kind, true,
			    pool->posted);
	err = rq_post(&pool->srq->rq, &wr, &bad);
	/* The queue is full only if max_wr requests are not complete. */
	sim_check(host->sim,
		  err == 0 || (err == ENOMEM && pool->posted - pool->complete >= pool->max_wr),
		  "host %d: post_srq_recv: %s", host->number, strerror(err));
	if (err != 0)
		return false;
	pool->posted++;
	return true;
}

static struct flow *flow_to(const struct pool *pool, uint32_t qpn)
{
	struct sim *sim = pool->host->sim;

	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct flow *flow = &sim->flow[i];

		if (flow->pool == pool && flow->to->qpn == qpn)
			return flow;
	}
	return NULL;
}

/* Treat the request as the flow's own from here on: the flow's next message is in its memory. */
static const struct work *adopt(const struct pool *pool, uint32_t index, struct flow *flow,
				bool whole)
{
	struct receive *receive = &flow->receives[flow->received];
	const struct work *work = &flow->works[receive->work];

	receive->first_span = flow->span_count;
	receive->spans = pool->receives[index].spans;
	for (uint32_t i = 0; i < receive->spans; i++)
		flow_add_span(flow, pool->spans[pool->receives[index].first_span + i]);
	if (whole && work->bytes != NULL)
		model_scatter(flow, receive, work->bytes, work->length);
	flow->receives_posted++;
	return work;
}

static void forgive(const struct pool *pool, uint32_t index)
{
	for (uint32_t i = 0; i < pool->receives[index].spans; i++)
		span_forgive(&pool->spans[pool->receives[index].first_span + i]);
}

static bool complete_unreliable(const struct pool *pool, uint32_t index, struct flow *flow,
				const struct ibv_wc *wc)
{
	struct sim *sim = pool->host->sim;
	const struct receive *receive = &pool->receives[index];

	if (wc->status == IBV_WC_SUCCESS)
		return deliver(flow, &pool->spans[receive->first_span], receive->spans, wc);
	/* The request belonged to a message that never became complete. */
	sim_check(sim,
		  wc->status == IBV_WC_WR_FLUSH_ERR &&
			  (sim->flushing || flow->loose || flow->mishap_at >= 0),
		  "flow %d: shared receive %u: %s", flow->number, index, status_text(wc->status));
	forgive(pool, index);
	return true;
}

bool pool_complete(struct pool *pool, uint32_t index, const struct ibv_wc *wc)
{
	struct flow *flow = flow_to(pool, wc->qp_num);
	struct host *host = pool->host;
	const struct work *work;

	sim_check(host->sim, flow != NULL && index < pool->posted && !pool->taken[index],
		  "host %d: shared receive %u completes at qp %06x", host->number, index,
		  wc->qp_num);
	pool->taken[index] = true;
	pool->complete++;
	if (!flow_reliable(flow))
		return complete_unreliable(pool, index, flow, wc);
	sim_check(host->sim, flow->received < flow->consumed_count,
		  "flow %d: shared receive %u: %s", flow->number, index, status_text(wc->status));
	work = adopt(pool, index, flow, wc->status == IBV_WC_SUCCESS);
	check_receive(flow, flow->received, wc);
	if (wc->status != IBV_WC_SUCCESS)
		forgive(pool, index);
	return wc->status != IBV_WC_SUCCESS || (work->flags & IBV_SEND_SOLICITED);
}

void pool_check(struct pool *pool)
{
	const uint32_t left = pool->posted - pool->complete;

	/* At the end no requests are posted any more, so their number does not grow again. */
	if (pool->limit > 0 && left < pool->limit)
		sim_check(pool->host->sim, pool->low,
			  "host %d: %u receives left, and no event below %u", pool->host->number,
			  left, pool->limit);
}

void pool_forgive(struct pool *pool)
{
	const struct sim *sim = pool->host->sim;
	bool broken = sim->scenario != SCENARIO_SOUND;

	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		broken |= sim->flow[i].pool == pool && !flow_reliable(&sim->flow[i]);
	for (uint32_t i = 0; broken && i < pool->posted; i++) {
		if (!pool->taken[i])
			forgive(pool, i);
	}
}
