/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/helper.c: what a helper finds when it looks at an engine that the program
 * polls. */
#include <stddef.h>
#include <stdint.h>

#include "engine_rig.h"
#include "helper_thread.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);

static int set_up_idle(TEST_STATE)
{
	return rig_begin(SETTINGS_PROGRESS_HYBRID);
}

TEST_FIXTURE(set_up_idle, rig_tear_down);

TEST(helper_is_relieved__by_polls_without_waits)
{
	struct helper_polls seen = {.polls = engine->polling.polls, .waits = engine->polling.waits};

	assert_false(helper_is_relieved(&seen, engine, 0));
	for (int i = 0; i < 4; i++)
		polling_count(&engine->polling);
	assert_true(helper_is_relieved(&seen, engine, 0));
	/* The same polls of a program that sleeps between events. */
	polling_count_wait(&engine->polling);
	assert_false(helper_is_relieved(&seen, engine, 0));
	for (int i = 0; i < 32; i++)
		polling_count(&engine->polling);
	assert_true(helper_is_relieved(&seen, engine, 0));
	/* Old polls do not count. */
	polling_count_wait(&engine->polling);
	assert_false(helper_is_relieved(&seen, engine, 1000000));
	polling_count(&engine->polling);
	assert_false(helper_is_relieved(&seen, engine, 1000001));
}

/* A thread that has slept has not polled in vain meanwhile. */
TEST(polling_vain__begins_anew_after_a_sleep, .bare = true)
{
	struct polling polling;

	polling_init(&polling);
	assert_int_equal(polling_vain_ns(&polling, 1000000), 0);
	assert_int_equal(polling_vain_ns(&polling, 1015000), 15000);
	assert_int_equal(polling_vain_ns(&polling, 1030000), 30000);
	/* Another thread, which has read the clock earlier. */
	assert_int_equal(polling_vain_ns(&polling, 1029000), 29000);
	assert_int_equal(polling_vain_ns(&polling, 2000000), 0);
	assert_int_equal(polling_vain_ns(&polling, 2001000), 1000);
}

TEST(helper_average__rises_slowly_and_falls_at_once, .bare = true)
{
	assert_int_equal(helper_average_ns(0, 4000), 500);
	assert_int_equal(helper_average_ns(4000, 3000), 3000);
	/* A CPU that was taken away for long is no more than a dear look. */
	assert_int_equal(helper_average_ns(0, 10000000), 25000);
	assert_int_equal(helper_average_ns(200000, 10000000), 200000);
}

TEST(helper_note_losses__for_some_time_after_any_sign_of_one, .bare = true)
{
	static const enum counter signs[] = {COUNTER_retransmitted_packets,
					     COUNTER_duplicate_request, COUNTER_out_of_sequence};
	struct helper_losses losses = {0};
	struct counters counters = {0};

	helper_note_losses(&losses, &counters, 1000);
	assert_int_equal(losses.until_ns, 0);
	for (uint64_t i = 0; i < RTE_DIM(signs); i++) {
		counters_add(&counters, signs[i], 1);
		helper_note_losses(&losses, &counters, 2000 + i);
		assert_int_equal(losses.until_ns, 10002000 + i);
	}
	counters_add(&counters, COUNTER_rx_packets, 1);
	helper_note_losses(&losses, &counters, 3000);
	assert_int_equal(losses.until_ns, 10002002);
}

TEST(helper_is_needed__after_a_tick_without_polls)
{
	struct helper_watch watch = {.engine_polls = 0};

	engine->polling.engine_polls = 1;
	assert_false(helper_is_needed(&watch, engine, 20, 320));
	assert_true(helper_is_needed(&watch, engine, 20, 320));
}

/* An engine poll with many packets over a kernel interface is longer than a tick. A helper that
 * took it for the program's silence spun beside the engine poll, for 15 % of the CPU's time. */
TEST(helper_is_needed__not_during_another_threads_poll)
{
	struct helper_watch watch = {.engine_polls = 0};

	assert_false(owner_is_taken(&engine->owner));
	assert_true(owner_try(&engine->owner));
	assert_true(owner_is_taken(&engine->owner));
	assert_false(helper_is_needed(&watch, engine, 20, 320));
	owner_unlock(&engine->owner);
	assert_true(helper_is_needed(&watch, engine, 20, 320));
}

