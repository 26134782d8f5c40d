/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection managers of one to four hosts, with a network that loses, repeats, delays and
 * reorders MADs, applications that destroy connections, and hosts that are killed at any moment.
 * One seed determines all of it. Every connect ends within its timers, established on both sides or
 * with an error on both, and nothing is left.
 */
#include "cm_sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "entropy.h"
#include "sim.h"

#define FIXED_SEEDS  300
#define CONNECTS_MAX 60
#define SECOND_NS    UINT64_C(1000000000)

static struct cm_sim cm_sim;

void cm_fail(const struct cm_sim *sim, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "sim_cm: seed %llu at %.9f s: ", (unsigned long long)sim->seed,
		(double)sim->clock.now_ns / 1e9);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nRepeat it with: sim_cm --seed %llu --verbose\n",
		(unsigned long long)sim->seed);
	exit(1);
}

void cm_say(const struct cm_sim *sim, const char *format, ...)
{
	va_list args;

	if (!sim->verbose)
		return;
	printf("%14.9f ", (double)sim->clock.now_ns / 1e9);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

struct ask {
	unsigned int from;
	unsigned int to;
	bool sidr;
};

static void ask(void *context, void *argument)
{
	struct ask *ask = argument;

	app_connect(context, ask->from, ask->to, ask->sidr);
	free(ask);
}

static void kill_one(void *context, void *argument)
{
	struct cm_sim *sim = context;
	const unsigned int index = (unsigned int)rng_below(&sim->rng, sim->hosts);

	(void)argument;
	cm_host_kill(&sim->host[index], rng_chance(&sim->rng, 300000));
	sim->host[index].listens = rng_chance(&sim->rng, 700000);
	cm_host_start(sim, index);
}

static void listen_again(void *context, void *argument)
{
	(void)context;
	cm_host_listen(argument);
}

/* End the listeners of a program, with the requests that wait there, and start new ones. */
static void pause_one(void *context, void *argument)
{
	struct cm_sim *sim = context;
	struct cm_host *host = &sim->host[rng_below(&sim->rng, sim->hosts)];

	(void)argument;
	cm_host_unlisten(host);
	clock_at(&sim->clock, sim->clock.now_ns + rng_below(&sim->rng, sim->think_ns + 1),
		 listen_again, sim, host);
}

/* A third of all runs has a good network, a third has good applications. */
static void make_network(struct cm_sim *sim)
{
	struct rng *rng = &sim->rng;
	const bool good = rng_chance(rng, 333333);

	sim->loss_ppm = good ? 0 : (uint32_t)rng_below(rng, 500000);
	sim->duplicate_ppm = good ? 0 : (uint32_t)rng_below(rng, 400000);
	sim->late_ppm = good ? 0 : (uint32_t)rng_below(rng, 400000);
	sim->late_ns = rng_range(rng, 10000, SECOND_NS / 4);
	sim->replay_ppm = rng_chance(rng, 500000) ? 200000 : 0;
}

/* The state that is kept for other hosts is limited; in some runs the limit is too low. */
static void make_limits(struct cm_sim *sim, bool ample)
{
	struct rng *rng = &sim->rng;

	sim->limits = (struct cm_config){0};
	sim->backlog = CM_ENDPOINTS_MAX;
	if (ample || rng_chance(rng, 500000))
		return;
	sim->backlog = (uint32_t)rng_range(rng, 1, 16);
	sim->limits.half_open_max = (uint32_t)rng_range(rng, 1, 16);
	sim->limits.lingering_max = (uint32_t)rng_range(rng, 1, 16);
}

static void make_applications(struct cm_sim *sim)
{
	struct rng *rng = &sim->rng;
	const bool good = rng_chance(rng, 333333);

	sim->think_ns = rng_range(rng, 1000, rng_chance(rng, 500000) ? SECOND_NS : 10000000);
	sim->reject_ppm = good ? 0 : (uint32_t)rng_below(rng, 400000);
	sim->destroy_ppm = good ? 0 : (uint32_t)rng_below(rng, 400000);
	sim->lag_ns = rng_chance(rng, 500000) ? rng_range(rng, 1, 10 * sim->think_ns) : 0;
	sim->data_ppm = (uint32_t)rng_below(rng, 1000000);
	sim->both_ppm = rng_chance(rng, 500000) ? 300000 : 0;
	sim->reuse_ppm = !good && rng_chance(rng, 500000) ? 500000 : 0;
	sim->devices = rng_chance(rng, 100000);
	sim->resolve_ns = rng_range(rng, 1000000, 100000000);
	sim->kills = good ? 0 : (uint32_t)rng_below(rng, 4);
	sim->pauses = good ? 0 : (uint32_t)rng_below(rng, 4);
	sim->response_timeout = (uint8_t)rng_range(rng, 8, 16);
	sim->packet_life_time = (uint8_t)rng_range(rng, 2, 12);
	sim->max_cm_retries = (uint8_t)rng_below(rng, 16);
	sim->sure = good && sim->loss_ppm == 0;
	make_limits(sim, good);
	if (!sim->sure)
		return;
	/* This is long enough for slow applications. */
	if (sim->lag_ns > SECOND_NS)
		sim->lag_ns = SECOND_NS;
	sim->resolve_ns = 10 * SECOND_NS;
	sim->response_timeout = 16;
	sim->max_cm_retries = 15;
}

static void schedule_ask(struct cm_sim *sim, unsigned int from, unsigned int to, bool sidr,
			 uint64_t at_ns)
{
	struct ask *one = malloc(sizeof(*one));

	*one = (struct ask){.from = from, .to = to, .sidr = sidr};
	clock_at(&sim->clock, at_ns, ask, sim, one);
}

static void schedule(struct cm_sim *sim)
{
	const uint64_t connects = rng_range(&sim->rng, 1, CONNECTS_MAX);
	const uint64_t span_ns = rng_range(&sim->rng, 1, 3 * SECOND_NS);

	for (uint64_t i = 0; i < connects; i++) {
		const unsigned int from = (unsigned int)rng_below(&sim->rng, sim->hosts);
		const unsigned int to =
			(unsigned int)rng_below(&sim->rng, sim->hosts); /* or itself */
		const bool sidr = rng_chance(&sim->rng, 150000);
		const uint64_t at_ns = rng_below(&sim->rng, span_ns);

		schedule_ask(sim, from, to, sidr, at_ns);
		if (rng_chance(&sim->rng, sim->both_ppm))
			schedule_ask(sim, to, from, sidr, at_ns);
	}
	for (uint32_t i = 0; i < sim->pauses; i++)
		clock_at(&sim->clock, rng_below(&sim->rng, 2 * span_ns), pause_one, sim, NULL);
	for (uint32_t i = 0; i < sim->kills; i++)
		clock_at(&sim->clock, rng_below(&sim->rng, 2 * span_ns), kill_one, sim, NULL);
}

static void drain(struct cm_sim *sim)
{
	while (clock_step(&sim->clock)) {
	}
}

/* Check that no connect has waited for an answer longer than all of its timers. */
static void check_answered(struct cm_sim *sim)
{
	for (unsigned int i = 0; i < sim->endpoints; i++) {
		const struct endpoint *endpoint = &sim->endpoint[i];

		cm_check(sim,
			 !endpoint->active || endpoint->due_ns == 0 || !endpoint->conn ||
				 endpoint->due_ns > sim->clock.now_ns,
			 "connect %u has drawn nothing", i);
	}
}

/*
 * Check, when nothing is in flight any more, that each connected endpoint has a connected partner.
 * The partner may also have sent all its DREQs, or its host was killed.
 */
static void check_partner(const struct endpoint *endpoint)
{
	const struct endpoint *peer = endpoint->peer;
	const struct cm_sim *sim = endpoint->sim;

	if (peer->conn && peer->established && peer->peer == endpoint)
		return;
	cm_check(sim, !sim->sure, "endpoint %u has no partner", endpoint->qpn);
	cm_check(sim, peer->outcome != OUTCOME_DISCONNECTED,
		 "endpoint %u is connected to one that both have disconnected", endpoint->qpn);
	cm_check(sim, peer->outcome != OUTCOME_NONE || !peer->conn,
		 "endpoint %u is connected to one that still waits", endpoint->qpn);
}

static void check_ends(struct cm_sim *sim)
{
	for (unsigned int i = 0; i < sim->endpoints; i++) {
		const struct endpoint *endpoint = &sim->endpoint[i];

		if (endpoint->conn && endpoint->established)
			check_partner(endpoint);
		cm_check(sim,
			 !endpoint->conn || endpoint->established ||
				 endpoint->outcome != OUTCOME_NONE,
			 "endpoint %u has neither a connection nor an error, in %s", endpoint->qpn,
			 cm_state_name(cm_conn_state(endpoint->conn)));
	}
}

/* Check that no connect has failed without a cause. */
static void check_sure(const struct cm_sim *sim)
{
	for (unsigned int i = 0; i < sim->endpoints && sim->sure; i++) {
		const struct endpoint *endpoint = &sim->endpoint[i];

		cm_check(sim,
			 endpoint->outcome != OUTCOME_REJECTED &&
				 endpoint->outcome != OUTCOME_UNREACHABLE &&
				 endpoint->outcome != OUTCOME_TIMED_OUT,
			 "endpoint %u has failed, outcome %d", endpoint->qpn, endpoint->outcome);
	}
}

static void check_nothing_left(struct cm_sim *sim)
{
	struct cm_event event;

	for (unsigned int i = 0; i < sim->hosts; i++) {
		cm_check(sim, cm_conn_count(sim->host[i].cm) == 0, "host %u has %u connections", i,
			 cm_conn_count(sim->host[i].cm));
		cm_check(sim, cm_host_deadline_ns(&sim->host[i]) == UINT64_MAX,
			 "host %u has a timer", i);
		cm_check(sim, !cm_next_event(sim->host[i].cm, &event), "host %u has an event", i);
	}
	for (unsigned int i = 0; i < sim->endpoints; i++)
		sim->stats_outcomes[sim->endpoint[i].outcome]++;
}

/* Disconnect the endpoints that keep their connections, and destroy everything. */
static void let_go(struct cm_sim *sim)
{
	for (unsigned int i = 0; i < sim->endpoints; i++) {
		struct endpoint *endpoint = &sim->endpoint[i];

		if (!endpoint->conn)
			continue;
		app_disconnect(endpoint);
		cm_host_look(endpoint->host);
	}
	drain(sim);
	for (unsigned int i = 0; i < sim->endpoints; i++) {
		app_destroy(&sim->endpoint[i]);
		cm_host_look(sim->endpoint[i].host);
	}
	drain(sim);
}

static void run(struct cm_sim *sim, uint64_t seed)
{
	sim->seed = seed;
	sim->rng = rng_fork(seed, 2);
	entropy_seed(seed);
	sim->clock.now_ns = 0;
	sim->endpoints = 0;
	sim->hosts = (unsigned int)rng_range(&sim->rng, 1, CM_HOSTS_MAX);
	make_network(sim);
	make_applications(sim);
	for (unsigned int i = 0; i < sim->hosts; i++) {
		sim->host[i].listens = true;
		cm_host_start(sim, i);
	}
	schedule(sim);
	drain(sim);
	check_answered(sim);
	check_ends(sim);
	let_go(sim);
	check_sure(sim);
	check_nothing_left(sim);
	for (unsigned int i = 0; i < sim->hosts; i++)
		cm_host_end(&sim->host[i]);
	sim->stats_runs++;
}

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static uint64_t number(const char *text)
{
	char *end;
	const unsigned long long value = strtoull(text, &end, 0);

	if (*text == '\0' || *end != '\0') {
		fprintf(stderr, "sim_cm: \"%s\" is no number\n", text);
		exit(2);
	}
	return value;
}

static uint64_t random_start(void)
{
	const char *wish = getenv("SIM_SEED");
	struct timespec now;

	if (wish != NULL && *wish != '\0')
		return number(wish);
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void run_for(double seconds)
{
	uint64_t seed = 1;

	do {
		run(&cm_sim, seed++);
		if (seed == FIXED_SEEDS + 1) {
			seed = random_start();
			printf("sim_cm: seeds 1 to %d passed; from seed %llu on\n", FIXED_SEEDS,
			       (unsigned long long)seed);
			fflush(stdout);
		}
	} while (cpu_seconds() < seconds);
}

static void tell(void)
{
	const uint64_t *outcomes = cm_sim.stats_outcomes;

	printf("sim_cm: %llu runs passed: %llu connects; ends: %llu established, %llu rejected, "
	       "%llu unreachable, %llu disconnected, %llu without DREP, %llu resolved, %llu "
	       "destroyed; %llu MADs, %llu lost, %llu kills, %llu stale\n",
	       (unsigned long long)cm_sim.stats_runs, (unsigned long long)cm_sim.stats_connects,
	       (unsigned long long)cm_sim.stats_established,
	       (unsigned long long)outcomes[OUTCOME_REJECTED],
	       (unsigned long long)outcomes[OUTCOME_UNREACHABLE],
	       (unsigned long long)outcomes[OUTCOME_DISCONNECTED],
	       (unsigned long long)outcomes[OUTCOME_TIMED_OUT],
	       (unsigned long long)outcomes[OUTCOME_RESOLVED],
	       (unsigned long long)outcomes[OUTCOME_DESTROYED],
	       (unsigned long long)cm_sim.stats_mads, (unsigned long long)cm_sim.stats_lost,
	       (unsigned long long)cm_sim.stats_kills, (unsigned long long)cm_sim.stats_stale);
}

int main(int argc, char **argv)
{
	bool one = false;
	uint64_t seed = 0;
	double seconds = 5;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--verbose") == 0) {
			cm_sim.verbose = true;
		} else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
			one = true;
			seed = number(argv[++i]);
		} else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
			seconds = (double)number(argv[++i]);
		} else {
			fputs("usage: sim_cm [--seconds N | --seed N] [--verbose]\n", stderr);
			return 2;
		}
	}
	if (one)
		run(&cm_sim, seed);
	else
		run_for(seconds);
	clock_fini(&cm_sim.clock);
	tell();
	return 0;
}
