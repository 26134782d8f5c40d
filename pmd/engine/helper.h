/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that runs an engine when the program does not. */
#ifndef HELPER_H
#define HELPER_H

#include <stdbool.h>
#include <stdint.h>

struct counters;
struct engine;

#define HELPER_WAITS_NS UINT64_C(10000000)

/**
 * Let a thread help the engine, if its progress mode has one. One thread serves all engines of
 * hybrid progress; with dedicated progress each engine has its own. Not MT-safe, as all starts and
 * stops. 0 or -errno.
 */
int helper_start(struct engine *engine);

/** Make the helper take over, because an application thread may be about to sleep. MT-safe. */
void helper_expect_sleep(struct engine *engine);

/** Wake the thread if it sleeps; else its next sleep ends at once. MT-safe; for handover.c. */
void helper_ring(struct engine *engine);

/** Sleep until helper_ring is called for one of the thread's engines, the time is over, or frames
 * wait for an engine that listens. `first` begins the list of engines. Helper's thread; for
 * handover.c. */
void helper_wait(struct engine *first, uint64_t ns);

/**
 * Return the new average cost of a look at a polling program, from the old average and the newest
 * cost. It rises slowly and falls at once, because a look seems expensive when a hypervisor takes
 * the CPU away.
 */
uint64_t helper_average_ns(uint64_t before_ns, uint64_t look_ns);

/* This tells whether packets get lost. */
struct helper_losses {
	uint64_t count;	   /* packets sent again and the like, when they were last counted */
	uint64_t until_ns; /* packets count as getting lost until then */
};

/**
 * Call when the program does not run the engine. If packets were sent again, or arrived out of
 * order or twice, since the last call, packets count as getting lost for some time, and the helper
 * looks at the program more often. Helper's thread.
 */
void helper_note_losses(struct helper_losses *losses, const struct counters *counters,
			uint64_t now_ns);

/* Observations of the program that the helper watches. */
struct helper_watch {
	uint64_t engine_polls, found; /* the engine's counts, at the last look */
	uint64_t without_ns;	      /* since the last look that saw an engine poll */
	uint32_t poller;	      /* engine's, at the last look */
	uint64_t poller_ns;	      /* its CPU time then */
	uint64_t since_ns;	 /* it has wanted a CPU since, and got none; 0: it has had one */
	uint64_t short_until_ns; /* CPUs count as short until then */
};

/**
 * Call after each tick of watching. Return true if the program does not run the engine, so that the
 * helper must. A program whose polls find all completions that they ask for runs few engine polls;
 * it gets more time, but at most longest_ns, because its peers wait. An engine poll may be longer
 * than a tick: while a thread has the engine, the helper could not run it, and is not needed.
 */
bool helper_is_needed(struct helper_watch *watch, const struct engine *engine, uint64_t tick_ns,
		      uint64_t longest_ns);

/**
 * Call after each tick of watching. Return true if the thread that polled last wants a CPU and has
 * got none since the last look. It runs the engine as soon as it gets one. If the helper ran the
 * engine instead, it would take the CPU from this thread and from others: where CPUs are short,
 * helpers used more of them than the programs. Not for longer than HELPER_WAITS_NS at a time.
 */
bool helper_poller_waits(struct helper_watch *watch, const struct engine *engine, uint64_t now_ns);

/* Counts of the program's calls, while the helper runs the engine. */
struct helper_polls {
	uint64_t polls;	    /* count at the last look */
	uint64_t waits;	    /* the same */
	uint64_t look_ns;   /* time of that look */
	uint64_t polled_ns; /* time of the last look that saw new polls */
};

/**
 * Return true if the program polls often enough to run the engine itself. A program that sleeps on
 * a channel polls as well, a few times for each event; that does not count.
 */
bool helper_is_relieved(struct helper_polls *seen, const struct engine *engine, uint64_t now_ns);

/** Help the engine no more; it continues. Not MT-safe. Returns 0, or -errno if the thread does not
 * start again for its other engines. */
int helper_stop(struct engine *engine);

/** Wait a short time until the thread has left the engine. Call it after engine->ended is set. */
void helper_join(struct engine *engine);

#endif
