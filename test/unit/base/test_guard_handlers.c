/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of guard_install (lib/base/guard.c) beside a program's own signal handlers. A test that
 * changes a signal's action runs in a child process. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "guard_rig.h"
#include "sanitizer.h"
#include "test.h"

TEST_FIXTURE(guard_rig_set_up, guard_rig_tear_down);

static void fault(void)
{
	guard_install();
	fault_at_64();
}

static void kill_segv(void)
{
	guard_install();
	raise(SIGSEGV);
}

static void kill_bus(void)
{
	guard_install();
	raise(SIGBUS);
}

TEST(guard_install__what_is_not_a_copys_kills_as_ever)
{
	expect_killed(fault, SIGSEGV);
	expect_killed(kill_segv, SIGSEGV);
	expect_killed(kill_bus, SIGBUS);
}

/* A program's own handlers, which end the child with a code. */

static volatile sig_atomic_t handled;

static void set_handler(int flags, void (*handler)(int, siginfo_t *, void *), int also_blocked)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags};

	if (also_blocked)
		sigaddset(&action.sa_mask, also_blocked);
	sigaction(SIGSEGV, &action, NULL);
}

static void exit_by_cause(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	/* The thread sanitizer's handlers run with everything blocked. */
	if (sig != SIGSEGV || info->si_code != SEGV_MAPERR || info->si_addr != (void *)64 ||
	    uc == NULL || !signal_is_blocked(SIGSEGV) || !signal_is_blocked(SIGUSR1) ||
	    (signal_is_blocked(SIGUSR2) && !THREAD_SANITIZER))
		_exit(1);
	_exit(42);
}

static void handler_with_cause(void)
{
	set_handler(SA_SIGINFO, exit_by_cause, SIGUSR1);
	guard_install();
	fault_at_64();
}

static void exit_by_number(int sig)
{
	_exit(sig == SIGSEGV && (!signal_is_blocked(SIGSEGV) || THREAD_SANITIZER) ? 42 : 1);
}

static void handler_of_one_argument(void)
{
	const struct sigaction action = {.sa_handler = exit_by_number, .sa_flags = SA_NODEFER};

	sigaction(SIGSEGV, &action, NULL);
	guard_install();
	fault_at_64();
}

static void count(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	/* The sender's, as it was sent. */
	if (info->si_code == SI_TKILL && info->si_pid == getpid())
		handled++;
}

static void handler_that_serves_once(void)
{
	set_handler(SA_SIGINFO | (int)SA_RESETHAND, count, 0);
	guard_install();
	raise(SIGSEGV);
	if (handled != 1)
		_exit(1);
	raise(SIGSEGV); /* kills */
}

static char other_stack[64 * 1024];

static void exit_by_stack(int sig, siginfo_t *info, void *context)
{
	char here;

	(void)sig;
	(void)info;
	(void)context;
	_exit(&here >= other_stack && &here < other_stack + sizeof(other_stack) ? 42 : 43);
}

static void use_other_stack(void)
{
	const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};

	sigaltstack(&stack, NULL);
}

static void handler_on_its_stack(void)
{
	use_other_stack();
	set_handler(SA_SIGINFO | SA_ONSTACK, exit_by_stack, 0);
	guard_install();
	fault_at_64();
}

static void handler_on_the_threads_stack(void)
{
	use_other_stack();
	set_handler(SA_SIGINFO, exit_by_stack, 0);
	guard_install();
	fault_at_64();
}

static sigjmp_buf back;

static void jump_back(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	siglongjmp(back, 1);
}

static void handler_that_jumps(void)
{
	set_handler(SA_SIGINFO, jump_back, 0);
	guard_install();
	for (volatile int i = 0; i < 3; i++) {
		if (sigsetjmp(back, 1) == 0)
			fault_at_64();
		if (guarded_copy(NULL, local, 1) != -EFAULT)
			_exit(1);
	}
	_exit(42);
}

TEST(guard_install__the_programs_handler_runs_as_it_asked)
{
	expect_exit(handler_with_cause, 42);
	expect_exit(handler_of_one_argument, 42);
	expect_killed(handler_that_serves_once, SIGSEGV);
	expect_exit(handler_on_its_stack, 42);
	expect_exit(handler_on_the_threads_stack, 43);
	expect_exit(handler_that_jumps, 42);
}

static void ignore_sent(void)
{
	struct sigaction now;

	signal(SIGSEGV, SIG_IGN);
	guard_install();
	raise(SIGSEGV);
	sigaction(SIGSEGV, NULL, &now);
	if (now.sa_handler != SIG_IGN)
		_exit(1);
	sigaction(SIGBUS, NULL, &now);
	_exit(now.sa_handler != SIG_DFL ? 42 : 1);
}

static void ignore_fault(void)
{
	signal(SIGSEGV, SIG_IGN);
	guard_install();
	fault_at_64();
}

TEST(guard_install__ignored_signals_stay_so)
{
	expect_exit(ignore_sent, 42);
	/* The kernel does the same: a process cannot ignore its own faults. */
	expect_killed(ignore_fault, SIGSEGV);
}

/* A handler that the program has set after us, and that goes on to what it found. */

static struct sigaction found;

static void go_on_to_found(int sig, siginfo_t *info, void *context)
{
	if (++handled > 3)
		_exit(1);
	if (found.sa_handler == SIG_DFL)
		_exit(2);
	found.sa_sigaction(sig, info, context);
}

static void install_later_handler(void)
{
	const struct sigaction action = {.sa_sigaction = go_on_to_found, .sa_flags = SA_SIGINFO};

	guard_install();
	sigaction(SIGSEGV, &action, &found);
}

