/* SPDX-License-Identifier: BSD-3-Clause */
/* The helper makes one step of an engine: it looks at a program that polls, or runs an engine poll
 * for one that does not. Then it notes what the engine wishes next. */
#include <sched.h>
#include <time.h>

#include "base/cpus.h"
#include "base/guard.h"
#include "eal/cpu.h"
#include "engine/engine.h"
#include "helper_thread.h"

#define WATCH_MIN_NS UINT64_C(20000)
/* Ticks grow to this length while the program polls, because a look evicts the poller's cache. */
#define WATCH_MAX_NS	  UINT64_C(320000)
#define WATCH_SLOW_MAX_NS UINT64_C(5000000) /* the same if a look is expensive */
#define WATCH_MIN_LOOKS	  2		    /* the first tick lasts at least so many looks */
#define WATCH_MAX_LOOKS	  32		    /* the longest tick lasts at least so many looks */
/* While packets get lost, the longest tick is this short, but lasts at least so many looks. */
#define WATCH_LOSSY_NS	  UINT64_C(40000)
#define WATCH_LOSSY_LOOKS 4
#define LOSSY_NS	  UINT64_C(10000000) /* packets count as getting lost for this long */
/* While CPUs are short, the longest tick is this long. */
#define WATCH_SHORT_NS UINT64_C(2500000)
#define SHORT_NS       UINT64_C(20000000) /* CPUs count as short for this long */
#define WATCH_FOUND_TICKS                                                             \
	2 /* longest ticks in which polls may find completions but run no engine poll \
	   */
#define LOOK_EARLY \
	4 /* a look may be early by this part of a tick, so that one serves several engines */
#define LOOK_MAX_NS UINT64_C(200000) /* a longer look means that the CPU was taken away */

#define SPIN_NS		    UINT64_C(30000) /* idle time before the first sleep */
#define SLEEP_MIN_NS	    UINT64_C(10000)
#define SLEEP_MAX_NS	    UINT64_C(1000000)
#define SLEEP_WOKEN_NS	    UINT64_C(20000000) /* if frames wake us, or none can arrive by the port */
#define POLLED_NS	    UINT64_C(1000000) /* a program counts as busy for this long after a poll */
#define HANDBACK_NS	    UINT64_C(20000)
#define HANDBACK_POLLS	    4  /* this many polls within HANDBACK_NS: the program polls again */
#define HANDBACK_WAIT_POLLS 32 /* so many more for each time that it may have slept */
#define GIVE_BACK_NS	    100000

uint64_t helper_average_ns(uint64_t before_ns, uint64_t look_ns)
{
	look_ns = RTE_MIN(look_ns, LOOK_MAX_NS);
	return look_ns < before_ns ? look_ns : before_ns + (look_ns - before_ns) / 8;
}

/*
 * Return the length of a tick. A look costs some microseconds, but hundreds in an emulated machine,
 * whose timers are slow. This CPU may be the program's only one, so a tick is several times as long
 * as a look.
 */
static uint64_t helper_tick_ns(const struct engine *engine, uint64_t least_ns, uint64_t looks)
{
	const uint64_t look_ns = __atomic_load_n(&engine->helper.thread->look_ns, __ATOMIC_RELAXED);

	return RTE_MAX(least_ns, RTE_MIN(looks * look_ns, WATCH_SLOW_MAX_NS));
}

void helper_note_losses(struct helper_losses *losses, const struct counters *counters,
			uint64_t now_ns)
{
	const uint64_t count = counters_get(counters, COUNTER_retransmitted_packets) +
			       counters_get(counters, COUNTER_duplicate_request) +
			       counters_get(counters, COUNTER_out_of_sequence);

	if (count != losses->count)
		losses->until_ns = now_ns + LOSSY_NS;
	losses->count = count;
}

/* Return the longest tick. A program that has its completion may read the memory that the peer will
 * write, and not poll. Then a packet that is sent again waits for the end of the tick. */
static uint64_t helper_longest_tick_ns(const struct engine *engine, uint64_t now_ns)
{
	if (unlikely(now_ns < engine->helper.charge->losses.until_ns))
		return helper_tick_ns(engine, WATCH_LOSSY_NS, WATCH_LOSSY_LOOKS);
	if (unlikely(now_ns < engine->helper.charge->watch.short_until_ns))
		return helper_tick_ns(engine, WATCH_SHORT_NS, WATCH_MAX_LOOKS);
	return helper_tick_ns(engine, WATCH_MAX_NS, WATCH_MAX_LOOKS);
}

