/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hand-over of work between the threads that post it, those that run the engine, and the
 * helper.
 *
 * Work is never left to a thread that does not know of it:
 *
 *   A thread that posts runs the engine itself. If another thread is the owner, it pushes the queue
 *   pair on the stack of kicks instead. The owner looks at the stack after it has released the
 *   engine, and the thread that pushed tries to take the engine after the push. So at least one of
 *   the two finds the work.
 *
 *   An owner leaves some work to the helper: more packets than an engine poll sends, a timer, a
 * waiting event. The helper begins an idle sleep as the owner, when there is nothing to do before
 *   `until_ns`. Each later owner compares the work that it leaves with `until_ns`, and calls the
 *   helper if that would wake too late.
 *
 * One word holds the helper's state and the call that it has not answered yet:
 *
 *   from                     by                             to
 *   AWAKE, not called        handover_short_sleep           SHORT_SLEEPS  for a tick, without calls
 *   AWAKE, not called        handover_idle_sleep, as owner  IDLE_SLEEPS  until `until_ns`
 *   either sleep             handover_wake                  AWAKE  rung for or not; the call stays
 *   IDLE_SLEEPS, not called  handover_call                  called to look
 *   any, less called         handover_call                  called to run
 *   asleep and called        handover_call                  rung, after it has rung
 *   AWAKE, called            handover_take_call             not called
 *
 * Each engine has such a word. One helper may serve several engines: it sleeps while it is in
 * a short or an idle sleep for each of them, and is called for none. When it wakes it is AWAKE for
 * those that have a reason, and may stay in idle sleep for the others.
 *
 * The helper does not fall asleep while it is called. A thread that finds the helper asleep and
 * called, but not rung for, rings as well: the thread that called may have lost its CPU before it
 * rang. The word's count of calls protects against a thread that loses its CPU after it has rung:
 * the RUNG that it then sets must not apply to a later call.
 */
#ifndef ENGINE_HANDOVER_H
#define ENGINE_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct helper_charge;
struct helper_thread;
struct qp;

enum helper_state {
	HELPER_AWAKE, /* also if there is no helper */
	HELPER_SHORT_SLEEPS,
	HELPER_IDLE_SLEEPS,
};

/* Reasons to call the helper. A greater value includes the smaller ones. */
enum helper_call {
	CALL_NONE,
	CALL_TO_LOOK, /* look at the work that a thread of the program has left; that thread is
			 likely to poll next */
	CALL_TO_RUN,  /* run the engine: no other thread will */
};

struct helper {
	uint64_t word;	   /* atomic: state, call, rung, count of calls; handover.c alone */
	uint64_t until_ns; /* end of the last idle sleep; written by the helper as the owner, read
			      by owners */

	/* the helper thread's */
	bool listens; /* in this sleep frames wake the helper */
	bool armed;   /* they do */
	bool heard;   /* they did, or wait already */

	bool left; /* atomic: the engine has ended, and its helper does not use it any more */

	/* For helper.c only, which changes these while the thread does not run or does not know the
	 * engine. */
	struct helper_thread *thread; /* serves this engine; NULL: none does; atomic */
	struct engine *next;	      /* of the same thread */
	struct helper_charge *charge;
};

/** Run a queue pair that has work, on this thread or on the owner's. MT-safe. */
void engine_kick(struct engine *engine, struct qp *qp);

/** Tell the current owner that a queue pair has work. MT-safe. */
void engine_push_kick(struct engine *engine, struct qp *qp);

/** Put every queue pair that was kicked on the ready list. Owner. */
void engine_drain_kicks(struct engine *engine);

/** Release the engine, run work that other threads posted meanwhile, and call the helper for the
 * rest. Owner. */
void engine_release(struct engine *engine);

/** Call the helper, and ring if it sleeps. MT-safe. */
void handover_call(struct engine *engine, enum helper_call call);

/** Return true if the helper is in idle sleep, and nobody has called it. MT-safe. */
bool handover_is_idle(const struct engine *engine);

/* Called by the helper thread: */

/** Mark the helper as asleep for a tick or less, which frames do not shorten. */
void handover_short_sleep(struct engine *engine);

/** Mark the helper as asleep until there is work, at most `limit_ns`. Returns how long to sleep. */
uint64_t handover_idle_sleep(struct engine *engine, uint64_t now_ns, uint64_t limit_ns);

/** Sleep, unless called for one of the engines in the list that `first` begins. Call it after one
 * of these two for each engine. */
void handover_sleep(struct engine *first, uint64_t ns);

/** Return true if the helper has been called. */
bool handover_is_called(const struct engine *engine);

/** Mark the helper as awake. */
void handover_wake(struct engine *engine);

/** Return the call that was made, and mark it as answered. */
enum helper_call handover_take_call(struct engine *engine);

#endif
