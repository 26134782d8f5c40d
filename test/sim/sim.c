/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's command line: programs from one seed after another, until time is up or one
 * fails. */
#include "sim.h"

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/tuning.h"
#include "qp/qp.h"

/* Every run begins with these seeds: 1 to FIXED_SEEDS. */
#define FIXED_SEEDS 500

static const char *const scenario_names[SCENARIOS] = {
	[SCENARIO_SOUND] = "sound", [SCENARIO_MISHAP] = "mishap", [SCENARIO_CUT] = "cut",
	[SCENARIO_KILL] = "kill",   [SCENARIO_GONE] = "gone",	  [SCENARIO_LOST] = "lost",
};

static const char *const type_names[] = {
	[IBV_QPT_RC] = "RC",
	[IBV_QPT_UC] = "UC",
	[IBV_QPT_UD] = "UD",
	[IBV_QPT_XRC_SEND] = "XRC",
	[IBV_QPT_XRC_RECV] = "XRC (receives)",
};

static void dump_flow(const struct flow *flow)
{
	const struct end *from = flow->from;

	printf("flow %2d: %s%s%s, host %d qp %06x > host %d qp %06x: %u works, %u posted, %u "
	       "closed%s; %u receives, %u posted, %u complete, gap %llu ns",
	       flow->number, type_names[from->type], flow->exact ? " exact" : "",
	       flow->pool ? " pooled" : "", from->host->number, from->qpn, flow->to->host->number,
	       flow->to->qpn, flow->work_count, flow->posted, flow->closed,
	       flow->loose ? " (loose)" : "", flow->receive_count, flow->receives_posted,
	       flow->received, (unsigned long long)flow->receive_gap_ns);
	if (flow->mishap_at >= 0)
		printf("; mishap at %d: %s", flow->mishap_at,
		       mishap_info(flow->works[flow->mishap_at].mishap)->name);
	printf("\n         mtu %u psn %06x timeout %u rnr_retry %u rnr_timer %u rd_atomic %u/%u sq "
	       "%u rq %u",
	       128u << from->mtu, from->sq_psn, from->timeout, from->rnr_retry,
	       flow->to->min_rnr_timer, from->max_rd_atomic, flow->to->max_dest_rd_atomic,
	       from->cap.max_send_wr, flow->to->cap.max_recv_wr);
	if (from->qp != NULL) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;

		qp_query(from->qp, &attr, &init);
		printf("; state %d sq_psn %06x rq_psn %06x deadline %lld ns", (int)attr.qp_state,
		       attr.sq_psn, attr.rq_psn, (long long)qp_deadline_ns(from->qp));
	}
	printf("\n");
}

void sim_dump(const struct sim *sim)
{
	const struct link_attr *attr = &sim->link[0][1].attr;

	printf("seed %llu: %s%s%s, %u hosts, %u pairs, now %llu ns, newest completion %llu ns\n",
	       (unsigned long long)sim->seed, scenario_names[sim->scenario],
	       sim->tight ? ", tight" : "",
	       sim->abrupt  ? ", twice abruptly"
	       : sim->twice ? ", twice"
			    : "",
	       sim->hosts, sim->pairs, (unsigned long long)sim->clock.now_ns,
	       (unsigned long long)sim->progress_ns);
	printf("link: latency %llu ns, %llu Mb/s; ppm lost %u, bursts %u, duplicated %u, ghosts "
	       "%u, "
	       "damaged %u, reordered %u; est %llu ns\n",
	       (unsigned long long)attr->latency_ns, (unsigned long long)attr->mbps, attr->loss_ppm,
	       attr->burst_ppm, attr->duplicate_ppm, attr->ghost_ppm, attr->corrupt_ppm,
	       attr->reorder_ppm, (unsigned long long)sim->est_ns);
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		dump_flow(&sim->flow[i]);
}

void sim_fail(struct sim *sim, const char *format, ...)
{
	va_list args;

	sim_dump(sim);
	fflush(stdout);
	fprintf(stderr, "sim: seed %llu: ", (unsigned long long)sim->seed);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nsim: repeat it with: sim --seed %llu%s%s --verbose\n",
		(unsigned long long)sim->seed, sim->only >= 0 ? " --scenario " : "",
		sim->only >= 0 ? scenario_names[sim->only] : "");
	exit(1);
}

struct options {
	uint64_t seed;
	bool one;	      /* only this seed */
	bool from;	      /* from this seed on, without the fixed ones */
	unsigned int seconds; /* of CPU */
	bool verbose;
	int only;
};

static const char usage[] =
	"usage: sim [--seed N | --start-seed N] [--seconds N] [--scenario NAME] [--without LIST] "
	"[--verbose]\n"
	"  --seed N         run the program of one seed\n"
	"  --start-seed N   run programs from this seed on; without it from seed 1, then from "
	"SIM_SEED or a random one\n"
	"  --seconds N      of CPU time to run (10)\n"
	"  --scenario NAME  only sound, mishap, cut, kill, gone or lost\n"
	"  --without LIST   optimisations to do without (base/tuning.h)\n"
	"  --verbose        print every frame, completion and event\n";

