/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's command line: programs from one seed after another, until the time is over or one
 * fails. */
#include "sim.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "entropy.h"
#include "supervise.h"

/* Every run begins with these seeds: 1 to FIXED_SEEDS. */
#define FIXED_SEEDS 500

static const char usage[] =
	"usage: sim [--seed N [--shrink] | --start-seed N] [--seconds N | --hours N] [--jobs N]\n"
	"           [--scenario NAME] [--vary] [--save FOLDER] [--verbose] [OPTION OF A "
	"PROGRAM...]\n"
	"  --seed N         run the program of one seed\n"
	"  --shrink         if it fails, look for a smaller one that fails\n"
	"  --start-seed N   run programs from this seed on; without it from seed 1, then from "
	"SIM_SEED or a random one\n"
	"  --seconds N      of CPU time to run (10)\n"
	"  --hours N        of time to run, whatever fails: a soak; from random seeds on\n"
	"  --jobs N         processes to run at a time (1); 0: one on each CPU\n"
	"  --scenario NAME  only sound, mishap, cut, kill, gone or lost\n"
	"  --vary           draw the options of each program from its seed, but for seeds 1 to "
	"500\n"
	"  --save FOLDER    keep a log of each program that fails\n"
	"  --verbose        print every frame, completion and event\n"
	"options of a program:\n";

static struct sim sim;

static void tell_usage(FILE *to)
{
	fputs(usage, to);
	variant_usage(to);
}

static uint64_t number(const char *text)
{
	char *end;
	const uint64_t v = strtoull(text, &end, 0);

	if (*text == '\0' || *end != '\0') {
		fprintf(stderr, "sim: \"%s\" is not a number\n", text);
		tell_usage(stderr);
		exit(2);
	}
	return v;
}

static double hours(const char *text)
{
	char *end;
	const double v = strtod(text, &end);

	if (*text == '\0' || *end != '\0' || !(v > 0)) {
		fprintf(stderr, "sim: \"%s\" is no number of hours\n", text);
		exit(2);
	}
	return v;
}

static int scenario_named(const char *name)
{
	for (int i = 0; i < SCENARIOS; i++) {
		if (strcmp(name, sim_scenario_name(i)) == 0)
			return i;
	}
	fprintf(stderr, "sim: no scenario \"%s\"\n", name);
	tell_usage(stderr);
	exit(2);
}

#define VARIANT_OPTION 1000 /* the value of getopt_long for the first option of a program */

