/* SPDX-License-Identifier: BSD-3-Clause */
/* Guarded copies: turn a fault inside a copy into an error that the copy's caller gets. */
#include "base/guard.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "guard_catch.h"
#include "hold.h"

/*
 * Bytes of stack below the frame of guard_run that the copying functions may use. It is less than
 * the kernel's signal frame takes. A fault at a lower address, or on another stack, is therefore
 * from a handler of the program that interrupted the copy, and we leave it to the program. Code
 * that is compiled without optimisation or with extra checks uses much more stack.
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

/* Frame where the innermost guarded copy of this thread began; NULL outside of a copy. Volatile,
 * because the signal handler reads it at any time. The thread-local model needs no call to find the
 * variable, because every packet uses it. */
static __thread void **volatile guard_frame __attribute__((tls_model("initial-exec")));
/* Time at which guard_refresh last corrected this thread's signal mask, on its caller's clock. */
static __thread uint64_t guard_ready_ns __attribute__((tls_model("initial-exec")));
static __thread bool guard_ready __attribute__((tls_model("initial-exec")));
/* This thread is ours: the program does not change its signal mask. */
static __thread bool guard_serves __attribute__((tls_model("initial-exec")));
/* Number of times this thread has called guard_owes while kept signals wait for the program. */
static __thread uint32_t guard_given_back __attribute__((tls_model("initial-exec")));

bool guard_is_fault(int sig, const siginfo_t *info)
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

/* Return true if the guarded copy that this thread runs has caused the signal. */
static bool is_copy(int sig, const siginfo_t *info, const ucontext_t *context)
{
	const uintptr_t begin = (uintptr_t)guard_frame;

	return begin != 0 && guard_is_fault(sig, info) &&
	       begin - stack_pointer(context) < COPY_STACK_BYTES;
}

#if defined(__x86_64__)
/*
 * Two instructions copy a word. If one of them faults, the thread continues behind both. This needs
 * no frame to return to; saving such a frame costs more than the copy. The function's only stack
 * use is its return address.
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

/* Continue here after a faulty copy, on the copy's own stack, as if the copy had called this
 * function. */
static __attribute__((noreturn)) void guard_land(void)
{
	__builtin_longjmp((void **)guard_frame, 1);
}

/* Make the thread continue in guard_land when the handler returns. The kernel then restores the
 * thread's signal mask by itself. */
static void redirect(ucontext_t *context)
{
#if defined(__x86_64__)
	greg_t *regs = context->uc_mcontext.gregs;

	/* Skip the red zone, and align the stack pointer as after a call. */
	regs[REG_RSP] = ((regs[REG_RSP] - 128) & ~(greg_t)15) - 8;
	regs[REG_RIP] = (greg_t)(uintptr_t)guard_land;
#elif defined(__aarch64__)
	context->uc_mcontext.pc = (uintptr_t)guard_land;
#endif
}

/* Return true if the thread was in the two instructions of guard_copy_word. On this processor the
 * kernel passes the context to a handler with and without SA_SIGINFO. */
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

/* Handle a fault of guard_copy_word: make the thread continue behind its two instructions. */
static bool redirect_word(int sig, const siginfo_t *info, ucontext_t *context)
{
	if (!guard_is_fault(sig, info) || !is_word(context))
		return false;
#if defined(__x86_64__)
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)guard_move_word_fault;
#endif
	return true;
}

bool guard_catch(int sig, const siginfo_t *info, ucontext_t *context)
{
	if (redirect_word(sig, info, context))
		return true;
	if (!is_copy(sig, info, context))
		return false;
	redirect(context);
	return true;
}

bool guard_is_in_copy(const ucontext_t *context)
{
	return guard_frame || is_word(context);
}

void **guard_suspend(void)
{
	void **const frame = guard_frame;

	guard_frame = NULL;
	return frame;
}

void guard_resume(void **frame)
{
	guard_frame = frame;
}

static void change_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(how, &set, NULL);
}

static __attribute__((noinline, cold)) void get_ready(void)
{
	if (!guard_ready || !guard_serves)
		change_mask(SIG_UNBLOCK);
	guard_ready = true;
	if (!hold_has())
		guard_given_back = 0;
}

void guard_serve(void)
{
	hold_begin();
	guard_serves = true;
}

void guard_pause(void)
{
	if (guard_ready)
		change_mask(SIG_BLOCK);
	guard_ready = false;
	if (hold_has())
		hold_give_back();
}

void guard_pause_in_call(sigset_t *mask)
{
	/* A signal can be returned only while this thread blocks it. */
	if (__builtin_expect(hold_has(), 0))
		guard_pause();
	sigfillset(mask);
}

/* Return true for the first calls, and then less and less often, because the program may never read
 * the signals. */
bool guard_owes(void)
{
	if (__builtin_expect(!hold_has(), 1))
		return false;
	guard_given_back++;
	return (guard_given_back & (guard_given_back - 1)) == 0;
}

/* Treat a last time that lies in the future like one that is long ago: the clocks of engines differ
 * a little. */
void guard_refresh(uint64_t now_ns)
{
	if (__builtin_expect(now_ns - guard_ready_ns < GUARD_PERIOD_NS && guard_ready, 1))
		return;
	get_ready();
	guard_ready_ns = now_ns;
}

/* Keep the frame on the stack, where guard_land finds it, and not in a sanitizer's heap. */
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
