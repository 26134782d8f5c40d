/* SPDX-License-Identifier: BSD-3-Clause */
/* A depth-first search over schedules; each run begins anew and repeats the steps up to its branch.
 */
#include "interleave.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "engine/shared.h"

#define STACK_BYTES 65536
#define TOP_BYTES   4096 /* more than is in use before the first step */
#define DEPTH_MAX   4096
#define SEEN_SLOTS  (1U << 23)

struct thread {
	jmp_buf place; /* where it made way; swapcontext would make system calls */
	jmp_buf begin; /* before its first step */
	bool ended;
	bool blocked;
	const uint64_t *until;	/* blocked until this is not 0; NULL: for ever */
	bool waits;		/* for another thread to make a step */
	const char *top_of_use; /* the frame that made way */
	char top[TOP_BYTES];	/* of its stack, then */
	char stack[STACK_BYTES] __attribute__((aligned(64)));
};

static struct thread threads[INTERLEAVE_THREADS_MAX];
static const struct scenario *scenario;
static jmp_buf scheduler;
static size_t running;
static uint64_t *seen; /* digests of states, a hash table; 0: free */

static uint8_t path[DEPTH_MAX];	    /* the thread that makes each step */
static uint8_t path_can[DEPTH_MAX]; /* a bit for each that could */

