/* SPDX-License-Identifier: BSD-3-Clause */
/* Hand-over of work between threads: kicks, work that an owner leaves, and the helper's sleep. */
#include "engine/handover.h"

#include "device/device_engine.h"
#include "engine/engine.h"
#include "engine/shared.h"
#include "helper.h"

/* A sleep shorter than this ends before a call could shorten it. */
#define SHORT_SLEEP_NS UINT64_C(10000)

/* The helper's word. */
#define STATE_MASK UINT64_C(0x3)
#define CALL_SHIFT 2
#define CALL_MASK  (UINT64_C(0x3) << CALL_SHIFT)
#define RUNG	   (UINT64_C(1) << 4)
#define CALLED	   (UINT64_C(1) << 5) /* the bits above count calls */

static enum helper_state word_state(uint64_t word)
{
	return (enum helper_state)(word & STATE_MASK);
}

static enum helper_call word_call(uint64_t word)
{
	return (enum helper_call)((word & CALL_MASK) >> CALL_SHIFT);
}

static uint64_t word_with_call(uint64_t word, enum helper_call call)
{
	return (word & ~CALL_MASK) | (uint64_t)call << CALL_SHIFT;
}

static uint64_t word_load(const struct engine *engine)
{
	return shared_load(&engine->helper.word, __ATOMIC_SEQ_CST);
}

/* Return true if the helper must be called. It need not be if another thread has already called it
 * for at least as much. */
static bool wants_call(uint64_t word, enum helper_call call)
{
	return word_call(word) < call &&
	       (call == CALL_TO_RUN || word_state(word) == HELPER_IDLE_SLEEPS);
}

void handover_call(struct engine *engine, enum helper_call call)
{
	uint64_t word = word_load(engine);

	while (wants_call(word, call)) {
		const uint64_t called = word_with_call(word, call) + CALLED;

		if (shared_swap_if(&engine->helper.word, &word, called))
			word = called;
	}
	if (word_state(word) == HELPER_AWAKE || word_call(word) == CALL_NONE || (word & RUNG))
		return;
	helper_ring(engine);
	/* The swap fails if the helper has woken meanwhile, or if another thread has called it for
	 * more; that thread rings, too. */
	(void)shared_swap_if(&engine->helper.word, &word, word | RUNG);
}

bool handover_is_idle(const struct engine *engine)
{
	const uint64_t word = word_load(engine);

	return word_state(word) == HELPER_IDLE_SLEEPS && word_call(word) == CALL_NONE;
}

/* Note that the helper sleeps, unless it was called. Helper's thread, which must be the owner for
 * an idle sleep. */
static void helper_falls_asleep(struct engine *engine, uint64_t state)
{
	uint64_t word = word_load(engine);

	while (word_call(word) == CALL_NONE &&
	       !shared_swap_if(&engine->helper.word, &word, word + state))
		;
}

void handover_short_sleep(struct engine *engine)
{
	engine->helper.listens = false;
	helper_falls_asleep(engine, HELPER_SHORT_SLEEPS);
}

uint64_t handover_idle_sleep(struct engine *engine, uint64_t now_ns, uint64_t limit_ns)
{
	engine->helper.listens = true;
	if (!engine_try(engine)) {
		helper_falls_asleep(engine, HELPER_SHORT_SLEEPS);
		return SHORT_SLEEP_NS;
	}
	limit_ns = engine_idle_ns(engine, now_ns, limit_ns);
	engine->helper.until_ns = now_ns + limit_ns;
	/* Store this before the engine is released: each later owner sees until when this thread
	 * sleeps. */
	helper_falls_asleep(engine,
			    limit_ns > SHORT_SLEEP_NS ? HELPER_IDLE_SLEEPS : HELPER_SHORT_SLEEPS);
	engine_release(engine);
	return limit_ns > 0 ? limit_ns : SHORT_SLEEP_NS;
}

bool handover_is_called(const struct engine *engine)
{
	return word_call(word_load(engine)) != CALL_NONE;
}

