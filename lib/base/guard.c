/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of guarded copies: caught by a signal handler, and turned into an error where the copy
 * began. */
#include "base/guard.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/log.h"
#include "hold.h"

/*
 * A place in front of a program's handler. There are several of each signal because a program that
 * sets a handler after us usually remembers ours as the one to go on to: if we stand in front of it
 * once more, that must be by another function, which goes on to that handler, or the two would go
 * on to each other for ever.
 */
#define PLACES 32

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
/* When this thread's signal mask was last put right; a time of whoever calls guard_refresh. */
static __thread uint64_t guard_ready_ns __attribute__((tls_model("initial-exec")));
static __thread bool guard_ready __attribute__((tls_model("initial-exec")));
/* How often guard_owes was asked since the signals that are kept were not taken by the program. */
static __thread uint32_t guard_given_back __attribute__((tls_model("initial-exec")));

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

#if defined(__x86_64__)
/*
 * A word is copied by two instructions, and where one of them faults, the thread goes on behind
 * them: that needs no frame to go back to, which costs more than the copy. What is here has no
 * stack but its return address.
 */
int guard_move_word(void *to, const void *from);
extern const char guard_move_word_end[], guard_move_word_fault[];

__asm__(".pushsection .text\n"
	".type guard_move_word, @function\n"
	".hidden guard_move_word\n"
	".globl guard_move_word\n"
	".p2align 4\n"
	"guard_move_word:\n"
	"	.cfi_startproc\n"
	"	movq (%rsi), %rax\n"
	"	movq %rax, (%rdi)\n"
	"	.hidden guard_move_word_end\n"
	"	.globl guard_move_word_end\n"
	"guard_move_word_end:\n"
	"	xorl %eax, %eax\n"
	"	ret\n"
	"	.hidden guard_move_word_fault\n"
	"	.globl guard_move_word_fault\n"
	"guard_move_word_fault:\n"
	"	movl $-14, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size guard_move_word, . - guard_move_word\n"
	".popsection\n");
static_assert(EFAULT == 14, "what it returns");
#endif

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

	if (next->sa_handler == SIG_DFL) {
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

/* In the two instructions of guard_copy_word. The kernel gives this processor's handlers the
 * context with and without SA_SIGINFO. */
static bool is_word(const ucontext_t *context)
{
#if defined(__x86_64__)
	const uintptr_t begin = (uintptr_t)guard_move_word;

	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP] - begin <
	       (uintptr_t)guard_move_word_end - begin;
#else
	(void)context;
	return false;
#endif
}

/* A fault of guard_copy_word; it goes on behind its two instructions. */
static bool redirect_word(int sig, const siginfo_t *info, ucontext_t *context)
{
	if (!is_fault(sig, info) || !is_word(context))
		return false;
#if defined(__x86_64__)
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)guard_move_word_fault;
#endif
	return true;
}

/*
 * The flags that our handlers need, whoever sets them. The next handler finds the mask and the
 * stack that it asked for: they are ours too.
 */
static void set_flags(const struct place *place, struct sigaction *action)
{
	action->sa_flags &= ~(int)SA_RESETHAND;
	action->sa_flags |= SA_SIGINFO;
	if (place->next.sa_handler == SIG_DFL)
		action->sa_flags |= SA_ONSTACK;
}

/*
 * signal(3) has put our handler back without SA_SIGINFO: what it is given beside the signal's
 * number means nothing. The flags are set again. Returns true where they were missing.
 */
static bool lacked_info(const struct place *place, int sig, void (*self)(int, siginfo_t *, void *))
{
	struct sigaction now;

	if (sigaction(sig, NULL, &now) != 0 || now.sa_sigaction != self ||
	    (now.sa_flags & SA_SIGINFO))
		return false;
	set_flags(place, &now);
	sigaction(sig, &now, NULL);
	return true;
}

/*
 * A signal of which nothing is known but its number. In a copy it is taken for the copy's fault,
 * which happens again as soon as the handler returns, and is then known. Elsewhere the program's
 * handler gets no more than it would have got without us.
 */
static void handle_blindly(const struct place *place, int sig, void *context)
{
	siginfo_t none = {.si_signo = sig};

	if (!guard_frame && !is_word(context))
		go_on(&place->next, sig, &none, context);
}

static void handle(const struct place *place, int sig, siginfo_t *info, void *context,
		   void (*self)(int, siginfo_t *, void *))
{
	if (lacked_info(place, sig, self)) {
		handle_blindly(place, sig, context);
		return;
	}
	if (redirect_word(sig, info, context))
		return;
	if (is_copy(sig, info, context))
		redirect(context);
	else if (is_fault(sig, info) || !hold_keep(sig, info))
		go_on(&place->next, sig, info, context);
}

