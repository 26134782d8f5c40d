/* SPDX-License-Identifier: BSD-3-Clause */
/* The applications: when they poll, what wakes them, and when they are done. */
#include "queue/channel.h"
#include "queue/cq.h"
#include "sim.h"

#define POLL_MAX	16
#define LOOK_LONGEST_NS 1000000

/* Longest time between a poll and the arming that follows it. */
#define AWAKE_LONGEST_NS 20000

/* Take all completions. Return how many, and how many of them wake a waiter for solicited ones. */
static unsigned int poll_cq(struct host_cq *cq, unsigned int *solicited)
{
	struct host *host = cq->host;
	struct ibv_wc wc[POLL_MAX];
	unsigned int total = 0;
	int n;

	do {
		const uint32_t first = cq->cq->cons;

		n = cq_poll(cq->cq, (int)rng_range(&host->rng, 1, POLL_MAX), wc);
		sim_check(host->sim, n >= 0 && n <= POLL_MAX, "host %d: poll returned %d",
			  host->number, n);
		for (int i = 0; i < n; i++) {
			const unsigned int wakes = check_completion(host, &wc[i]);

			*solicited += wakes;
			if ((int32_t)(first + (uint32_t)i - cq->unreported) >= 0)
				cq->newer += wakes;
		}
		total += (unsigned int)n;
	} while (n > 0);
	return total;
}

/* Fail if a solicited completion, or an error, raised no event. */
static void check_unwoken(struct host_cq *cq, unsigned int solicited)
{
	sim_check(cq->host->sim,
		  cq->host->pace.wakes != WAKES_SOLICITED || solicited == 0 || cq->is_awake,
		  "host %d: %u solicited completions, and no event", cq->host->number, solicited);
}

/* The ways in which an application that was woken prepares its next sleep. */
enum order {
	ARM_THEN_POLL,
	POLL_THEN_ARM,
	POLL_AND_ARM_LATER, /* completions come in between */
	ORDERS,
};

/* Arm the queue. The event must come at once if, and only if, it holds what the arming asks for and
 * no event has reported. */
static void arm(struct host_cq *cq)
{
	const uint32_t waiting = cq->cq->prod - cq->cq->cons;
	const uint32_t reported = cq->cq->reported - cq->cq->cons;
	const uint32_t first = reported <= waiting ? cq->cq->reported : cq->cq->cons;
	const uint32_t raised = cq->cq->source.pending;
	const bool none = first == cq->cq->prod;

	cq->unreported = first;
	cq->newer = 0;
	cq_arm(cq->cq, cq->host->pace.wakes == WAKES_SOLICITED);
	cq->early = cq->cq->source.pending != raised;
	cq->is_awake = false;
	if (cq->host->pace.wakes == WAKES_ANY || none)
		sim_check(cq->host->sim, cq->early == !none,
			  "host %d: a queue is armed, all of it is %sreported, and it has %s event",
			  cq->host->number, none ? "" : "not ", cq->early ? "an" : "no");
}

static void arm_later(void *context, void *argument)
{
	struct host_cq *cq = context;

	(void)argument;
	arm(cq);
	app_wake(cq->host);
}

/* Poll and arm the queue. Return how many completions the event reported, as above. */
static unsigned int sleep_again(struct host_cq *cq, unsigned int *solicited)
{
	struct host *host = cq->host;
	unsigned int n;

	switch ((enum order)rng_below(&host->wake_rng, ORDERS)) {
	case ARM_THEN_POLL:
		arm(cq);
		n = poll_cq(cq, solicited);
		/* RESET removes solicited completions, and the queue no longer knows which ones. */
		sim_check(host->sim,
			  host->pace.wakes != WAKES_SOLICITED || host->sim->halted ||
				  cq->early == (cq->newer > 0),
			  "host %d: %u new solicited completions in a queue that was armed, and %s "
			  "event",
			  host->number, cq->newer, cq->early ? "an" : "no");
		return n;
	case POLL_THEN_ARM:
		n = poll_cq(cq, solicited);
		arm(cq);
		return n;
	default:
		n = poll_cq(cq, solicited);
		cq->is_awake = true;
		clock_at(&host->sim->clock,
			 host->sim->clock.now_ns + rng_range(&host->wake_rng, 1, AWAKE_LONGEST_NS),
			 arm_later, cq, NULL);
		return n;
	}
}

