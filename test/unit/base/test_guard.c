/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/guard.c. What changes a signal's action happens in child processes. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "sanitizer.h"
#include "test.h"

#define PAGE 4096

static uint8_t *memory; /* two pages */
static char local[64];

struct job {
	void *dst;
	const void *src;
	size_t len;
};

/* The C library's promise is that nobody gives it NULL; a guarded copy may. */
__attribute__((no_sanitize("undefined"))) static void copy(void *arg)
{
	const struct job *job = arg;

	memcpy(job->dst, job->src, job->len);
}

static int run(void *dst, const void *src, size_t len)
{
	struct job job = {.dst = dst, .src = src, .len = len};

	return guard_run(copy, &job);
}

/* The test framework sets its own handlers before each test. */
static void expect_copy(void *dst, const void *src, size_t len, int rc)
{
	assert_int_equal(guard_install(), 0);
	assert_int_equal(run(dst, src, len), rc);
}

static int set_up(TEST_STATE)
{
	const struct rlimit no_core = {0, 0};

	setrlimit(RLIMIT_CORE, &no_core);
	memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? -1 : 0;
}

static int tear_down(TEST_STATE)
{
	return munmap(memory, 2 * PAGE);
}

TEST_FIXTURE(set_up, tear_down);

/* Run in a child, and return how it ended (wait(2)). */
static int in_child(void (*what)(void))
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void expect_exit(void (*what)(void), int code)
{
	const int status = in_child(what);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

static void expect_killed(void (*what)(void), int sig)
{
	const int status = in_child(what);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), sig);
}

TEST(guard_run__a_good_copy_is_made)
{
	expect_copy(memory, "good", 5, 0);
	assert_string_equal((char *)memory, "good");
}

TEST(guard_run__memory_that_is_gone_is_a_fault)
{
	assert_int_equal(munmap(memory + PAGE, PAGE), 0);
	expect_copy(memory + PAGE, local, 1, -EFAULT);
	expect_copy(local, memory + PAGE, 1, -EFAULT);
	expect_copy(local, memory + PAGE - 1, 2, -EFAULT);
	expect_copy(NULL, local, 1, -EFAULT);
	/* Not even an address. */
	expect_copy((void *)((uintptr_t)1 << 62), local, 8, -EFAULT);
	expect_copy(local, memory, 1, 0);
}

TEST(guard_run__protected_memory_is_a_fault)
{
	assert_int_equal(mprotect(memory, PAGE, PROT_READ), 0);
	expect_copy(memory, local, 1, -EFAULT);
	expect_copy(local, memory, 1, 0);
	assert_int_equal(mprotect(memory, PAGE, PROT_NONE), 0);
	expect_copy(local, memory, 1, -EFAULT);
}

TEST(guard_run__a_file_cut_short_is_a_fault)
{
	const int fd = memfd_create("short", MFD_CLOEXEC);
	uint8_t *map;

	assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
	map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	expect_copy(map + PAGE, local, 1, 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	expect_copy(map + PAGE, local, 1, -EFAULT);
	expect_copy(local, map + PAGE, 1, -EFAULT);
	expect_copy(map, local, 1, 0);
	munmap(map, 2 * PAGE);
	close(fd);
}

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
	*(int *)arg = run(NULL, local, 1);
	pthread_sigmask(SIG_BLOCK, NULL, &all);
	/* No more than these two. */
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

static bool blocked(int sig)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, sig);
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
}

/* After its first copy, when nothing looks at its mask by itself any more. */
static void block_between_copies(void)
{
	uint64_t now_ns = 5 * GUARD_PERIOD_NS;

	guard_install();
	guard_refresh(now_ns);
	if (run(NULL, local, 1) != -EFAULT)
		_exit(1);
	block_all();
	now_ns += GUARD_PERIOD_NS - 1;
	guard_refresh(now_ns);
	/* Not a system call a turn. */
	if (!blocked(SIGSEGV) || !blocked(SIGBUS))
		_exit(2);
	guard_refresh(now_ns + 1);
	if (blocked(SIGSEGV) || blocked(SIGBUS) || !blocked(SIGTERM))
		_exit(3);
	if (run(NULL, local, 1) != -EFAULT)
		_exit(4);
	/* By the clock of another engine, which is a little behind. */
	block_all();
	guard_refresh(now_ns);
	_exit(run(NULL, local, 1) == -EFAULT ? 42 : 5);
}

TEST(guard_refresh__unblocks_what_was_blocked_since)
{
	expect_exit(block_between_copies, 42);
}

static int inner_rc;

static void nest(void *arg)
{
	inner_rc = run(NULL, local, 1);
	/* The outer one still guards. */
	copy(arg);
}

TEST(guard_run__nests)
{
	struct job good = {memory, local, 1}, bad = {NULL, local, 1};

	assert_int_equal(guard_install(), 0);
	inner_rc = 0;
	assert_int_equal(guard_run(nest, &good), 0);
	assert_int_equal(inner_rc, -EFAULT);
	inner_rc = 0;
	assert_int_equal(guard_run(nest, &bad), -EFAULT);
	assert_int_equal(inner_rc, -EFAULT);
}

