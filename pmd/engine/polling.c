/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's polling threads: when they yield, pause or sleep, so that other threads get the
 * CPU. */
#include "engine/polling.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/cancel.h"
#include "base/cpus.h"
#include "eal/cpu.h"
#include "engine/clock.h"

#define LONG_POLL_NS	   UINT64_C(100000)
#define OWNER_PAUSE_NS	   UINT64_C(50000)
#define SHORT_SLEEP_NS	   50000
#define REFUSAL_NS	   UINT64_C(20000000) /* later ones are others: longer than each sleep */
#define COUNT_NS	   UINT64_C(20000000) /* in which each thread of a crowd polls */
#define CROWD		   2 /* threads that poll, for each CPU: so many let others starve */
#define CROWD_SLEEP_NS	   UINT64_C(12500) /* for each of these threads */
#define CROWD_SLEEP_MAX_NS UINT64_C(4000000)
#define CROWD_STRETCH_MAX  UINT64_C(16)
#define SLACK_NS	   UINT64_C(100000) /* by so much a sleep may be late on an idle CPU */

__thread struct polling_thread polling_thread;
struct crowd polling_crowd __rte_cache_aligned;

static void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

void polling_init(struct polling *polling)
{
	*polling = (struct polling){.refused_times = UINT64_MAX};
	store(&polling_crowd.cpus, cpus_count());
	store(&polling_crowd.stretch, 1);
}

void polling_pause(long ns)
{
	const struct timespec time = {.tv_nsec = ns};
	const int cancel_state = cancel_disable();

	nanosleep(&time, NULL);
	cancel_restore(cancel_state);
}

void polling_name_poller(struct polling *polling)
{
	if (polling_thread.number == 0)
		polling_thread.number = (uint32_t)gettid();
	__atomic_store_n(&polling->poller, polling_thread.number, __ATOMIC_RELAXED);
}

/* Yield in each poll that finds nothing, as long as another thread wants the CPU. If none does, the
 * call is useless, and is not repeated for POLLING_YIELD_AFTER_NS. */
bool polling_yield(struct polling *polling, const struct engine_clock *clock, uint64_t now_ns)
{
	uint64_t before_ns, after_ns;

	if (now_ns < polling_read(&polling->yield_due_ns))
		return false;
	before_ns = clock_ns(clock);
	sched_yield();
	after_ns = clock_ns(clock);
	store(&polling->vain_last_ns, after_ns);
	if (after_ns - before_ns >= POLLING_YIELD_AFTER_NS)
		return true;
	store(&polling->yield_due_ns, after_ns + POLLING_YIELD_AFTER_NS);
	return false;
}

/* Return true if this thread has used much CPU time since this function last returned true. */
static bool polling_has_used_cpu(void)
{
	const uint64_t cpu_ns = cpu_own_ns(), before_ns = polling_thread.cpu_ns;

	if (before_ns != 0 && cpu_ns - before_ns < POLLING_SHORT_SLEEP_CPU_NS)
		return false;
	polling_thread.cpu_ns = cpu_ns;
	return before_ns != 0;
}

/*
 * sched_yield gives the CPU only to threads of the caller's own group, and Linux makes a group of
 * each session. So the peer's process, or uroced, may wait behind a polling thread until its
 * retries are used up. On Linux 6.18 the group keeps the CPU longer each time that another of its
 * threads wakes, as the helper does for a look: 13 s were seen. So while the engine has no work, a
 * thread that uses its CPU, whatever for, sleeps from time to time, if more threads want to run
 * than there are CPUs. A long time between two polls does not tell that it has slept: others may
 * have interrupted it. A program that sleeps uses little CPU time, and so asks seldom if CPUs are
 * short: finding out takes longer than the answer of a peer that sleeps.
 */
bool polling_short_sleep(uint64_t now_ns)
{
	int cancel_state;
	bool is_short;

	if (now_ns < polling_thread.short_sleep_due_ns)
		return false;
	polling_thread.short_sleep_due_ns = now_ns + POLLING_SHORT_SLEEP_AFTER_NS;
	if (!polling_has_used_cpu())
		return false;
	cancel_state = cancel_disable();
	is_short = cpu_is_short();
	if (is_short)
		polling_pause(SHORT_SLEEP_NS);
	cancel_restore(cancel_state);
	return is_short;
}

/* Return the factor by which threads sleep longer than their number alone requires, and begin new
 * sums. Double it if they waited longer for CPUs than they slept: the CPUs are busy, perhaps with
 * waking them. Halve it if they waited at most a quarter of that. */
