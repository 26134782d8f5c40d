/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access to words that threads hand work over by. Each access is a step: a place where another
 * thread may come between. In the product it is the atomic operation and nothing else; a test that
 * defines SHARED_IS_SCHEDULED decides before each step which thread makes the next one.
 */
#ifndef ENGINE_SHARED_H
#define ENGINE_SHARED_H

#include <sched.h>
#include <time.h>

#include <rte_pause.h>

#ifdef SHARED_IS_SCHEDULED
void shared_step(const void *word);
unsigned int shared_wait(unsigned int tries);
#else
static inline void shared_step(const void *word)
{
	(void)word;
}

#define SHARED_SPINS	200 /* a turn takes microseconds: longer, and its thread has lost its CPU */
#define SHARED_YIELDS	20
#define SHARED_PAUSE_NS 50000

/**
 * Wait a while for another thread, which has made one wait so many times already. Not by
 * sched_yield alone: a real-time thread never yields to one of less priority, which may need this
 * very CPU. Returns how many waits that makes.
 */
static inline unsigned int shared_wait(unsigned int tries)
{
	const struct timespec time = {.tv_nsec = SHARED_PAUSE_NS};

	if (tries < SHARED_SPINS)
		rte_pause();
	else if (tries < SHARED_SPINS + SHARED_YIELDS)
		sched_yield();
	else
		nanosleep(&time, NULL);
	return tries + 1;
}
#endif

#define shared_load(word, order)	 (shared_step(word), __atomic_load_n(word, order))
#define shared_store(word, value, order) (shared_step(word), __atomic_store_n(word, value, order))
#define shared_exchange(word, value) \
	(shared_step(word), __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST))
#define shared_fetch_add(word, value) \
	(shared_step(word), __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST))
#define shared_fetch_sub(word, value) \
	(shared_step(word), __atomic_fetch_sub(word, value, __ATOMIC_SEQ_CST))

/* Where this returns false, *expected is what the word was. */
#define shared_swap_if(word, expected, value)                                         \
	(shared_step(word), __atomic_compare_exchange_n(word, expected, value, false, \
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

#endif
