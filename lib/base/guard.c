/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of guarded copies: caught by a signal handler, and turned into an error where the copy
 * began. */
#include "base/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * A place in front of a program's handler. There are several of each signal because a program that
 * sets a handler after us usually remembers ours as the one to go on to: if we stand in front of it
 * once more, that must be by another function, which goes on to that handler, or the two would go
 * on to each other for ever.
 */
#define PLACES 8

enum { SEGV, BUS, SIGNALS };

static const int signals[SIGNALS] = {[SEGV] = SIGSEGV, [BUS] = SIGBUS};

struct place {
	bool used;
	struct sigaction next; /* whom we stand in front of */
};

static struct place places[SIGNALS][PLACES];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Bytes of stack below the begin of a copy that its functions may use. Less than a signal's frame
 * takes: what faults further down, or on another stack, is a handler of the program's that has
 * interrupted the copy, and its faults are not ours. Compilers that do not optimise, or add checks,
 * use much more stack.
 */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
	!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define COPY_STACK_BYTES 1024
#else
#define COPY_STACK_BYTES 24576
#endif

/* Where the innermost guarded copy of this thread began; NULL outside of one. Volatile: the handler
 * looks at it at any time. Of a model that needs no call to find it, for it is used with every
 * packet. */
static __thread void **volatile guard_frame __attribute__((tls_model("initial-exec")));
static __thread bool guard_ready __attribute__((tls_model("initial-exec")));

/* Caused by an instruction of this thread, which would fault again if it ran again. */
static bool is_fault(int sig, const siginfo_t *info)
{
	if (sig == SIGBUS && info->si_code == BUS_MCEERR_AO)
		return false;
	return info->si_code > 0;
}

static uintptr_t stack_pointer(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	return context->uc_mcontext.sp;
#else
#error "where are stack pointer and program counter in this processor's ucontext_t?"
#endif
}

/* Caused by the guarded copy that this thread is in. */
static bool is_copy(int sig, const siginfo_t *info, const ucontext_t *context)
{
	const uintptr_t begin = (uintptr_t)guard_frame;

	return begin != 0 && is_fault(sig, info) &&
	       begin - stack_pointer(context) < COPY_STACK_BYTES;
}

/* Where a faulty copy goes on: on its own stack, as if it had called this. */
static __attribute__((noreturn)) void guard_land(void)
{
	__builtin_longjmp((void **)guard_frame, 1);
}

/* Let the thread go on in guard_land when the handler returns: the kernel then restores its signal
 * mask by itself. */
static void redirect(ucontext_t *context)
{
#if defined(__x86_64__)
	greg_t *regs = context->uc_mcontext.gregs;

	/* Below the red zone, aligned as after a call. */
	regs[REG_RSP] = ((regs[REG_RSP] - 128) & ~(greg_t)15) - 8;
	regs[REG_RIP] = (greg_t)(uintptr_t)guard_land;
#elif defined(__aarch64__)
	context->uc_mcontext.pc = (uintptr_t)guard_land;
#endif
}

static void set_default(int sig)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};

	sigaction(sig, &standard, NULL);
}

/* The default action, with the cause that the signal had: of a fault when the instruction runs
 * again, else by sending it once more. */
static void die(int sig, siginfo_t *info)
{
	set_default(sig);
	if (!is_fault(sig, info))
		syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), sig, info);
}

/* What the kernel would have done. Mask and stack are right already: see stand_in_front. */
static void go_on(const struct sigaction *next, int sig, siginfo_t *info, void *context)
{
	void **const frame = guard_frame;

	/* The kernel kills who ignores his own faults. */
	if (next->sa_handler == SIG_IGN && !is_fault(sig, info))
		return;
	if (next->sa_handler == SIG_IGN || next->sa_handler == SIG_DFL) {
		die(sig, info);
		return;
	}
	if (next->sa_flags & (int)SA_RESETHAND)
		set_default(sig);
	/* It may leave by siglongjmp, and the copy, if one was interrupted, is then over. */
	guard_frame = NULL;
	/* A handler of one argument does not miss the others where arguments are in registers. */
	next->sa_sigaction(sig, info, context);
	guard_frame = frame;
}

