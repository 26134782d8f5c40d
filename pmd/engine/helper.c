/* SPDX-License-Identifier: BSD-3-Clause */
/* The helper thread: its start and end, its rounds, and how others wake it. */
#include "helper.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/own.h"
#include "eal/cpu.h"
#include "eal/privilege.h"
#include "engine/engine.h"
#include "engine/polling.h"
#include "helper_thread.h"

#define JOIN_NS	      100000000
#define LEFT_PAUSE_NS 50000
#define ENDED_NS      UINT64_C(20000000) /* an engine that has ended does not wake its helper */
#define BUSY_NS	      UINT64_C(50000)	 /* without a sleep, before all in idle sleep are woken */
#define EARLY_NS      UINT64_C(2000)	 /* the kernel's clock and ours differ by less */

/* The thread that serves the engines of hybrid progress; NULL: none. Starts and ends of helpers
 * alone use it. */
static struct helper_thread *helper_shared;

/*
 * Structs of threads that do not run any more. They are kept and used again, with their eventfds,
 * because another thread may have called an engine just before its helper was stopped, and may ring
 * only now. Then the ring wakes nobody, or the next helper once for nothing. Starts and stops of
 * helpers alone use the list.
 */
static SLIST_HEAD(, helper_thread) helper_retired = SLIST_HEAD_INITIALIZER(helper_retired);

bool helper_has_ended(const struct engine *engine)
{
	return __atomic_load_n(&engine->ended, __ATOMIC_ACQUIRE);
}

static bool helper_has_live_engine(const struct helper_thread *thread)
{
	const struct engine *engine = __atomic_load_n(&thread->first, __ATOMIC_ACQUIRE);

	while (engine && helper_has_ended(engine))
		engine = engine->helper.next;
	return engine != NULL;
}

bool helper_is_over(const struct helper_thread *thread)
{
	return __atomic_load_n(&thread->quits, __ATOMIC_ACQUIRE) || !helper_has_live_engine(thread);
}

/* Measure what a look at programs that poll costs, if there was nothing but looks since the last
 * one. */
static void helper_measure_look(struct helper_thread *thread, bool only_looks)
{
	const uint64_t before_ns = thread->cpu_ns;

	thread->cpu_ns = only_looks ? cpu_own_ns() : 0;
	if (only_looks && before_ns > 0)
		__atomic_store_n(&thread->look_ns,
				 helper_average_ns(thread->look_ns, thread->cpu_ns - before_ns),
				 __ATOMIC_RELAXED);
}

/* Return true if an engine that sleeps must wake up. */
static bool helper_must_wake(const struct helper_thread *thread, const struct engine *engine,
			     uint64_t now_ns)
{
	const struct helper_charge *charge = engine->helper.charge;

	return engine->helper.heard || now_ns + EARLY_NS >= charge->until_ns ||
	       handover_is_called(engine) ||
	       (charge->wish == HELPER_IDLE_SLEEP && now_ns - thread->slept_ns > BUSY_NS);
}

static void helper_wake_up(struct engine *engine)
{
	const bool slept = engine->helper.armed;

	engine->helper.heard = false;
	engine->helper.armed = false;
	engine->helper.charge->sleeps = false;
	handover_wake(engine);
	/* A NIC that was only just armed wants to be polled once more, and stays armed. */
	if (slept || !engine->link->port.arms_once)
		helper_disarm(engine);
}

/* Make a step of an engine unless it sleeps. */
static void helper_step_one(struct helper_thread *thread, struct engine *engine, uint64_t now_ns)
{
	struct helper_charge *charge = engine->helper.charge;

	if (charge->sleeps && helper_must_wake(thread, engine, now_ns))
		helper_wake_up(engine);
	if (!charge->sleeps)
		helper_step(engine);
}

/* Make a step of each engine that is awake. Return false if one of them wants another one at once.
 */
static bool helper_step_all(struct helper_thread *thread, struct engine *first)
{
	const uint64_t now_ns = clock_ns(&thread->clock);
	bool only_looks = true, may_sleep = true;

	for (struct engine *engine = first; engine; engine = engine->helper.next) {
		const struct helper_charge *charge = engine->helper.charge;

		if (unlikely(helper_has_ended(engine))) {
			/* This thread does not access its port any more. */
			__atomic_store_n(&engine->helper.left, true, __ATOMIC_RELEASE);
			continue;
		}
		helper_step_one(thread, engine, now_ns);
		only_looks = only_looks && !charge->runs;
		may_sleep = may_sleep && (charge->sleeps || charge->wish != HELPER_GO_ON);
	}
	helper_measure_look(thread, only_looks);
	return may_sleep;
}

