/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one program from its seed: start, events in the middle, end, and cleanup. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "device/device.h"
#include "entropy.h"
#include "sim_inside.h"
#include "mem/mr.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "sim.h"

/* events without any completion before the run counts as a livelock */
#define EVENTS_MAX 20000000ull

static void link_cut(struct sim *sim, const struct host *a, const struct host *b)
{
	sim->link[a->number][b->number].cut = true;
	sim->link[b->number][a->number].cut = true;
}

/* From now on these bytes belong to the application again: nobody may access them. */
static void remember(struct sim *sim, struct region *region)
{
	sim->gone = region;
	sim->gone_bytes = malloc(region->size);
	sim_check(sim, sim->gone_bytes != NULL, "out of memory");
	memcpy(sim->gone_bytes, region->memory->actual + region->offset, region->size);
}

static void deregister(struct sim *sim, struct region *region)
{
	struct device *device = sim->victim->host->device;

	remember(sim, region);
	device_lock(device);
	mr_deregister(region->mr);
	device_unlock(device);
	region->mr = NULL;
}

/* The region stays; the memory under it does not. */
static void take_away(struct sim *sim, struct region *region)
{
	remember(sim, region);
	memory_take_away(region);
}

static void strike(void *context, void *argument)
{
	struct sim *sim = context;
	struct end *victim = sim->victim;

	(void)argument;
	if (sim->draining)
		return;
	if (sim->scenario == SCENARIO_CUT)
		link_cut(sim, victim->host, victim->peer->host);
	else if (sim->scenario == SCENARIO_GONE)
		deregister(sim, victim->in->target[rng_below(&sim->rng, 2)]);
	else if (sim->scenario == SCENARIO_LOST)
		take_away(sim, sim->lost);
	else if (qp_state(victim->qp) != IBV_QPS_ERR)
		connect_modify(victim, IBV_QPS_ERR);
}

static void resume(void *context, void *argument)
{
	struct end *end = context;

	(void)argument;
	if (qp_state(end->qp) != IBV_QPS_SQD)
		return;
	end->paused = false;
	connect_modify(end, IBV_QPS_RTS);
}

void pause_drained(struct end *end)
{
	struct sim *sim = end->host->sim;

	sim_check(sim, end->paused, "qp %06x: drained, but not asked to", end->qpn);
	clock_at(&sim->clock, sim->clock.now_ns + rng_below(&sim->rng, 100000), resume, end, NULL);
}

static void pause(void *context, void *argument)
{
	struct end *end = context;

	(void)argument;
	if (end->host->sim->halted || app_finished(end->host->sim) ||
	    qp_state(end->qp) != IBV_QPS_RTS)
		return;
	end->paused = true;
	connect_modify(end, IBV_QPS_SQD);
}

static void plan_pauses(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		if (sim->scenario == SCENARIO_SOUND && rng_chance(&sim->rng, 100000))
			clock_at(&sim->clock, sim->clock.now_ns + rng_below(&sim->rng, sim->est_ns),
				 pause, &sim->end[i], NULL);
	}
}

static void start(struct sim *sim)
{
	uint32_t cqe = 16;

	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		cqe += sim->flow[i].work_count + sim->flow[i].receive_count;
	for (unsigned int i = 0; i < sim->hosts; i++) {
		struct host *host = &sim->host[i];

		host_start(host, cqe);
		memory_register(&host->memory, host->pd, &host->rng);
		for (unsigned int k = 0; k < POOLS; k++) {
			if (host->pools[k].in_use)
				pool_start(&host->pools[k]);
		}
	}
	for (unsigned int i = 0; i < sim->words; i++) {
		memcpy(&sim->word[i].initial, span_actual(&sim->word[i].span), 8);
		sim->word[i].seen = sim->word[i].initial;
	}
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		window_start(&sim->flow[i]);
	connect_create_all(sim);
}

static void step(struct sim *sim, uint64_t *events)
{
	const uint64_t progress_ns = sim->progress_ns;

	sim_check(sim, clock_step(&sim->clock),
		  "nothing happens any more, and work is outstanding");
	*events = progress_ns == sim->progress_ns ? *events + 1 : 0;
	sim_check(sim, sim->clock.now_ns - sim->progress_ns < SIM_PATIENCE_NS,
		  "nothing became complete for %llu s", SIM_PATIENCE_NS / 1000000000);
	sim_check(sim, *events < EVENTS_MAX, "much happens, and nothing becomes complete");
}

static void rest(struct sim *sim)
{
	uint64_t events = 0;

	while (sim->clock.count > 0)
		step(sim, &events);
	for (unsigned int i = 0; i < sim->hosts; i++)
		app_poll(&sim->host[i]);
}

/* End a program in one of several ways. Posted requests are flushed only if the queue pair goes to
 * ERR. */
static void tear_down(struct sim *sim)
{
	uint32_t received[2 * SIM_PAIRS_MAX];

	sim->flushing = true;
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct end *end = &sim->end[i];
		const enum ibv_qp_state to =
			rng_chance(&sim->rng, 700000) ? IBV_QPS_ERR : IBV_QPS_RESET;

		received[i] = end->in->received;
		connect_modify(end, to);
	}
	sim->progress_ns = sim->clock.now_ns;
	rest(sim);
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		const struct flow *flow = sim->end[i].in;

		if (qp_state(sim->end[i].qp) == IBV_QPS_ERR)
			sim_check(sim, flow->received == flow->receives_posted,
				  "flow %d: receive %u was not flushed", flow->number,
				  flow->received);
		else
			sim_check(sim, flow->received == received[i],
				  "flow %d: RESET completed a receive", flow->number);
	}
}

