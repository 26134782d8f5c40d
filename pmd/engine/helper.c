/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper thread. In hybrid mode it alternates between two states:
 *
 *   watching  The program polls. The helper checks from time to time that it still does.
 *   running   The program has stopped polling. The helper runs the turns until the program polls
 *             again. While there is nothing to do it sleeps longer and longer.
 *
 * In dedicated mode it runs turns all the time.
 */
#include "helper.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/guard.h"
#include "base/own.h"
#include "device/device.h"
#include "eal/cpu.h"
#include "eal/privilege.h"
#include "engine/engine.h"

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
#define WATCH_FOUND_TICKS                                                      \
	2 /* longest ticks in which polls may find completions but run no turn \
	   */
#define LOOK_MAX_NS UINT64_C(200000) /* a longer look means that the CPU was taken away */

#define SPIN_NS		    UINT64_C(30000) /* idle time before the first sleep */
#define SLEEP_MIN_NS	    UINT64_C(10000)
#define SLEEP_MAX_NS	    UINT64_C(1000000)
#define SLEEP_WOKEN_NS	    UINT64_C(20000000) /* if frames wake us, or none can arrive */
#define POLLED_NS	    UINT64_C(1000000) /* a program counts as busy for this long after a poll */
#define HANDBACK_NS	    UINT64_C(20000)
#define HANDBACK_POLLS	    4  /* this many polls within HANDBACK_NS: the program polls again */
#define HANDBACK_WAIT_POLLS 32 /* so many more for each time that it may have slept */
#define JOIN_NS		    100000000
#define GIVE_BACK_NS	    100000

static bool helper_ended(const struct engine *engine)
{
	return __atomic_load_n(&engine->ended, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&engine->helper.quits, __ATOMIC_ACQUIRE);
}

/* Sleep in spite of a socket error: an interface that goes down leaves an error on its socket,
 * which would end every sleep at once. Reading the error removes it, so frames can wake us again.
 * If there was none to read, do not listen to this descriptor. */
static void helper_sleep_off_error(struct pollfd fds[2], const struct timespec *time,
				   const sigset_t *mask)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(fds[1].fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = 0;
	ppoll(fds, error != 0 ? 2 : 1, time, mask);
}

/*
 * Prepare for sleep. Return true if frames wait already, or may wait. Only the engine's owner may
 * switch a NIC's interrupts, because only the owner releases a NIC that was pulled out.
 */
static bool helper_arm(struct engine *engine)
{
	struct port *port = &engine->link->port;
	bool waits;

	if (!port_interrupts(port))
		return port_arm(port);
	/* Another thread runs the engine: look again. */
	if (!engine_try(engine))
		return true;
	waits = port_arm(port);
	engine_release(engine);
	return waits;
}

/* Disarm the port. If another thread has the engine, the port stays armed until after the next
 * sleep. */
static void helper_disarm(struct engine *engine)
{
	if (!port_is_armed(&engine->link->port) || !engine_try(engine))
		return;
	port_disarm(&engine->link->port);
	engine_release(engine);
}

/* Return true if the program has closed the descriptor on which we sleep. */
static bool helper_has_lost_fds(struct engine *engine)
{
	if (unlikely(!own_is(engine->helper.wake_fd)))
		__atomic_store_n(&engine->lost_fds, true, __ATOMIC_RELAXED);
	return __atomic_load_n(&engine->lost_fds, __ATOMIC_RELAXED);
}

void helper_wait(struct engine *engine, uint64_t ns, bool for_frames)
{
	const bool lost_fds = __atomic_load_n(&engine->lost_fds, __ATOMIC_RELAXED);
	struct pollfd fds[2] = {
		{.fd = lost_fds ? -1 : engine->helper.wake_fd, .events = POLLIN},
		{.fd = for_frames && !lost_fds ? port_wake_fd(&engine->link->port) : -1,
		 .events = POLLIN},
	};
	const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
				      .tv_nsec = (long)(ns % 1000000000)};
	uint64_t count;
	sigset_t mask;

	if (helper_ended(engine) || (for_frames && !lost_fds && helper_arm(engine)))
		return;
	guard_pause_in_call(&mask);
	if (ppoll(fds, 2, &time, &mask) > 0 && (fds[1].revents & ~POLLIN) &&
	    !helper_has_lost_fds(engine))
		helper_sleep_off_error(fds, &time, &mask);
	/* The descriptor may be closed or another file's by now: poll looks it up again when it
	 * wakes. If that file wakes nobody, helper_ring notices it. */
	if (fds[0].revents && !helper_has_lost_fds(engine) && (fds[0].revents & POLLIN) &&
	    read(engine->helper.wake_fd, &count, sizeof(count)) < 0)
		fds[0].revents = 0;
	/* A call that only armed the port has returned above; the port stays armed for the next
	 * call. */
	helper_disarm(engine);
}

