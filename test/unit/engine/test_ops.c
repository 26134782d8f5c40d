/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/ops.c: what verbs ask of an engine. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include "eal/cpu.h"
#include "engine_rig.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);

TEST_FIXTURE(rig_set_up, rig_tear_down);

static unsigned int yields;
static bool arrives; /* a frame arrives while this thread yields or sleeps */

static void arrive(void)
{
	uint64_t start_ns;

	if (!TEST_FILE_RUNS() || !arrives)
		return;
	arrives = false;
	start_ns = ops->now(engine);
	rig_send(&qp, 1);
	assert_true(engine_try(engine));
	engine_transmit(engine);
	engine_release(engine);
	while (ops->now(engine) - start_ns <= POLLING_YIELD_AFTER_NS)
		;
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int __wrap_sched_yield(void)
{
	yields++;
	arrive();
	return __real_sched_yield();
}

static long oversleep_ns; /* by so much all sleeps are longer */

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	const struct timespec longer = {time->tv_sec, time->tv_nsec + oversleep_ns};

	arrive();
	return __real_nanosleep(&longer, left);
}

static bool is_short;
static unsigned int times_asked; /* if CPUs are short */

bool __real_cpu_is_short(void);
bool __wrap_cpu_is_short(void);

bool __wrap_cpu_is_short(void)
{
	times_asked++;
	return TEST_FILE_RUNS() ? is_short : __real_cpu_is_short();
}

static uint64_t cpu_ns; /* of the thread; 0: as the kernel counts */

uint64_t __real_cpu_own_ns(void);
uint64_t __wrap_cpu_own_ns(void);

uint64_t __wrap_cpu_own_ns(void)
{
	return TEST_FILE_RUNS() && cpu_ns != 0 ? cpu_ns : __real_cpu_own_ns();
}

TEST(ops_kick__sends_at_once)
{
	qp.to_send = 1;
	ops->kick(engine, &qp);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(rig_count(COUNTER_tx_packets), 1);
}

TEST(ops_kick__of_a_taken_engine_is_served_by_its_owner)
{
	assert_true(engine_try(engine));
	qp.to_send = 1;
	ops->kick(engine, &qp);
	ops->kick(engine, &qp);
	assert_int_equal(qp.to_send, 1);
	engine_release(engine);
	assert_int_equal(qp.to_send, 0);
	assert_int_equal(qp.runs, 1);
}

TEST(ops_lock__pays_what_is_owed_first)
{
	rig_send(&qp, 1);
	ops->lock(engine);
	assert_int_equal(qp.to_send, 0);
	assert_false(engine_try(engine));
	ops->unlock(engine);
	assert_true(engine_try(engine));
}

/* A message that is received then completes. Its sender must hear of it, because the queue pair
 * sends nothing more. */
TEST(ops_settle__acknowledges_what_it_receives)
{
	fake_receiver = &other;
	rig_send(&qp, 1);
	engine_transmit(engine);
	ops->lock(engine);
	ops->settle(engine, &other);
	assert_int_equal(other.received, 1);
	assert_int_equal(other.runs, 1);
	ops->unlock(engine);
}

static uint16_t receive_nothing(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg, (void)mbufs, (void)n;
	return 0;
}

/* Each of many queue pairs that end may owe something. */
TEST(ops_detach__waits_for_a_full_port_once)
{
	const struct port_ops *const before = engine->link->port.ops;
	static struct port_ops deaf;

	deaf = *before;
	deaf.rx_burst = receive_nothing;
	engine->link->port.ops = &deaf;
	rig_send(&qp, 1000000);
	while (engine_transmit(engine) > 0 && !engine->tx.stuck)
		;
	assert_true(tx_waits_for_port(&engine->tx));
	ops->lock(engine);
	ops->detach(engine, &qp);
	ops->unlock(engine);
	assert_true(engine->tx.given_up);
	engine->link->port.ops = before;
	rig_empty_port();
	engine_transmit(engine);
	assert_false(engine->tx.given_up);
	rig_empty_port();
}

