/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends or replaces a program at one of its system calls:
 *
 *   at_call count PROGRAM [ARGUMENT...]		run it, and count its calls
 *   at_call kill N PROGRAM [ARGUMENT...]		kill it before it makes call N
 *   at_call exec N OTHER PROGRAM [ARGUMENT...]	let it execute OTHER, a path, in place of call N
 *
 * The first call that counts is the first connect(2): before it, no other process knows of the
 * program. The calls of all threads count, except most of those that only wait or ask for the time.
 * The last line of the output says how far the program came. The exit status is the program's, as a
 * shell gives it.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* It has the same name as a struct of <sys/ptrace.h>. */
#define ptrace_syscall_info	kernel_ptrace_syscall_info
#define ptrace_peeksiginfo_args kernel_ptrace_peeksiginfo_args
#include <linux/ptrace.h>
#undef ptrace_syscall_info
#undef ptrace_peeksiginfo_args

#include "must.h"

#define TRACE_OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)
#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define PATH_BYTES   128

enum action { COUNT, KILL, EXEC };

struct victim {
	pid_t pid;
	enum action action;
	uint64_t at, calls;
	bool started;  /* it has made its first connect(2) */
	bool done;     /* the action has been taken */
	bool executed; /* the program is another one now */
	uint64_t call; /* at which the action was taken */
	const char *other;
	uintptr_t envp;
};

static void say(const struct victim *victim, const char *what, uint64_t call)
{
	fprintf(stderr, "at_call: %s, calls %llu, last %llu\n", what,
		(unsigned long long)victim->calls, (unsigned long long)call);
}

static void go_on(pid_t thread, int signal)
{
	/* ESRCH: it has been killed */
	MUST(ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(intptr_t)signal) == 0 || errno == ESRCH);
}

#if defined(__x86_64__)
/* Note where the program's environment is: its stack begins with the arguments, then this. */
static void find_environment(struct victim *victim)
{
	struct user_regs_struct regs;
	long argc;

	MUST(ptrace(PTRACE_GETREGS, victim->pid, NULL, &regs) == 0);
	errno = 0;
	argc = ptrace(PTRACE_PEEKDATA, victim->pid, (void *)regs.rsp, NULL);
	MUST(errno == 0);
	victim->envp = regs.rsp + ((size_t)argc + 2) * sizeof(long);
}

/* Make a system call of the thread, which has not begun, that of execve(2). */
static void execute_other(const struct victim *victim, pid_t thread)
{
	union {
		struct {
			uintptr_t argv[2];
			char path[PATH_BYTES];
		};
		long words[2 + PATH_BYTES / sizeof(long)];
	} image = {.argv = {0}};
	struct user_regs_struct regs;
	uintptr_t at;

	MUST(ptrace(PTRACE_GETREGS, thread, NULL, &regs) == 0);
	/* far below what the thread uses of its stack */
	at = (regs.rsp - 4096) & ~UINT64_C(15);
	image.argv[0] = at + offsetof(typeof(image), path);
	strcpy(image.path, victim->other);
	for (size_t i = 0; i < sizeof(image.words) / sizeof(image.words[0]); i++)
		MUST(ptrace(PTRACE_POKEDATA, thread, (void *)(at + i * sizeof(long)),
			    (void *)image.words[i]) == 0);
	regs.orig_rax = SYS_execve;
	regs.rdi = image.argv[0];
	regs.rsi = at;
	regs.rdx = victim->envp;
	MUST(ptrace(PTRACE_SETREGS, thread, NULL, &regs) == 0);
}
#else
static void find_environment(struct victim *victim)
{
	(void)victim;
}

static void execute_other(const struct victim *victim, pid_t thread)
{
	(void)victim;
	(void)thread;
	MUST(!"exec is for x86-64 only");
}
#endif