bool helper_is_needed(struct helper_watch *watch, const struct engine *engine, uint64_t tick_ns,
		      uint64_t longest_ns)
{
	const uint64_t engine_polls = polling_read(&engine->polling.engine_polls);
	const uint64_t found = polling_read(&engine->polling.found);
	const bool has_polled = engine_polls != watch->engine_polls || found != watch->found;

	watch->without_ns = engine_polls != watch->engine_polls ? 0 : watch->without_ns + tick_ns;
	watch->engine_polls = engine_polls;
	watch->found = found;
	return (!has_polled || watch->without_ns >= WATCH_FOUND_TICKS * longest_ns) &&
	       !owner_is_taken(&engine->owner);
}

/* Note the thread that polled last, and its CPU time. Return true if it has got no CPU since it was
 * noted before. */
static bool helper_note_poller(struct helper_watch *watch, const struct engine *engine)
{
	const uint32_t before = watch->poller;
	const uint64_t before_ns = watch->poller_ns;

	watch->poller = __atomic_load_n(&engine->polling.poller, __ATOMIC_RELAXED);
	watch->poller_ns = watch->poller == 0 ? 0 : cpu_thread_ns(watch->poller);
	return watch->poller_ns != 0 && watch->poller == before && watch->poller_ns == before_ns;
}

bool helper_poller_waits(struct helper_watch *watch, const struct engine *engine, uint64_t now_ns)
{
	if (!helper_note_poller(watch, engine) ||
	    (watch->since_ns != 0 && now_ns - watch->since_ns >= HELPER_WAITS_NS) ||
	    !cpu_thread_wants_cpu(watch->poller)) {
		watch->since_ns = 0;
		return false;
	}
	if (watch->since_ns == 0)
		watch->since_ns = now_ns;
	watch->short_until_ns = now_ns + SHORT_NS;
	return true;
}

/*
 * Return how long to sleep after there was work. If frames wake us, we need not poll for them. Each
 * owner of the engine reports the timers that it sets meanwhile. A short sleep is expensive then: a
 * timer that is the CPU's next one is set and cleared in hardware, at each sleep.
 */
static uint64_t helper_first_ns(const struct engine *engine)
{
	return port_wake_fd(&engine->link->port) >= 0 ? SLEEP_WOKEN_NS : SLEEP_MIN_NS;
}

/* Return the longest sleep that delays nothing. */
static uint64_t helper_longest_ns(const struct engine *engine)
{
	const bool wakes = port_wake_fd(&engine->link->port) >= 0;
	/* The engine's owner may update this meanwhile. */
	const bool connected = __atomic_load_n(&engine->tx.connected, __ATOMIC_RELAXED);

	return wakes || !connected ? SLEEP_WOKEN_NS : SLEEP_MAX_NS;
}

/* Let the helper sleep until the next look at the program. */
static void helper_wish_tick(struct helper_charge *charge, uint64_t now_ns)
{
	charge->wish = HELPER_SHORT_SLEEP;
	charge->wish_ns = charge->look_at_ns > now_ns ? charge->look_at_ns - now_ns : 0;
}

static void helper_begin_watch(struct engine *engine, uint64_t now_ns)
{
	struct helper_charge *charge = engine->helper.charge;

	charge->runs = false;
	charge->tick_ns = helper_tick_ns(engine, WATCH_MIN_NS, WATCH_MIN_LOOKS);
	charge->look_at_ns = now_ns + charge->tick_ns;
	charge->watch = (struct helper_watch){
		.engine_polls = polling_read(&engine->polling.engine_polls),
		.found = polling_read(&engine->polling.found),
		.short_until_ns = charge->watch.short_until_ns,
	};
	helper_note_poller(&charge->watch, engine);
	helper_wish_tick(charge, now_ns);
}

static void helper_begin_run(struct engine *engine, uint64_t now_ns)
{
	struct helper_charge *charge = engine->helper.charge;

	charge->runs = true;
	helper_note_losses(&charge->losses, &engine->home->counters, now_ns);
	charge->wish = HELPER_GO_ON;
	charge->shares_cpu = cpus_count() == 1;
	charge->busy_ns = now_ns;
	charge->sleep_ns = helper_first_ns(engine);
	charge->seen = (struct helper_polls){
		.polls = polling_read(&engine->polling.polls),
		.waits = polling_read(&engine->polling.waits),
		.look_ns = now_ns,
		.polled_ns = now_ns,
	};
}

/* Return true if it is time for the next look. Another engine may have woken the thread. */
static bool helper_looks_now(const struct helper_charge *charge, uint64_t now_ns)
{
	return now_ns + charge->tick_ns / LOOK_EARLY >= charge->look_at_ns;
}

/* Look at a program that polls: does it still? Run the engine if it does not, or is about to sleep.
 */