static void stop(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		connect_destroy(&sim->end[i]);
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		window_stop(&sim->flow[i]);
	for (unsigned int i = 0; i < sim->hosts; i++)
		host_stop(&sim->host[i]);
	forge_free(sim);
	program_free(sim);
}

/* Choose how many requests run before the queue pairs are reset. */
static void set_limits(struct sim *sim, bool all)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct flow *flow = &sim->flow[i];

		flow->limit = all ? flow->work_count : flow->work_count / 2;
		flow->receive_limit = 0;
		for (uint32_t w = 0; w < flow->limit; w++)
			flow->receive_limit += flow->works[w].receive >= 0;
	}
}

static void maybe_strike(struct sim *sim)
{
	if (sim->struck_ns != 0 || sim->works_closed < sim->strike_after ||
	    sim->scenario == SCENARIO_SOUND || sim->scenario == SCENARIO_MISHAP)
		return;
	/* Usually it happens soon, because most programs are short. */
	sim->struck_ns = sim->clock.now_ns +
			 rng_below(&sim->rng, 1 + (sim->est_ns >> rng_below(&sim->rng, 8)));
	clock_at(&sim->clock, sim->struck_ns, strike, sim, NULL);
}

static void check_pools(struct host *host)
{
	for (unsigned int i = 0; i < POOLS; i++) {
		if (host->pools[i].in_use)
			pool_check(&host->pools[i]);
	}
}

/*
 * The applications pause until all requests are executed and the links are empty: no packet may
 * survive the jump of PSNs. Then they continue with aged queue pairs.
 */
static void grow_old(struct sim *sim)
{
	uint64_t events = 0;

	sim->holding = true;
	while (!age_is_quiet(sim))
		step(sim, &events);
	sim->halted = true;
	sim->progress_ns = sim->clock.now_ns;
	rest(sim);
	check_quiet(sim);
	age_pairs(sim);
	sim->age_after = sim->works_closed + 1 + rng_below(&sim->age_rng, 4 * WORKS_USUAL);
	sim->holding = false;
	sim->halted = false;
	app_start(sim);
}

static void play(struct sim *sim, bool first)
{

	uint64_t events = 0;

	sim->draining = false;
	sim->halted = false;
	connect_all(sim);
	age_pairs(sim);
	plan_pauses(sim);
	app_start(sim);
	while (!app_finished(sim)) {
		step(sim, &events);
		maybe_strike(sim);
		if (first && sim->abrupt && sim->works_closed >= sim->strike_after) {
			sim->halted = true;
			return;
		}
		if (sim->variant.age != 0 && sim->works_closed >= sim->age_after &&
		    age_is_connected(sim))
			grow_old(sim);
	}
	sim->draining = true;
	rest(sim);
	check_quiet(sim);
	check_states(sim);
	for (unsigned int i = 0; i < sim->hosts; i++)
		check_pools(&sim->host[i]);
}

/* Requests that are posted and not complete never will be. The requests behind them continue with
 * new receives. */
static void forget(struct flow *flow)
{
	check_forgive(flow, flow->closed);
	flow->closed = flow->posted;
	flow->unsignaled = 0;
	flow->newest = (int32_t)flow->posted - 1;
	/* Nobody knows which of its receive requests were used. */
	if (!flow_reliable(flow)) {
		flow->receives_posted = flow->received;
		return;
	}
	flow->received = 0;
	for (uint32_t w = 0; w < flow->posted; w++)
		flow->received += flow->works[w].receive >= 0;
	flow->receives_posted = flow->received;
}

static void reset_all(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct end *end = &sim->end[i];

		end->newest_psn = inside_top(end->qp);
		connect_modify(end, IBV_QPS_RESET);
		end->unconnected = false;
		end->paused = false;
		end->sq_psn = (uint32_t)rng_below(&sim->rng, 1u << 24);
		end->events[IBV_EVENT_COMM_EST] = 0;
	}
	forge_reset(sim);
	/* Wait until no packet of the old connections is in flight. */
	sim->draining = true;
	sim->progress_ns = sim->clock.now_ns;
	rest(sim);
	check_quiet(sim);
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		forget(&sim->flow[i]);
}

void sim_run(struct sim *sim)
{
	sim->rng = rng_fork(sim->seed, 0);
	entropy_seed(sim->seed);
	sim->age_rng = rng_fork(sim->seed, 501);
	sim->age_after = rng_below(&sim->age_rng, 2 * WORKS_USUAL);
	sim->forge_rng = rng_fork(sim->seed, 502);
	sim->second = false;
	sim->holding = false;
	sim->clock = (struct clock){.now_ns = 1000};
	sim->flushing = false;
	sim->gone = NULL;
	sim->works_closed = 0;
	sim->progress_ns = sim->clock.now_ns;
	program_make(sim);
	if (sim->verbose)
		sim_dump(sim);
	start(sim);
	if (sim->twice) {
		set_limits(sim, false);
		play(sim, true);
		reset_all(sim);
	}
	set_limits(sim, true);
	play(sim, false);
	forge_check(sim);
	tear_down(sim);
	if (sim->scenario == SCENARIO_LOST)
		memory_give_back(sim->lost->memory);
	check_end(sim);
	stop(sim);
	sim->stats_programs++;
}