TEST(ops_detach__does_not_wait_for_what_goes_round_inside)
{
	fake_qp_init(&qp, engine->link->port.mac);
	fake_receiver = &other;
	rig_send(&qp, 2000);
	ops->lock(engine);
	while (engine_transmit(engine) > 0 && !engine->tx.stuck)
		;
	assert_true(engine->tx.stuck);
	ops->detach(engine, &qp);
	assert_false(engine->tx.given_up);
	ops->unlock(engine);
	rig_polls(200);
}

TEST(ops_polled__some_run_the_engine)
{
	for (int i = 0; i < 7; i++)
		ops->polled(engine, 4);
	assert_int_equal(engine->polling.engine_polls, 0);
	ops->polled(engine, 4);
	assert_int_equal(engine->polling.engine_polls, 1);
	/* Every poll that finds something shows that the program polls. */
	assert_int_equal(engine->polling.found, 8);
	assert_int_equal(engine->polling.polls, 8 * 4 + 1);
}

static long gave_cpu_up(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

/* The owner may be a thread of less priority that needs this CPU: sched_yield is nothing to it. */
static void *poll_until_asleep(void *arg)
{
	const long before = gave_cpu_up();
	bool *slept = arg;

	for (int i = 0; i < 100 * TIMEOUT_MS && !*slept; i++) {
		ops->poll(engine);
		*slept = gave_cpu_up() > before;
	}
	return NULL;
}

TEST(ops_poll__sleeps_where_the_owner_does_not_go_on)
{
	bool slept = false;
	pthread_t thread;

	engine_lock(engine);
	assert_int_equal(pthread_create(&thread, NULL, poll_until_asleep, &slept), 0);
	pthread_join(thread, NULL);
	engine_release(engine);
	assert_true(slept);
}

/* The owner has lost its CPU, perhaps to this thread. An engine poll that is much too long is slept
 * through, so a new one begins now and then, in case this thread loses its CPU at the wrong time.
 */
TEST(ops_poll__gives_up_the_cpu_where_an_engine_poll_does_not_end)
{
	uint64_t before;

	yields = 0;
	for (int i = 0; i < TIMEOUT_MS && yields == 0; i++) {
		assert_true(engine_try(engine));
		for (int polls = 0; polls < 1000; polls++)
			ops->poll(engine);
		engine_release(engine);
	}
	assert_int_not_equal(yields, 0);
	before = engine->polling.engine_polls;
	ops->poll(engine);
	assert_int_equal(engine->polling.engine_polls, before + 1);
}

TEST(ops_poll__keeps_the_cpu_while_engine_polls_go_on)
{
	yields = 0;
	for (int i = 0; i < 100000; i++) {
		assert_true(engine_try(engine));
		ops->poll(engine);
		engine_release(engine);
	}
	assert_int_equal(yields, 0);
}

/* Poll for nothing for so long, and return how often this thread has slept. */
static long sleeps_in_ms(unsigned int ms)
{
	const uint64_t until_ns = ops->now(engine) + ms * UINT64_C(1000000);
	const long before = gave_cpu_up();

	while (ops->now(engine) < until_ns)
		ops->poll(engine);
	return gave_cpu_up() - before;
}

TEST(ops_poll__sleeps_now_and_then_where_cpus_are_short)
{
	long sleeps = 0;

	is_short = true;
	for (int i = 0; i < TIMEOUT_MS && sleeps == 0; i++)
		sleeps = sleeps_in_ms(1);
	assert_int_not_equal(sleeps, 0);
	assert_in_range(sleeps_in_ms(100), 0, 50);
	is_short = false;
	assert_int_equal(sleeps_in_ms(100), 0);
}

/* The helper looks at the program more often than it sleeps, and has its CPU for longer than 20 us.
 */
TEST(ops_poll__sleeps_although_others_interrupt_it)
{
	const struct timespec interruption = {.tv_nsec = 2 * (long)POLLING_YIELD_AFTER_NS};
	uint64_t until_ns;

	times_asked = 0;
	for (int i = 0; i < TIMEOUT_MS && times_asked == 0; i++) {
		until_ns = ops->now(engine) + POLLING_SHORT_SLEEP_AFTER_NS / 4;
		while (ops->now(engine) < until_ns)
			ops->poll(engine);
		nanosleep(&interruption, NULL);
	}
	assert_int_not_equal(times_asked, 0);
}

/* Poll until a frame has arrived in a pause, and check that the same poll has received it. */
static void check_poll_receives_it(void)
{
	fake_receiver = &other;
	arrives = true;
	for (uint64_t start_ns = ops->now(engine);
	     arrives && ops->now(engine) - start_ns < TIMEOUT_MS * UINT64_C(1000000);)
		ops->poll(engine);
	assert_false(arrives);
	assert_int_equal(other.received, 1);
}

/* A completion and the event of a connection's end may come in the pause. A program that hears of
 * no completion, and then reads the event, destroys the queue pair. */
TEST(ops_poll__receives_what_came_while_it_yielded)
{
	check_poll_receives_it();
}

TEST(ops_poll__receives_what_came_while_it_slept_briefly)
{
	polling_thread.cpu_ns = 1;
	cpu_ns = 1 + POLLING_SHORT_SLEEP_CPU_NS;
	polling_thread.short_sleep_due_ns = 0;
	engine->polling.yield_due_ns = UINT64_MAX;
	is_short = true;
	check_poll_receives_it();
	is_short = false;
	cpu_ns = 0;
}

TEST(ops_poll__receives_what_came_while_a_crowd_slept)
{
	polling_crowd.count_end_ns = UINT64_MAX;
	polling_crowd.sleep_ns = 1000;
	check_poll_receives_it();
	polling_crowd.count_end_ns = polling_crowd.sleep_ns = 0;
}

/* Poll once, after the engine has had no work for long. Return how often it asked if CPUs are
 * short.
 */
static unsigned int asked_by_poll(unsigned int packets)
{
	const struct timespec sleep = {.tv_nsec = 2 * (long)POLLING_SHORT_SLEEP_AFTER_NS};

	rig_polls(2); /* receive what was sent */
	nanosleep(&sleep, NULL);
	times_asked = 0;
	if (packets > 0)
		rig_send(&qp, packets);
	ops->poll(engine);
	return times_asked;
}

/* A program that wakes posts and polls. The answer comes sooner than the poll could find out if
 * CPUs are short. */
TEST(ops_poll__asks_for_cpus_when_it_has_used_one)
{
	cpu_ns = polling_thread.cpu_ns = 1;
	cpu_ns += POLLING_SHORT_SLEEP_CPU_NS - 1;
	assert_int_equal(asked_by_poll(0), 0);
	cpu_ns++;
	assert_int_equal(asked_by_poll(1), 0);
	assert_int_equal(asked_by_poll(0), 1);
	assert_int_equal(asked_by_poll(0), 0);
	cpu_ns = 0;
}

#define CROWD 16

static void *poll_once(void *arg)
{
	ops->poll(engine);
	return arg;
}

/* Let this many threads poll, one after the other: none finds the engine taken. */
static void poll_by_threads(unsigned int n)
{
	pthread_t thread;

	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(pthread_create(&thread, NULL, poll_once, NULL), 0);
		pthread_join(thread, NULL);
	}
}

