/* SPDX-License-Identifier: BSD-3-Clause */
/* The hand-over as it was, step by step. */
#include "handover_before.h"

#include "engine/engine.h"
#include "engine/shared.h"
#include "helper.h"
#include "interleave.h"

#define shared_store(word, value, order) (shared_step(word), __atomic_store_n(word, value, order))

#define SHORT_SLEEP_NS 10000

static uint32_t wanted; /* an enum helper_call */
static bool sleeps;
static uint64_t sleeps_until_ns;

void before_release(struct engine *engine)
{
	owner_unlock(&engine->owner);
	while (shared_load(&engine->kicks, __ATOMIC_SEQ_CST) && engine_try(engine)) {
		engine_transmit(engine);
		owner_unlock(&engine->owner);
	}
}

static void tell(struct engine *engine)
{
	uint32_t none = CALL_NONE;

	if (shared_swap_if(&wanted, &none, CALL_TO_LOOK) && shared_load(&sleeps, __ATOMIC_SEQ_CST))
		helper_ring(engine);
}

static void serve(struct engine *engine)
{
	bool missed;

	engine_transmit(engine);
	missed = shared_load(&sleeps_until_ns, __ATOMIC_SEQ_CST) != 0 && engine_due_ns(engine) == 0;
	before_release(engine);
	if (missed)
		tell(engine);
}

void before_kick(struct engine *engine, struct qp *qp)
{
	if (engine_try(engine)) {
		engine_mark_ready(engine, qp);
		serve(engine);
		return;
	}
	engine_push_kick(engine, qp);
	if (engine_try(engine))
		serve(engine);
}

uint64_t before_idle_sleep(struct engine *engine, uint64_t now_ns, uint64_t limit_ns)
{
	uint64_t idle_ns = SHORT_SLEEP_NS;

	shared_store(&sleeps_until_ns, now_ns + limit_ns, __ATOMIC_SEQ_CST);
	if (engine_try(engine)) {
		idle_ns = engine_idle_ns(engine, now_ns, limit_ns);
		before_release(engine);
	}
	shared_store(&sleeps_until_ns, now_ns + limit_ns, __ATOMIC_SEQ_CST);
	return idle_ns;
}

void before_sleep(struct engine *engine, uint64_t ns)
{
	shared_store(&sleeps, true, __ATOMIC_SEQ_CST);
	if (!shared_load(&wanted, __ATOMIC_SEQ_CST))
		helper_wait(engine, ns);
	shared_store(&sleeps, false, __ATOMIC_SEQ_CST);
	shared_store(&sleeps_until_ns, UINT64_C(0), __ATOMIC_SEQ_CST);
}

enum helper_call before_take_call(struct engine *engine)
{
	(void)engine;
	if (shared_load(&wanted, __ATOMIC_RELAXED) == CALL_NONE)
		return CALL_NONE;
	return (enum helper_call)shared_exchange(&wanted, CALL_NONE);
}

void before_reset(void)
{
	wanted = CALL_NONE;
	sleeps = false;
	sleeps_until_ns = 0;
}

uint64_t before_digest(void)
{
	return interleave_mix(sleeps_until_ns, (uint64_t)wanted << 1 | sleeps);
}