static struct sim sim;

/* Of the sanitizers, where they are linked in. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void say_seed(void)
{
	fflush(stdout);
	fprintf(stderr, "sim: seed %llu crashed\n", (unsigned long long)sim.seed);
}

static void crashed(int signal)
{
	say_seed();
	_exit(128 + signal);
}

/* A crash too must tell how to repeat it. */
static void catch_crashes(void)
{
	if (__sanitizer_set_death_callback != NULL) {
		__sanitizer_set_death_callback(say_seed);
		return;
	}
	signal(SIGSEGV, crashed);
	signal(SIGBUS, crashed);
	signal(SIGABRT, crashed);
	signal(SIGFPE, crashed);
}

static uint64_t number(const char *text)
{
	char *end;
	const uint64_t v = strtoull(text, &end, 0);

	if (*text == '\0' || *end != '\0') {
		fprintf(stderr, "sim: \"%s\" is not a number\n%s", text, usage);
		exit(2);
	}
	return v;
}

static int scenario_named(const char *name)
{
	for (int i = 0; i < SCENARIOS; i++) {
		if (strcmp(name, scenario_names[i]) == 0)
			return i;
	}
	fprintf(stderr, "sim: no scenario \"%s\"\n%s", name, usage);
	exit(2);
}

static struct options parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"seed", required_argument, NULL, 's'},
		{"start-seed", required_argument, NULL, 'f'},
		{"seconds", required_argument, NULL, 't'},
		{"scenario", required_argument, NULL, 'o'},
		{"without", required_argument, NULL, 'w'},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {.seconds = 10, .only = -1};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			options.one = true;
			options.seed = number(optarg);
			break;
		case 'f':
			options.from = true;
			options.seed = number(optarg);
			break;
		case 't':
			options.seconds = (unsigned int)number(optarg);
			break;
		case 'o':
			options.only = scenario_named(optarg);
			break;
		case 'w':
			if (tuning_without(optarg) != 0) {
				fprintf(stderr, "sim: --without takes some of %s\n",
					tuning_names());
				exit(2);
			}
			break;
		case 'v':
			options.verbose = true;
			break;
		default:
			fputs(usage, c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
		}
	}
	if (optind != argc) {
		fprintf(stderr, "sim: what is \"%s\"?\n%s", argv[optind], usage);
		exit(2);
	}
	return options;
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

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static void run_seed(uint64_t seed, uint64_t fates[LINK_FATES])
{
	sim.seed = seed;
	sim_run(&sim);
	for (int i = 0; i < SIM_HOSTS_MAX * SIM_HOSTS_MAX; i++) {
		const unsigned int from = (unsigned int)i / SIM_HOSTS_MAX,
				   to = (unsigned int)i % SIM_HOSTS_MAX;

		if (from >= sim.hosts || to >= sim.hosts)
			continue;
		for (int fate = 0; fate < LINK_FATES; fate++)
			fates[fate] += sim.link[from][to].fates[fate];
	}
}

int main(int argc, char **argv)
{
	const struct options options = parse(argc, argv);
	uint64_t fates[LINK_FATES] = {0};
	uint64_t seed = options.from || options.one ? options.seed : 1;
	bool fixed = !options.from && !options.one;

	log_set_level(LOG_LEVEL_ERROR);
	catch_crashes();
	sim.only = options.only;
	sim.verbose = options.verbose;
	do {
		run_seed(seed++, fates);
		if (fixed && seed > FIXED_SEEDS) {
			fixed = false;
			seed = random_start();
			printf("sim: seeds 1 to %d passed; from seed %llu on\n", FIXED_SEEDS,
			       (unsigned long long)seed);
			fflush(stdout);
		}
	} while (!options.one && cpu_seconds() < options.seconds);
	for (int i = 0; i < SIM_HOSTS_MAX; i++)
		host_fini(&sim.host[i]);
	printf("sim: %llu programs passed, the last of seed %llu: %llu works, %llu bytes, %llu "
	       "unreliable messages (%llu copies of a group), %llu packets "
	       "(%llu lost, %llu damaged, %llu late, %llu duplicates, %llu ghosts)\n",
	       (unsigned long long)sim.stats_programs, (unsigned long long)seed - 1,
	       (unsigned long long)sim.stats_works, (unsigned long long)sim.stats_bytes,
	       (unsigned long long)sim.stats_delivered, (unsigned long long)sim.stats_copied,
	       (unsigned long long)sim.packets, (unsigned long long)fates[LINK_LOST],
	       (unsigned long long)fates[LINK_DAMAGED], (unsigned long long)fates[LINK_HELD_BACK],
	       (unsigned long long)fates[LINK_DUPLICATED], (unsigned long long)fates[LINK_GHOST]);
	return 0;
}