static const struct option longs[] = {
	{"seed", required_argument, NULL, 's'},
	{"shrink", no_argument, NULL, 'k'},
	{"start-seed", required_argument, NULL, 'f'},
	{"seconds", required_argument, NULL, 't'},
	{"hours", required_argument, NULL, 'r'},
	{"jobs", required_argument, NULL, 'j'},
	{"scenario", required_argument, NULL, 'o'},
	{"vary", no_argument, NULL, 'y'},
	{"save", required_argument, NULL, 'd'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
#define VARIANT_LONG(field, name, value, meaning) \
	{name, required_argument, NULL, VARIANT_OPTION + VARIANT_##field},
	VARIANTS(VARIANT_LONG){NULL, 0, NULL, 0},
};

static void take(struct options *options, int c)
{
	switch (c) {
	case 's':
		options->one = true;
		options->seed = number(optarg);
		break;
	case 'k':
		options->shrink = true;
		break;
	case 'f':
		options->from = true;
		options->seed = number(optarg);
		break;
	case 't':
		options->seconds = (unsigned int)number(optarg);
		break;
	case 'r':
		options->hours = hours(optarg);
		break;
	case 'j':
		options->jobs = (unsigned int)number(optarg);
		break;
	case 'o':
		options->only = scenario_named(optarg);
		break;
	case 'y':
		options->vary = true;
		break;
	case 'd':
		options->save = optarg;
		break;
	case 'v':
		options->verbose = true;
		break;
	default:
		tell_usage(c == 'h' ? stdout : stderr);
		exit(c == 'h' ? 0 : 2);
	}
}

static struct options parse(int argc, char **argv)
{
	struct options options = {.seconds = 10, .only = -1, .jobs = 1};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		const unsigned int index = (unsigned int)(c - VARIANT_OPTION);

		if (c < VARIANT_OPTION) {
			take(&options, c);
			continue;
		}
		variant_parse(&options.variant, index, optarg);
		options.given |= 1u << index;
	}
	if (optind != argc) {
		fprintf(stderr, "sim: what is \"%s\"?\n", argv[optind]);
		tell_usage(stderr);
		exit(2);
	}
	if (options.jobs == 0)
		options.jobs = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	if (options.jobs > SUPERVISE_JOBS_MAX)
		options.jobs = SUPERVISE_JOBS_MAX;
	return options;
}

static uint64_t random_start(void)
{
	const char *wish = getenv("SIM_SEED");

	return wish != NULL && *wish != '\0' ? number(wish) : entropy_true();
}

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

void sim_run_seed(const struct options *options, uint64_t seed, const struct variant *variant)
{
	sim_watch();
	report->seed = seed;
	report->variant = *variant;
	sim.seed = seed;
	sim.variant = *variant;
	sim.only = options->only;
	sim.verbose = options->verbose;
	sim.breaks = getenv("SIM_BREAK");
	variant_tune(variant);
	sim_run(&sim);
	report->programs++;
	report->works = sim.stats_works;
	report->packets = sim.packets;
}

static void add_fates(uint64_t fates[LINK_FATES])
{
	for (int i = 0; i < SIM_HOSTS_MAX * SIM_HOSTS_MAX; i++) {
		const unsigned int from = (unsigned int)i / SIM_HOSTS_MAX,
				   to = (unsigned int)i % SIM_HOSTS_MAX;

		if (from >= sim.hosts || to >= sim.hosts)
			continue;
		for (int fate = 0; fate < LINK_FATES; fate++)
			fates[fate] += sim.link[from][to].fates[fate];
	}
}

static void tell_passed(uint64_t last, const uint64_t fates[LINK_FATES])
{
	printf("sim: %llu programs passed, the last of seed %llu: %llu works, %llu bytes, %llu "
	       "unreliable messages (%llu copies of a group), %llu packets "
	       "(%llu lost, %llu damaged, %llu late, %llu duplicates, %llu ghosts, %llu forged, "
	       "%llu between engines)\n",
	       (unsigned long long)sim.stats_programs, (unsigned long long)last,
	       (unsigned long long)sim.stats_works, (unsigned long long)sim.stats_bytes,
	       (unsigned long long)sim.stats_delivered, (unsigned long long)sim.stats_copied,
	       (unsigned long long)sim.packets, (unsigned long long)fates[LINK_LOST],
	       (unsigned long long)fates[LINK_DAMAGED], (unsigned long long)fates[LINK_HELD_BACK],
	       (unsigned long long)fates[LINK_DUPLICATED], (unsigned long long)fates[LINK_GHOST],
	       (unsigned long long)sim.stats_forged, (unsigned long long)sim.stats_crossed);
}

static bool goes_on(const struct options *options, time_t began)
{
	struct timespec now;

	if (options->hours == 0)
		return cpu_seconds() < options->seconds;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - began) < options->hours * 3600;
}

void sim_run_seeds(const struct options *options, uint64_t seed, bool fixed)
{
	uint64_t fates[LINK_FATES] = {0};
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		struct variant variant = options->variant;

		if (options->vary && !fixed)
			variant_draw(&variant, options->given, seed);
		sim_run_seed(options, seed++, &variant);
		add_fates(fates);
		if (fixed && seed > FIXED_SEEDS) {
			fixed = false;
			seed = random_start();
			printf("sim: seeds 1 to %d passed; from seed %llu on\n", FIXED_SEEDS,
			       (unsigned long long)seed);
			fflush(stdout);
		}
	} while (goes_on(options, began.tv_sec));
	for (int i = 0; i < SIM_HOSTS_MAX; i++)
		host_fini(&sim.host[i]);
	tell_passed(seed - 1, fates);
}

/* Run one program in this process, for debuggers. */
static void run_here(const struct options *options)
{
	uint64_t fates[LINK_FATES] = {0};
	struct variant variant = options->variant;

	if (options->vary)
		variant_draw(&variant, options->given, options->seed);
	sim_run_seed(options, options->seed, &variant);
	add_fates(fates);
	for (int i = 0; i < SIM_HOSTS_MAX; i++)
		host_fini(&sim.host[i]);
	tell_passed(options->seed, fates);
}

int main(int argc, char **argv)
{
	const struct options options = parse(argc, argv);

	log_set_level(LOG_LEVEL_ERROR);
	sim_catch_crashes();
	if (options.one && !options.shrink)
		run_here(&options);
	else
		return supervise(&options);
	return 0;
}