static void wake(struct host_cq *cq)
{
	const bool solicited_only = cq->host->pace.wakes == WAKES_SOLICITED;
	const bool early = cq->early;
	unsigned int solicited = 0, n;

	n = sleep_again(cq, &solicited);
	/* RESET removes completions for which events were raised. What an event of an arming
	 * reports may have been polled directly after it. */
	sim_check(cq->host->sim,
		  (solicited_only ? solicited : n) > 0 || early || cq->host->sim->halted,
		  "host %d: an event for nothing", cq->host->number);
}

/* Fail if completions wait in a queue of an application that sleeps for any. */
static void check_woken(const struct host *host)
{
	if (host->pace.wakes != WAKES_ANY)
		return;
	for (unsigned int i = 0; i < host->cq_count; i++)
		sim_check(host->sim, cq_empty(host->cqs[i].cq) || host->cqs[i].is_awake,
			  "host %d: completions, and no event", host->number);
}

static void read_events(struct host *host)
{
	void *object;
	int code;

	if (host->pace.wakes == WAKES_NEVER)
		return;
	while (channel_read(&host->channel, &object, &code) == 0)
		wake(object);
	check_woken(host);
}

unsigned int app_poll(struct host *host)
{
	unsigned int n = 0;

	read_events(host);
	for (unsigned int i = 0; i < host->cq_count; i++) {
		unsigned int solicited = 0;

		n += poll_cq(&host->cqs[i], &solicited);
		check_unwoken(&host->cqs[i], solicited);
	}
	return n;
}

void app_wake(struct host *host)
{
	/* Most engine polls raise no event, and reading the descriptor costs as much as a packet,
	 * so skip it in most engine polls. app_poll reads it in any case. */
	if (!TAILQ_EMPTY(&host->channel.ready))
		read_events(host);
	check_woken(host);
}

static void app_look(void *context, void *argument)
{
	struct host *host = context;
	struct sim *sim = host->sim;
	uint64_t pause_ns = (uint64_t)(uintptr_t)argument;
	bool busy = false;

	if (app_finished(sim) || sim->halted)
		return;
	rings_change(host);
	for (unsigned int i = 0; i < POOLS; i++) {
		if (host->pools[i].in_use)
			busy |= pool_post(&host->pools[i]);
	}
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		if (sim->end[i].host != host)
			continue;
		busy |= post_due_receives(sim->end[i].in);
		if (rng_chance(&host->rng, 700000))
			busy |= post_sends(sim->end[i].out);
	}
	/* An application that waits for every completion never polls without an event. */
	if (host->pace.wakes != WAKES_ANY)
		busy |= app_poll(host) > 0;
	pause_ns = busy ? host->pace.app_ns : 2 * pause_ns;
	if (pause_ns > LOOK_LONGEST_NS)
		pause_ns = LOOK_LONGEST_NS;
	clock_at(&sim->clock, sim->clock.now_ns + rng_range(&host->rng, 1, pause_ns), app_look,
		 host, (void *)(uintptr_t)pause_ns);
}

void app_start(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		post_due_receives(&sim->flow[i]);
	for (unsigned int i = 0; i < sim->hosts; i++) {
		struct host *host = &sim->host[i];

		clock_at(&sim->clock, sim->clock.now_ns + 1, app_look, host,
			 (void *)(uintptr_t)host->pace.app_ns);
	}
}

static bool flow_finished(const struct flow *flow)
{
	if (flow->closed < flow->limit)
		return false;
	/* After a failure, remaining receives are flushed at the end. On unreliable services the
	 * sender does not wait for the receiver. */
	return !flow_reliable(flow) || flow->failed >= 0 || flow->loose || flow->mishap_at >= 0 ||
	       flow->received >= flow->receive_limit;
}

bool app_finished(const struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		if (!flow_finished(&sim->flow[i]) || sim->end[i].unconnected)
			return false;
	}
	return true;
}
