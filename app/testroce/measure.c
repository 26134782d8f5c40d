/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a test: each thread connects its queue pairs, sends messages for the planned time or number,
 * and drains them. */
#include "measure.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "control_conn.h"
#include "count.h"
#include "lossy_port.h"
#include "mode.h"
#include "nic.h"
#include "qp/attr.h"
#include "team.h"

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