/* Threads that yield to each other would keep the CPU from other sessions. */
TEST(ops_poll__sleeps_in_a_crowd_of_threads)
{
	long sleeps = 0;

	polling_crowd.cpus = 2;
	is_short = false;
	for (int i = 0; i < TIMEOUT_MS && sleeps == 0; i++) {
		poll_by_threads(CROWD);
		sleeps = sleeps_in_ms(30);
	}
	assert_int_not_equal(sleeps, 0);
	sleeps_in_ms(100);
	/* With this thread they are three, for two CPUs. */
	poll_by_threads(2);
	assert_int_equal(sleeps_in_ms(100), 0);
}

/* Return for how long the crowd's threads sleep after a count in which they were late. */
static uint64_t sleep_after(uint64_t asked_ns, uint64_t late_ns)
{
	struct crowd *crowd = &polling_crowd;

	crowd->threads = CROWD;
	crowd->asked_ns = asked_ns;
	crowd->late_ns = late_ns;
	crowd->count_end_ns = 0;
	poll_by_threads(1);
	return crowd->sleep_ns;
}

/* Threads that wake and find nothing would keep both CPUs busy, and other sessions would wait. */
TEST(ops_poll__sleeps_longer_while_a_crowd_waits_for_cpus)
{
	uint64_t ns;

	polling_crowd.cpus = 2;
	polling_crowd.stretch = 1;
	is_short = false;
	ns = sleep_after(1000, 500);
	assert_int_not_equal(ns, 0);
	assert_int_equal(sleep_after(1000, 1001), 2 * ns);
	assert_int_equal(sleep_after(1000, 1001), 4 * ns);
	assert_int_equal(sleep_after(1000, 500), 4 * ns);
	assert_int_equal(sleep_after(1000, 250), 2 * ns);
	assert_int_equal(sleep_after(0, 0), ns);
	for (int i = 0; i < 10; i++)
		sleep_after(1000, 1001);
	assert_int_equal(sleep_after(1000, 1001), 16 * ns);
	polling_crowd.threads = 1000;
	polling_crowd.count_end_ns = 0;
	poll_by_threads(1);
	assert_int_equal(polling_crowd.sleep_ns, 4000000);
	polling_crowd.count_end_ns = polling_crowd.sleep_ns = polling_crowd.threads = 0;
}