/* Let an engine sleep as it wishes. Return for how long. */
static uint64_t helper_fall_asleep(struct helper_thread *thread, struct engine *engine)
{
	struct helper_charge *charge = engine->helper.charge;
	const uint64_t now_ns = clock_ns(&thread->clock);
	uint64_t ns = charge->wish_ns;

	if (charge->sleeps)
		return charge->until_ns > now_ns ? charge->until_ns - now_ns : 0;
	if (charge->wish == HELPER_IDLE_SLEEP)
		ns = handover_idle_sleep(engine, clock_ns(&engine->clock), ns);
	else
		handover_short_sleep(engine);
	charge->sleeps = true;
	charge->until_ns = now_ns + ns;
	return ns;
}

/* Sleep as long as all engines let the thread. */
static void helper_sleep(struct helper_thread *thread, struct engine *first)
{
	uint64_t ns = ENDED_NS;

	for (struct engine *engine = first; engine; engine = engine->helper.next) {
		if (!helper_has_ended(engine))
			ns = RTE_MIN(ns, helper_fall_asleep(thread, engine));
	}
	handover_sleep(first, ns);
	thread->slept_ns = clock_ns(&thread->clock);
}

/* Serve the engines in turn, until all have ended or the thread is stopped. */
static void helper_serve(struct helper_thread *thread)
{
	while (!helper_is_over(thread)) {
		/* More engines may come meanwhile: they are the next round's. */
		struct engine *first = __atomic_load_n(&thread->first, __ATOMIC_ACQUIRE);

		/*
		 * Do not use sched_yield between two rounds: since Linux 6.18 each call gives up a
		 * whole time slice, and a hundred of them on a busy CPU keep this thread, and so
		 * the peer, waiting for longer than a queue pair's retries last.
		 */
		if (helper_step_all(thread, first))
			helper_sleep(thread, first);
		else
			rte_pause();
	}
	for (struct engine *engine = thread->first; engine; engine = engine->helper.next) {
		helper_wake_up(engine);
		helper_disarm(engine);
	}
}