static volatile char *volatile nowhere = (char *)64;

static void fault_at_64(void)
{
	*nowhere = 1;
}

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
	    uc == NULL || !blocked(SIGSEGV) || !blocked(SIGUSR1) ||
	    (blocked(SIGUSR2) && !THREAD_SANITIZER))
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
	_exit(sig == SIGSEGV && (!blocked(SIGSEGV) || THREAD_SANITIZER) ? 42 : 1);
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
		if (run(NULL, local, 1) != -EFAULT)
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
	/* As the kernel does it: nobody ignores his own faults. */
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
	/* It stands in front, and the fault comes to us through it. */
	if (run(NULL, local, 1) != -EFAULT || handled != 1)
		_exit(1);
	/* We stand in front again. */
	if (guard_install() != 0 || run(NULL, local, 1) != -EFAULT || handled != 1)
		_exit(1);
	_exit(42);
}

static void later_handler_and_a_fault_of_the_program(void)
{
	install_later_handler();
	guard_install();
	/* To it, then to us, then to the default; not round in a circle. */
	fault_at_64();
}

static void handlers_that_come_and_go(void)
{
	struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO}, before;

	for (int i = 0; i < 100; i++) {
		sigaction(SIGSEGV, &action, &before);
		if (guard_install() != 0 || run(NULL, local, 1) != -EFAULT)
			_exit(1);
		sigaction(SIGSEGV, &before, NULL);
		if (guard_install() != 0 || run(NULL, local, 1) != -EFAULT)
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
		if (guard_install() != 0 || run(NULL, local, 1) != -EFAULT)
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
		/* When the other thread is done with what it has begun. */
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
	/* Its sigaction is not one step: of two threads that set an action at once, each may be
	 * told what the other found. */
	if (!THREAD_SANITIZER)
		expect_exit(handlers_set_meanwhile, 42);
}

TEST(guard_install__again_stands_in_front_of_later_handlers)
{
	expect_exit(later_handler_that_goes_on, 42);
	expect_killed(later_handler_and_a_fault_of_the_program, SIGSEGV);
	expect_exit(handlers_that_come_and_go, 42);
}

/* A handler of another signal interrupts a copy, and makes a mistake of its own. */

__attribute__((no_sanitize("address"))) static void fault_in_handler(int sig)
{
	/* As deep as anybody's frame of a signal, in a build that uses much stack. */
	char deep[32768];

	__asm__ volatile("" : : "r"(deep), "r"(sig) : "memory");
	fault_at_64();
	__asm__ volatile("" : : "r"(deep) : "memory");
}

static void raise_usr1(void *arg)
{
	(void)arg;
	raise(SIGUSR1);
}

static void mistake_in_a_handler(void)
{
	signal(SIGUSR1, fault_in_handler);
	guard_install();
	guard_run(raise_usr1, NULL);
}

TEST(guard_run__does_not_swallow_the_faults_of_handlers)
{
	expect_killed(mistake_in_a_handler, SIGSEGV);
}

/* Across the end of the page that is there, to or from: at the begin of none. */
/* As programs do that try something out and restore what was there. */
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
	if (run(local, gone, 8) != -EFAULT)
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

static int told[2]; /* a pipe */

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
	if (write(told[1], "", 1) != 1 || run(local, memory + PAGE, 8) != -EFAULT)
		return NULL;
	guard_rest();
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

TEST(guard_rest__gives_back_what_the_program_reads_by_signalfd)
{
	expect_exit(read_by_signalfd, 0);
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

TEST(guard_copy_word__memory_that_is_not_there_is_an_error)
{
	static const uint64_t value = 0x1122334455667788;
	uint64_t kept = 1;

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(guard_copy_word(memory + PAGE, &value), -EFAULT);
	assert_int_equal(guard_copy_word(memory + PAGE - 4, &value), -EFAULT);
	assert_int_equal(guard_copy_word(&kept, memory + PAGE), -EFAULT);
	assert_int_equal(guard_copy_word(&kept, memory + PAGE - 4), -EFAULT);
	assert_int_equal(kept, 1);
	assert_int_equal(guard_copy_word(memory + PAGE - 8, &value), 0);
	assert_memory_equal(memory + PAGE - 8, &value, sizeof(value));
	assert_int_equal(guard_copy_word(&kept, memory + PAGE - 8), 0);
	assert_int_equal(kept, value);
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
}

static void nested_word(void *arg)
{
	uint64_t word = 0;

	*(int *)arg = guard_copy_word(&word, memory + PAGE);
	/* The outer run's own fault ends it still. */
	*(volatile uint8_t *)(memory + PAGE) = 1;
}

TEST(guard_copy_word__in_a_guarded_run_leaves_it_alone)
{
	int rc = 0;

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(guard_run(nested_word, &rc), -EFAULT);
	assert_int_equal(rc, -EFAULT);
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
}