void handover_sleep(struct engine *first, uint64_t ns)
{
	const struct engine *engine = first;

	/* Nobody takes the call of an engine that has ended. */
	while (engine &&
	       (__atomic_load_n(&engine->ended, __ATOMIC_ACQUIRE) || !handover_is_called(engine)))
		engine = engine->helper.next;
	if (!engine)
		helper_wait(first, ns);
}

void handover_wake(struct engine *engine)
{
	uint64_t word = word_load(engine);

	while (!shared_swap_if(&engine->helper.word, &word, word & ~(STATE_MASK | RUNG)))
		;
}

enum helper_call handover_take_call(struct engine *engine)
{
	uint64_t word = word_load(engine);

	while (word_call(word) != CALL_NONE &&
	       !shared_swap_if(&engine->helper.word, &word, word_with_call(word, CALL_NONE)))
		;
	return word_call(word);
}

void engine_drain_kicks(struct engine *engine)
{
	struct qp *qp;

	if (!shared_load(&engine->kicks, __ATOMIC_RELAXED))
		return;
	qp = shared_exchange(&engine->kicks, (struct qp *)NULL);
	while (qp) {
		struct qp_sched *sched = qp_sched(qp);
		struct qp *next = sched->kick_next;

		/* Clear this before qp_run looks for work: a later post kicks again. This is an
		 * exchange and not a store, so that it sees what a thread had posted whose exchange
		 * in engine_push_kick came before. */
		(void)shared_exchange(&sched->kicked, false);
		engine_mark_ready(engine, qp);
		qp = next;
	}
}

void engine_push_kick(struct engine *engine, struct qp *qp)
{
	struct qp_sched *sched = qp_sched(qp);
	struct qp *head;

	if (shared_exchange(&sched->kicked, true))
		return;
	head = shared_load(&engine->kicks, __ATOMIC_RELAXED);
	do
		sched->kick_next = head;
	while (!shared_swap_if(&engine->kicks, &head, qp));
}

static void engine_serve_kick(struct engine *engine, struct qp *qp)
{
	engine_mark_ready(engine, qp);
	engine_transmit(engine);
	engine_release(engine);
}

void engine_kick(struct engine *engine, struct qp *qp)
{
	if (engine->progress == SETTINGS_PROGRESS_DEDICATED) {
		engine_push_kick(engine, qp);
	} else if (engine_try(engine)) {
		engine_serve_kick(engine, qp);
	} else {
		engine_push_kick(engine, qp);
		/* The owner may have looked for kicks just before this push, and then released the
		 * engine. */
		if (engine_try(engine))
			engine_serve_kick(engine, qp);
	}
}

/*
 * Return true if the helper would stay in idle sleep longer than the work left here allows. Owner.
 * The helper also begins an idle sleep as the owner, so one that begins later takes this work into
 * account by itself.
 */
static bool helper_is_missed(const struct engine *engine)
{
	return word_state(word_load(engine)) == HELPER_IDLE_SLEEPS &&
	       engine_due_ns(engine) < engine->helper.until_ns;
}

/* Return true if a thread has left work and gone. */
static bool engine_is_wanted(const struct engine *engine)
{
	return shared_load(&engine->kicks, __ATOMIC_SEQ_CST) != NULL;
}

/* A thread that kicked meanwhile has left: this thread must run its work. Return true if the helper
 * is missed. */
static __rte_noinline bool engine_run_left(struct engine *engine, bool missed)
{
	while (engine_is_wanted(engine) && engine_try(engine)) {
		engine_transmit(engine);
		missed = helper_is_missed(engine);
		owner_unlock(&engine->owner);
	}
	return missed;
}

void engine_release(struct engine *engine)
{
	const bool uncancelled = engine->uncancelled;
	const int cancel_state = engine->cancel_state;
	bool missed = helper_is_missed(engine);

	owner_unlock(&engine->owner);
	if (unlikely(engine_is_wanted(engine)))
		missed = engine_run_left(engine, missed);
	if (unlikely(missed))
		handover_call(engine, CALL_TO_LOOK);
	if (unlikely(uncancelled))
		cancel_restore(cancel_state);
}