/* Sleep a tick, which frames do not shorten. */
static void helper_nap(struct engine *engine, uint64_t ns)
{
	handover_nap(engine);
	handover_sleep(engine, ns, false);
}

static uint64_t helper_cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

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
	return RTE_MAX(least_ns, RTE_MIN(looks * engine->helper.look_ns, WATCH_SLOW_MAX_NS));
}

void helper_note_losses(struct helper *helper, const struct counters *counters, uint64_t now_ns)
{
	const uint64_t losses = counters_get(counters, COUNTER_retransmitted_packets) +
				counters_get(counters, COUNTER_duplicate_request) +
				counters_get(counters, COUNTER_out_of_sequence);

	if (losses != helper->losses)
		helper->lossy_until_ns = now_ns + LOSSY_NS;
	helper->losses = losses;
}

/* Return the longest tick. A program that has its completion may read the memory that the peer will
 * write, and not poll. Then a packet that is sent again waits for the end of the tick. */
static uint64_t helper_longest_tick_ns(const struct engine *engine)
{
	if (unlikely(clock_ns(&engine->clock) < engine->helper.lossy_until_ns))
		return helper_tick_ns(engine, WATCH_LOSSY_NS, WATCH_LOSSY_LOOKS);
	return helper_tick_ns(engine, WATCH_MAX_NS, WATCH_MAX_LOOKS);
}

bool helper_is_needed(struct helper_watch *watch, const struct engine *engine, uint64_t tick_ns,
		      uint64_t longest_ns)
{
	const uint64_t turns = polling_read(&engine->polling.turns);
	const uint64_t found = polling_read(&engine->polling.found);
	const bool has_polled = turns != watch->turns || found != watch->found;

	watch->without_ns = turns != watch->turns ? 0 : watch->without_ns + tick_ns;
	watch->turns = turns;
	watch->found = found;
	return !has_polled || watch->without_ns >= WATCH_FOUND_TICKS * longest_ns;
}

/* Watch the program. Returns when it does not run the engine, or is about to sleep. */
static void helper_watch(struct engine *engine)
{
	uint64_t tick_ns = helper_tick_ns(engine, WATCH_MIN_NS, WATCH_MIN_LOOKS);
	uint64_t cpu_ns = helper_cpu_ns();
	struct helper_watch watch = {
		.turns = polling_read(&engine->polling.turns),
		.found = polling_read(&engine->polling.found),
	};

	while (!helper_ended(engine)) {
		const uint64_t longest_ns = helper_longest_tick_ns(engine);
		const uint64_t before_ns = cpu_ns;

		helper_nap(engine, tick_ns);
		if (handover_take_call(engine) != CALL_NONE ||
		    helper_is_needed(&watch, engine, tick_ns, longest_ns))
			return;
		cpu_ns = helper_cpu_ns();
		engine->helper.look_ns =
			helper_average_ns(engine->helper.look_ns, cpu_ns - before_ns);
		tick_ns = RTE_MIN(2 * tick_ns, longest_ns);
	}
}

/* Return a signal that was sent to the process and arrived in this thread, although this thread has
 * no time to sleep. A thread of the program that waits for the signal takes it now; otherwise the
 * next turn gets it again. */
static void helper_give_back(void)
{
	const struct timespec moment = {.tv_nsec = GIVE_BACK_NS};

	guard_pause();
	nanosleep(&moment, NULL);
}