TEST(helper_is_needed__by_who_finds_much_and_runs_no_engine_poll)
{
	struct helper_watch watch = {.engine_polls = 0};

	for (uint64_t ns = 0; ns < 640 - 20; ns += 20) {
		engine->polling.found++;
		assert_false(helper_is_needed(&watch, engine, 20, 320));
	}
	engine->polling.found++;
	assert_true(helper_is_needed(&watch, engine, 20, 320));
	/* An engine poll now and then will do. */
	for (int i = 0; i < 10; i++) {
		engine->polling.found++;
		engine->polling.engine_polls += i % 2 == 0;
		assert_false(helper_is_needed(&watch, engine, 320, 320));
	}
}

/* The kernel's answers about the thread that polls. The tests ask about no other one. */
static uint64_t poller_ns;
static bool poller_wants_cpu;

uint64_t __real_cpu_thread_ns(uint32_t tid);
uint64_t __wrap_cpu_thread_ns(uint32_t tid);
bool __real_cpu_thread_wants_cpu(uint32_t tid);
bool __wrap_cpu_thread_wants_cpu(uint32_t tid);

uint64_t __wrap_cpu_thread_ns(uint32_t tid)
{
	if (!TEST_FILE_RUNS())
		return __real_cpu_thread_ns(tid);
	return tid == 0 ? 0 : poller_ns;
}

bool __wrap_cpu_thread_wants_cpu(uint32_t tid)
{
	if (!TEST_FILE_RUNS())
		return __real_cpu_thread_wants_cpu(tid);
	return tid != 0 && poller_wants_cpu;
}

static void poll_in_vain(uint64_t now_ns)
{
	poller_ns += 1000;
	polling_vain_ns(&engine->polling, now_ns);
}

TEST(helper_poller_waits__while_it_wants_a_cpu_and_gets_none)
{
	struct helper_watch watch = {.engine_polls = 0};

	poller_wants_cpu = true;
	poll_in_vain(0);
	assert_false(helper_poller_waits(&watch, engine, 0)); /* there is nothing to compare */
	assert_true(helper_poller_waits(&watch, engine, 20000));
	assert_true(watch.short_until_ns > 20000);
	/* The thread had a CPU, and did not poll. */
	poller_ns++;
	assert_false(helper_poller_waits(&watch, engine, 40000));
	/* The thread sleeps. */
	poller_wants_cpu = false;
	assert_false(helper_poller_waits(&watch, engine, 60000));
	/* The thread has ended. */
	poller_wants_cpu = true;
	poller_ns = 0;
	assert_false(helper_poller_waits(&watch, engine, 80000));
	assert_false(helper_poller_waits(&watch, engine, 100000));
}

TEST(helper_poller_waits__for_a_limited_time)
{
	struct helper_watch watch = {.engine_polls = 0};

	poller_wants_cpu = true;
	poll_in_vain(0);
	helper_poller_waits(&watch, engine, 0);
	assert_true(helper_poller_waits(&watch, engine, 1000));
	assert_true(helper_poller_waits(&watch, engine, 999 + HELPER_WAITS_NS));
	assert_false(helper_poller_waits(&watch, engine, 1000 + HELPER_WAITS_NS));
	/* Then the helper has run the engine. */
	assert_true(helper_poller_waits(&watch, engine, 2000 + HELPER_WAITS_NS));
}

TEST(helper_poller_waits__not_for_another_thread)
{
	struct helper_watch watch = {.engine_polls = 0};

	poller_wants_cpu = true;
	poll_in_vain(0);
	helper_poller_waits(&watch, engine, 0);
	engine->polling.poller++;
	assert_false(helper_poller_waits(&watch, engine, 20000));
	assert_true(helper_poller_waits(&watch, engine, 40000));
	engine->polling.poller = 0;
	assert_false(helper_poller_waits(&watch, engine, 60000));
	assert_false(helper_poller_waits(&watch, engine, 80000));
}
