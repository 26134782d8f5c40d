/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every interleaving of threads that post, control calls and the helper, over pmd/engine/handover.c
 * and owner.h as they are. What is asked: when no thread can make a step any more, all that was
 * posted is done. The helper's short sleeps end by themselves, its idle sleeps only when it is rung
 * for. It helps one engine, or two.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/shared.h"
#include "handover_before.h"
#include "helper.h"
#include "interleave.h"
#include "test.h"

#define QPS	2
#define ENGINES 2
#define EVER_NS UINT64_C(1000000000)
#define HELPER	0 /* which thread of each scenario it is */

struct qp {
	struct qp_sched sched; /* first, as qp_sched expects */
	uint32_t work;	       /* engine polls that it takes */
	size_t home;	       /* its engine */
};

/* One version of the hand-over: the current one, or an earlier faulty one. */
struct handover {
	void (*kick)(struct engine *engine, struct qp *qp);
	void (*release)(struct engine *engine);
	uint64_t (*idle_sleep)(struct engine *engine, uint64_t now_ns, uint64_t limit_ns);
	void (*sleep)(struct engine *first, uint64_t ns);
	bool (*wakes)(struct engine *engine, uint64_t ns); /* it fell asleep for `ns` */
	enum helper_call (*take_call)(struct engine *engine);
};

/* Wake up if the sleep has ended, or if called. Frames do not come here. */
static bool wakes_if_called(struct engine *engine, uint64_t ns)
{
	if (ns >= EVER_NS && !handover_is_called(engine))
		return false;
	handover_wake(engine);
	return true;
}

static bool wakes_always(struct engine *engine, uint64_t ns)
{
	(void)engine, (void)ns;
	return true;
}

static const struct handover now = {
	.kick = engine_kick,
	.release = engine_release,
	.idle_sleep = handover_idle_sleep,
	.sleep = handover_sleep,
	.wakes = wakes_if_called,
	.take_call = handover_take_call,
};

static const struct handover before = {
	.kick = before_kick,
	.release = before_release,
	.idle_sleep = before_idle_sleep,
	.sleep = before_sleep,
	.wakes = wakes_always,
	.take_call = before_take_call,
};

static const struct handover *handover;
static struct engine engines[ENGINES];
static struct qp qps[QPS];
static uint32_t inside[ENGINES]; /* owners at work; more than one is a fault */
static bool collided;		 /* there were two */
static uint64_t doorbell;	 /* what the eventfd is: rung, and not heard yet */
static uint64_t ringers;	 /* threads that are about to ring */
static bool ringer_stops;	 /* the first of them never gets a CPU again */
static uint64_t proceed = 1;
static uint64_t packets; /* in the inbox of the first engine */
static bool looks;	 /* who has said that it sleeps looks into the inbox */

/* The engine, as far as it is asked from the hand-over: one engine poll does one piece of work of
 * each queue pair. */

static size_t number_of(const struct engine *e)
{
	return (size_t)(e - engines);
}

static void enter(const struct engine *e)
{
	if (inside[number_of(e)]++ > 0)
		collided = true;
}

static void leave(const struct engine *e)
{
	inside[number_of(e)]--;
}

void engine_mark_ready(struct engine *e, struct qp *qp)
{
	(void)e;
	qp->sched.is_ready = true;
}

/* Take what other engines have put into the inbox. */
static void receive(const struct engine *e)
{
	if (e == &engines[0] && shared_load(&packets, __ATOMIC_RELAXED) > 0)
		(void)shared_exchange(&packets, UINT64_C(0));
}

unsigned int engine_transmit(struct engine *e)
{
	enter(e);
	engine_drain_kicks(e);
	for (size_t i = 0; i < QPS; i++) {
		if (!qps[i].sched.is_ready || qps[i].home != number_of(e))
			continue;
		shared_step(&qps[i].work);
		if (qps[i].work > 0)
			qps[i].work--;
		qps[i].sched.is_ready = qps[i].work > 0;
	}
	leave(e);
	return 0;
}

/* An idle sleep that forgets until when the second engine may sleep. */
static uint64_t narrow_idle_sleep(struct engine *e, uint64_t now_ns, uint64_t limit_ns)
{
	const uint64_t ns = handover_idle_sleep(e, now_ns, limit_ns);

	return number_of(e) == 0 ? ns : limit_ns;
}

static const struct handover narrow = {
	.kick = engine_kick,
	.release = engine_release,
	.idle_sleep = narrow_idle_sleep,
	.sleep = handover_sleep,
	.wakes = wakes_if_called,
	.take_call = handover_take_call,
};

