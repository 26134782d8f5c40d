/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that runs an engine when the program does not. */
#ifndef HELPER_H
#define HELPER_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct qp;

/** Start the thread, if the engine's progress mode has one. Not MT-safe. 0 or -errno. */
int helper_start(struct engine *engine);

/** Take over at once: an application thread is about to sleep. MT-safe. */
void helper_wake(struct engine *engine);

/**
 * Look at what a thread of the program has just left. That thread goes on, and may need this very
 * CPU for it: so this takes over only when it turns out not to poll. MT-safe.
 */
void helper_tell(struct engine *engine);

/**
 * Whether the thread sleeps, not knowing what the program has just left undone: packets for more
 * than one turn, or a timer of `qp` that ends before the sleep. One that watches a program that
 * polls is not missed: the program's next turn goes on. Owner; helper_tell is for when the engine
 * is given back.
 */
bool helper_is_missed(const struct engine *engine, const struct qp *qp);

/**
 * What a look at a polling program costs, of what it was believed to cost and what the newest did.
 * It rises slowly and falls at once: a hypervisor that takes the CPU away makes a look seem dear.
 */
uint64_t helper_average_ns(uint64_t before_ns, uint64_t look_ns);

/* What a helper has seen of the program that it watches. */
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
