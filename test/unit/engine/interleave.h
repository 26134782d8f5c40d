/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs threads through every interleaving of their steps (engine/shared.h), one after the other.
 * The threads are coroutines; memory is sequentially consistent. A state that was there before is
 * not followed again, and so loops end.
 *
 * A state is what the scenario tells of its memory, and each thread's stack and registers.
 */
#ifndef INTERLEAVE_H
#define INTERLEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERLEAVE_THREADS_MAX 4

struct scenario {
	const char *name;
	size_t threads;
	void (*run[INTERLEAVE_THREADS_MAX])(void);
	const void
		*private_word; /* that no two threads use: nothing comes between there; or NULL */
	void (*reset)(void);   /* before each run: the memory that the threads share */
	/* A digest of that memory. */
	uint64_t (*digest)(void);
	/* Called when no thread can make a step. Return NULL, or what is wrong. */
	const char *(*judge)(void);
};

struct verdict {
	const char *fault; /* the first that was found, or NULL */
	size_t states, runs;
	char trace[512]; /* the threads that made the steps which led to the fault */
};

/** Run all interleavings, or those up to the first fault. */
struct verdict interleave(const struct scenario *scenario);

/* The number of the running thread. */

/** Return the index of the calling thread in its scenario. */
size_t interleave_self(void);

/** Make no step before *word is not 0; NULL: none ever again. */
void interleave_block(const uint64_t *word);

/** Mix a value into a digest. */
uint64_t interleave_mix(uint64_t digest, uint64_t value);

#endif