static bool is_left(const struct engine *e)
{
	bool left = false;

	for (size_t i = 0; i < QPS; i++)
		left = left || (qps[i].sched.is_ready && qps[i].home == number_of(e));
	if (e == &engines[0] && looks)
		left = left || shared_load(&packets, __ATOMIC_SEQ_CST) > 0;
	return left;
}

uint64_t engine_idle_ns(struct engine *e, uint64_t now_ns, uint64_t limit_ns)
{
	(void)now_ns;
	return is_left(e) ? 0 : limit_ns;
}

uint64_t engine_due_ns(const struct engine *e)
{
	return is_left(e) ? 0 : UINT64_MAX;
}

/* The helper's descriptor. */

void helper_ring(struct engine *e)
{
	(void)e;
	shared_step(&doorbell);
	if (ringer_stops && interleave_self() != HELPER && ringers++ == 0)
		interleave_block(NULL);
	doorbell = 1;
}

void helper_wait(struct engine *first, uint64_t ns)
{
	(void)first;
	shared_step(&doorbell);
	interleave_block(ns < EVER_NS ? &proceed : &doorbell);
	doorbell = 0;
}

/* Threads. */

static void post(size_t i, uint32_t polls)
{
	shared_step(&qps[i].work);
	qps[i].work += polls;
	handover->kick(&engines[qps[i].home], &qps[i]);
}

static void post_long(void)
{
	post(0, 2);
}

static void post_one(void)
{
	post(0, 1);
}

static void post_other(void)
{
	post(1, 1);
}