/* A thread that wakes late has waited for a CPU. */
TEST(ops_poll__counts_for_how_long_a_crowd_waits_for_cpus)
{
	struct crowd *crowd = &polling_crowd;

	crowd->count_end_ns = UINT64_MAX;
	crowd->sleep_ns = 1000000;
	crowd->asked_ns = crowd->late_ns = 0;
	oversleep_ns = 2000000;
	poll_by_threads(1);
	oversleep_ns = 0;
	assert_int_equal(crowd->asked_ns, 1000000);
	assert_in_range(crowd->late_ns, 1800000, 1000000000);
	crowd->count_end_ns = crowd->sleep_ns = 0;
}

/* Threads that wait for the owner are as many as those that find the engine free. */
TEST(ops_poll__counts_threads_that_wait_for_the_owner)
{
	struct crowd *crowd = &polling_crowd;

	crowd->cpus = 2;
	is_short = false;
	engine_lock(engine);
	for (int i = 0; i < TIMEOUT_MS && crowd->sleep_ns == 0; i++) {
		for (int polls = 0; polls < CROWD; polls++) {
			bool slept = false;
			pthread_t thread;

			assert_int_equal(pthread_create(&thread, NULL, poll_until_asleep, &slept),
					 0);
			pthread_join(thread, NULL);
			assert_true(slept);
		}
	}
	engine_release(engine);
	assert_int_not_equal(crowd->sleep_ns, 0);
}

/* Many threads that wake all the time would keep the CPU from the owner. */
TEST(ops_poll__waits_for_the_owner_as_long_as_a_crowd_sleeps)
{
	struct crowd *crowd = &polling_crowd;
	bool slept = false;
	pthread_t thread;
	uint64_t start_ns;

	crowd->count_end_ns = UINT64_MAX;
	crowd->sleep_ns = 3000000;
	engine_lock(engine);
	start_ns = ops->now(engine);
	assert_int_equal(pthread_create(&thread, NULL, poll_until_asleep, &slept), 0);
	pthread_join(thread, NULL);
	assert_true(slept);
	assert_true(ops->now(engine) - start_ns >= 3000000);
	engine_release(engine);
	crowd->count_end_ns = crowd->sleep_ns = 0;
}

static void *poll_as_events_do(void *arg)
{
	/* The poll after an event, the one after arming, and sleeping on the channel. */
	ops->wait(engine);
	ops->poll(engine);
	ops->wait(engine);
	ops->poll(engine);
	return arg;
}

/* Threads that sleep between their polls leave the CPU to others. */
TEST(ops_poll__does_not_count_threads_that_sleep_on_channels)
{
	struct crowd *crowd = &polling_crowd;
	pthread_t thread;

	crowd->cpus = 2;
	crowd->count_end_ns = UINT64_MAX;
	crowd->threads = 0;
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(pthread_create(&thread, NULL, poll_as_events_do, NULL), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(crowd->threads, 0);
	poll_by_threads(CROWD);
	assert_int_equal(crowd->threads, CROWD);
	crowd->count_end_ns = crowd->threads = 0;
}
