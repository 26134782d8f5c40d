/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of an engine, with its process or in a fork's child. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "device/device.h"
#include "device/gsi.h"
#include "publish.h"
#include "engine/engine.h"
#include "engine/polling.h"
#include "helper.h"

#define END_POLLS    64
#define END_WAIT_NS  UINT64_C(100000000)
#define END_PAUSE_NS 1000000
#define WAITS_NS     UINT64_C(1000000000) /* queue pairs that end wait for END_WAIT_NS in it */

/* Send for a short time, until nothing waits. */
static void engine_send_until(struct engine *engine, bool (*waits)(const struct tx *tx))
{
	const uint64_t start_ns = clock_ns(&engine->clock);

	while (waits(&engine->tx) && clock_ns(&engine->clock) - start_ns < END_WAIT_NS) {
		sched_yield();
		engine_transmit(engine);
	}
}

void engine_wait_for_room(struct engine *engine)
{
	engine_send_until(engine, tx_waits_for_port);
	if (tx_waits_for_port(&engine->tx))
		engine->tx.given_up = true;
}

static bool engine_holds_packets(const struct tx *tx)
{
	return tx->port->tx_held > 0;
}

/* Return true if a queue pair that ends has something to send, and has to wait for it. */
static bool engine_owes(const struct engine *engine, struct qp *qp)
{
	return qp_sched(qp)->is_ready && engine_must_wait(engine, qp);
}

void engine_wait_for_peer(struct engine *engine, struct qp *qp)
{
	const uint64_t start_ns = clock_ns(&engine->clock);
	uint64_t now_ns = start_ns;

	if (start_ns - engine->waits_since_ns >= WAITS_NS) {
		engine->waits_since_ns = start_ns;
		engine->waited_ns = 0;
	}
	while (engine_owes(engine, qp) && engine->waited_ns + (now_ns - start_ns) < END_WAIT_NS) {
		sched_yield();
		engine_transmit(engine);
		now_ns = clock_ns(&engine->clock);
	}
	engine->waited_ns += now_ns - start_ns;
}

/* Tell the peers of all connections about the end, as many at a time as there is room for. After
 * each time let the peers empty their rings, because nothing is repeated later. */
static void engine_tell_peers(struct engine *engine)
{
	engine_transmit(engine);
	engine_wait_for_room(engine);
	while (engine_is_first(engine) && !engine->tx.given_up &&
	       gsi_end(engine->device, clock_ns(&engine->clock)) > 0) {
		engine_transmit(engine);
		engine_wait_for_room(engine);
		polling_pause(END_PAUSE_NS);
	}
	/* Processes of this host may be busy. */
	engine_send_until(engine, engine_holds_packets);
}

/* Run last engine polls for work that was posted just before the end, acknowledgements above all.
 */
static void engine_drain(struct engine *engine)
{
	for (int i = 0; i < END_POLLS && engine_poll(engine) > 0; i++)
		;
	engine_tell_peers(engine);
}

/* Log this port's counters, for users with log level info. */
static void engine_log_counters(const struct engine *engine)
{
	for (int i = 0; i < COUNTER_COUNT; i++) {
		const uint64_t value = device_counter(engine->device, (enum counter)i);

		if (value > 0)
			log_info("%s: %s %" PRIu64, engine->device->config.name,
				 counter_name((enum counter)i), value);
	}
}

/* Return true if a program that runs EAL itself has ended it: the packet buffers and rings are not
 * mapped any more. EAL has no call that would tell. */
static bool engine_lost_memory(const struct engine *engine)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t pool = (uintptr_t)engine->link->port.pool;
	unsigned char present;

	return mincore((void *)(pool & ~(page - 1)), page, &present) != 0 && errno == ENOMEM;
}

void engine_end(struct engine *engine)
{
	const uint64_t start_ns = clock_ns(&engine->clock);
	unsigned int tries = 0;
	bool owned;

	if (__atomic_load_n(&engine->ended, __ATOMIC_ACQUIRE))
		return;
	if (engine_lost_memory(engine)) {
		__atomic_store_n(&engine->ended, true, __ATOMIC_SEQ_CST);
		return;
	}
	/*
	 * Do not use owner_lock: a signal handler may call exit() inside an engine poll, which then
	 * never ends.
	 */
	while (!(owned = owner_try(&engine->owner)) &&
	       clock_ns(&engine->clock) - start_ns < END_WAIT_NS)
		tries = shared_wait(tries);
	if (owned) {
		engine_drain(engine);
		publish_update(engine);
	}
	/* The engine is never released: no new engine poll can begin. */
	__atomic_store_n(&engine->ended, true, __ATOMIC_SEQ_CST);
	helper_join(engine);
	if (engine_is_first(engine))
		engine_log_counters(engine);
	if (owned) {
		tx_give_back(&engine->tx);
		port_close(&engine->link->port);
	}
}

void engine_disown(struct engine *engine)
{
	const struct port *port = &engine->link->port;

	__atomic_store_n(&engine->ended, true, __ATOMIC_SEQ_CST);
	if (engine_is_first(engine) && port->ops && port->ops->disown)
		port->ops->disown(port->ops_arg);
}
