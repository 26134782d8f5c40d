/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/eal/cpu.c. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "eal/cpu.h"
#include "skipped.h"
#include "test.h"

struct look {
	int policy;
	bool takes_signals;
	bool takes_faults;
	pthread_t thread;
};

static int look(void *arg)
{
	struct look *look = arg;
	sigset_t blocked;

	look->policy = sched_getscheduler(0);
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	look->takes_signals = !sigismember(&blocked, SIGUSR1);
	look->takes_faults = !sigismember(&blocked, SIGBUS) && !sigismember(&blocked, SIGSEGV);
	look->thread = pthread_self();
	return -ENOTTY;
}

TEST(cpu_run_ordinary__stays_in_an_ordinary_thread)
{
	struct look seen;

	assert_int_equal(cpu_run_ordinary(look, &seen), -ENOTTY);
	assert_true(pthread_equal(seen.thread, pthread_self()));
	assert_true(seen.takes_signals);
}

static uint32_t sleeper; /* its number, once it runs */

static void *sleep_on(void *arg)
{
	char byte;

	__atomic_store_n(&sleeper, (uint32_t)gettid(), __ATOMIC_RELEASE);
	assert_int_equal(read(*(const int *)arg, &byte, 1), 1);
	return NULL;
}

TEST(cpu_thread__tells_who_wants_a_cpu)
{
	const uint32_t self = (uint32_t)gettid();
	const uint64_t before_ns = cpu_thread_ns(self);
	pthread_t thread;
	int ends[2];

	assert_int_not_equal(before_ns, 0);
	while (cpu_thread_ns(self) == before_ns)
		;
	assert_true(cpu_thread_wants_cpu(self));
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_on, &ends[0]), 0);
	while (__atomic_load_n(&sleeper, __ATOMIC_ACQUIRE) == 0 || cpu_thread_wants_cpu(sleeper))
		sched_yield();
	assert_int_not_equal(cpu_thread_ns(sleeper), 0);
	assert_int_equal(write(ends[1], "", 1), 1);
	pthread_join(thread, NULL);
	/* The thread may be there for a moment more. */
	while (cpu_thread_ns(sleeper) != 0)
		sched_yield();
	assert_false(cpu_thread_wants_cpu(sleeper));
	close(ends[0]);
	close(ends[1]);
}

TEST(cpu_run_ordinary__gives_threads_no_real_time_priority)
{
	const struct sched_param high = {.sched_priority = 1}, none = {.sched_priority = 0};
	struct look seen;
	int rc, policy;

	if (sched_setscheduler(0, SCHED_FIFO, &high) != 0) {
		skipped_for("no real-time priority may be had");
		skip();
	}
	rc = cpu_run_ordinary(look, &seen);
	policy = sched_getscheduler(0);
	sched_setscheduler(0, SCHED_OTHER, &none);
	assert_int_equal(rc, -ENOTTY);
	assert_int_equal(policy, SCHED_FIFO);
	assert_int_equal(seen.policy, SCHED_OTHER);
	assert_false(seen.takes_signals);
	assert_true(seen.takes_faults);
}
