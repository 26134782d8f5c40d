/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/guard.c with blocked signals: the guard unblocks its own, and passes on a
 * signal that the program reads. */
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/guard.h"
#include "guard_rig.h"
#include "test.h"

TEST_FIXTURE(guard_rig_set_up, guard_rig_tear_down);

TEST(guard_run__leaves_the_signal_mask_alone)
{
	sigset_t before, after;

	expect_copy(NULL, local, 1, -EFAULT);
	sigprocmask(SIG_BLOCK, NULL, &before);
	for (int i = 0; i < 10; i++)
		expect_copy(NULL, local, 1, -EFAULT);
	sigprocmask(SIG_BLOCK, NULL, &after);
	for (int sig = 1; sig < 32; sig++)
		assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
	assert_false(sigismember(&after, SIGSEGV));
}

static void *fault_with_all_blocked(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	*(int *)arg = guarded_copy(NULL, local, 1);
	pthread_sigmask(SIG_BLOCK, NULL, &all);
	/* The guard unblocks only these two signals. */
	if (sigismember(&all, SIGSEGV) || sigismember(&all, SIGBUS) || !sigismember(&all, SIGTERM))
		*(int *)arg = 0;
	return NULL;
}

TEST(guard_run__works_in_a_thread_that_blocks_all_signals)
{
	pthread_t thread;
	int rc = 0;

	assert_int_equal(guard_install(), 0);
	assert_int_equal(pthread_create(&thread, NULL, fault_with_all_blocked, &rc), 0);
	pthread_join(thread, NULL);
	assert_int_equal(rc, -EFAULT);
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
}

/* Block all signals after the first copy, when copies no longer check the mask. */
static void block_between_copies(void)
{
	uint64_t now_ns = 5 * GUARD_PERIOD_NS;

	guard_install();
	guard_refresh(now_ns);
	if (guarded_copy(NULL, local, 1) != -EFAULT)
		_exit(1);
	block_all();
	now_ns += GUARD_PERIOD_NS - 1;
	guard_refresh(now_ns);
	/* The mask is checked once a period, since the check is a system call. */
	if (!signal_is_blocked(SIGSEGV) || !signal_is_blocked(SIGBUS))
		_exit(2);
	guard_refresh(now_ns + 1);
	if (signal_is_blocked(SIGSEGV) || signal_is_blocked(SIGBUS) || !signal_is_blocked(SIGTERM))
		_exit(3);
	if (guarded_copy(NULL, local, 1) != -EFAULT)
		_exit(4);
	/* Refresh with the clock of another engine, which is a little behind. */
	block_all();
	guard_refresh(now_ns);
	_exit(guarded_copy(NULL, local, 1) == -EFAULT ? 42 : 5);
}

TEST(guard_refresh__unblocks_what_was_blocked_since)
{
	expect_exit(block_between_copies, 42);
}

static int told[2];	   /* a pipe */
static bool rests_in_call; /* and not before it */

/* A thread of ours: it makes copies, is sent a signal, and rests. */
static void *serve(void *arg)
{
	guard_serve();
	guard_refresh(1);
	if (write(told[1], "", 1) != 1)
		return NULL;
	while (!guard_owes())
		sched_yield();
	/* Copies fail as ever while the signal is kept. */
	if (write(told[1], "", 1) != 1 || guarded_copy(local, memory + PAGE, 8) != -EFAULT)
		return NULL;
	if (rests_in_call) {
		const struct timespec moment = {.tv_nsec = 1};
		sigset_t mask;

		guard_pause_in_call(&mask);
		ppoll(NULL, 0, &moment, &mask);
		return sigismember(&mask, SIGSEGV) && sigismember(&mask, SIGBUS) ? arg : NULL;
	}
	guard_pause();
	return arg;
}

static void read_by_signalfd(void)
{
	const union sigval value = {.sival_int = 4711};
	struct signalfd_siginfo info;
	pthread_t thread;
	sigset_t set;
	void *served;
	char byte;
	int fd;

	mprotect(memory + PAGE, PAGE, PROT_NONE);
	guard_install();
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	fd = signalfd(-1, &set, 0);
	if (fd < 0 || pipe(told) != 0 || pthread_create(&thread, NULL, serve, local) != 0)
		_exit(1);
	/* The only thread that does not block it is the other one, which has it in the end. */
	if (read(told[0], &byte, 1) != 1 || sigqueue(getpid(), SIGBUS, value) != 0 ||
	    read(told[0], &byte, 1) != 1)
		_exit(2);
	if (read(fd, &info, sizeof(info)) != sizeof(info))
		_exit(3);
	pthread_join(thread, &served);
	_exit(served == local && info.ssi_signo == SIGBUS && info.ssi_int == 4711 &&
			      info.ssi_pid == (uint32_t)getpid()
		      ? 0
		      : 4);
}

TEST(guard_pause__gives_back_what_the_program_reads_by_signalfd)
{
	rests_in_call = false;
	expect_exit(read_by_signalfd, 0);
}

TEST(guard_pause_in_call__gives_back_the_same)
{
	rests_in_call = true;
	expect_exit(read_by_signalfd, 0);
}
