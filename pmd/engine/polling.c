/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's polling threads: what they tell the helper, and how they wait for other threads. */
#include "engine/polling.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <rte_common.h>

#include "eal/cpu.h"
#include "engine/clock.h"

#define LONG_TURN_NS	 UINT64_C(100000)
#define OWNER_PAUSE_NS	 50000
#define NAP_NS		 50000
#define LOOK_NS		 UINT64_C(10000000)
#define CROWD_DEMAND	 (8 * CPU_DEMAND_ALL) /* with so many threads, others starve */
#define CROWD_NS	 UINT64_C(100000000)
#define CROWD_NAP_MAX_NS UINT64_C(1000000)

static void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

void polling_init(struct polling *polling)
{
	*polling = (struct polling){.refused_times = UINT64_MAX};
}

void polling_pause(long ns)
{
	const struct timespec time = {.tv_nsec = ns};
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	nanosleep(&time, NULL);
	pthread_setcancelstate(cancel_state, NULL);
}

/* Another thread wanted this thread's CPU. Find out whether a crowd of them does. */
static void polling_look(struct polling *polling, uint64_t now_ns)
{
	unsigned int demand;

	if (now_ns < polling_read(&polling->look_due_ns))
		return;
	store(&polling->look_due_ns, now_ns + LOOK_NS);
	demand = cpu_demand();
	if (demand < CROWD_DEMAND)
		return;
	store(&polling->crowd_nap_ns,
	      RTE_MIN((uint64_t)NAP_NS * demand / CPU_DEMAND_ALL, CROWD_NAP_MAX_NS));
	store(&polling->crowd_end_ns, now_ns + CROWD_NS);
}

/* Yield in each poll that finds nothing, as long as another thread wants the CPU. If none does, the
 * call is useless, and is not repeated for POLLING_YIELD_AFTER_NS. */
void polling_yield(struct polling *polling, const struct engine_clock *clock, uint64_t now_ns)
{
	uint64_t after_ns;

	if (now_ns < polling_read(&polling->yield_due_ns))
		return;
	sched_yield();
	after_ns = clock_ns(clock);
	if (after_ns - now_ns < POLLING_YIELD_AFTER_NS)
		store(&polling->yield_due_ns, after_ns + POLLING_YIELD_AFTER_NS);
	else
		polling_look(polling, after_ns);
}

/*
 * sched_yield gives the CPU only to threads of the caller's own group, and Linux makes a group of
 * each session. So the peer's process, or uroced, may wait behind a polling thread until its
 * retries are used up: 540 ms were seen. If more threads want to run than there are CPUs, a poll
 * that has found nothing for long sleeps from time to time.
 */
void polling_nap(struct polling *polling, uint64_t now_ns)
{
	if (now_ns < polling_read(&polling->nap_due_ns))
		return;
	store(&polling->nap_due_ns, now_ns + POLLING_NAP_AFTER_NS);
	if (cpu_demand() > CPU_DEMAND_ALL)
		polling_pause(NAP_NS);
}

/*
 * Dozens of threads that yield to each other keep their CPUs for seconds: the threads of other
 * sessions, uroced's among them, get too little time to move packets. One nap in 2 ms does not help
 * here, because the other threads go on. So each thread sleeps, the longer the more there are.
 */
void polling_make_way(const struct polling *polling)
{
	polling_pause((long)polling_read(&polling->crowd_nap_ns));
}

/*
 * The owner, or a control call that waits for it, has had the engine for longer than a turn takes.
 * It may have lost its CPU, perhaps to this thread. Hundreds of threads that continue to poll use
 * up hundreds of time slices without progress, so this thread yields. If that does not help it
 * sleeps a while: a real-time thread never loses its CPU to one of lower priority, and sched_yield
 * does not let such a thread run.
 */
void polling_wait_for_owner(struct polling *polling, const struct engine_clock *clock,
			    uint64_t taken_times)
{
	const uint64_t now_ns = clock_ns(clock);
	int64_t refused_ns;

	if (taken_times != polling_read(&polling->refused_times)) {
		store(&polling->refused_ns, now_ns);
		store(&polling->refused_times, taken_times);
		return;
	}
	/* Another thread may have stored a later time meanwhile. */
	refused_ns = (int64_t)(now_ns - polling_read(&polling->refused_ns));
	if (refused_ns > (int64_t)LONG_TURN_NS) {
		polling_look(polling, now_ns);
		polling_pause(OWNER_PAUSE_NS);
	} else if (refused_ns > (int64_t)POLLING_YIELD_AFTER_NS) {
		sched_yield();
	}
}
