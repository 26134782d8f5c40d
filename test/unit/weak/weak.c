/* SPDX-License-Identifier: BSD-3-Clause */
/* A depth-first search over executions: each one begins anew and repeats the choices up to its
 * branch. */
#include "weak.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES 65536
#define WORDS_MAX   32
#define STORES_MAX  16
#define CHOICES_MAX 256

#undef __atomic_thread_fence

/* For each word the index of a store. */
struct view {
	uint8_t of[WORDS_MAX];
};

struct store {
	uint64_t value;
	struct view view; /* who loads this store by acquire sees what is in this view */
};

static struct {
	const void *at;
	size_t count;
	struct store stores[STORES_MAX]; /* the first is what the memory held at the beginning */
} words[WORDS_MAX];
static size_t word_count;

static struct thread {
	jmp_buf place;
	ucontext_t context;
	bool ended;
	struct view now, acquired, released;
	char stack[STACK_BYTES] __attribute__((aligned(64)));
} threads[WEAK_THREADS_MAX];

static struct view total; /* the newest stores before the last SEQ_CST store or fence */
static const struct weak_scenario *scenario;
static enum weak_without without;
static size_t running;
static jmp_buf scheduler;

static uint8_t chosen[CHOICES_MAX], possible[CHOICES_MAX];
static size_t depth, known; /* choices of this execution; and of these, those that are repeated */

/* Return a number below `n`: in one execution each. */
static size_t choose(size_t n)
{
	if (depth == CHOICES_MAX)
		abort();
	if (depth == known) {
		chosen[depth] = 0;
		possible[depth] = (uint8_t)n;
		known++;
	}
	return chosen[depth++];
}

/* Change the last choice that has another possibility. Return false if there is none. */
static bool choose_next(void)
{
	while (known > 0 && chosen[known - 1] + 1 == possible[known - 1])
		known--;
	if (known == 0)
		return false;
	chosen[known - 1]++;
	return true;
}

static void step(void)
{
	if (_setjmp(threads[running].place) == 0)
		_longjmp(scheduler, 1);
}

static uint64_t read_memory(const void *word, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, word, size);
	return value;
}

static size_t find(const void *word, size_t size)
{
	size_t i = 0;

	while (i < word_count && words[i].at != word)
		i++;
	if (i == WORDS_MAX)
		abort();
	if (i == word_count) {
		words[word_count++].at = word;
		words[i].count = 1;
		words[i].stores[0] = (struct store){.value = read_memory(word, size)};
	}
	return i;
}

static void join(struct view *to, const struct view *from)
{
	for (size_t i = 0; i < WORDS_MAX; i++)
		if (to->of[i] < from->of[i])
			to->of[i] = from->of[i];
}

static bool acquires(int order)
{
	return without != WEAK_NO_ACQUIRE && order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

static bool releases(int order)
{
	return without != WEAK_NO_RELEASE && order != __ATOMIC_RELAXED && order != __ATOMIC_ACQUIRE;
}

/* Load a store. */
static uint64_t take(size_t word, size_t index, int order)
{
	struct thread *thread = &threads[running];
	const struct store *store = &words[word].stores[index];

	thread->now.of[word] = (uint8_t)index;
	join(&thread->acquired, &store->view);
	if (acquires(order))
		join(&thread->now, &store->view);
	return store->value;
}

uint64_t weak_load(const void *word, size_t size, int order)
{
	size_t i, oldest;

	step();
	i = find(word, size);
	oldest = threads[running].now.of[i];
	if (order == __ATOMIC_SEQ_CST && oldest < total.of[i])
		oldest = total.of[i];
	return take(i, oldest + choose(words[i].count - oldest), order);
}

/* Append a store; `before` is the one that an exchange has loaded, or NULL. */
static void put(size_t word, void *at, size_t size, uint64_t value, int order,
		const struct store *before)
{
	struct thread *thread = &threads[running];
	const size_t index = words[word].count++;
	struct store *store = &words[word].stores[index];

	if (index == STORES_MAX)
		abort();
	thread->now.of[word] = (uint8_t)index;
	store->value = value;
	store->view = releases(order) ? thread->now : thread->released;
	store->view.of[word] = (uint8_t)index;
	if (before)
		join(&store->view, &before->view);
	if (order == __ATOMIC_SEQ_CST)
		total.of[word] = (uint8_t)index;
	memcpy(at, &value, size);
}

void weak_store(void *word, size_t size, uint64_t value, int order)
{
	step();
	put(find(word, size), word, size, value, order, NULL);
}

uint64_t weak_exchange(void *word, size_t size, uint64_t value, int order)
{
	size_t i, newest;
	uint64_t old;

	step();
	i = find(word, size);
	newest = words[i].count - 1;
	old = take(i, newest, order);
	put(i, word, size, value, order, &words[i].stores[newest]);
	return old;
}

bool weak_swap_if(void *word, size_t size, void *expected, uint64_t value, int order)
{
	size_t i, newest;
	uint64_t old;

	step();
	i = find(word, size);
	newest = words[i].count - 1;
	if (words[i].stores[newest].value != read_memory(expected, size)) {
		old = take(i, newest, __ATOMIC_RELAXED);
		memcpy(expected, &old, size);
		return false;
	}
	take(i, newest, order);
	put(i, word, size, value, order, &words[i].stores[newest]);
	return true;
}

void weak_fence(int order)
{
	struct thread *thread = &threads[running];

	step();
	if (without == WEAK_NO_FENCE)
		return;
	if (order != __ATOMIC_RELEASE)
		join(&thread->now, &thread->acquired);
	if (order == __ATOMIC_SEQ_CST) {
		join(&thread->now, &total);
		total = thread->now;
	}
	if (order != __ATOMIC_ACQUIRE)
		thread->released = thread->now;
}

static void enter(void)
{
	step();
	scenario->run[running]();
	threads[running].ended = true;
	_longjmp(scheduler, 1);
}

static void start(size_t i)
{
	static ucontext_t here;
	struct thread *thread = &threads[i];

	memset(&thread->now, 0, sizeof(thread->now));
	memset(&thread->acquired, 0, sizeof(thread->acquired));
	memset(&thread->released, 0, sizeof(thread->released));
	thread->ended = false;
	running = i;
	getcontext(&thread->context);
	thread->context.uc_stack.ss_sp = thread->stack;
	thread->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&thread->context, enter, 0);
	if (_setjmp(scheduler) == 0)
		swapcontext(&here, &thread->context);
}

/* Let a thread make a step. Return false if all have ended. */
static bool go_on(void)
{
	size_t can[WEAK_THREADS_MAX], count = 0;

	for (size_t i = 0; i < scenario->threads; i++)
		if (!threads[i].ended)
			can[count++] = i;
	if (count == 0)
		return false;
	running = can[count > 1 ? choose(count) : 0];
	if (_setjmp(scheduler) == 0)
		_longjmp(threads[running].place, 1);
	return true;
}

const char *weak_run(const struct weak_scenario *what, enum weak_without left_out)
{
	const char *fault;

	scenario = what;
	without = left_out;
	known = 0;
	do {
		depth = word_count = 0;
		memset(&total, 0, sizeof(total));
		scenario->reset();
		for (size_t i = 0; i < scenario->threads; i++)
			start(i);
		while (go_on())
			;
		fault = scenario->judge();
	} while (!fault && choose_next());
	return fault;
}
