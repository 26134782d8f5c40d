/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs programs in child processes, and reports those that fail. */
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "entropy.h"
#include "shrink.h"
#include "sim.h"

#define CPU_LIMIT_S    120 /* CPU time; a program that uses more does not end */
#define TELL_SECONDS   60
#define SAVED_MAX      100 /* programs */
#define SHRUNK_OF_KIND 2   /* failing programs of one kind that are made smaller */
#define KINDS_MAX      64

static struct report own_report;
struct report *report = &own_report;

/* A process and its programs. */
struct job {
	pid_t pid;
	struct report *report;
	uint64_t first; /* seed */
};

struct totals {
	uint64_t programs, works, packets, failures;
	double cpu_seconds;
};

struct soak {
	const struct options *options;
	struct job jobs[SUPERVISE_JOBS_MAX];
	struct totals ended; /* by processes that failed */
	const char *kinds[KINDS_MAX];
	unsigned int kind_count[KINDS_MAX];
	time_t began;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

struct report *report_create(void)
{
	struct report *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED) {
		perror("sim: report");
		exit(1);
	}
	return shared;
}

void report_destroy(struct report *shared)
{
	munmap(shared, sizeof(*shared));
}

static time_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Start a child: it reports, ends with its parent, and prints into a file. */
static void begin_child(struct report *shared, const char *log)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	report = shared;
	if (log == NULL)
		return;
	if (freopen(log, "w", stdout) == NULL || dup2(fileno(stdout), STDERR_FILENO) < 0)
		_exit(2);
}

static pid_t fork_child(void)
{
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	pid = fork();
	if (pid < 0) {
		perror("sim: fork");
		exit(1);
	}
	return pid;
}

struct outcome supervise_try(const struct options *options, struct report *result, uint64_t seed,
			     const struct variant *variant, const char *log)
{
	const struct rlimit limit = {.rlim_cur = CPU_LIMIT_S, .rlim_max = CPU_LIMIT_S + 1};
	struct outcome outcome;
	pid_t pid;

	/* A run that is shown prints its failure too. */
	*result = (struct report){.supervised = log != NULL && strcmp(log, "/dev/null") == 0};
	pid = fork_child();
	if (pid == 0) {
		begin_child(result, log);
		setrlimit(RLIMIT_CPU, &limit);
		sim_run_seed(options, seed, variant);
		exit(0);
	}
	while (waitpid(pid, &outcome.status, 0) < 0 && errno == EINTR)
		continue;
	outcome.failed = outcome.status != 0;
	return outcome;
}

void supervise_command(const struct options *options, uint64_t seed, const struct variant *variant,
		       char *text, size_t room)
{
	char extras[VARIANT_TEXT_MAX];

	variant_print(variant, extras);
	snprintf(text, room, "sim --seed %llu%s%s%s", (unsigned long long)seed,
		 options->only >= 0 ? " --scenario " : "",
		 options->only >= 0 ? sim_scenario_name(options->only) : "", extras);
}

static void start_job(const struct soak *soak, unsigned int index, uint64_t seed, bool fixed)
{
	struct job *job = (struct job *)(uintptr_t)&soak->jobs[index];
	char log[4096];

	*job->report = (struct report){.supervised = true, .seed = seed};
	job->pid = fork_child();
	if (job->pid != 0)
		return;
	if (soak->options->save != NULL)
		snprintf(log, sizeof(log), "%s/job-%u.out", soak->options->save, index);
	begin_child(job->report, soak->options->save != NULL ? log : NULL);
	sim_run_seeds(soak->options, seed, fixed);
	exit(0);
}

/* Return how many programs have failed in this way before. */
static unsigned int count_kind(struct soak *soak, const char *kind)
{
	for (unsigned int i = 0; i < KINDS_MAX; i++) {
		if (soak->kinds[i] == kind || soak->kind_count[i] == 0) {
			soak->kinds[i] = kind;
			return soak->kind_count[i]++;
		}
	}
	return SHRUNK_OF_KIND;
}