static void post_long_other(void)
{
	post(1, 2);
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

/* As engines_put does. */
static void leave_packets(void)
{
	(void)shared_exchange(&packets, UINT64_C(1));
	handover_call(&engines[0], CALL_TO_LOOK);
}

static void leave_packets_twice(void)
{
	leave_packets();
	leave_packets();
}

/* Leave work, and have the helper do it, as before a sleep on a channel. */
static void call_to_run(void)
{
	struct engine *engine = &engines[qps[1].home];

	shared_step(&qps[1].work);
	qps[1].work++;
	engine_push_kick(engine, &qps[1]);
	handover_call(engine, CALL_TO_RUN);
}

static void control(void)
{
	engine_lock(&engines[0]);
	engine_transmit(&engines[0]);
	handover->release(&engines[0]);
}

/* Make a step of an engine as the helper does. */
static void help_one(struct engine *engine)
{
	if (engine_try(engine)) {
		engine_transmit(engine);
		receive(engine);
		handover->release(engine);
	}
	handover->take_call(engine);
}

/* Make rounds as the helper does. */
static void help(void)
{
	uint64_t ns[ENGINES] = {0}, least_ns; /* for how long it sleeps for each; 0: it is awake */
	struct engine *engine;

	for (;;) {
		for (engine = engines; engine; engine = engine->helper.next) {
			if (ns[number_of(engine)] > 0 &&
			    !handover->wakes(engine, ns[number_of(engine)]))
				continue;
			ns[number_of(engine)] = 0;
			help_one(engine);
		}
		least_ns = EVER_NS;
		for (engine = engines; engine; engine = engine->helper.next) {
			if (ns[number_of(engine)] == 0)
				ns[number_of(engine)] = handover->idle_sleep(engine, 0, EVER_NS);
			least_ns = RTE_MIN(ns[number_of(engine)], least_ns);
		}
		handover->sleep(engines, least_ns);
	}
}

static void reset(void)
{
	memset(engines, 0, sizeof(engines));
	memset(qps, 0, sizeof(qps));
	memset(inside, 0, sizeof(inside));
	for (size_t i = 0; i < ENGINES; i++)
		engines[i].progress = SETTINGS_PROGRESS_HYBRID;
	packets = 0;
	collided = false;
	doorbell = 0;
	ringers = 0;
	before_reset();
}

/* One helper for both engines. The second queue pair is the second engine's. */
static void reset_both(void)
{
	reset();
	engines[0].helper.next = &engines[1];
	qps[1].home = 1;
}

static uint64_t digest_engine(uint64_t sum, size_t i)
{
	const struct engine *e = &engines[i];

	sum = interleave_mix(sum, (uint64_t)e->owner.held << 32 | e->owner.waiters);
	sum = interleave_mix(sum, e->helper.word);
	sum = interleave_mix(sum, e->helper.until_ns);
	sum = interleave_mix(sum, inside[i]);
	return interleave_mix(sum, (uintptr_t)e->kicks);
}

static uint64_t digest(void)
{
	uint64_t sum = before_digest();

	for (size_t i = 0; i < ENGINES; i++)
		sum = digest_engine(sum, i);
	for (size_t i = 0; i < QPS; i++) {
		sum = interleave_mix(sum, qps[i].work);
		sum = interleave_mix(sum, (uintptr_t)qps[i].sched.kick_next);
		sum = interleave_mix(sum,
				     (uint64_t)qps[i].sched.kicked << 1 | qps[i].sched.is_ready);
	}
	sum = interleave_mix(sum, packets);
	sum = interleave_mix(sum, doorbell << 1 | collided);
	return interleave_mix(sum, ringers);
}

static const char *judge(void)
{
	if (collided)
		return "two owners";
	for (size_t i = 0; i < ENGINES; i++)
		if (engines[i].owner.held != 0)
			return "an engine stays taken";
	for (size_t i = 0; i < QPS; i++)
		if (qps[i].work != 0)
			return "work is left";
	if (packets != 0)
		return "packets are left";
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

#define SCENARIO_OF(label, own, begin, ...)                                                  \
	{                                                                                    \
		.name = label, .private_word = own,                                          \
		.threads = RTE_DIM(((void (*[])(void)){__VA_ARGS__})), .run = {__VA_ARGS__}, \
		.reset = begin, .digest = digest, .judge = judge,                            \
	}
#define SCENARIO(label, own, ...) SCENARIO_OF(label, own, reset, __VA_ARGS__)

static const struct scenario one_poster =
	SCENARIO("one thread posts", &engines[0].owner.waiters, help, post_long);
static const struct scenario two_posters =
	SCENARIO("two post", &engines[0].owner.waiters, help, post_long, post_other);
static const struct scenario same_qp =
	SCENARIO("two post to one", &engines[0].owner.waiters, help, post_other, post_twice);
static const struct scenario with_control =
	SCENARIO("one posts beside a control call", NULL, help, post_long, control);
static const struct scenario lost_ringer =
	SCENARIO("one posts after a thread that is about to ring", &engines[0].owner.waiters, help,
		 post_long, post_after_ringer);

static const struct scenario beside_call =
	SCENARIO("one posts beside a call", NULL, help, post_long, call_to_run);
static const struct scenario both_called =
	SCENARIO_OF("one helper for two engines, one is posted to, one called for", NULL,
		    reset_both, help, post_one, call_to_run);
static const struct scenario one_of_both = SCENARIO_OF(
	"one helper for two engines, one thread posts", NULL, reset_both, help, post_long);
static const struct scenario both_engines =
	SCENARIO_OF("one helper for two engines, a thread posts to each", NULL, reset_both, help,
		    post_one, post_long_other);
static const struct scenario both_lost_ringer =
	SCENARIO_OF("one helper for two engines, a thread is about to ring for one", NULL,
		    reset_both, help, post_long, post_after_ringer);

static const struct scenario one_engine = SCENARIO(
	"another engine leaves packets", &engines[0].owner.waiters, help, post_long, leave_packets);
static const struct scenario two_engines =
	SCENARIO("two others leave packets", &engines[0].owner.waiters, help, leave_packets_twice,
		 leave_packets);
static const struct scenario engine_and_control = SCENARIO(
	"another engine leaves packets beside a control call", NULL, help, leave_packets, control);

TEST(handover_call__leaves_no_packets_of_other_engines)
{
	ringer_stops = false;
	looks = true;
	assert_null(check(&now, &one_engine).fault);
	assert_null(check(&now, &two_engines).fault);
	assert_null(check(&now, &engine_and_control).fault);
	looks = false;
}

/* The checker finds packets that nobody takes if the helper does not look for them when it has said
 * that it sleeps. */
TEST(handover_call__needs_a_helper_that_looks)
{
	ringer_stops = false;
	assert_string_equal(check(&now, &two_engines).fault, "packets are left");
	assert_string_equal(check(&now, &engine_and_control).fault, "packets are left");
}

TEST(handover__leaves_no_work)
{
	ringer_stops = false;
	assert_null(check(&now, &one_poster).fault);
	assert_null(check(&now, &two_posters).fault);
	assert_null(check(&now, &same_qp).fault);
	assert_null(check(&now, &with_control).fault);
	assert_null(check(&now, &beside_call).fault);
}

TEST(handover__waits_for_no_thread_that_is_about_to_ring)
{
	ringer_stops = true;
	assert_null(check(&now, &lost_ringer).fault);
}

TEST(handover__leaves_no_work_of_two_engines_with_one_helper)
{
	ringer_stops = false;
	assert_null(check(&now, &one_of_both).fault);
	assert_null(check(&now, &both_engines).fault);
	assert_null(check(&now, &both_called).fault);
}

TEST(handover__waits_for_no_ringer_of_another_engine)
{
	ringer_stops = true;
	assert_null(check(&now, &both_lost_ringer).fault);
}

TEST(handover__would_leave_work_if_it_slept_for_the_first_engine_only)
{
	ringer_stops = false;
	assert_string_equal(check(&narrow, &both_engines).fault, "work is left");
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
