/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks at the end of a program: all of memory, the shared words, the states, and that no timer is
 * left. */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "sim.h"

/* An atomic on a shared word, and the value that it found there. */
struct turn {
	uint64_t original;
	uint64_t compare;
	uint64_t operand;
	bool used;
};

static uint64_t load(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Collect the atomics of all queue pairs on a word. The caller frees the list. */
static struct turn *collect(struct sim *sim, const struct word *word, size_t *count)
{
	struct turn *turns = calloc(4096, sizeof(*turns));

	sim_check(sim, turns != NULL, "out of memory");
	*count = 0;
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		const struct flow *flow = &sim->flow[i];

		for (uint32_t w = 0; w < flow->work_count; w++) {
			const struct work *work = &flow->works[w];
			const struct span *landing;

			if (work->word != word)
				continue;
			landing = &flow->spans[work->first_span];
			turns[(*count)++] = (struct turn){.original = load(span_actual(landing)),
							  .compare = work->compare,
							  .operand = work->operand};
			span_forgive(landing);
		}
	}
	return turns;
}

static int by_original(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->original < y->original ? -1 : x->original > y->original;
}

/* Each addition found the sum of those before it: none was lost or executed twice. */
static uint64_t check_sums(struct sim *sim, uint64_t initial, struct turn *turns, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		turns[i].original -= initial;
	qsort(turns, count, sizeof(turns[0]), by_original);
	for (size_t i = 0; i < count; i++) {
		sim_check(sim, turns[i].original == sum,
			  "shared sum: addition %zu found %llu, not %llu", i,
			  (unsigned long long)turns[i].original, (unsigned long long)sum);
		sum += turns[i].operand;
	}
	return initial + sum;
}

/* The swaps that found their compare value form one chain; each of the others found one of its
 * values. */
static uint64_t check_chain(struct sim *sim, uint64_t initial, struct turn *turns, size_t count)
{
	uint64_t value = initial;
	size_t i = 0;

	while (i < count) {
		struct turn *turn = &turns[i++];

		if (turn->used || turn->original != turn->compare || turn->original != value)
			continue;
		turn->used = true;
		value = turn->operand;
		i = 0;
	}
	for (i = 0; i < count; i++) {
		const bool swapped = turns[i].original == turns[i].compare;
		bool known = turns[i].original == initial;

		for (size_t j = 0; j < count && !known; j++)
			known = turns[j].used && turns[j].operand == turns[i].original;
		sim_check(sim, swapped == turns[i].used, "shared chain: swap %zu stands outside",
			  i);
		sim_check(sim, known, "shared chain: swap %zu found a value that nobody stored", i);
	}
	return value;
}

static void check_words(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->words; i++) {
		struct word *word = &sim->word[i];
		size_t count;
		struct turn *turns = collect(sim, word, &count);
		const uint64_t final = word->adds ? check_sums(sim, word->initial, turns, count)
						  : check_chain(sim, word->initial, turns, count);

		memcpy(span_expected(&word->span), &final, sizeof(final));
		free(turns);
	}
}

static void forgive_list(const struct flow *flow, uint32_t first, uint32_t spans)
{
	for (uint32_t i = 0; i < spans; i++)
		span_forgive(&flow->spans[first + i]);
}

/* Allow the changes that a failed work request may have made. */
static void forgive_work(struct flow *flow, const struct work *work)
{
	if (work_lands(work))
		forgive_list(flow, work->first_span, work->spans);
	if (work->root >= 0 && (work_writes(work) || work_is_atomic(work)))
		span_forgive(&work->remote);
	if (work->receive >= 0)
		forgive_list(flow, flow->receives[work->receive].first_span,
			     flow->receives[work->receive].spans);
}

void check_forgive(struct flow *flow, uint32_t first)
{
	/* deliver_check decides this for unreliable flows. */
	for (uint32_t w = first; w < flow->posted && flow_reliable(flow); w++)
		forgive_work(flow, &flow->works[w]);
}

static void forgive(struct flow *flow)
{
	if (flow->failed < 0 || !flow_reliable(flow))
		return;
	for (uint32_t w = (uint32_t)flow->failed; w < flow->posted; w++) {
		const struct work *work = &flow->works[w];

		if (flow_executes(flow, (int32_t)w))
			forgive_work(flow, work);
		/* The peer refuses a request before the request has any effect; a long READ is
		 * several requests. A receive request in use may be partly filled, and so may a
		 * request that our own side fails in the middle. */
		if ((int32_t)w == flow->mishap_at) {
			if (mishap_info(work->mishap)->peer_fails && work->root >= 0) {
				if (work_lands(work))
					forgive_list(flow, work->first_span, work->spans);
				continue;
			}
			forgive_work(flow, work);
		}
	}
}

