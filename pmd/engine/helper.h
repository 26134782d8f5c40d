/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that runs an engine when the program does not. */
#ifndef HELPER_H
#define HELPER_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

/** Start the thread, if the engine's progress mode has one. Not MT-safe. 0 or -errno. */
int helper_start(struct engine *engine);

/** Take over at once: an application thread is about to sleep. MT-safe. */
void helper_wake(struct engine *engine);

/** Wake the thread where it sleeps, or the next time it is about to. MT-safe; for handover.c. */
void helper_ring(const struct engine *engine);

/** Sleep until rung for, or the time is over, or (with the port's descriptor) frames wait. The
 * helper's own; for handover.c. */
void helper_wait(struct engine *engine, uint64_t ns, bool for_frames);

/**
 * What a look at a polling program costs, of what it was believed to cost and what the newest did.
 * It rises slowly and falls at once: a hypervisor that takes the CPU away makes a look seem dear.
 */
uint64_t helper_average_ns(uint64_t before_ns, uint64_t look_ns);

/* Observations of the program that the helper watches. */
struct helper_watch {
	uint64_t turns, found; /* the engine's counts, at the last look */
	uint64_t without_ns;   /* since the last look that saw a turn */
};

/**
 * After a tick of watching: whether the program does not run the engine. One that finds all the
 * completions it asks for comes to few turns: it has longer, but not for ever, for its peers wait.
 */
bool helper_is_needed(struct helper_watch *watch, const struct engine *engine, uint64_t tick_ns,
		      uint64_t longest_ns);

/** End the thread, while the engine goes on. Not MT-safe. */
void helper_stop(struct engine *engine);

/** Wait for its end, for a short time at most. After engine->ended is set. */
void helper_join(struct engine *engine);

#endif