static void later_handler_that_goes_on(void)
{
	install_later_handler();
	/* The program's handler is in front of ours, and passes the fault on to ours. */
	if (guarded_copy(NULL, local, 1) != -EFAULT || handled != 1)
		_exit(1);
	/* We stand in front again. */
	if (guard_install() != 0 || guarded_copy(NULL, local, 1) != -EFAULT || handled != 1)
		_exit(1);
	_exit(42);
}

static void later_handler_and_a_fault_of_the_program(void)
{
	install_later_handler();
	guard_install();
	/* The fault goes to the later handler, then to ours, then to the default, and not in a
	 * circle. */
	fault_at_64();
}

static void handlers_that_come_and_go(void)
{
	struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO}, before;

	for (int i = 0; i < 100; i++) {
		sigaction(SIGSEGV, &action, &before);
		if (guard_install() != 0 || guarded_copy(NULL, local, 1) != -EFAULT)
			_exit(1);
		sigaction(SIGSEGV, &before, NULL);
		if (guard_install() != 0 || guarded_copy(NULL, local, 1) != -EFAULT)
			_exit(1);
	}
	_exit(42);
}

static void handlers_by_number(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	_exit(1);
}

/* Each has another mask. */
static void many_handlers(void)
{
	for (int i = 0; i < 24; i++) {
		struct sigaction action = {.sa_sigaction = handlers_by_number,
					   .sa_flags = SA_SIGINFO};

		sigaddset(&action.sa_mask, SIGRTMIN + i);
		sigaction(SIGSEGV, &action, NULL);
		if (guard_install() != 0 || guarded_copy(NULL, local, 1) != -EFAULT)
			_exit(1);
	}
	_exit(42);
}

/* A thread of the program that sets its handler while we stand in front of what was there before.
 */

static bool setting;

static void count_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	handled++;
}

static void *install_all_the_time(void *arg)
{
	(void)arg;
	while (__atomic_load_n(&setting, __ATOMIC_ACQUIRE))
		guard_install();
	return NULL;
}

static void handlers_set_meanwhile(void)
{
	const struct sigaction mine = {.sa_sigaction = count_fault, .sa_flags = SA_SIGINFO};
	const struct sigaction other = {.sa_sigaction = handlers_by_number, .sa_flags = SA_SIGINFO};
	pthread_t thread;

	setting = true;
	pthread_create(&thread, NULL, install_all_the_time, NULL);
	for (int i = 0; i < 20000; i++) {
		sigaction(SIGBUS, &other, NULL);
		sigaction(SIGBUS, &mine, NULL);
		handled = 0;
		/* Wait until the other thread has finished the installation that it has begun. */
		guard_install();
		raise(SIGBUS);
		if (handled != 1)
			_exit(1);
	}
	__atomic_store_n(&setting, false, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	_exit(42);
}

TEST(guard_install__loses_no_handler)
{
	expect_exit(many_handlers, 42);
	/* The thread sanitizer's sigaction is not atomic: if two threads set an action at once,
	 * each may get the action that the other one found. */
	if (!THREAD_SANITIZER)
		expect_exit(handlers_set_meanwhile, 42);
}

TEST(guard_install__again_stands_in_front_of_later_handlers)
{
	expect_exit(later_handler_that_goes_on, 42);
	expect_killed(later_handler_and_a_fault_of_the_program, SIGSEGV);
	expect_exit(handlers_that_come_and_go, 42);
}

/* Restore a handler with signal(), as programs do that try something out. */
static void save_and_restore(int sig)
{
	void (*const before)(int) = signal(sig, SIG_IGN);

	signal(sig, before);
}

static void fault_after_restored_handlers(void)
{
	void *const gone = memory + PAGE;

	mprotect(gone, PAGE, PROT_NONE);
	guard_install();
	save_and_restore(SIGSEGV);
	if (guarded_copy(local, gone, 8) != -EFAULT)
		_exit(1);
	save_and_restore(SIGSEGV);
	_exit(guard_copy_word(local, gone) == -EFAULT ? 0 : 2);
}

static void own_fault_after_restored_handlers(void)
{
	guard_install();
	save_and_restore(SIGSEGV);
	fault();
}

static void sent_after_restored_handlers(void)
{
	guard_install();
	save_and_restore(SIGSEGV);
	kill_segv();
}

static void flags_after_restored_handlers(void)
{
	struct sigaction now;

	guard_install();
	save_and_restore(SIGSEGV);
	guard_install();
	sigaction(SIGSEGV, NULL, &now);
	_exit(now.sa_flags & SA_SIGINFO && now.sa_flags & SA_ONSTACK ? 0 : 1);
}

TEST(guard_install__handlers_that_signal_restores_serve_as_before)
{
	expect_exit(fault_after_restored_handlers, 0);
	expect_exit(flags_after_restored_handlers, 0);
	expect_killed(own_fault_after_restored_handlers, SIGSEGV);
	expect_killed(sent_after_restored_handlers, SIGSEGV);
}

static void *install_without_end(void *arg)
{
	while (guard_install() == 0)
		;
	return arg;
}

static void install_and_leave(void)
{
	_exit(guard_install() == 0 ? 0 : 1);
}

static void fork_while_handlers_are_installed(void)
{
	pthread_t thread;

	guard_install();
	if (pthread_create(&thread, NULL, install_without_end, NULL) != 0)
		_exit(1);
	for (int i = 0; i < 200; i++) {
		const pid_t child = fork();
		int status;

		if (child == 0) {
			alarm(10);
			install_and_leave();
		}
		if (waitpid(child, &status, 0) != child || status != 0)
			_exit(2);
	}
	_exit(0);
}

TEST(guard_install__works_in_a_child_of_fork)
{
	expect_exit(fork_while_handlers_are_installed, 0);
}