static void describe(const struct report *failure, int status, char *text, size_t room)
{
	if (failure->kind != NULL)
		snprintf(text, room, "%s", failure->message);
	else if (WIFSIGNALED(status))
		snprintf(text, room, "ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, room, "ended with status %d", WEXITSTATUS(status));
}

/* Print the failure, and the smallest program found that has it. */
static void tell_failure(struct soak *soak, const struct report *failure, int status)
{
	const struct options *options = soak->options;
	const bool shrinks = count_kind(soak, failure->kind) < SHRUNK_OF_KIND;
	char command[1024], log[4096], what[REPORT_MESSAGE_MAX];
	struct variant smallest = failure->variant;
	struct options loud = *options;
	struct report *again;
	unsigned int tried = 0;

	describe(failure, status, what, sizeof(what));
	supervise_command(options, failure->seed, &failure->variant, command, sizeof(command));
	printf("sim: seed %llu: %s\nsim: it was: %s\n", (unsigned long long)failure->seed, what,
	       command);
	fflush(stdout);
	if (shrinks)
		tried = shrink(options, failure, status, &smallest);
	supervise_command(options, failure->seed, &smallest, command, sizeof(command));
	if (options->save != NULL && soak->ended.failures > SAVED_MAX)
		return;
	if (options->save != NULL)
		snprintf(log, sizeof(log), "%s/seed-%llu.log", options->save,
			 (unsigned long long)failure->seed);
	again = report_create();
	loud.verbose |= options->save != NULL;
	supervise_try(&loud, again, failure->seed, &smallest, options->save != NULL ? log : NULL);
	report_destroy(again);
	printf("sim: repeat it with: %s (%u smaller ones were tried)%s%s\n", command, tried,
	       options->save != NULL ? "; its log: " : "", options->save != NULL ? log : "");
	fflush(stdout);
}

static void add_up(const struct soak *soak, struct totals *totals)
{
	*totals = soak->ended;
	for (unsigned int i = 0; i < soak->options->jobs; i++) {
		totals->programs += soak->jobs[i].report->programs;
		totals->works += soak->jobs[i].report->works;
		totals->packets += soak->jobs[i].report->packets;
	}
}

static void tell_totals(const struct soak *soak, const char *when)
{
	struct totals totals;

	add_up(soak, &totals);
	printf("soak: %s%llu programs, %llu work requests, %llu packets, %llu violations\n", when,
	       (unsigned long long)totals.programs, (unsigned long long)totals.works,
	       (unsigned long long)totals.packets, (unsigned long long)totals.failures);
	fflush(stdout);
}

static bool time_is_up(const struct soak *soak)
{
	return (double)(seconds_now() - soak->began) >= soak->options->hours * 3600;
}

/* A process has ended. If it failed, report that, and continue behind the failed seed. */
static bool end_job(struct soak *soak, unsigned int index, int status)
{
	struct job *job = &soak->jobs[index];
	const struct report failure = *job->report;
	const uint64_t next = failure.seed + 1;

	if (status == 0 || interrupted)
		return true;
	/* Keep its counts: its successor begins at 0. */
	soak->ended.programs += failure.programs;
	soak->ended.works += failure.works;
	soak->ended.packets += failure.packets;
	soak->ended.failures++;
	if (soak->options->hours == 0) {
		*job->report = (struct report){.seed = failure.seed};
		tell_failure(soak, &failure, status);
		return true;
	}
	*job->report = (struct report){.seed = failure.seed};
	if (!time_is_up(soak))
		start_job(soak, index, next, false);
	tell_failure(soak, &failure, status);
	return time_is_up(soak) && job->pid == 0;
}

static struct job *job_of(struct soak *soak, pid_t pid)
{
	for (unsigned int i = 0; i < soak->options->jobs; i++) {
		if (soak->jobs[i].pid == pid)
			return &soak->jobs[i];
	}
	return NULL;
}

static void stop_jobs(struct soak *soak)
{
	for (unsigned int i = 0; i < soak->options->jobs; i++) {
		if (soak->jobs[i].pid > 0)
			kill(soak->jobs[i].pid, SIGKILL);
	}
}

/* Wait until all jobs are over. */
static void wait_for_jobs(struct soak *soak)
{
	unsigned int running = soak->options->jobs;
	time_t told = seconds_now();

	while (running > 0) {
		int status;
		const pid_t pid = waitpid(-1, &status, WNOHANG);
		struct job *job = pid > 0 ? job_of(soak, pid) : NULL;

		if (interrupted)
			stop_jobs(soak);
		if (job != NULL) {
			job->pid = 0;
			end_job(soak, (unsigned int)(job - soak->jobs), status);
			running -= job->pid == 0;
			continue;
		}
		if (soak->options->hours > 0 && seconds_now() - told >= TELL_SECONDS) {
			told = seconds_now();
			tell_totals(soak, "so far ");
		}
		usleep(20000);
	}
}

static void tell_end(struct soak *soak)
{
	struct rusage usage;
	struct totals totals;
	double cpu;

	getrusage(RUSAGE_CHILDREN, &usage);
	cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	add_up(soak, &totals);
	for (unsigned int i = 0; i < soak->options->jobs; i++)
		printf("soak: job %u ran seeds %llu to %llu\n", i,
		       (unsigned long long)soak->jobs[i].first,
		       (unsigned long long)soak->jobs[i].report->seed);
	tell_totals(soak, "");
	printf("soak: %.0f s of CPU time, %.0f work requests a second of it\n", cpu,
	       cpu > 0 ? (double)totals.works / cpu : 0);
}

/* Run one program, and make it smaller if it fails. */
static int run_one(struct soak *soak)
{
	const struct options *options = soak->options;
	struct report *result = report_create();
	struct variant variant = options->variant;
	struct outcome outcome;

	if (options->vary)
		variant_draw(&variant, options->given, options->seed);
	outcome = supervise_try(options, result, options->seed, &variant, "/dev/null");
	result->seed = options->seed;
	result->variant = variant;
	if (outcome.failed)
		tell_failure(soak, result, outcome.status);
	else
		printf("sim: seed %llu passes\n", (unsigned long long)options->seed);
	report_destroy(result);
	return outcome.failed;
}

int supervise(const struct options *options)
{
	static struct soak soak;
	const struct sigaction action = {.sa_handler = interrupt};

	if (options->save != NULL && mkdir(options->save, 0777) != 0 && errno != EEXIST) {
		perror(options->save);
		return 2;
	}
	soak.options = options;
	soak.began = seconds_now();
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (options->one)
		return run_one(&soak);
	for (unsigned int i = 0; i < options->jobs; i++) {
		struct job *job = &soak.jobs[i];
		const bool fixed = i == 0 && !options->from && options->hours == 0;

		job->report = report_create();
		job->first = fixed ? 1 : options->from ? options->seed : entropy_true();
		/* Far from one another. */
		if (options->from)
			job->first += (uint64_t)i << 40;
		start_job(&soak, i, job->first, fixed);
	}
	wait_for_jobs(&soak);
	if (options->hours > 0)
		tell_end(&soak);
	return soak.ended.failures > 0 || interrupted;
}
