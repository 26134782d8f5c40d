/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every interleaving of threads that post, control calls and the helper, over pmd/engine/handover.c
 * and owner.h as they are. What is asked: when no thread can make a step any more, all that was
 * posted is done. The helper's naps end by themselves, its dozes only when it is rung for.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "engine/crossing.h"
#include "engine/engine.h"
#include "engine/shared.h"
#include "handover_before.h"
#include "helper.h"
#include "interleave.h"
#include "test.h"

#define QPS	2
#define EVER_NS UINT64_C(1000000000)
#define HELPER	0 /* which thread of each scenario it is */

struct qp {
	struct qp_sched sched; /* first, as qp_sched expects */
	uint32_t work;	       /* turns that it takes */
};

/* One version of the hand-over: the current one, or an earlier faulty one. */
struct handover {
	void (*kick)(struct engine *engine, struct qp *qp);
	void (*release)(struct engine *engine);
	uint64_t (*doze)(struct engine *engine, uint64_t now_ns, uint64_t limit_ns);
	void (*sleep)(struct engine *engine, uint64_t ns, bool for_frames);
	enum helper_call (*take_call)(struct engine *engine);
};

static const struct handover now = {
	.kick = engine_kick,
	.release = engine_release,
	.doze = handover_doze,
	.sleep = handover_sleep,
	.take_call = handover_take_call,
};

static const struct handover before = {
	.kick = before_kick,
	.release = before_release,
	.doze = before_doze,
	.sleep = before_sleep,
	.take_call = before_take_call,
};

static const struct handover *handover;
static struct engine engine;
static struct qp qps[QPS];
static uint32_t inside;	  /* owners at work; more than one is a fault */
static bool collided;	  /* there were two */
static uint64_t bell;	  /* what the eventfd is: rung, and not heard yet */
static uint64_t ringers;  /* threads that are about to ring */
static bool ringer_stops; /* the first of them never gets a CPU again */
static uint64_t proceed = 1;

/* The engine, as far as it is asked from the hand-over: one turn does one piece of work of each
 * queue pair. */

static void enter(void)
{
	if (inside++ > 0)
		collided = true;
}

static void leave(void)
{
	inside--;
}

void engine_mark_ready(struct engine *e, struct qp *qp)
{
	(void)e;
	qp->sched.is_ready = true;
}

unsigned int engine_transmit(struct engine *e)
{
	enter();
	engine_drain_kicks(e);
	for (size_t i = 0; i < QPS; i++) {
		if (!qps[i].sched.is_ready)
			continue;
		shared_step(&qps[i].work);
		if (qps[i].work > 0)
			qps[i].work--;
		qps[i].sched.is_ready = qps[i].work > 0;
	}
	leave();
	return 0;
}

static bool is_left(void)
{
	bool left = false;

	for (size_t i = 0; i < QPS; i++)
		left = left || qps[i].sched.is_ready;
	return left;
}

uint64_t engine_idle_ns(struct engine *e, uint64_t now_ns, uint64_t limit_ns)
{
	(void)e, (void)now_ns;
	return is_left() ? 0 : limit_ns;
}

uint64_t engine_due_ns(const struct engine *e)
{
	(void)e;
	return is_left() ? 0 : UINT64_MAX;
}

/* The engine is the only one of its device. */
bool crossing_is_called(const struct crossing *crossing)
{
	(void)crossing;
	fail_msg("there is no other engine");
	return false;
}

/* The helper's descriptor. */

void helper_ring(struct engine *e)
{
	(void)e;
	shared_step(&bell);
	if (ringer_stops && interleave_self() != HELPER && ringers++ == 0)
		interleave_block(NULL);
	bell = 1;
}

void helper_wait(struct engine *e, uint64_t ns, bool for_frames)
{
	(void)e, (void)for_frames;
	shared_step(&bell);
	interleave_block(ns < EVER_NS ? &proceed : &bell);
	bell = 0;
}

/* Threads. */

static void post(size_t i, uint32_t turns)
{
	shared_step(&qps[i].work);
	qps[i].work += turns;
	handover->kick(&engine, &qps[i]);
}

static void post_long(void)
{
	post(0, 2);
}

static void post_other(void)
{
	post(1, 1);
}

static void post_twice(void)
{
	post(1, 1);
	post(1, 1);
}

