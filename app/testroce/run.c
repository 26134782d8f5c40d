/* SPDX-License-Identifier: BSD-3-Clause */
/* The run of one thread of the active side. */
#include "run.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "control_conn.h"
#include "histogram.h"
#include "mode.h"
#include "nic.h"
#include "passive.h"

#define WARM_UP_PART 10 /* the first 1/WARM_UP_PART of a timed test does not count */

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static struct run *live[PLAN_THREADS_MAX]; /* by number; NULL: none */

static int run_fail(char *error, size_t error_size, const char *what, int rc)
{
	snprintf(error, error_size, "%s: %s", what, strerror(-rc));
	return rc;
}

void run_init(struct run *run, struct nic *nic, struct control *control, uint32_t number,
	      const struct plan *whole)
{
	memset(run, 0, sizeof(*run));
	run->nic = nic;
	run->control = control;
	run->number = number;
	run->whole = whole;
	plan_share(whole, number, &run->plan);
	run->mode = modes[whole->mode];
	histogram_clear(&run->latency);
}

void run_fini(struct run *run)
{
	if (run->mode->end)
		run->mode->end(run);
	endpoint_destroy(&run->endpoint);
}

static int run_make_endpoint(struct run *run, char *error, size_t error_size)
{
	const struct plan *plan = &run->plan;
	struct endpoint_config config = {.qps = (uint32_t)plan->qps,
					 .send_wr = (uint32_t)plan->depth,
					 .timeout = plan_timeout(plan),
					 .inline_bytes = (uint32_t)plan->inline_bytes,
					 .path_mtu_bytes = (uint32_t)plan->path_mtu_bytes};
	struct endpoint_config passive = {.qps = (uint32_t)plan->qps};

	run->mode->shape(plan, &config, &passive);
	run->slots = plan_slots(plan, plan->depth + 1);
	return endpoint_create(&run->endpoint, run->nic, &config, error, error_size);
}

static int run_ask(struct run *run, struct control_message *message, char *error, size_t error_size)
{
	const int rc = control_call(run->control, message);

	if (rc != 0)
		snprintf(error, error_size, "%s", message->text);
	return rc;
}

/* Connect all queue pairs. The answer to a JOIN holds the QP numbers of the passive side in place
 * of ours. */
static int run_join(struct run *run, char *error, size_t error_size)
{
	struct endpoint *endpoint = &run->endpoint;
	struct control_message message;
	uint32_t first;
	int rc = 0;

	while (rc == 0 && endpoint->qp_count < run->plan.qps) {
		control_init(&message, CONTROL_JOIN);
		first = endpoint->qp_count;
		message.u.join.first = first;
		while (rc == 0 && message.u.join.count < CONTROL_QPS_MAX &&
		       endpoint->qp_count < run->plan.qps) {
			rc = endpoint_add_qp(endpoint);
			if (rc == 0)
				message.u.join.qpns[message.u.join.count++] =
					endpoint->qps[endpoint->qp_count - 1]->qp_num;
		}
		if (rc != 0)
			return run_fail(error, error_size, "a queue pair", rc);
		rc = run_ask(run, &message, error, error_size);
		if (rc == 0 && message.u.join.count != endpoint->qp_count - first)
			return run_fail(error, error_size, "the server", -EPROTO);
		for (uint32_t i = 0; rc == 0 && first + i < endpoint->qp_count; i++) {
			rc = endpoint_connect(endpoint, first + i, &run->peer.gid,
					      message.u.join.qpns[i]);
			if (rc != 0)
				run_fail(error, error_size, "connecting a queue pair", rc);
		}
	}
	return rc;
}

int run_open(struct run *run, char *error, size_t error_size)
{
	struct control_message message;
	int rc;

	rc = run_make_endpoint(run, error, error_size);
	if (rc != 0)
		return rc;
	control_init(&message, CONTROL_OPEN);
	message.u.open.plan = run->plan;
	endpoint_tell(&run->endpoint, &message.u.open.facts);
	rc = run_ask(run, &message, error, error_size);
	if (rc != 0)
		return rc;
	run->peer = message.u.open.facts;
	return run_join(run, error, error_size);
}