static void helper_watch(struct engine *engine)
{
	struct helper_charge *charge = engine->helper.charge;
	const uint64_t now_ns = clock_ns(&engine->clock);
	const uint64_t longest_ns = helper_longest_tick_ns(engine, now_ns);

	if (handover_take_call(engine) != CALL_NONE) {
		helper_begin_run(engine, now_ns);
		return;
	}
	if (helper_looks_now(charge, now_ns)) {
		const bool waits = helper_poller_waits(&charge->watch, engine, now_ns);

		if (helper_is_needed(&charge->watch, engine, charge->tick_ns, longest_ns) &&
		    !waits) {
			helper_begin_run(engine, now_ns);
			return;
		}
		charge->tick_ns = RTE_MIN(2 * charge->tick_ns, longest_ns);
		charge->look_at_ns = now_ns + charge->tick_ns;
	}
	helper_wish_tick(charge, now_ns);
}

/* Return a signal that was sent to the process and arrived in this thread, although this thread has
 * no time to sleep. A thread of the program that waits for the signal takes it now; otherwise the
 * next engine poll gets it again. */
static void helper_give_back(void)
{
	const struct timespec moment = {.tv_nsec = GIVE_BACK_NS};

	guard_pause();
	nanosleep(&moment, NULL);
}

static bool helper_has_one(struct helper_thread *thread)
{
	return __atomic_load_n(&thread->first, __ATOMIC_ACQUIRE)->helper.next == NULL;
}

bool helper_poll(struct engine *engine, unsigned int *work)
{
	*work = 0;
	/* Another thread runs the engine: it sends, or makes a control call. It may want this CPU,
	 * but other engines of this helper's must not wait for the end of its time slice. */
	if (!engine_try(engine)) {
		if (helper_has_one(engine->helper.thread))
			sched_yield();
		return false;
	}
	*work = engine_poll(engine);
	engine_release(engine);
	if (unlikely(guard_owes()))
		helper_give_back();
	return true;
}

bool helper_is_relieved(struct helper_polls *seen, const struct engine *engine, uint64_t now_ns)
{
	const uint64_t polls = polling_read(&engine->polling.polls);
	const uint64_t waits = polling_read(&engine->polling.waits);

	if (polls - seen->polls >= HANDBACK_POLLS + HANDBACK_WAIT_POLLS * (waits - seen->waits))
		return true;
	if (now_ns - seen->look_ns >= HANDBACK_NS) {
		if (polls != seen->polls)
			seen->polled_ns = now_ns;
		seen->look_ns = now_ns;
		seen->polls = polls;
		seen->waits = waits;
	}
	return false;
}

/*
 * Return how long to spin while nothing arrives. Do not spin on the only CPU of a program that
 * polled a moment ago: it probably reads the memory that the last packet changed, and can do so
 * only while we sleep.
 */
static uint64_t helper_spin_ns(const struct helper_charge *charge, uint64_t now_ns)
{
	return charge->shares_cpu && now_ns - charge->seen.polled_ns < POLLED_NS ? 0 : SPIN_NS;
}

/* Set what to do after an engine poll that found nothing to do for some time. */
static void helper_wish_sleep(struct engine *engine, bool had_poll)
{
	struct helper_charge *charge = engine->helper.charge;

	if (!had_poll) {
		/* Do not sleep for frames: after it is armed, a NIC does not report frames that
		 * came before. */
		charge->wish = HELPER_SHORT_SLEEP;
		charge->wish_ns = SLEEP_MIN_NS;
		return;
	}
	charge->wish = HELPER_IDLE_SLEEP;
	charge->wish_ns = charge->sleep_ns;
	charge->sleep_ns = RTE_MIN(charge->sleep_ns * 2, helper_longest_ns(engine));
}

/* Run the engine until the program polls again. */
static void helper_run(struct engine *engine)
{
	struct helper_charge *charge = engine->helper.charge;
	unsigned int work;
	const bool had_poll = helper_poll(engine, &work);
	const uint64_t now_ns = clock_ns(&engine->clock);
	enum helper_call call;

	if (helper_is_relieved(&charge->seen, engine, now_ns)) {
		helper_disarm(engine);
		helper_begin_watch(engine, now_ns);
		return;
	}
	call = handover_take_call(engine);
	if (work > 0 || call != CALL_NONE) {
		charge->busy_ns = now_ns;
		charge->sleep_ns = helper_first_ns(engine);
	}
	if (call == CALL_TO_LOOK) {
		/* If the program polls by then, it runs the engine again. */
		charge->seen.polled_ns = now_ns;
		charge->sleep_ns = HANDBACK_NS;
	}
	if (now_ns - charge->busy_ns < helper_spin_ns(charge, now_ns))
		charge->wish = HELPER_GO_ON;
	else
		helper_wish_sleep(engine, had_poll);
}

void helper_step(struct engine *engine)
{
	if (engine->helper.charge->runs)
		helper_run(engine);
	else
		helper_watch(engine);
}

void helper_begin(struct engine *engine)
{
	helper_begin_watch(engine, clock_ns(&engine->clock));
}