static void handle(const struct place *place, int sig, siginfo_t *info, void *context)
{
	if (is_copy(sig, info, context))
		redirect(context);
	else
		go_on(&place->next, sig, info, context);
}

#define HANDLER(name, which, n)                                         \
	static void name##_##n(int sig, siginfo_t *info, void *context) \
	{                                                               \
		handle(&places[which][n], sig, info, context);          \
	}
#define HANDLERS(name, which)                                                   \
	HANDLER(name, which, 0)                                                 \
	HANDLER(name, which, 1)                                                 \
	HANDLER(name, which, 2)                                                 \
	HANDLER(name, which, 3)                                                 \
	HANDLER(name, which, 4) HANDLER(name, which, 5) HANDLER(name, which, 6) \
		HANDLER(name, which, 7)

HANDLERS(on_segv, SEGV)
HANDLERS(on_bus, BUS)

static void (*const handlers[SIGNALS][PLACES])(int, siginfo_t *, void *) = {
	[SEGV] = {on_segv_0, on_segv_1, on_segv_2, on_segv_3, on_segv_4, on_segv_5, on_segv_6,
		  on_segv_7},
	[BUS] = {on_bus_0, on_bus_1, on_bus_2, on_bus_3, on_bus_4, on_bus_5, on_bus_6, on_bus_7},
};

/* Signal by signal: what the C library gives has bytes behind the last one that mean nothing. */
static bool same_mask(const sigset_t *a, const sigset_t *b)
{
	for (int sig = 1; sig < NSIG; sig++) {
		if (sigismember(a, sig) != sigismember(b, sig))
			return false;
	}
	return true;
}

static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags &&
	       same_mask(&a->sa_mask, &b->sa_mask);
}

/* The place in front of this action, which may have been one of ours before; or a new one, or -1.
 */
static int find_place_locked(int which, const struct sigaction *next)
{
	for (int i = 0; i < PLACES; i++) {
		if (places[which][i].used && same_action(&places[which][i].next, next))
			return i;
	}
	for (int i = 0; i < PLACES; i++) {
		if (!places[which][i].used)
			return i;
	}
	return -1;
}

static bool is_ours(int which, const struct sigaction *action)
{
	for (int i = 0; i < PLACES; i++) {
		if (action->sa_sigaction == handlers[which][i])
			return true;
	}
	return false;
}

static int stand_in_front_locked(int which)
{
	struct sigaction ours, now;
	int i;

	if (sigaction(signals[which], NULL, &now) != 0)
		return -errno;
	if (is_ours(which, &now))
		return 0;
	i = find_place_locked(which, &now);
	if (i < 0)
		return -ENOSPC;
	if (!places[which][i].used)
		places[which][i] = (struct place){.used = true, .next = now};
	/* The next handler finds the mask and the stack that it asked for: they are ours too. */
	ours = now;
	ours.sa_flags &= ~(int)SA_RESETHAND;
	ours.sa_flags |= SA_SIGINFO;
	if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)
		ours.sa_flags |= SA_ONSTACK;
	ours.sa_sigaction = handlers[which][i];
	return sigaction(signals[which], &ours, NULL) == 0 ? 0 : -errno;
}

int guard_install(void)
{
	int rc;

	pthread_mutex_lock(&places_lock);
	rc = stand_in_front_locked(SEGV);
	if (rc == 0)
		rc = stand_in_front_locked(BUS);
	pthread_mutex_unlock(&places_lock);
	return rc;
}

static __attribute__((noinline, cold)) void get_ready(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	guard_ready = true;
}

/* Its frame is on the stack, and in no heap of a sanitizer's. */
__attribute__((no_sanitize("address"))) int guard_run(void (*copy)(void *arg), void *arg)
{
	void **const outer = guard_frame;
	void *frame[5];

	if (__builtin_expect(!guard_ready, 0))
		get_ready();
	if (__builtin_setjmp(frame) != 0) {
		guard_frame = outer;
		return -EFAULT;
	}
	guard_frame = frame;
	copy(arg);
	guard_frame = outer;
	return 0;
}