static void check_mishap(struct flow *flow)
{
	const struct work *work = &flow->works[flow->mishap_at];
	const struct mishap_info *info = mishap_info(work->mishap);
	struct sim *sim = flow->sim;

	sim_check(sim, flow->failed >= 0, "flow %d: the mishap (%s) was not noticed", flow->number,
		  info->name);
	/*
	 * If the peer does not answer, the data that it sent before is still valid (IBTA 10.3.1.7).
	 */
	sim_check(sim,
		  qp_state(flow->from->qp) == (flow_reliable(flow) ? IBV_QPS_ERR : IBV_QPS_SQE),
		  "flow %d: the requester is in state %d after %s", flow->number,
		  (int)qp_state(flow->from->qp), info->name);
	if (!info->peer_fails || flow->failed != flow->mishap_at)
		return;
	sim_check(sim, qp_state(flow->to->qp) == IBV_QPS_ERR,
		  "flow %d: the responder is not in ERR after %s", flow->number, info->name);
	if (info->event >= 0)
		sim_check(sim, flow->to->events[info->event] == 1,
			  "flow %d: %u events of type %d after %s", flow->number,
			  flow->to->events[info->event], info->event, info->name);
	if (info->receiver != IBV_WC_SUCCESS)
		sim_check(sim, flow->receive_failed == work->receive,
			  "flow %d: receive %d did not fail after %s", flow->number, work->receive,
			  info->name);
}

/* Counters of broken promises stay 0, whatever the link does. */
static void check_counters(struct sim *sim, const struct host *host)
{
	static const enum counter zero[] = {COUNTER_cq_overrun, COUNTER_rx_wrong_gid,
					    COUNTER_rx_wrong_pkey, COUNTER_rx_wrong_qpn};
	bool damaged = false;

	for (unsigned int i = 0; i < sim->hosts; i++)
		damaged |= sim->link[i][host->number].fates[LINK_DAMAGED] > 0;
	for (unsigned int i = 0; i < sizeof(zero) / sizeof(zero[0]); i++) {
		const uint64_t n = device_counter(host->device, zero[i]);

		sim_check(sim, n == 0, "host %d: counter %s is %llu", host->number,
			  counter_name(zero[i]), (unsigned long long)n);
	}
	sim_check(sim, damaged || device_counter(host->device, COUNTER_rx_icrc_errors) == 0,
		  "host %d: ICRC errors without damage", host->number);
}

void check_quiet(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		const struct end *end = &sim->end[i];

		sim_check(sim, qp_deadline_ns(end->qp) == UINT64_MAX,
			  "qp %06x: a timer runs with nothing outstanding", end->qpn);
		sim_check(sim, !end->is_ready, "qp %06x: still ready", end->qpn);
	}
	for (unsigned int i = 0; i < sim->hosts; i++)
		check_counters(sim, &sim->host[i]);
}

static void check_memory(struct sim *sim, const struct host *host)
{
	const int64_t at = memory_compare(&host->memory);
	const struct region *region;

	if (at < 0)
		return;
	for (region = host->memory.regions; region != NULL; region = region->next) {
		if ((uint64_t)at >= region->offset && (uint64_t)at - region->offset < region->size)
			sim_fail(sim,
				 "host %d: memory is wrong at byte %llu of a region of %u, key %x",
				 host->number, (unsigned long long)at - region->offset,
				 region->size, region->key);
	}
	sim_fail(sim, "host %d: memory between regions is wrong, at byte %lld", host->number,
		 (long long)at);
}

void check_states(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct flow *flow = &sim->flow[i];

		if (flow->mishap_at >= 0)
			check_mishap(flow);
		else if (!flow->loose && flow->to->out->mishap_at < 0)
			sim_check(sim, qp_state(flow->from->qp) == IBV_QPS_RTS,
				  "flow %d: the requester is in state %d", flow->number,
				  (int)qp_state(flow->from->qp));
	}
}

static void check_gone(struct sim *sim)
{
	const struct region *gone = sim->gone;

	if (gone == NULL)
		return;
	sim_check(sim,
		  memcmp(gone->memory->actual + gone->offset, sim->gone_bytes, gone->size) == 0,
		  "memory was written that is no longer registered");
	free(sim->gone_bytes);
	sim->gone = NULL;
}

void check_end(struct sim *sim)
{
	check_gone(sim);
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		forgive(&sim->flow[i]);
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		deliver_check(&sim->flow[i]);
	check_words(sim);
	for (unsigned int i = 0; i < POOLS * sim->hosts; i++) {
		struct pool *pool = &sim->host[i / POOLS].pools[i % POOLS];

		if (pool->in_use)
			pool_forgive(pool);
	}
	for (unsigned int i = 0; i < sim->hosts; i++)
		check_memory(sim, &sim->host[i]);
}
