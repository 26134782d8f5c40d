/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs code with atomics through all of its executions in a weak memory model. The threads are
 * coroutines. Every atomic access is a step, before which any other thread may run, and a load
 * returns any store that its thread may still see, not only the newest one.
 *
 * The model is that of C11 as views: a thread's view says for each word the oldest store that it
 * may still load. A store holds the view that is passed on to who loads it: the whole view of its
 * thread if it is a release, or that of the thread's last release fence. A load whose order is
 * acquire takes the view over at once, others do so at the next acquire fence. What is loaded is
 * always stored before, and the stores to one word have the order in which they were made. So the
 * model lacks executions of C11 in which a load depends on a later store of its own thread, or in
 * which two threads' plain stores to one word change their order.
 *
 * This header replaces the compiler's atomics in the code behind it. Include what else has atomics
 * before it.
 */
#ifndef WEAK_H
#define WEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEAK_THREADS_MAX 3

/* What to leave out, to see that the orders of the code are needed. */
enum weak_without { WEAK_COMPLETE, WEAK_NO_RELEASE, WEAK_NO_ACQUIRE, WEAK_NO_FENCE };

struct weak_scenario {
	size_t threads;
	void (*run[WEAK_THREADS_MAX])(void);
	void (*reset)(void); /* before each execution */
	/* After each execution: return NULL, or what is wrong. */
	const char *(*judge)(void);
};

/** Run all executions, or those up to the first fault. Return it, or NULL. */
const char *weak_run(const struct weak_scenario *scenario, enum weak_without without);

uint64_t weak_load(const void *word, size_t size, int order);
void weak_store(void *word, size_t size, uint64_t value, int order);
uint64_t weak_exchange(void *word, size_t size, uint64_t value, int order);
bool weak_swap_if(void *word, size_t size, void *expected, uint64_t value, int order);
void weak_fence(int order);

#define WEAK_VALUE(word, value) ((uint64_t)(__typeof__(*(word) + 0))(value))

#define __atomic_load_n(word, order) ((__typeof__(*(word)))weak_load(word, sizeof(*(word)), order))
#define __atomic_store_n(word, value, order) \
	weak_store(word, sizeof(*(word)), WEAK_VALUE(word, value), order)
#define __atomic_exchange_n(word, value, order) \
	((__typeof__(*(word)))weak_exchange(word, sizeof(*(word)), WEAK_VALUE(word, value), order))
#define __atomic_compare_exchange_n(word, expected, value, weak, order, otherwise) \
	weak_swap_if(word, sizeof(*(word)), expected, WEAK_VALUE(word, value), order)
#define __atomic_thread_fence(order) weak_fence(order)

#endif
