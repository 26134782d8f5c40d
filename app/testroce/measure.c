/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a test: each thread connects its queue pairs, sends messages for the planned time or number,
 * and drains them. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "control_conn.h"
#include "histogram.h"
#include "main.h"
#include "mode.h"
#include "nic.h"
#include "passive.h"
#include "plan.h"
#include "qp/attr.h"
#include "run.h"

/*
 * The threads that measure. The caller of team_work is number 0. The others live until team_stop
 * and sleep between jobs: only threads that stay have an engine each in every test (nic.h).
 *
 * A job has phases. A member that has done its part of one waits for the others, and gives the
 * engine polls meanwhile. If a member fails, no member waits any longer.
 */
enum team_phase { TEAM_CONNECTED, TEAM_DRAINED, TEAM_PHASES };

struct team;

struct team_member {
	struct team *team;
	uint32_t number;
	struct nic_thread thread; /* of number 0: only its handle of the device */
	struct nic *nic;	  /* that handle */
	struct control *control;  /* of number 0: the caller's; of others: `own_control` */
	struct run run;

	/* unused by number 0 */
	struct control own_control;
	struct passive passive; /* of own_control, if both sides are in this process */
	bool connected;		/* own_control is open */
	uint64_t round;		/* of its last job; protected by the team's lock */
};

struct team {
	struct team_member *members[PLAN_THREADS_MAX];
	uint32_t count;		       /* of members */
	uint32_t size;		       /* members that team_gather was asked for */
	uint32_t arrived[TEAM_PHASES]; /* atomic: members that have ended a phase */
	int failed;		       /* atomic, -errno: a member has failed in this job */
	pthread_mutex_t lock;	       /* protects what follows */
	pthread_cond_t changed;
	uint64_t round; /* number of the job */
	uint32_t parts; /* members of the job. A thread may first look at a job in which it has no
			   part when a later team_gather has changed `size` already */
	uint32_t busy;	/* threads that have not ended it */
	bool stopped;
	void (*job)(struct team_member *member);
	char error[256]; /* of the first failure */
};