static uint64_t polling_stretch(struct crowd *crowd)
{
	const uint64_t asked_ns = polling_read(&crowd->asked_ns);
	const uint64_t late_ns = polling_read(&crowd->late_ns);
	const uint64_t stretch = polling_read(&crowd->stretch);

	store(&crowd->asked_ns, 0);
	store(&crowd->late_ns, 0);
	if (late_ns > asked_ns)
		return RTE_MIN(2 * stretch, CROWD_STRETCH_MAX);
	return late_ns <= asked_ns / 4 && stretch > 1 ? stretch / 2 : stretch;
}

/* Begin a new count of the threads that poll in vain, and find out whether the last one met a
 * crowd. */
static void polling_count_anew(struct crowd *crowd, uint64_t now_ns)
{
	uint64_t end_ns = polling_read(&crowd->count_end_ns);
	uint64_t each, stretch;

	/* One thread alone sums up. */
	if (now_ns < end_ns ||
	    !__atomic_compare_exchange_n(&crowd->count_end_ns, &end_ns, now_ns + COUNT_NS, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	each = polling_read(&crowd->threads) / polling_read(&crowd->cpus);
	stretch = polling_stretch(crowd);
	store(&crowd->stretch, stretch);
	store(&crowd->sleep_ns,
	      each < CROWD ? 0 : RTE_MIN(CROWD_SLEEP_NS * stretch * each, CROWD_SLEEP_MAX_NS));
	store(&crowd->threads, 0);
}

/* Count this thread. Return for how long it should sleep; 0: there is no crowd, or the thread does
 * not belong to it, because it sleeps on a channel after a poll or two that find nothing. */
static uint64_t polling_crowd_ns(uint64_t now_ns)
{
	struct crowd *crowd = &polling_crowd;

	if (now_ns >= polling_read(&crowd->count_end_ns))
		polling_count_anew(crowd, now_ns);
	if (polling_thread.waits) {
		polling_thread.waits = false;
		return 0;
	}
	if (polling_thread.counted_ns != polling_read(&crowd->count_end_ns)) {
		polling_thread.counted_ns = polling_read(&crowd->count_end_ns);
		polling_add(&crowd->threads, 1);
	}
	return polling_read(&crowd->sleep_ns);
}

/* Sleep, and note for how long the thread had to wait for a CPU afterwards. */
static void polling_sleep(const struct engine_clock *clock, uint64_t ns)
{
	const uint64_t begin_ns = clock_ns(clock);
	uint64_t passed_ns;

	polling_pause((long)ns);
	passed_ns = polling_passed_ns(clock_ns(clock), begin_ns);
	polling_add(&polling_crowd.asked_ns, ns);
	polling_add(&polling_crowd.late_ns, polling_passed_ns(passed_ns, ns + SLACK_NS));
}

/*
 * Threads of one session that yield to each other keep their CPU for up to a minute (Linux 6.18):
 * threads of other sessions, uroced's among them, want it and do not get it. One short sleep in 2
 * ms does not help here, because the other threads go on. So each thread sleeps, the longer the
 * more there are.
 */
bool polling_make_way_now(const struct engine_clock *clock, uint64_t now_ns)
{
	const uint64_t sleep_ns = polling_crowd_ns(now_ns);

	if (sleep_ns > 0)
		polling_sleep(clock, sleep_ns);
	return sleep_ns > 0;
}

/*
 * The owner, or a control call that waits for it, has had the engine for longer than an engine poll
 * takes. It may have lost its CPU, perhaps to this thread. Hundreds of threads that continue to
 * poll use up hundreds of time slices without progress, so this thread yields. If that does not
 * help it sleeps a while: a real-time thread never loses its CPU to one of lower priority, and
 * sched_yield does not let such a thread run. A crowd sleeps longer: 256 threads that wake each 50
 * us take both of two CPUs from the owner.
 */
void polling_wait_for_owner(struct polling *polling, const struct engine_clock *clock,
			    uint64_t taken_times)
{
	const uint64_t now_ns = clock_ns(clock);
	uint64_t pause_ns, last_ns;
	int64_t refused_ns;

	/* A control call that waits refuses as well, and is not counted in taken_times. */
	last_ns = polling_read(&polling->refused_last_ns);
	store(&polling->refused_last_ns, now_ns);
	if (taken_times != polling_read(&polling->refused_times) ||
	    polling_passed_ns(now_ns, last_ns) > REFUSAL_NS) {
		store(&polling->refused_ns, now_ns);
		store(&polling->refused_times, taken_times);
		return;
	}
	/* Another thread may have stored a later time meanwhile. */
	refused_ns = (int64_t)(now_ns - polling_read(&polling->refused_ns));
	if (refused_ns > (int64_t)LONG_POLL_NS) {
		pause_ns = polling_crowd_ns(now_ns);
		polling_sleep(clock, RTE_MAX(pause_ns, OWNER_PAUSE_NS));
	} else if (refused_ns > (int64_t)POLLING_YIELD_AFTER_NS) {
		sched_yield();
	}
}