uint64_t interleave_mix(uint64_t digest, uint64_t value)
{
	/* splitmix64's steps; 0 mixed with 0 is not 0. */
	digest = (digest ^ value) + UINT64_C(0x9e3779b97f4a7c15);
	digest = (digest ^ digest >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	digest = (digest ^ digest >> 27) * UINT64_C(0x94d049bb133111eb);
	return digest ^ digest >> 31;
}

static void give_way(void)
{
	threads[running].top_of_use = __builtin_frame_address(0);
	if (_setjmp(threads[running].place) == 0)
		_longjmp(scheduler, 1);
}

void shared_step(const void *word)
{
	if (word != scenario->private_word)
		give_way();
}

/* Waiting has no effect but that others run; nor is it counted, so that it may go on for ever. */
unsigned int shared_wait(unsigned int tries)
{
	threads[running].waits = true;
	give_way();
	return tries;
}

size_t interleave_self(void)
{
	return running;
}

void interleave_block(const uint64_t *word)
{
	threads[running].blocked = true;
	threads[running].until = word;
	give_way();
	threads[running].blocked = false;
}

static void enter(void)
{
	const size_t self = running;

	for (;;) {
		give_way();
		scenario->run[self]();
		threads[self].ended = true;
	}
}

/* Have every thread wait on its stack for its first step. Once a process. */
static void make_stacks(void)
{
	static ucontext_t here, context[INTERLEAVE_THREADS_MAX];

	for (running = 0; running < INTERLEAVE_THREADS_MAX; running++) {
		struct thread *thread = &threads[running];

		getcontext(&context[running]);
		context[running].uc_stack.ss_sp = thread->stack;
		context[running].uc_stack.ss_size = STACK_BYTES;
		makecontext(&context[running], enter, 0);
		if (_setjmp(scheduler) == 0)
			swapcontext(&here, &context[running]);
		thread->begin[0] = thread->place[0];
		memcpy(thread->top, thread->stack + STACK_BYTES - TOP_BYTES, TOP_BYTES);
	}
}

static void make_step(size_t i)
{
	running = i;
	if (_setjmp(scheduler) == 0)
		_longjmp(threads[i].place, 1);
	for (size_t other = 0; other < scenario->threads; other++)
		if (other != i)
			threads[other].waits = false;
}

static void start(void)
{
	scenario->reset();
	for (size_t i = 0; i < scenario->threads; i++) {
		struct thread *thread = &threads[i];

		thread->ended = thread->blocked = thread->waits = false;
		thread->top_of_use = thread->stack + STACK_BYTES;
		thread->place[0] = thread->begin[0];
		memcpy(thread->stack + STACK_BYTES - TOP_BYTES, thread->top, TOP_BYTES);
	}
}

static bool can_step(const struct thread *thread)
{
	if (thread->ended || thread->waits)
		return false;
	return !thread->blocked || (thread->until && *thread->until != 0);
}

/* Note which threads can make the step `depth`; false: none. */
static bool choose_first(size_t depth)
{
	bool any = false;

	for (size_t i = scenario->threads; i-- > 0;) {
		if (!can_step(&threads[i]))
			continue;
		path[depth] = (uint8_t)i;
		path_can[depth] = (uint8_t)((any ? path_can[depth] : 0) | 1U << i);
		any = true;
	}
	return any;
}

/* The last step for which there is another thread to try: how long the path is up to there; 0: none
 * is left. */
static size_t choose_next(size_t len)
{
	for (; len > 0; len--) {
		const unsigned int later = path_can[len - 1] >> (path[len - 1] + 1);

		if (later != 0) {
			path[len - 1] = (uint8_t)(path[len - 1] + 1 + __builtin_ctz(later));
			break;
		}
	}
	return len;
}

static uint64_t mix_bytes(uint64_t digest, const void *bytes, size_t len)
{
	const uint64_t *words = bytes;

	for (size_t i = 0; i < len / sizeof(*words); i++)
		digest = interleave_mix(digest, words[i]);
	return digest;
}

/* Return true the first time. */
static bool note_state(struct verdict *verdict)
{
	uint64_t digest = scenario->digest();
	size_t slot;

	for (size_t i = 0; i < scenario->threads; i++) {
		const struct thread *thread = &threads[i];

		digest = mix_bytes(digest, thread->place[0].__jmpbuf,
				   sizeof(thread->place[0].__jmpbuf));
		digest = mix_bytes(digest, thread->top_of_use,
				   (size_t)(thread->stack + STACK_BYTES - thread->top_of_use));
		digest = interleave_mix(digest, (uint64_t)thread->ended << 2 |
							(uint64_t)thread->blocked << 1 |
							thread->waits);
	}
	if (digest == 0)
		digest = 1;
	for (slot = digest % SEEN_SLOTS; seen[slot] != 0; slot = (slot + 1) % SEEN_SLOTS)
		if (seen[slot] == digest)
			return false;
	seen[slot] = digest;
	if (++verdict->states == SEEN_SLOTS / 2)
		verdict->fault = "too many states";
	return true;
}

static void tell_trace(struct verdict *verdict, size_t depth)
{
	size_t len = 0;

	for (size_t i = 0; i < depth && len + 2 < sizeof(verdict->trace); i++)
		verdict->trace[len++] = (char)('0' + path[i]);
	verdict->trace[len] = '\0';
}

/* Repeat `depth` steps, then go on with the first that can, up to a state that was there before.
 * Returns how long the path is. */
static size_t run_once(size_t depth, struct verdict *verdict)
{
	size_t i;

	start();
	verdict->runs++;
	for (i = 0; i < depth; i++)
		make_step(path[i]);
	while (note_state(verdict) && !verdict->fault) {
		if (i == DEPTH_MAX) {
			verdict->fault = "too many steps";
			break;
		}
		if (!choose_first(i)) {
			verdict->fault = scenario->judge();
			break;
		}
		make_step(path[i++]);
	}
	if (verdict->fault)
		tell_trace(verdict, i);
	return i;
}

struct verdict interleave(const struct scenario *what)
{
	struct verdict verdict = {0};
	size_t depth = 0;

	if (!scenario)
		make_stacks();
	scenario = what;
	seen = calloc(SEEN_SLOTS, sizeof(*seen));
	if (!seen)
		abort();
	do
		depth = choose_next(run_once(depth, &verdict));
	while (depth > 0 && !verdict.fault);
	free(seen);
	return verdict;
}