#define TEAM_INITIALIZER                                                               \
	{                                                                              \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

/** Return true if a member has failed. MT-safe. */
static inline bool team_has_failed(const struct team *team)
{
	return __atomic_load_n(&team->failed, __ATOMIC_RELAXED) != 0;
}

static void member_work(struct team_member *member)
{
	struct team *team = member->team;

	member->round = team->round;
	if (member->number >= team->parts)
		return;
	pthread_mutex_unlock(&team->lock);
	team->job(member);
	pthread_mutex_lock(&team->lock);
	team->busy--;
	pthread_cond_broadcast(&team->changed);
}

static void member_run(void *arg)
{
	struct team_member *member = arg;
	struct team *team = member->team;

	pthread_mutex_lock(&team->lock);
	while (!team->stopped) {
		if (member->round != team->round)
			member_work(member);
		else
			pthread_cond_wait(&team->changed, &team->lock);
	}
	pthread_mutex_unlock(&team->lock);
}

static int team_add(struct team *team, struct nic *nic, struct control *control)
{
	struct team_member *member = calloc(1, sizeof(*member));
	int rc;

	if (!member)
		return -ENOMEM;
	member->team = team;
	member->number = team->count;
	member->nic = &member->thread.nic;
	member->round = team->round;
	if (member->number == 0) {
		member->control = control;
		nic_thread_pin(0);
		rc = nic_share(nic, member->nic);
	} else {
		member->control = &member->own_control;
		rc = nic_thread_start(&member->thread, member->number, nic, member_run, member);
	}
	if (rc != 0)
		free(member);
	else
		team->members[team->count++] = member;
	return rc;
}

static int team_connect(struct team_member *member, const struct control *control, char *error,
			size_t error_size)
{
	int rc;

	if (member->number == 0)
		return control_renew(member->control, error, error_size);
	if (member->connected)
		return 0;
	rc = control_connect_more(&member->own_control, control, member->nic, &member->passive,
				  error, error_size);
	member->connected = rc == 0;
	return rc;
}

/* Close the connections of all members from this number on. */
static void team_disconnect_from(struct team *team, uint32_t first)
{
	for (uint32_t i = RTE_MAX(first, 1u); i < team->count; i++) {
		struct team_member *member = team->members[i];

		if (!member->connected)
			continue;
		passive_close(&member->passive);
		control_close(&member->own_control);
		member->connected = false;
	}
}

/*
 * Have `size` members, each with a thread and a connection to the passive side of `control`. Starts
 * and connects those that are missing, in the order of their numbers. Members beyond `size` keep
 * their threads, but not their connections. Not MT-safe.
 *
 * @return
 *   0, or -errno with `error`.
 */
static int team_gather(struct team *team, uint32_t size, struct nic *nic, struct control *control,
		       char *error, size_t error_size)
{
	int rc = 0;

	while (rc == 0 && team->count < size)
		rc = team_add(team, nic, control);
	if (rc != 0) {
		snprintf(error, error_size, THREAD_REFUSED, team->count, strerror(-rc));
		return rc;
	}
	team_disconnect_from(team, size);
	for (uint32_t i = 0; rc == 0 && i < size; i++)
		rc = team_connect(team->members[i], control, error, error_size);
	team->size = size;
	return rc;
}

/*
 * Let all members do a job, the caller among them, and wait until all have ended. Not MT-safe.
 *
 * @return
 *   0, or -errno with `error`, those of the first failure.
 */
static int team_work(struct team *team, void (*job)(struct team_member *member), char *error,
		     size_t error_size)
{
	for (int i = 0; i < TEAM_PHASES; i++)
		team->arrived[i] = 0;
	team->failed = 0;
	pthread_mutex_lock(&team->lock);
	team->job = job;
	team->parts = team->size;
	team->busy = team->size - 1;
	team->round++;
	pthread_cond_broadcast(&team->changed);
	pthread_mutex_unlock(&team->lock);
	job(team->members[0]);
	pthread_mutex_lock(&team->lock);
	while (team->busy > 0)
		pthread_cond_wait(&team->changed, &team->lock);
	if (team->failed != 0)
		snprintf(error, error_size, "%s", team->error);
	pthread_mutex_unlock(&team->lock);
	return team->failed;
}

/* Wait until all members have ended a phase. Calls `waits` (may be NULL) meanwhile, repeatedly.
 * Returns false if a member has failed. Only for jobs. */
static bool team_wait(struct team_member *member, enum team_phase phase,
		      void (*waits)(struct team_member *member))
{
	struct team *team = member->team;

	__atomic_fetch_add(&team->arrived[phase], 1, __ATOMIC_RELEASE);
	while (!team_has_failed(team) &&
	       __atomic_load_n(&team->arrived[phase], __ATOMIC_ACQUIRE) < team->size) {
		nic_poll(member->nic);
		if (waits)
			waits(member);
		/* An engine poll does not yield with dedicated progress. The others may need this
		 * CPU. */
		sched_yield();
	}
	return !team_has_failed(team);
}

/* Note that a member has failed. The first failure counts. MT-safe. */
static void team_fail(struct team *team, int rc, const char *error)
{
	pthread_mutex_lock(&team->lock);
	if (team->failed == 0) {
		snprintf(team->error, sizeof(team->error), "%s", error);
		__atomic_store_n(&team->failed, rc, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&team->lock);
}

/* Close the connections that team_gather has opened. Not MT-safe. */
static void team_disconnect(struct team *team)
{
	team_disconnect_from(team, 1);
}

/* End the threads and the connections that team_gather has made. Not MT-safe. */
static void team_stop(struct team *team)
{
	team_disconnect(team);
	pthread_mutex_lock(&team->lock);
	team->stopped = true;
	pthread_cond_broadcast(&team->changed);
	pthread_mutex_unlock(&team->lock);
	for (uint32_t i = 0; i < team->count; i++) {
		if (i > 0)
			nic_thread_join(&team->members[i]->thread);
		else
			nic_unshare(team->members[i]->nic);
		free(team->members[i]);
	}
	team->count = 0;
}

#define DRAIN_NS UINT64_C(10000000000)

/* The test. There is one at a time; its histograms are large. */
static struct team team = TEAM_INITIALIZER;
static const struct run_options *options;
static struct stages stages;
static struct result_sum sum;

/* The last line of figures. */
static struct {
	uint64_t ns;
	uint64_t completed;
} told;

static uint64_t team_completed(void)
{
	uint64_t completed = 0;

	for (uint32_t i = 0; i < team.size; i++)
		completed += count_get(&team.members[i]->run.completed);
	return completed;
}

/* Print a line of figures of all threads. */
static void tell(const struct run *run, uint64_t ns)
{
	const uint64_t completed = team_completed();
	const double seconds = (double)(ns - told.ns) / 1e9;
	const double messages = (double)(completed - told.completed);

	fprintf(options->lines, "%8.1f s %10.2f Gb/s %10.3f Mmsg/s %14" PRIu64 " messages\n",
		(double)ns / 1e9, messages * (double)run->plan.size_bytes * 8 / 1e9 / seconds,
		messages / 1e6 / seconds, completed);
	fflush(options->lines);
	told.ns = ns;
	told.completed = completed;
}

/* Tell at the end of each period. Only thread 0 tells. */
static void tell_if_due(const struct run *run, uint64_t ns)
{
	if (unlikely(run->number == 0 && options->period_ns > 0 &&
		     ns - told.ns >= options->period_ns))
		tell(run, ns);
}

static bool is_over(const struct run *run, uint64_t ns)
{
	return (options->stop && __atomic_load_n(options->stop, __ATOMIC_RELAXED)) ||
	       team_has_failed(&team) || run_is_over(run, ns);
}

/* Run the test from its first message until it posts no more. */
static int member_measure(struct run *run)
{
	uint64_t ns = 0;
	int rc = run_start(run);

	while (rc == 0 && !is_over(run, ns)) {
		rc = run_poll(run);
		ns = run_ns(run);
		if (unlikely(run_look(run, ns)) && options->stages)
			stages_clear();
		tell_if_due(run, ns);
	}
	run_end(run);
	return rc;
}

static int member_drain(struct run *run)
{
	const uint64_t start_tsc = rte_rdtsc();
	int rc = 0;

	while (rc == 0 && run->completed < run->posted && !team_has_failed(&team)) {
		rc = run_poll(run);
		if (nic_ns(run->nic, rte_rdtsc() - start_tsc) > DRAIN_NS)
			return -ETIMEDOUT;
	}
	return rc;
}

/* Sample the stages if that is wanted. Then the caller is the only member. */
static int member_begin_stages(char *error, size_t error_size)
{
	const int rc = options->stages ? stages_begin() : 0;

	if (rc != 0)
		snprintf(error, error_size, "stages cannot be measured: %s",
			 rc == -ENOENT ? "the program has no symbols" : strerror(-rc));
	return rc;
}

static int member_send(struct run *run, char *error, size_t error_size)
{
	int rc = member_begin_stages(error, error_size);

	if (rc != 0)
		return rc;
	rc = member_measure(run);
	if (options->stages)
		stages_end(&stages);
	if (rc == 0)
		rc = member_drain(run);
	if (rc != 0)
		run_explain(run, rc, error, error_size);
	return rc;
}

/* The others may still measure. */
static void member_waits(struct team_member *member)
{
	tell_if_due(&member->run, run_ns(&member->run));
}

/*
 * The part of one thread. No thread sends before all are connected, and none closes its session
 * before all have drained, because a passive side switches --loss off, for its whole port, when any
 * session closes. A thread that has failed reports it to its passive side by a CLOSE, whose answer
 * has no new information.
 */
static void member_test(struct team_member *member)
{
	struct run *run = &member->run;
	char error[256] = "";
	int rc = run_open(run, error, sizeof(error));

	if (rc == 0 && team_wait(member, TEAM_CONNECTED, NULL))
		rc = member_send(run, error, sizeof(error));
	if (rc == 0)
		team_wait(member, TEAM_DRAINED, member_waits);
	else
		team_fail(&team, rc, error);
	rc = run_close(run, error, sizeof(error));
	if (rc != 0)
		team_fail(&team, rc, error);
}

static int measure_prepare(struct nic *nic, struct control *control, const struct plan *plan,
			   char *error, size_t error_size)
{
	int rc = plan_check(plan, error, error_size);

	if (rc != 0)
		return rc;
	if (options->stages && plan->threads > 1) {
		snprintf(error, error_size, STAGES_REFUSED);
		return -EINVAL;
	}
	rc = team_gather(&team, (uint32_t)plan->threads, nic, control, error, error_size);
	if (rc != 0)
		return rc;
	if (nic_set_loss(nic, plan->loss_ppm, ~plan->seed) != 0) {
		snprintf(error, error_size, LOSS_REFUSED);
		return -ENOTSUP;
	}
	nic_without(nic, plan->without);
	return 0;
}

static void measure_sum_up(const struct nic *nic, const struct plan *plan, struct result *result)
{
	result_begin(&sum, result, plan);
	for (uint32_t i = 0; i < team.size; i++) {
		const struct run *run = &team.members[i]->run;

		result_add(&sum, run, &run->last);
	}
	result_end(&sum, nic);
	result->stages = stages;
}

int measure_test(struct nic *nic, struct control *control, const struct plan *plan,
		 const struct run_options *run_options, struct result *result, char *error,
		 size_t error_size)
{
	int rc;

	options = run_options;
	told.ns = told.completed = 0;
	stages = (struct stages){0};
	stages_clear();
	rc = measure_prepare(nic, control, plan, error, error_size);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < team.size; i++) {
		struct team_member *member = team.members[i];

		run_init(&member->run, member->nic, member->control, i, plan);
	}
	rc = team_work(&team, member_test, error, error_size);
	if (rc == 0)
		measure_sum_up(nic, plan, result);
	for (uint32_t i = 0; i < team.size; i++)
		run_fini(&team.members[i]->run);
	nic_set_loss(nic, 0, 0);
	/* Some of them may have failed. */
	if (rc != 0)
		team_disconnect(&team);
	return rc;
}

void measure_end(void)
{
	team_stop(&team);
}

const struct histogram *measure_last_latency(void)
{
	return &sum.latency;
}

/* A result of the running test, and the device of its threads. */
struct peek {
	struct result_sum sum;
	struct result *result;
	const struct nic *nic; /* NULL: no run yet */
};

static void peek_add(struct run *run, void *arg)
{
	struct peek *peek = arg;
	struct mark now;

	if (!peek->nic)
		result_begin(&peek->sum, peek->result, run->whole);
	peek->nic = run->nic;
	if (!run->ended)
		run_mark(run, &now);
	result_add(&peek->sum, run, run->ended ? &run->last : &now);
}

bool measure_peek(struct result *result)
{
	struct peek peek = {.result = result};

	run_each_live(peek_add, &peek);
	if (!peek.nic)
		return false;
	result_end(&peek.sum, peek.nic);
	stages_peek(&result->stages);
	return true;
}

static void clear(struct run *run, void *arg)
{
	(void)arg;
	run_clear(run);
}

bool measure_clear(void)
{
	return run_each_live(clear, NULL) > 0;
}

static const char *state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0)
		return "?";
	return attr_state_name(attr.qp_state);
}

/* tell_qps gets this: the function to call, and how often it has been called. */
struct telling {
	void (*tell)(uint32_t number, const char *state, uint64_t messages, void *arg);
	void *arg;
	uint32_t count;
};

static void tell_qps(struct run *run, void *arg)
{
	struct telling *telling = arg;

	for (uint32_t i = 0; i < run->endpoint.qp_count; i++, telling->count++)
		telling->tell(run->endpoint.qps[i]->qp_num, state_of(run->endpoint.qps[i]),
			      run->mode->qp_messages(run, i), telling->arg);
}

uint32_t measure_each_qp(void (*tell_qp)(uint32_t number, const char *state, uint64_t messages,
					 void *arg),
			 void *arg)
{
	struct telling telling = {tell_qp, arg, 0};

	run_each_live(tell_qps, &telling);
	return telling.count;
}
