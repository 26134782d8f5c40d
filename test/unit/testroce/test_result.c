/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of made-up runs, on a device that has nothing but a clock. */
#include <stdint.h>

#include "device/device.h"
#include "engine/engine.h"
#include "mode.h"
#include "nic.h"
#include "result.h"
#include "run.h"
#include "test.h"
#include "verbs_internal.h"

#define NS_PER_TSC 1000

static struct engine engine;
static struct device_engine home;
static struct device device;
static struct face_context context;
static struct nic nic;

static struct run early, late; /* they overlap */
static struct plan plan;
static struct result result;
static struct result_sum sum;

static void count_reads(const struct run *run, struct result *counted)
{
	counted->reads += run->number + 1;
}

static const struct mode quiet = {.name = "quiet"};
static const struct mode reading = {.name = "reading", .stats = count_reads};

static struct mark mark_at(uint64_t tsc, uint64_t completed)
{
	struct mark mark = {.tsc = tsc, .completed = completed};

	/* The device counts on, whatever thread looks. */
	mark.counters.value[COUNTER_rx_packets] = 10 * tsc;
	mark.counters.value[COUNTER_tx_packets] = 20 * tsc;
	mark.counters.value[COUNTER_rx_loopback_packets] = 40 * tsc;
	mark.counters.value[COUNTER_retransmitted_packets] = 3 * tsc;
	mark.counters.value[COUNTER_impair_lost] = 5 * tsc;
	return mark;
}

static void add_latencies(struct run *run, uint64_t ns, uint32_t count)
{
	while (count-- > 0)
		histogram_add(&run->latency, ns);
}

static int setup(TEST_STATE)
{
	engine.clock.ns_per_tsc = (uint64_t)NS_PER_TSC << CLOCK_SHIFT;
	home.driver = &engine;
	device.engines[0] = &home;
	context.device = &device;
	nic.context = &context.verbs.context;

	plan_init(&plan);
	early = (struct run){
		.nic = &nic, .number = 0, .mode = &quiet, .wrong = 1, .wrong_at_peer = 2};
	early.first = mark_at(100, 10);
	early.last = mark_at(1100, 510);
	late = (struct run){
		.nic = &nic, .number = 1, .mode = &quiet, .wrong = 4, .wrong_at_peer = 8};
	late.first = mark_at(300, 0);
	late.last = mark_at(1400, 700);
	histogram_clear(&early.latency);
	histogram_clear(&late.latency);
	result_begin(&sum, &result, &plan);
	return 0;
}

TEST_FIXTURE(setup, NULL);

static uint64_t rounded(double value)
{
	return (uint64_t)(value + 0.5);
}

static void check_sums(void)
{
	/* from the first begin to the last end */
	assert_int_equal(rounded(result.seconds * 1e9), (1400 - 100) * NS_PER_TSC);
	assert_int_equal(result.packets, (10 + 20 + 40) * (1400 - 100));
	assert_int_equal(result.retransmitted, 3 * (1400 - 100));
	assert_int_equal(result.damage[0], 5 * (1400 - 100));
	/* of each run */
	assert_int_equal(result.tsc, 1000 + 1100);
	assert_int_equal(result.messages, 500 + 700);
	assert_int_equal(result.wrong, 1 + 2 + 4 + 8);
	assert_int_equal(result.qp_least, 0);
}

TEST(result_add__spans_runs_that_overlap)
{
	result_add(&sum, &early, &early.last);
	result_add(&sum, &late, &late.last);
	result_end(&sum, &nic);
	check_sums();
}

TEST(result_add__takes_runs_in_any_order)
{
	result_add(&sum, &late, &late.last);
	result_add(&sum, &early, &early.last);
	result_end(&sum, &nic);
	check_sums();
}

/* One run begins after the other one, and ends before it. */
TEST(result_add__spans_the_longer_run)
{
	late.last = mark_at(1000, 700);
	result_add(&sum, &early, &early.last);
	result_add(&sum, &late, &late.last);
	result_end(&sum, &nic);
	assert_int_equal(rounded(result.seconds * 1e9), (1100 - 100) * NS_PER_TSC);
	assert_int_equal(result.packets, (10 + 20 + 40) * (1100 - 100));
	assert_int_equal(result.tsc, 1000 + 700);
}

/* A running test has no `last` yet. */
TEST(result_add__counts_up_to_the_mark)
{
	const struct mark now = mark_at(600, 110);

	result_add(&sum, &early, &now);
	result_end(&sum, &nic);
	assert_int_equal(result.messages, 100);
	assert_int_equal(result.tsc, 500);
	assert_int_equal(rounded(result.seconds * 1e9), 500 * NS_PER_TSC);
}

/* The counts of a run that has ended begin at its end. */
TEST(run_clear__clears_a_run_that_has_ended)
{
	add_latencies(&early, 10, 1);
	early.ended = true;
	early.completed = 512; /* two more, while it drained */
	run_clear(&early);
	result_add(&sum, &early, &early.last);
	result_end(&sum, &nic);
	assert_int_equal(result.messages, 0);
	assert_int_equal(result.tsc, 0);
	assert_false(result.has_latency);
	assert_false(early.clear_wanted);
}

TEST(run_clear__leaves_a_running_one_to_its_thread)
{
	run_clear(&early);
	assert_true(early.clear_wanted);
	assert_int_equal(early.first.tsc, 100);
}

TEST(result_end__takes_quantiles_of_all_latencies)
{
	add_latencies(&early, 10, 95);
	add_latencies(&late, 20, 4);
	add_latencies(&late, 50, 1);
	result_add(&sum, &early, &early.last);
	result_add(&sum, &late, &late.last);
	result_end(&sum, &nic);
	assert_true(result.has_latency);
	assert_int_equal(rounded(result.p_us[0] * 1e3), 10);
	assert_int_equal(rounded(result.p_us[1] * 1e3), 10);
	assert_int_equal(rounded(result.p_us[2] * 1e3), 20);
	assert_int_equal(rounded(result.p_us[3] * 1e3), 50);
	assert_int_equal(rounded(result.min_us * 1e3), 10);
	assert_int_equal(rounded(result.max_us * 1e3), 50);
}

TEST(result_end__has_no_latency_of_runs_without)
{
	result_add(&sum, &early, &early.last);
	result_end(&sum, &nic);
	assert_false(result.has_latency);
}

TEST(result_add__adds_what_the_mode_counts)
{
	early.mode = late.mode = &reading;
	result_add(&sum, &early, &early.last);
	result_add(&sum, &late, &late.last);
	result_end(&sum, &nic);
	assert_int_equal(result.reads, 1 + 2);
}
