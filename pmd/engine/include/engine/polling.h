/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's polling threads: what they tell the helper, and how they wait for other threads. */
#ifndef ENGINE_POLLING_H
#define ENGINE_POLLING_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

struct engine_clock;

#define POLLING_FOUND_A_POLL \
	8 /* polls that find all completions that they ask for, per engine poll */
/* A thread yields after polling in vain for this long; longer than a round trip on a fast link. */
#define POLLING_YIELD_AFTER_NS UINT64_C(20000)
#define POLLING_SHORT_SLEEP_AFTER_NS \
	UINT64_C(2000000) /* without work before a short sleep, and between two */
#define POLLING_SHORT_SLEEP_CPU_NS \
	UINT64_C(1000000) /* CPU time that is used between two short sleeps */

/* All words are accessed relaxed. They only measure, so a count lost between two threads is
 * harmless. */
struct polling {
	/* written by threads that poll, read by the helper */
	uint64_t polls;	       /* polls that found nothing, plus completions found by polls */
	uint64_t engine_polls; /* polls that became engine polls */
	uint64_t found;	       /* polls that found all completions that they asked for */
	uint64_t waits;	       /* calls after which a thread may sleep on a channel */
	uint32_t poller;       /* thread of the last poll that found nothing; 0: none */

	/* polling.c's own */
	uint64_t vain_begin_ns; /* of the series of polls that found nothing */
	uint64_t vain_last_ns;	/* the last poll of that series */
	uint64_t yield_due_ns;	/* until then a poll that finds nothing does not yield */
	uint64_t refused_times; /* engine.taken_times when a poll was first refused by that owner */
	uint64_t refused_ns;	/* time of that refusal */
	uint64_t refused_last_ns; /* time of the last refusal */
};

/* The threads of this program that poll in vain, whichever devices: they compete for the same CPUs.
 * Relaxed, as above. */
struct crowd {
	/* read by each poll that finds nothing, and seldom written */
	uint64_t count_end_ns; /* until then threads are counted */
	uint64_t threads;      /* that have polled in vain since the count began */
	uint64_t sleep_ns;     /* each such poll sleeps so long; 0: there is no crowd */
	uint64_t stretch;      /* factor of sleep_ns */
	uint64_t cpus;	       /* that these threads may use; set by polling_init */

	/* written after each sleep */
	uint64_t asked_ns __rte_cache_aligned; /* for which they have slept since the count began */
	uint64_t late_ns;		       /* for which they then had to wait for a CPU */
};

extern struct crowd polling_crowd __attribute__((visibility("hidden")));

/* Of a thread that polls. Reading it takes no call (initial-exec). */
struct polling_thread {
	uint64_t counted_ns; /* the end of the newest count that has counted this thread, which is
				unique enough to tell it */
	uint64_t short_sleep_due_ns; /* until then it does not sleep briefly */
	uint64_t cpu_ns; /* its CPU time at the last question if CPUs are short; 0: none yet */
	bool waits;	 /* it has told since its last poll that it may sleep on a channel */
	uint32_t number; /* 0: not asked for yet. In a child process it is the parent's, which
			    names no thread there */
};

extern __thread struct polling_thread polling_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/** Set the state of an engine. Not MT-safe. */
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

/** Count a poll that runs an engine poll. Owner. */
static inline void polling_count_engine_poll(struct polling *polling)
{
	polling_add(&polling->engine_polls, 1);
}

/**
 * Count a poll that found all the `n` completions that it asked for. MT-safe. Returns true if this
 * poll must run an engine poll: one poll in POLLING_FOUND_A_POLL does. The program may need long to
 * process each completion, and its peers wait meanwhile.
 */
static inline bool polling_count_found(struct polling *polling, unsigned int n)
{
	/* A program that takes many completions at once needs long until its next poll. */
	polling_add(&polling->polls, n);
	return polling_add(&polling->found, 1) % POLLING_FOUND_A_POLL == 0;
}

/** Count a call after which a thread may sleep on a channel. MT-safe. */
static inline void polling_count_wait(struct polling *polling)
{
	polling_add(&polling->waits, 1);
	polling_thread.waits = true;
}

/** Note that this thread polls. MT-safe. */
void polling_name_poller(struct polling *polling);

/* Return the time from `since_ns`, which another thread may have stored later than our `now_ns`. */
static inline uint64_t polling_passed_ns(uint64_t now_ns, uint64_t since_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

/**
 * Note a poll that has found nothing. Return for how long the program has polled in vain: a program
 * that has slept meanwhile begins anew. MT-safe.
 */
static inline uint64_t polling_vain_ns(struct polling *polling, uint64_t now_ns)
{
	const uint32_t number = polling_thread.number;
	const uint64_t last_ns = polling_read(&polling->vain_last_ns);

	if (unlikely(number == 0 || __atomic_load_n(&polling->poller, __ATOMIC_RELAXED) != number))
		polling_name_poller(polling);
	/* First the beginning: another thread that reads the new time of the last poll must not
	 * find the beginning of an old series. */
	if (unlikely(polling_passed_ns(now_ns, last_ns) > POLLING_YIELD_AFTER_NS))
		__atomic_store_n(&polling->vain_begin_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&polling->vain_last_ns, now_ns, __ATOMIC_RELEASE);
	return polling_passed_ns(now_ns, polling_read(&polling->vain_begin_ns));
}

/** Yield the CPU to the peer's process or the helper, which may wait for this CPU. Return true if
 * another thread has had it. MT-safe. */
bool polling_yield(struct polling *polling, const struct engine_clock *clock, uint64_t now_ns);

/** Sleep briefly from time to time if more threads want to run than there are CPUs. Return true if
 * this thread has slept. MT-safe. */
bool polling_short_sleep(uint64_t now_ns);

/* Do what polling_make_way does. */
bool polling_make_way_now(const struct engine_clock *clock, uint64_t now_ns);

/** Sleep if a crowd of this program's threads polls in vain. Return true if this thread has slept.
 * MT-safe. */
static inline bool polling_make_way(const struct engine_clock *clock, uint64_t now_ns)
{
	const uint64_t count_end_ns = polling_read(&polling_crowd.count_end_ns);

	if (likely(now_ns < count_end_ns && polling_thread.counted_ns == count_end_ns &&
		   polling_read(&polling_crowd.sleep_ns) == 0))
		return false;
	return polling_make_way_now(clock, now_ns);
}

/**
 * Wait for the thread that runs the engine now; `taken_times` identifies its poll. Return at once
 * unless that engine poll takes longer than engine polls usually take. MT-safe.
 */
void polling_wait_for_owner(struct polling *polling, const struct engine_clock *clock,
			    uint64_t taken_times);

/** Sleep for less than a second. The thread cannot be cancelled here: programs do not expect
 * cancellation in a verb. MT-safe. */
void polling_pause(long ns);

#endif