/* Run a turn, and set how much work it did. Return false if there was none. */
static bool helper_turn(struct engine *engine, unsigned int *work)
{
	*work = 0;
	/* Another thread runs the engine: it sends, or makes a control call. */
	if (!engine_try(engine)) {
		sched_yield();
		return false;
	}
	*work = engine_turn(engine);
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

static bool helper_shares_cpu(void)
{
	return cpus_count() == 1;
}

/*
 * Return how long to spin while nothing arrives. Do not spin on the only CPU of a program that
 * polled a moment ago: it probably reads the memory that the last packet changed, and can do so
 * only while we sleep.
 */
static uint64_t helper_spin_ns(bool shares_cpu, const struct helper_polls *seen, uint64_t now_ns)
{
	return shares_cpu && now_ns - seen->polled_ns < POLLED_NS ? 0 : SPIN_NS;
}

/* Sleep until there is something to do, at most `limit_ns`. */
static void helper_doze(struct engine *engine, uint64_t now_ns, uint64_t limit_ns)
{
	limit_ns = handover_doze(engine, now_ns, limit_ns);
	handover_sleep(engine, limit_ns, true);
}

/* Run the engine. Returns when the program polls again. */
static void helper_run(struct engine *engine)
{
	const bool shares_cpu = helper_shares_cpu();
	uint64_t now_ns = clock_ns(&engine->clock);
	struct helper_polls seen = {
		.polls = polling_read(&engine->polling.polls),
		.waits = polling_read(&engine->polling.waits),
		.look_ns = now_ns,
		.polled_ns = now_ns,
	};
	uint64_t sleep_ns = helper_first_ns(engine);
	uint64_t busy_ns = now_ns;

	helper_note_losses(&engine->helper, &engine->home->counters, now_ns);
	while (!helper_ended(engine)) {
		unsigned int work;
		const bool had_turn = helper_turn(engine, &work);
		enum helper_call call;

		now_ns = clock_ns(&engine->clock);
		if (helper_is_relieved(&seen, engine, now_ns)) {
			helper_disarm(engine);
			return;
		}
		call = handover_take_call(engine);
		if (work > 0 || call != CALL_NONE) {
			busy_ns = now_ns;
			sleep_ns = helper_first_ns(engine);
		}
		if (call == CALL_TO_LOOK) {
			/* If the program polls by then, it runs the engine again. */
			seen.polled_ns = now_ns;
			sleep_ns = HANDBACK_NS;
		}
		if (now_ns - busy_ns < helper_spin_ns(shares_cpu, &seen, now_ns)) {
			/*
			 * Do not use sched_yield: since Linux 6.18 each call gives up a whole time
			 * slice, and a hundred of them on a busy CPU keep this thread, and so the
			 * peer, waiting for longer than a queue pair's retries last.
			 */
			rte_pause();
		} else if (!had_turn) {
			/* Do not sleep for frames: after it is armed, a NIC does not report frames
			 * that came before. */
			helper_nap(engine, SLEEP_MIN_NS);
		} else {
			helper_doze(engine, now_ns, sleep_ns);
			sleep_ns = RTE_MIN(sleep_ns * 2, helper_longest_ns(engine));
		}
	}
}

static void *helper_main(void *arg)
{
	struct engine *engine = arg;
	unsigned int work;

	guard_serve();
	/* Make short sleeps exact. By default the kernel adds up to 50 us to each. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	cpu_shorten_slices();
	while (!helper_ended(engine)) {
		if (engine->progress == SETTINGS_PROGRESS_DEDICATED) {
			helper_turn(engine, &work);
		} else {
			helper_watch(engine);
			helper_run(engine);
		}
	}
	return NULL;
}

int helper_start(struct engine *engine)
{
	sigset_t all, before;
	int rc;

	if (engine->progress == SETTINGS_PROGRESS_INLINE)
		return 0;
	if (engine->helper.wake_fd < 0)
		engine->helper.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine->helper.wake_fd < 0)
		return -errno;
	own_mark(engine->helper.wake_fd);
	/* The program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = privilege_create(&engine->helper.thread, helper_main, engine, false);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return rc;
	pthread_setname_np(engine->helper.thread, "uroce");
	engine->helper.exists = true;
	return 0;
}

void helper_ring(struct engine *engine)
{
	const uint64_t one = 1;

	/* write() fails only if the counter is full, and then the helper is awake. */
	if (!helper_has_lost_fds(engine) && write(engine->helper.wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* Make the helper take over at once. */
static void helper_wake(struct engine *engine)
{
	if (engine->helper.exists)
		handover_call(engine, CALL_TO_RUN);
}

/* A helper that dozes until frames come runs the engine already: waking it would only take this
 * CPU. */
void helper_expect_sleep(struct engine *engine)
{
	if (port_wake_fd(&engine->link->port) < 0 || !handover_is_dozing(engine))
		helper_wake(engine);
}

void helper_stop(struct engine *engine)
{
	if (!engine->helper.exists)
		return;
	__atomic_store_n(&engine->helper.quits, true, __ATOMIC_SEQ_CST);
	helper_wake(engine);
	pthread_join(engine->helper.thread, NULL);
	engine->helper.exists = false;
	__atomic_store_n(&engine->helper.quits, false, __ATOMIC_SEQ_CST);
}

void helper_join(struct engine *engine)
{
	struct timespec until;

	if (!engine->helper.exists)
		return;
	helper_wake(engine);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += JOIN_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	/* A thread that gets no CPU in that time finds later that the engine has ended. It may arm
	 * the port before that. */
	pthread_timedjoin_np(engine->helper.thread, NULL, &until);
}
