/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/link/cpu.c. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "link/cpu.h"
#include "skipped.h"

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

static void cpu_run_ordinary__stays_in_an_ordinary_thread(void **state)
{
	struct look seen;

	(void)state;
	assert_int_equal(cpu_run_ordinary(look, &seen), -ENOTTY);
	assert_true(pthread_equal(seen.thread, pthread_self()));
	assert_true(seen.takes_signals);
}

static void cpu_run_ordinary__gives_threads_no_real_time_priority(void **state)
{
	const struct sched_param high = {.sched_priority = 1}, none = {.sched_priority = 0};
	struct look seen;
	int rc, policy;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_run_ordinary__stays_in_an_ordinary_thread),
		cmocka_unit_test(cpu_run_ordinary__gives_threads_no_real_time_priority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