/* Return true if a call changes nothing. A polling thread makes thousands of these. */
static bool only_waits(uint64_t call)
{
	switch (call) {
	case SYS_sched_yield:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_clock_gettime:
	case SYS_ppoll:
	case SYS_epoll_pwait:
	case SYS_rt_sigprocmask:
#ifdef SYS_poll
	case SYS_poll:
	case SYS_epoll_wait:
#endif
		return true;
	default:
		return false;
	}
}

/* Take the action at the system call that a thread begins. Return false if the thread shall not go
 * on. */
static bool begin_call(struct victim *victim, pid_t thread, uint64_t call)
{
	victim->started |= call == SYS_connect;
	if (!victim->started || victim->done || only_waits(call) || ++victim->calls != victim->at)
		return true;
	victim->done = true;
	victim->call = call;
	if (victim->action == KILL) {
		say(victim, "killed", call);
		MUST(kill(victim->pid, SIGKILL) == 0);
		return false;
	}
	execute_other(victim, thread);
	return true;
}

static void call_stop(struct victim *victim, pid_t thread)
{
	struct kernel_ptrace_syscall_info info;

	/* It fails if the thread has been killed meanwhile. */
	if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof(info), &info) <= 0)
		return;
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY || begin_call(victim, thread, info.entry.nr))
		go_on(thread, 0);
}

/* Handle a stop of a thread. */
static void stopped(struct victim *victim, pid_t thread, int status)
{
	const int event = status >> 16;

	if (WSTOPSIG(status) == SYSCALL_STOP) {
		call_stop(victim, thread);
	} else if (event == PTRACE_EVENT_EXEC && victim->done) {
		/* Nothing of the program is left, and what it executes runs undisturbed. */
		victim->executed = true;
		say(victim, "executes another program", victim->call);
		MUST(ptrace(PTRACE_DETACH, thread, NULL, NULL) == 0);
	} else {
		if (event == PTRACE_EVENT_EXEC)
			find_environment(victim);
		go_on(thread, event ? 0 : WSTOPSIG(status));
	}
}

static int result_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Trace the program until it ends. Return its exit status. */
static int trace(struct victim *victim)
{
	int status;

	for (;;) {
		const pid_t thread = waitpid(-1, &status, __WALL);

		MUST(thread > 0);
		if (WIFSTOPPED(status))
			stopped(victim, thread, status);
		else if (thread == victim->pid)
			break;
	}
	if (!victim->done || (victim->action == EXEC && !victim->executed))
		say(victim, "ended", 0);
	return result_of(status);
}

/* Start the program, which waits until it is traced. */
static void start(struct victim *victim, char **argv)
{
	int ready[2];
	char byte;

	MUST(pipe(ready) == 0);
	victim->pid = fork();
	MUST(victim->pid >= 0);
	if (victim->pid == 0) {
		close(ready[1]);
		MUST(read(ready[0], &byte, 1) == 0);
		close(ready[0]);
		execvp(argv[0], argv);
		MUST(!"the program cannot be executed");
	}
	close(ready[0]);
	MUST(ptrace(PTRACE_SEIZE, victim->pid, NULL, (void *)TRACE_OPTIONS) == 0);
	close(ready[1]);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {[COUNT] = "count", [KILL] = "kill", [EXEC] = "exec"};
	struct victim victim = {0};
	int program; /* index in argv */

	while (argc > 1 && victim.action <= EXEC && strcmp(argv[1], names[victim.action]) != 0)
		victim.action++;
	program = 2 + (int)victim.action;
	if (victim.action > EXEC || argc <= program) {
		fputs("usage: at_call count|kill N|exec N OTHER PROGRAM [ARGUMENT...]\n", stderr);
		return 2;
	}
	if (victim.action != COUNT)
		victim.at = strtoull(argv[2], NULL, 10);
	if (victim.action == EXEC)
		victim.other = argv[3];
	MUST(!victim.other || strlen(victim.other) < PATH_BYTES);
	start(&victim, argv + program);
	return trace(&victim);
}
