/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's operations for a device: the table of device/device_engine.h. */
#include "base/log.h"
#include "device/device.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "engine/polling.h"
#include "helper.h"

static void ops_lock(void *arg)
{
	struct engine *engine = arg;

	/* At the end of the process no thread runs the engine any more. The thread that ends it
	 * never releases it, and this thread may hold the device's first engine. */
	if (!engine_lock_unless_ended(engine))
		return;
	/* The control call may end a queue pair that still owes its peer an acknowledgement. */
	engine_transmit(engine);
}

static void ops_unlock(void *arg)
{
	struct engine *engine = arg;

	if (engine_has_ended(engine))
		return;
	/* Send this call's MADs now: no other thread may send them soon. */
	if (engine_gsi_deadline_ns(engine) == 0)
		engine_transmit(engine);
	engine_release(engine);
}

/* Receive what has come, and send what this queue pair owes: later is too late. If the port has
 * taken nothing since the last wait for room, do not wait again, because many queue pairs may end
 * at once. */
static void ops_settle(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	if (engine_has_ended(engine))
		return;
	engine_receive_now(engine);
	engine_transmit(engine);
	if (unlikely(engine->tx.stuck && !engine->tx.given_up && qp_sched(qp)->is_ready))
		engine_wait_for_room(engine);
	if (unlikely(engine->link->port.tx_held > 0))
		engine_wait_for_peer(engine, qp);
}

static void ops_attach(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	engine_mark_ready(engine, qp);
}

static void ops_detach(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	ops_settle(engine, qp);
	engine_forget(engine, qp);
}

static void ops_kick(void *arg, struct qp *qp)
{
	struct engine *engine = arg;

	if (!engine_has_ended(engine))
		engine_kick(engine, qp);
}

/* Run an engine poll, and release the engine. Return the time of the poll in `now_ns`, and for how
 * long the engine has had no work. */
static uint64_t poll_and_release(struct engine *engine, uint64_t *now_ns)
{
	uint64_t idle_ns;

	engine_poll(engine);
	/* A helper in idle sleep would have to wake for an acknowledgement that is held back. */
	if (!TAILQ_EMPTY(&engine->ready) && handover_is_idle(engine))
		engine_transmit(engine);
	*now_ns = engine->now_ns;
	idle_ns = *now_ns - engine->busy_ns;
	engine_release(engine);
	return idle_ns;
}

/* Let other threads run if they may need this CPU. Return true if this thread has been away. */
static bool make_way(struct engine *engine, uint64_t now_ns, uint64_t idle_ns)
{
	bool away = false;
	uint64_t vain_ns;

	if (unlikely(polling_make_way(&engine->clock, now_ns)))
		return true;
	vain_ns = polling_vain_ns(&engine->polling, now_ns);
	if (idle_ns > POLLING_YIELD_AFTER_NS && vain_ns > POLLING_YIELD_AFTER_NS)
		away = polling_yield(&engine->polling, &engine->clock, now_ns);
	if (idle_ns > POLLING_SHORT_SLEEP_AFTER_NS)
		away |= polling_short_sleep(now_ns);
	return away;
}

/*
 * Look once more after a pause, because the program gets what its poll has found. Otherwise it
 * would hear what was true before the pause, and the helper may then take an acknowledgement and
 * the end of the connection from the port at once. The program would read the end first, and
 * destroy the queue pair with its completion.
 */
static __rte_noinline void poll_again(struct engine *engine)
{
	uint64_t now_ns;

	if (engine_try(engine))
		poll_and_release(engine, &now_ns);
}

static void ops_poll(void *arg)
{
	struct engine *engine = arg;
	uint64_t now_ns, idle_ns;

	if (engine->progress == SETTINGS_PROGRESS_DEDICATED)
		return;
	polling_count(&engine->polling);
	if (!engine_try(engine)) {
		if (!engine_has_ended(engine))
			polling_wait_for_owner(
				&engine->polling, &engine->clock,
				__atomic_load_n(&engine->taken_times, __ATOMIC_RELAXED));
		return;
	}
	polling_count_engine_poll(&engine->polling);
	idle_ns = poll_and_release(engine, &now_ns);
	if (unlikely(engine->engines) && idle_ns > 0 &&
	    engine->progress == SETTINGS_PROGRESS_INLINE)
		engines_poll_others(engine);
	if (unlikely(make_way(engine, now_ns, idle_ns)))
		poll_again(engine);
}

/* Count a poll that found completions. A program that processes a backlog of completions polls as
 * well: the helper must not take the engine, because its polls would add more completions. */
static void ops_polled(void *arg, int n)
{
	struct engine *engine = arg;

	if (engine->progress == SETTINGS_PROGRESS_DEDICATED)
		return;
	if (polling_count_found(&engine->polling, (unsigned int)n))
		ops_poll(engine);
}

/*
 * The thread that is about to sleep no longer runs the engine polls that its polls ran. Other
 * engines, such as the first one, which has the addresses and the connection manager, are not told.
 * If nobody runs them, the helper notices that by itself.
 */
static void ops_wait(void *arg)
{
	struct engine *engine = arg;
	static bool warned;

	if (engine->progress == SETTINGS_PROGRESS_INLINE &&
	    !__atomic_exchange_n(&warned, true, __ATOMIC_RELAXED))
		log_warn("progress mode inline: nothing happens while the program sleeps on a "
			 "channel (--progress hybrid has a thread for that)");
	polling_count_wait(&engine->polling);
	helper_expect_sleep(engine);
}

static uint64_t ops_now(void *arg)
{
	const struct engine *engine = arg;

	return clock_ns(&engine->clock);
}

const struct engine_ops engine_ops_pmd = {
	.lock = ops_lock,
	.unlock = ops_unlock,
	.attach = ops_attach,
	.detach = ops_detach,
	.kick = ops_kick,
	.poll = ops_poll,
	.settle = ops_settle,
	.polled = ops_polled,
	.wait = ops_wait,
	.now = ops_now,
};