#define HANDLER(name, which, n)                                            \
	static void name##_##n(int sig, siginfo_t *info, void *context)    \
	{                                                                  \
		handle(&places[which][n], sig, info, context, name##_##n); \
	}
/* Four of them; all of them. */
#define HANDLER_4(name, which, a, b, c, d) \
	HANDLER(name, which, a)            \
	HANDLER(name, which, b)            \
	HANDLER(name, which, c)            \
	HANDLER(name, which, d)
#define HANDLERS(name, which)                  \
	HANDLER_4(name, which, 0, 1, 2, 3)     \
	HANDLER_4(name, which, 4, 5, 6, 7)     \
	HANDLER_4(name, which, 8, 9, 10, 11)   \
	HANDLER_4(name, which, 12, 13, 14, 15) \
	HANDLER_4(name, which, 16, 17, 18, 19) \
	HANDLER_4(name, which, 20, 21, 22, 23) \
	HANDLER_4(name, which, 24, 25, 26, 27) \
	HANDLER_4(name, which, 28, 29, 30, 31)
#define NAMES_8(name, a, b, c, d, e, f, g, h)                                               \
	name##_##a, name##_##b, name##_##c, name##_##d, name##_##e, name##_##f, name##_##g, \
		name##_##h
#define NAMES(name)                                                    \
	{                                                              \
		NAMES_8(name, 0, 1, 2, 3, 4, 5, 6, 7),                 \
			NAMES_8(name, 8, 9, 10, 11, 12, 13, 14, 15),   \
			NAMES_8(name, 16, 17, 18, 19, 20, 21, 22, 23), \
			NAMES_8(name, 24, 25, 26, 27, 28, 29, 30, 31)  \
	}

HANDLERS(on_segv, SEGV)
HANDLERS(on_bus, BUS)

static void (*const handlers[SIGNALS][PLACES])(int, siginfo_t *, void *) = {
	[SEGV] = NAMES(on_segv),
	[BUS] = NAMES(on_bus),
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

/* The C library has a flag of its own in what it gives. */
static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
	static const int meant =
		SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | (int)SA_RESETHAND;

	return a->sa_sigaction == b->sa_sigaction &&
	       (a->sa_flags & meant) == (b->sa_flags & meant) &&
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

/* The place whose handler this is, or NULL. */
static struct place *place_of(int which, const struct sigaction *action)
{
	for (int i = 0; i < PLACES; i++) {
		if (action->sa_sigaction == handlers[which][i])
			return &places[which][i];
	}
	return NULL;
}

/*
 * The action that shall be in the place of `next`: one of ours that goes on to it. Itself, where it
 * ignores the signal: an exec keeps that for the next program, and no handler. One of ours gets its
 * flags back, because signal(3) restores a handler without them.
 */
static int choose_locked(int which, const struct sigaction *next, struct sigaction *chosen)
{
	const struct place *ours = place_of(which, next);
	int i;

	*chosen = *next;
	if (next->sa_handler == SIG_IGN)
		return 0;
	if (ours) {
		set_flags(ours, chosen);
		return 0;
	}
	i = find_place_locked(which, next);
	if (i < 0)
		return -ENOSPC;
	if (!places[which][i].used)
		places[which][i] = (struct place){.used = true, .next = *next};
	set_flags(&places[which][i], chosen);
	chosen->sa_sigaction = handlers[which][i];
	return 0;
}

static int stand_in_front_locked(int which)
{
	struct sigaction next, chosen, expected, found;
	int rc;

	if (sigaction(signals[which], NULL, &next) != 0)
		return -errno;
	expected = next;
	for (;;) {
		rc = choose_locked(which, &next, &chosen);
		if (same_action(&chosen, &expected))
			return rc;
		if (sigaction(signals[which], &chosen, &found) != 0)
			return -errno;
		if (same_action(&found, &expected))
			return rc;
		/* Another thread has set this meanwhile: it is the one to stand in front of. */
		expected = chosen;
		next = found;
	}
}

static void warn_once_locked(void)
{
	static bool warned;

	if (!warned)
		log_warn("this program has set more than %d handlers of SIGSEGV or SIGBUS: memory "
			 "that "
			 "goes away under a region now ends it",
			 PLACES);
	warned = true;
}

static void lock_places(void)
{
	pthread_mutex_lock(&places_lock);
}

static void unlock_places(void)
{
	pthread_mutex_unlock(&places_lock);
}

/* A child finds the places whole, and nobody in them. */
static void watch_fork_locked(void)
{
	static bool watching;

	if (!watching)
		watching = pthread_atfork(lock_places, unlock_places, unlock_places) == 0;
}

int guard_install(void)
{
	int rc, cancel_state;

	/* A thread that is cancelled as it warns would take the lock with it. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	lock_places();
	watch_fork_locked();
	rc = stand_in_front_locked(SEGV);
	if (rc == 0)
		rc = stand_in_front_locked(BUS);
	if (rc == -ENOSPC)
		warn_once_locked();
	unlock_places();
	pthread_setcancelstate(cancel_state, NULL);
	return rc;
}

static void change_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(how, &set, NULL);
}

static __attribute__((noinline, cold)) void get_ready(void)
{
	change_mask(SIG_UNBLOCK);
	guard_ready = true;
	if (!hold_has())
		guard_given_back = 0;
}

void guard_serve(void)
{
	hold_begin();
}

void guard_rest(void)
{
	if (guard_ready)
		change_mask(SIG_BLOCK);
	guard_ready = false;
	if (hold_has())
		hold_give_back();
}

/* The first times at once, and then less and less often: a program may never read it. */
bool guard_owes(void)
{
	if (__builtin_expect(!hold_has(), 1))
		return false;
	guard_given_back++;
	return (guard_given_back & (guard_given_back - 1)) == 0;
}

/* A time before the last one is far from it, too: engines' clocks differ a little. */
void guard_refresh(uint64_t now_ns)
{
	if (__builtin_expect(now_ns - guard_ready_ns < GUARD_PERIOD_NS && guard_ready, 1))
		return;
	get_ready();
	guard_ready_ns = now_ns;
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

#if defined(__x86_64__)
int guard_copy_word(void *to, const void *from)
{
	if (__builtin_expect(!guard_ready, 0))
		get_ready();
	return guard_move_word(to, from);
}
#else
struct word {
	uint64_t v;
} __attribute__((packed, may_alias));

struct word_copy {
	volatile struct word *to;
	const volatile struct word *from;
};

static void copy_word(void *arg)
{
	const struct word_copy *copy = arg;

	copy->to->v = copy->from->v;
}

int guard_copy_word(void *to, const void *from)
{
	struct word_copy copy = {.to = to, .from = from};

	return guard_run(copy_word, &copy);
}
#endif