static void post_after_ringer(void)
{
	interleave_block(&ringers);
	post(1, 2);
}

static void control(void)
{
	engine_lock(&engine);
	engine_transmit(&engine);
	handover->release(&engine);
}

/* Wait as helper_run does. */
static void help(void)
{
	uint64_t ns;

	for (;;) {
		if (engine_try(&engine)) {
			engine_transmit(&engine);
			handover->release(&engine);
		}
		handover->take_call(&engine);
		ns = handover->doze(&engine, 0, EVER_NS);
		handover->sleep(&engine, ns, true);
	}
}

static void reset(void)
{
	memset(&engine, 0, sizeof(engine));
	memset(qps, 0, sizeof(qps));
	engine.progress = SETTINGS_PROGRESS_HYBRID;
	engine.helper.exists = true;
	inside = 0;
	collided = false;
	bell = 0;
	ringers = 0;
	before_reset();
}

static uint64_t digest(void)
{
	uint64_t sum = interleave_mix(engine.owner.held, engine.owner.waiters);

	sum = interleave_mix(sum, engine.helper.word);
	sum = interleave_mix(sum, engine.helper.until_ns);
	sum = interleave_mix(sum, (uintptr_t)engine.kicks);
	sum = interleave_mix(sum, before_digest());
	for (size_t i = 0; i < QPS; i++) {
		sum = interleave_mix(sum, qps[i].work);
		sum = interleave_mix(sum, (uintptr_t)qps[i].sched.kick_next);
		sum = interleave_mix(sum,
				     (uint64_t)qps[i].sched.kicked << 1 | qps[i].sched.is_ready);
	}
	sum = interleave_mix(sum, bell << 1 | collided);
	return interleave_mix(sum, ringers << 8 | inside);
}

static const char *judge(void)
{
	if (collided)
		return "two owners";
	if (engine.owner.held != 0)
		return "the engine stays taken";
	for (size_t i = 0; i < QPS; i++)
		if (qps[i].work != 0)
			return "work is left";
	return NULL;
}

static struct verdict check(const struct handover *which, const struct scenario *scenario)
{
	struct verdict verdict;

	handover = which;
	verdict = interleave(scenario);
	if (verdict.fault)
		print_message("%s: %s after steps of %s\n", scenario->name, verdict.fault,
			      verdict.trace);
	print_message("%s: %zu states, %zu runs\n", scenario->name, verdict.states, verdict.runs);
	return verdict;
}

#define SCENARIO(label, own, ...)                                                            \
	{                                                                                    \
		.name = label, .private_word = own,                                          \
		.threads = RTE_DIM(((void (*[])(void)){__VA_ARGS__})), .run = {__VA_ARGS__}, \
		.reset = reset, .digest = digest, .judge = judge,                            \
	}

static const struct scenario one_poster =
	SCENARIO("one thread posts", &engine.owner.waiters, help, post_long);
static const struct scenario two_posters =
	SCENARIO("two post", &engine.owner.waiters, help, post_long, post_other);
static const struct scenario same_qp =
	SCENARIO("two post to one", &engine.owner.waiters, help, post_other, post_twice);
static const struct scenario with_control =
	SCENARIO("one posts beside a control call", NULL, help, post_long, control);
static const struct scenario lost_ringer =
	SCENARIO("one posts after a thread that is about to ring", &engine.owner.waiters, help,
		 post_long, post_after_ringer);

TEST(handover__leaves_no_work)
{
	ringer_stops = false;
	assert_null(check(&now, &one_poster).fault);
	assert_null(check(&now, &two_posters).fault);
	assert_null(check(&now, &same_qp).fault);
	assert_null(check(&now, &with_control).fault);
}

TEST(handover__waits_for_no_thread_that_is_about_to_ring)
{
	ringer_stops = true;
	assert_null(check(&now, &lost_ringer).fault);
}

/* The checker finds what there was to find. */
TEST(before__left_work_to_nobody)
{
	ringer_stops = false;
	assert_string_equal(check(&before, &one_poster).fault, "work is left");
	assert_string_equal(check(&before, &two_posters).fault, "work is left");
	assert_string_equal(check(&before, &with_control).fault, "work is left");
}

TEST(before__waited_for_a_thread_that_was_about_to_ring)
{
	ringer_stops = true;
	assert_string_equal(check(&before, &lost_ringer).fault, "work is left");
}
