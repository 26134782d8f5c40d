/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access to the words through which threads hand work over. Each access is a step: another thread
 * may run between two steps. In the product an access is just the atomic operation. A test that
 * defines SHARED_IS_SCHEDULED decides before each step which thread runs next.
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

#define SHARED_SPINS \
	200 /* an engine poll takes microseconds; a longer one has probably lost its CPU */
#define SHARED_YIELDS	20
#define SHARED_PAUSE_NS 50000

/**
 * Wait a while for another thread; `tries` is the number of waits so far. sched_yield alone is not
 * enough: a real-time thread never yields to one of lower priority, which may need this CPU.
 * Returns the new number of waits.
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

#define shared_load(word, order) (shared_step(word), __atomic_load_n(word, order))
#define shared_exchange(word, value) \
	(shared_step(word), __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST))
#define shared_fetch_add(word, value) \
	(shared_step(word), __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST))
#define shared_fetch_sub(word, value) \
	(shared_step(word), __atomic_fetch_sub(word, value, __ATOMIC_SEQ_CST))

/* Store `value` if the word is *expected. If not, return false, and set *expected to the word's
 * value. */
#define shared_swap_if(word, expected, value)                                         \
	(shared_step(word), __atomic_compare_exchange_n(word, expected, value, false, \
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

#endif
