/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/eal/cpu.c. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>

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
