/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program that poll: what they tell the helper, and how they wait for others. */
#ifndef ENGINE_POLLING_H
#define ENGINE_POLLING_H

#include <stdbool.h>
#include <stdint.h>

struct engine_clock;

#define POLLING_FOUND_A_TURN 8 /* polls that find all that they ask for */
/* of polling for nothing, after which a thread yields; longer than a round trip on a fast link */
#define POLLING_YIELD_AFTER_NS UINT64_C(20000)
#define POLLING_NAP_AFTER_NS   UINT64_C(2000000) /* the same for a nap; and between two naps */

/* All words are relaxed: they only measure, so a count that is lost between two threads does no
 * harm. */
struct polling {
	/* written by threads that poll, read by the helper */
	uint64_t polls; /* polls for nothing, and completions that polls have found */
	uint64_t turns; /* polls that became turns */
	uint64_t found; /* polls that have found all that they asked for */

	/* polling.c's own */
	uint64_t yield_due_ns;	/* a poll that finds nothing keeps the CPU until then */
	uint64_t nap_due_ns;	/* no such poll sleeps until then */
	uint64_t refused_times; /* engine.taken_times, when a poll first found that owner */
	uint64_t refused_ns;	/* when that was */
};

void polling_init(struct polling *polling);

static inline uint64_t polling_read(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline uint64_t polling_add(uint64_t *word, uint64_t n)
{
	const uint64_t sum = polling_read(word) + n;

	__atomic_store_n(word, sum, __ATOMIC_RELAXED);
	return sum;
}

/** Count a poll that has found nothing. MT-safe. */
static inline void polling_count(struct polling *polling)
{
	polling_add(&polling->polls, 1);
}

/** Count a poll that becomes a turn. Owner. */
static inline void polling_count_turn(struct polling *polling)
{
	polling_add(&polling->turns, 1);
}

/**
 * Count a poll that has found all the `n` completions that it asked for. MT-safe. Returns true if
 * this poll has to run a turn, as every few such polls do: the program may take long over each
 * completion, and peers wait meanwhile.
 */
static inline bool polling_count_found(struct polling *polling, unsigned int n)
{
	/* A program that takes many at once takes long to come back. */
	polling_add(&polling->polls, n);
	return polling_add(&polling->found, 1) % POLLING_FOUND_A_TURN == 0;
}

/** Yield to the peer or the helper, which may wait for this very CPU. MT-safe. */
void polling_yield(struct polling *polling, const struct engine_clock *clock, uint64_t now_ns);

/** Sleep a moment now and then, where more threads want to run than there are CPUs. MT-safe. */
void polling_nap(struct polling *polling, uint64_t now_ns);

/**
 * Wait for another thread, which runs the engine now; `taken_times` tells its turn from others.
 * Return at once, unless that turn is longer than turns are. MT-safe.
 */
void polling_wait_for_owner(struct polling *polling, const struct engine_clock *clock,
			    uint64_t taken_times);

/** Sleep for less than a second, without being cancelled: programs do not expect that a thread is
 * cancelled in a verb. MT-safe. */
void polling_pause(long ns);

#endif