static void *helper_main(void *arg)
{
	struct helper_thread *thread = arg;
	unsigned int work;

	guard_serve();
	/* Make short sleeps exact. By default the kernel adds up to 50 us to each. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	cpu_shorten_slices();
	while (thread->dedicated && !helper_is_over(thread))
		helper_poll(thread->first, &work);
	if (!thread->dedicated)
		helper_serve(thread);
	return NULL;
}

static int helper_run_thread(struct helper_thread *thread)
{
	const int rc = privilege_create(&thread->id, helper_main, thread, false);

	if (rc == 0)
		pthread_setname_np(thread->id, "uroce");
	return rc;
}

static void helper_retire(struct helper_thread *thread)
{
	if (helper_shared == thread)
		helper_shared = NULL;
	SLIST_INSERT_HEAD(&helper_retired, thread, retired);
}

/* Return the struct of a thread that has ended, or NULL. A parent process may still use the eventfd
 * of one that it has made, and the program may have closed an eventfd. */
static struct helper_thread *helper_reuse(void)
{
	struct helper_thread *thread;

	SLIST_FOREACH(thread, &helper_retired, retired)
	{
		if (thread->pid == getpid() && own_is(thread->wake_fd))
			break;
	}
	if (!thread)
		return NULL;
	SLIST_REMOVE(&helper_retired, thread, helper_thread, retired);
	thread->quits = false;
	thread->look_ns = thread->slept_ns = thread->cpu_ns = 0;
	return thread;
}

static struct helper_thread *helper_new(void)
{
	struct helper_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	thread->pid = getpid();
	if (thread->wake_fd < 0) {
		free(thread);
		return NULL;
	}
	own_mark(thread->wake_fd);
	return thread;
}

/* Make a thread without engines, which does not run yet. 0 or -errno. */
static int helper_make(bool dedicated, struct helper_thread **made)
{
	struct helper_thread *thread = helper_reuse();

	if (!thread)
		thread = helper_new();
	if (!thread)
		return -errno;
	thread->dedicated = dedicated;
	if (!dedicated)
		helper_shared = thread;
	*made = thread;
	return 0;
}

/* Wake a thread that is to notice more than a call in an engine's word. */
static void helper_ring_thread(const struct helper_thread *thread)
{
	own_ring(thread->wake_fd);
}

/* Give an engine to a thread, which may be running. */
static void helper_add(struct helper_thread *thread, struct engine *engine)
{
	__atomic_store_n(&engine->helper.thread, thread, __ATOMIC_RELEASE);
	engine->helper.left = false;
	engine->helper.next = thread->first;
	helper_begin(engine);
	thread->count++;
	__atomic_store_n(&thread->first, engine, __ATOMIC_RELEASE);
	helper_ring_thread(thread);
}

/* Take an engine from a thread that does not run. */
static void helper_remove(struct helper_thread *thread, struct engine *engine)
{
	struct engine **link = &thread->first;

	while (*link != engine)
		link = &(*link)->helper.next;
	*link = engine->helper.next;
	thread->count--;
	__atomic_store_n(&engine->helper.thread, NULL, __ATOMIC_RELEASE);
	free(engine->helper.charge);
	engine->helper.charge = NULL;
}

/* Take all engines from a thread that could not be started. */
static void helper_bury(struct helper_thread *thread)
{
	while (thread->first)
		helper_remove(thread, thread->first);
	helper_retire(thread);
}

/* Return a thread that can take one engine more, or NULL. The thread of a parent process does not
 * run here: its engines have all ended. */
static struct helper_thread *helper_find(bool dedicated)
{
	struct helper_thread *thread = helper_shared;

	if (dedicated || !thread || thread->count == HELPER_ENGINES_MAX || helper_is_over(thread))
		return NULL;
	return thread;
}

int helper_start(struct engine *engine)
{
	const bool dedicated = engine->progress == SETTINGS_PROGRESS_DEDICATED;
	struct helper_thread *thread = helper_find(dedicated);
	const bool runs = thread != NULL;
	int rc = 0;

	if (engine->progress == SETTINGS_PROGRESS_INLINE)
		return 0;
	engine->helper.charge = calloc(1, sizeof(*engine->helper.charge));
	if (!engine->helper.charge)
		return -ENOMEM;
	if (!runs)
		rc = helper_make(dedicated, &thread);
	if (rc != 0) {
		free(engine->helper.charge);
		engine->helper.charge = NULL;
		return rc;
	}
	if (!runs)
		thread->clock = engine->clock;
	helper_add(thread, engine);
	rc = runs ? 0 : helper_run_thread(thread);
	if (rc != 0)
		helper_bury(thread);
	return rc;
}

/* Return the thread that serves an engine, or NULL. MT-safe. */
static struct helper_thread *helper_of(const struct engine *engine)
{
	return __atomic_load_n(&engine->helper.thread, __ATOMIC_ACQUIRE);
}

void helper_ring(struct engine *engine)
{
	const struct helper_thread *thread = helper_of(engine);

	if (thread && !helper_has_lost_fds(engine, thread))
		own_ring_checked(thread->wake_fd);
}

/* Make the helper take over at once. */
static void helper_wake(struct engine *engine)
{
	if (helper_of(engine))
		handover_call(engine, CALL_TO_RUN);
}

/* A helper in idle sleep until frames come runs the engine already: waking it would only take this
 * CPU. */
void helper_expect_sleep(struct engine *engine)
{
	if (port_wake_fd(&engine->link->port) < 0 || !handover_is_idle(engine))
		helper_wake(engine);
}

int helper_stop(struct engine *engine)
{
	struct helper_thread *thread = engine->helper.thread;
	int rc;

	if (!thread)
		return 0;
	__atomic_store_n(&thread->quits, true, __ATOMIC_SEQ_CST);
	helper_wake(engine);
	pthread_join(thread->id, NULL);
	helper_remove(thread, engine);
	thread->quits = false;
	if (!thread->first) {
		helper_retire(thread);
		return 0;
	}
	rc = helper_run_thread(thread);
	if (rc != 0)
		helper_bury(thread);
	return rc;
}

/* Wait a short time for the end of a thread whose engines have all ended. A thread that gets no CPU
 * in that time finds later that they have ended. It may arm a port before that. */
static void helper_join_thread(struct helper_thread *thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += JOIN_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_timedjoin_np(thread->id, NULL, &until);
}

void helper_join(struct engine *engine)
{
	struct helper_thread *thread = engine->helper.thread;

	if (!thread)
		return;
	helper_wake(engine);
	if (helper_is_over(thread)) {
		helper_join_thread(thread);
		return;
	}
	for (int i = 0; i < JOIN_NS / LEFT_PAUSE_NS; i++) {
		if (__atomic_load_n(&engine->helper.left, __ATOMIC_ACQUIRE))
			return;
		polling_pause(LEFT_PAUSE_NS);
	}
}
