/* SPDX-License-Identifier: BSD-3-Clause */
/* Cycles of a test per stage: a timer samples the running function. */
#include "stages.h"

#include <errno.h>
#include <stdbool.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <rte_common.h>

#include "symbols.h"

#ifdef __x86_64__
#define CODE_OF(context)  ((uintptr_t)(context)->uc_mcontext.gregs[REG_RIP])
#define STACK_OF(context) ((const void *)(context)->uc_mcontext.gregs[REG_RSP])
#else
#define CODE_OF(context)  ((uintptr_t)(context)->uc_mcontext.pc)
#define STACK_OF(context) ((const void *)(context)->uc_mcontext.sp)
#endif

#define PERIOD_NS   200000
#define YIELD_BYTES 32
#define STACK_WORDS 96 /* words of the stack searched for the caller of a driver */

#define NAME_OF(name, meaning)	  #name,
#define MEANING_OF(name, meaning) meaning,
static const char *const names[] = {STAGES(NAME_OF)};
static const char *const meanings[] = {STAGES(MEANING_OF)};

static struct {
	timer_t timer;
	struct stages seen; /* written by the signal handler with relaxed atomics */
} sampler;

static int compare(const void *key, const void *row)
{
	const struct stage_of_function *a = key, *b = row;
	const int order = strcmp(a->source, b->source);

	return order != 0 ? order : strcmp(a->function, b->function);
}

static const struct stage_of_function *find(const char *source, const char *function)
{
	const struct stage_of_function key = {.source = source, .function = function};

	return bsearch(&key, stage_table, stage_table_count, sizeof(key), compare);
}

/* The linker makes functions local that no other program can name, and omits their source file. So
 * look up such names without a source, too. */
enum stage stages_of(const char *source, const char *function)
{
	const struct stage_of_function *row = find(source, function);

	if (!row)
		row = find("", function);
	return row ? row->stage : STAGE_other;
}

const char *stages_name(enum stage stage)
{
	return names[stage];
}

const char *stages_meaning(enum stage stage)
{
	return meanings[stage];
}

static enum stage stage_of_own(uintptr_t address)
{
	const struct symbol *symbol = symbols_find(address);

	return symbol ? stages_of(symbol->source, symbol->name) : STAGE_other;
}

/* Return true inside sched_yield of the C library, which is a few instructions around a system
 * call. */
static bool is_yield(uintptr_t address)
{
	return address - (uintptr_t)sched_yield < YIELD_BYTES;
}

/*
 * Return the stage of a sample inside a library. A driver's receive and transmit functions have no
 * symbols here, and many callers use memcpy, so the stage is that of our function that called the
 * library. A stack word that looks like a return address into our code most likely is one.
 */
__attribute__((no_sanitize("address"))) static enum stage stage_of_caller(const uintptr_t *stack)
{
	for (size_t i = 0; i < STACK_WORDS; i++) {
		const enum stage stage =
			symbols_is_own(stack[i]) ? stage_of_own(stack[i]) : STAGE_other;

		/* A memcpy that the transport calls is a copy. */
		if (stage == STAGE_transport)
			return STAGE_copy;
		if (stage != STAGE_other)
			return stage;
	}
	return STAGE_other;
}

/* Count a sample. The handler reads only constant memory and its own stack, so it may interrupt any
 * code. */
static void on_sample(int number, siginfo_t *info, void *data)
{
	const ucontext_t *context = data;
	const uintptr_t at = CODE_OF(context);
	const uintptr_t *stack = STACK_OF(context);
	enum stage stage;

	(void)number;
	(void)info;
	stage = symbols_is_own(at) ? stage_of_own(at)
		: is_yield(at)	   ? STAGE_wait
				   : stage_of_caller(stack);
	__atomic_fetch_add(&sampler.seen.samples[stage], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sampler.seen.count, 1, __ATOMIC_RELAXED);
}

int stages_begin(void)
{
	const struct sigaction action = {.sa_sigaction = on_sample,
					 .sa_flags = SA_SIGINFO | SA_RESTART};
	const struct itimerspec period = {.it_interval = {.tv_nsec = PERIOD_NS},
					  .it_value = {.tv_nsec = PERIOD_NS}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	int rc = symbols_read();

	if (rc != 0)
		return rc;
	stages_clear();
	event._sigev_un._tid = gettid();
	if (sigaction(SIGPROF, &action, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &sampler.timer) != 0)
		return -errno;
	timer_settime(sampler.timer, 0, &period, NULL);
	return 0;
}

void stages_end(struct stages *stages)
{
	timer_delete(sampler.timer);
	stages_peek(stages);
}

void stages_clear(void)
{
	for (size_t i = 0; i < STAGE_COUNT; i++)
		__atomic_store_n(&sampler.seen.samples[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&sampler.seen.count, 0, __ATOMIC_RELAXED);
}

void stages_peek(struct stages *stages)
{
	stages->count = 0;
	for (size_t i = 0; i < STAGE_COUNT; i++) {
		stages->samples[i] = __atomic_load_n(&sampler.seen.samples[i], __ATOMIC_RELAXED);
		stages->count += stages->samples[i];
	}
}