void run_mark(const struct run *run, struct mark *mark)
{
	mark->tsc = rte_rdtsc();
	mark->completed = count_get(&run->completed);
	nic_counters(run->nic, &mark->counters);
}

void run_add_latency(struct run *run, uint64_t tsc)
{
	if (run->measuring)
		histogram_add(&run->latency, nic_ns(run->nic, tsc));
}

static void run_show(struct run *run, bool shown)
{
	pthread_mutex_lock(&live_lock);
	live[run->number] = shown ? run : NULL;
	pthread_mutex_unlock(&live_lock);
}

int run_start(struct run *run)
{
	int rc;

	run_mark(run, &run->first);
	run->begin_tsc = run->first.tsc;
	run->measuring = run->plan.messages > 0;
	rc = run->mode->begin(run);
	if (rc == 0)
		run_show(run, true);
	return rc;
}

int run_poll(struct run *run)
{
	const int rc = run->mode->poll(run);

	if (!run->control->where)
		passive_poll(run->control->local);
	return rc;
}

uint64_t run_ns(const struct run *run)
{
	return nic_ns(run->nic, rte_rdtsc() - run->begin_tsc);
}

bool run_is_over(const struct run *run, uint64_t ns)
{
	if (run->plan.messages > 0)
		return run->completed >= run->plan.messages;
	return run->plan.duration_ns > 0 && ns >= run->plan.duration_ns;
}

/* Restart all counts now. */
static void run_count_anew(struct run *run)
{
	pthread_mutex_lock(&live_lock);
	run_mark(run, &run->first);
	histogram_clear(&run->latency);
	pthread_mutex_unlock(&live_lock);
}

bool run_look(struct run *run, uint64_t ns)
{
	const bool warm = unlikely(!run->measuring) && ns >= run->plan.duration_ns / WARM_UP_PART;
	const bool asked = unlikely(__atomic_load_n(&run->clear_wanted, __ATOMIC_RELAXED)) &&
			   __atomic_exchange_n(&run->clear_wanted, false, __ATOMIC_RELAXED);

	if (likely(!warm && !asked))
		return false;
	run_count_anew(run);
	run->measuring |= warm;
	return true;
}

void run_clear(struct run *run)
{
	if (!run->ended) {
		__atomic_store_n(&run->clear_wanted, true, __ATOMIC_RELAXED);
		return;
	}
	run_mark(run, &run->first);
	run->last = run->first;
	histogram_clear(&run->latency);
}

void run_end(struct run *run)
{
	run->measuring = false;
	run->stopping = true;
	pthread_mutex_lock(&live_lock);
	run_mark(run, &run->last);
	run->ended = true;
	if (__atomic_load_n(&run->clear_wanted, __ATOMIC_RELAXED))
		run_clear(run);
	pthread_mutex_unlock(&live_lock);
}

int run_close(struct run *run, char *error, size_t error_size)
{
	struct control_message message;
	int rc;

	run_show(run, false);
	control_init(&message, CONTROL_CLOSE);
	message.u.close.messages = run->completed;
	rc = run_ask(run, &message, error, error_size);
	if (rc == 0)
		run->wrong_at_peer = message.u.close.wrong;
	return rc;
}

void run_explain(const struct run *run, int rc, char *error, size_t error_size)
{
	snprintf(error, error_size, "%s: %s", run->mode->name,
		 run->status ? ibv_wc_status_str((enum ibv_wc_status)run->status) : strerror(-rc));
}

uint32_t run_each_live(void (*each)(struct run *run, void *arg), void *arg)
{
	uint32_t count = 0;

	pthread_mutex_lock(&live_lock);
	for (uint32_t i = 0; i < PLAN_THREADS_MAX; i++) {
		if (!live[i])
			continue;
		each(live[i], arg);
		count++;
	}
	pthread_mutex_unlock(&live_lock);
	return count;
}
