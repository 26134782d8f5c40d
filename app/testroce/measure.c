/* SPDX-License-Identifier: BSD-3-Clause */
/* One test: connect the two sides, send messages for the planned time or number, and report the
 * result. */
#include "measure.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "control_conn.h"
#include "lossy_port.h"
#include "mode.h"
#include "nic.h"
#include "passive.h"
#include "qp/attr.h"

#define WARM_UP_PART 10 /* the first 1/WARM_UP_PART of a timed test does not count */
#define DRAIN_NS     UINT64_C(10000000000)

static struct run the_run; /* one at a time; its histogram is large */

/* The test that measure_peek reports, set from its first message to its last. */
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static struct run *live;
static bool clear_wanted; /* atomic */

static int run_fail(char *error, size_t error_size, const char *what, int rc)
{
	snprintf(error, error_size, "%s: %s", what, strerror(-rc));
	return rc;
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

static int run_open(struct run *run, char *error, size_t error_size)
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

static void run_mark(const struct run *run, struct mark *mark)
{
	mark->tsc = rte_rdtsc();
	mark->completed = run->completed;
	nic_counters(run->nic, &mark->counters);
}

void measure_add_latency(struct run *run, uint64_t tsc)
{
	if (run->measuring)
		histogram_add(&run->latency, nic_ns(run->nic, tsc));
}

static int run_turn(struct run *run)
{
	const int rc = run->mode->turn(run);

	if (run->control->fd < 0)
		passive_turn(run->control->local);
	return rc;
}

static void run_tell(const struct run *run, const struct run_options *options,
		     const struct mark *from, const struct mark *begin)
{
	struct mark now;
	double seconds, messages;

	run_mark(run, &now);
	seconds = (double)nic_ns(run->nic, now.tsc - from->tsc) / 1e9;
	messages = (double)(now.completed - from->completed);
	fprintf(options->lines, "%8.1f s %10.2f Gb/s %10.3f Mmsg/s %14" PRIu64 " messages\n",
		(double)nic_ns(run->nic, now.tsc - begin->tsc) / 1e9,
		messages * (double)run->plan.size_bytes * 8 / 1e9 / seconds,
		messages / 1e6 / seconds, now.completed);
	fflush(options->lines);
}

static bool run_is_over(const struct run *run, const struct run_options *options, uint64_t ns)
{
	if (options->stop && *options->stop)
		return true;
	if (run->plan.messages > 0)
		return run->completed >= run->plan.messages;
	return run->plan.duration_ns > 0 && ns >= run->plan.duration_ns;
}

static void run_show(struct run *run)
{
	pthread_mutex_lock(&live_lock);
	live = run;
	pthread_mutex_unlock(&live_lock);
}

/* Restart all counts now. */
static void run_count_anew(struct run *run)
{
	pthread_mutex_lock(&live_lock);
	run_mark(run, &run->first);
	histogram_clear(&run->latency);
	stages_clear();
	pthread_mutex_unlock(&live_lock);
}

/* Do the work that is due only at some moments of a test: end of warm-up, clear request, periodic
 * line. */
static void run_look(struct run *run, const struct run_options *options, uint64_t ns,
		     const struct mark *begin, struct mark *told)
{
	const bool timed = run->plan.messages == 0;

	if (unlikely(!run->measuring) && (!timed || ns >= run->plan.duration_ns / WARM_UP_PART)) {
		run_count_anew(run);
		run->measuring = true;
	}
	if (unlikely(__atomic_load_n(&clear_wanted, __ATOMIC_RELAXED)) &&
	    __atomic_exchange_n(&clear_wanted, false, __ATOMIC_RELAXED))
		run_count_anew(run);
	if (unlikely(options->period_ns > 0) &&
	    ns - nic_ns(run->nic, told->tsc - begin->tsc) >= options->period_ns) {
		run_tell(run, options, told, begin);
		run_mark(run, told);
	}
}

/* Run the test from its first message until it posts no more. */
static int run_measure(struct run *run, const struct run_options *options, struct mark *last)
{
	struct mark begin, told;
	uint64_t ns = 0;
	int rc;

	run_mark(run, &begin);
	run->first = begin;
	told = begin;
	__atomic_store_n(&clear_wanted, false, __ATOMIC_RELAXED);
	run->measuring = run->plan.messages > 0;
	rc = run->mode->begin(run);
	if (rc == 0)
		run_show(run);
	while (rc == 0 && !run_is_over(run, options, ns)) {
		rc = run_turn(run);
		ns = nic_ns(run->nic, rte_rdtsc() - begin.tsc);
		run_look(run, options, ns, &begin, &told);
	}
	run_mark(run, last);
	run->measuring = false;
	run_show(NULL);
	return rc;
}

static int run_drain(struct run *run)
{
	const uint64_t start_tsc = rte_rdtsc();
	int rc = 0;

	run->stopping = true;
	while (rc == 0 && run->completed < run->posted) {
		rc = run_turn(run);
		if (nic_ns(run->nic, rte_rdtsc() - start_tsc) > DRAIN_NS)
			return -ETIMEDOUT;
	}
	return rc;
}

static void run_sum_up(const struct run *run, const struct mark *last, struct result *result)
{
	static const enum counter packets[] = {COUNTER_rx_packets, COUNTER_tx_packets,
					       COUNTER_rx_loopback_packets};
	static const uint32_t quantiles[RESULT_QUANTILES] = {500000, 900000, 990000, 999000};
	const struct mark *first = &run->first;
	const uint64_t *before = first->counters.value, *after = last->counters.value;

	*result = (struct result){
		.plan = run->plan,
		.tsc = last->tsc - first->tsc,
		.seconds = (double)nic_ns(run->nic, last->tsc - first->tsc) / 1e9,
		.messages = last->completed - first->completed,
		.retransmitted = after[COUNTER_retransmitted_packets] -
				 before[COUNTER_retransmitted_packets],
		.wrong = run->wrong,
		.has_latency = run->latency.count > 0,
	};
	for (size_t i = 0; i < RTE_DIM(packets); i++)
		result->packets += after[packets[i]] - before[packets[i]];
	for (int i = 0; i < RESULT_DAMAGES; i++)
		result->damage[i] =
			after[COUNTER_impair_lost + i] - before[COUNTER_impair_lost + i];
	if (result->has_latency) {
		for (int i = 0; i < RESULT_QUANTILES; i++)
			result->p_us[i] =
				(double)histogram_quantile(&run->latency, quantiles[i]) / 1e3;
		result->min_us = (double)run->latency.min / 1e3;
		result->max_us = (double)run->latency.max / 1e3;
	}
	if (run->mode->stats)
		run->mode->stats(run, result);
}

static int run_close(struct run *run, struct result *result, char *error, size_t error_size)
{
	struct control_message message;
	int rc;

	control_init(&message, CONTROL_CLOSE);
	message.u.close.messages = run->completed;
	rc = run_ask(run, &message, error, error_size);
	if (rc == 0)
		result->wrong += message.u.close.wrong;
	return rc;
}

/* Report to the passive side, by a CLOSE, that the test has failed. Ignore the answer, which has no
 * new information. */
static int run_give_up(struct run *run, struct result *result, int rc)
{
	char ignored[128];

	run_close(run, result, ignored, sizeof(ignored));
	return rc;
}

static int run_all(struct run *run, const struct run_options *options, struct result *result,
		   char *error, size_t error_size)
{
	struct stages stages = {0};
	struct mark last;
	int rc;

	rc = run_open(run, error, error_size);
	if (rc != 0)
		return run_give_up(run, result, rc);
	if (options->stages && (rc = stages_begin()) != 0) {
		snprintf(error, error_size, "stages cannot be measured: %s",
			 rc == -ENOENT ? "the program has no symbols" : strerror(-rc));
		return run_give_up(run, result, rc);
	}
	rc = run_measure(run, options, &last);
	if (options->stages)
		stages_end(&stages);
	if (rc == 0)
		rc = run_drain(run);
	if (rc != 0) {
		snprintf(error, error_size, "%s: %s", run->mode->name,
			 run->status ? ibv_wc_status_str((enum ibv_wc_status)run->status)
				     : strerror(-rc));
		return run_give_up(run, result, rc);
	}
	run_sum_up(run, &last, result);
	result->stages = stages;
	return run_close(run, result, error, error_size);
}

int measure_test(struct nic *nic, struct control *control, const struct plan *plan,
		 const struct run_options *options, struct result *result, char *error,
		 size_t error_size)
{
	struct run *run = &the_run;
	int rc;

	rc = plan_check(plan, error, error_size);
	if (rc != 0)
		return rc;
	if (nic_set_loss(nic, plan->loss_ppm, ~plan->seed) != 0) {
		snprintf(error, error_size, LOSS_REFUSED);
		return -ENOTSUP;
	}
	nic_without(nic, plan->without);
	memset(run, 0, sizeof(*run));
	run->nic = nic;
	run->control = control;
	run->plan = *plan;
	run->mode = modes[plan->mode];
	histogram_clear(&run->latency);
	rc = run_all(run, options, result, error, error_size);
	if (run->mode->end)
		run->mode->end(run);
	endpoint_destroy(&run->endpoint);
	nic_set_loss(nic, 0, 0);
	return rc;
}

const struct histogram *measure_last_latency(void)
{
	return &the_run.latency;
}

bool measure_peek(struct result *result)
{
	struct mark now;
	bool runs;

	pthread_mutex_lock(&live_lock);
	runs = live != NULL;
	if (runs) {
		run_mark(live, &now);
		run_sum_up(live, &now, result);
		stages_peek(&result->stages);
	}
	pthread_mutex_unlock(&live_lock);
	return runs;
}

bool measure_clear(void)
{
	bool runs;

	pthread_mutex_lock(&live_lock);
	runs = live != NULL;
	__atomic_store_n(&clear_wanted, runs, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&live_lock);
	return runs;
}

static const char *state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0)
		return "?";
	return attr_state_name(attr.qp_state);
}

uint32_t measure_each_qp(void (*tell)(uint32_t number, const char *state, uint64_t messages,
				      void *arg),
			 void *arg)
{
	uint32_t count = 0;

	pthread_mutex_lock(&live_lock);
	for (; live && count < live->endpoint.qp_count; count++)
		tell(live->endpoint.qps[count]->qp_num, state_of(live->endpoint.qps[count]),
		     live->mode->qp_messages(live, count), arg);
	pthread_mutex_unlock(&live_lock);
	return count;
}

double result_gbps(const struct result *result)
{
	return result->seconds > 0 ? (double)result->messages * (double)result->plan.size_bytes *
					     8 / 1e9 / result->seconds
				   : 0;
}

double result_mps(const struct result *result)
{
	return result->seconds > 0 ? (double)result->messages / 1e6 / result->seconds : 0;
}

double result_cycles_packet(const struct result *result)
{
	return result->packets > 0 ? (double)result->tsc / (double)result->packets : 0;
}

double result_cycles_byte(const struct result *result)
{
	const double bytes = (double)result->messages * (double)result->plan.size_bytes;

	return bytes > 0 ? (double)result->tsc / bytes : 0;
}
