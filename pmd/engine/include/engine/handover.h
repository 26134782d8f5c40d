/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hand-over of work between the threads that post it, those that run the engine, and the
 * helper.
 *
 * Work is never left to a thread that does not know of it:
 *
 *   A thread that posts runs the engine itself, or, where another thread is the owner, pushes the
 *   queue pair on the stack of kicks. The owner looks at the stack after it has given the engine
 *   back, and the thread that pushed tries for the engine after it has pushed: one of the two finds
 *   the other's trace.
 *
 *   What an owner leaves (more than a turn sends, a timer, an event that waits) is for the helper.
 *   The helper decides to doze as the owner, when there is nothing to do before `until_ns`. Each
 *   later owner compares what it leaves with that, and calls the helper if it would wake too late.
 *
 * The helper's state, and the call that it has not answered yet, are one word:
 *
 *   from                 by                       to
 *   AWAKE, not called    handover_nap             NAPS      for a tick, which needs no call
 *   AWAKE, not called    handover_doze, as owner  DOZES     until `until_ns`
 *   NAPS, DOZES          handover_sleep           AWAKE     rung for or not; the call stays
 *   DOZES, not called    handover_call            called to look
 *   any, less called     handover_call            called to run
 *   asleep and called    handover_call            rung      after it has rung
 *   AWAKE, called        handover_take_call       not called
 *
 * The helper does not fall asleep while it is called. A thread that finds the helper asleep and
 * called, but not rung for, rings as well: the thread that called may have lost its CPU in between.
 * The count of dozes in the word is for a thread that loses its CPU after it has rung: what it then
 * notes must not be about a later doze.
 */
#ifndef ENGINE_HANDOVER_H
#define ENGINE_HANDOVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct qp;

enum helper_state {
	HELPER_AWAKE, /* or there is none */
	HELPER_NAPS,
	HELPER_DOZES,
};

/* Reasons to call the helper. A greater value includes the smaller ones. */
enum helper_call {
	CALL_NONE,
	CALL_TO_LOOK, /* at what a thread of the program has left, which is likely to poll next */
	CALL_TO_RUN,  /* nobody else will */
};

struct helper {
	uint64_t word; /* atomic: state, call, rung, count of dozes; handover.c alone */
	uint64_t
		until_ns; /* of the last doze; written by the helper as the owner, read by owners */

	/*
	 * helper.c's own. The thread: none; exists; exists and quits; none again, and may be
	 * started anew. The end of the engine (engine.ended) ends it as well.
	 */
	pthread_t thread;
	bool exists;
	bool quits;	  /* atomic: the thread ends, the engine does not */
	int wake_fd;	  /* eventfd; what rings */
	uint64_t look_ns; /* CPU time of a look at a program that polls; the helper's own */
};

/** Have the engine run a queue pair that has work, by this thread or by its owner. MT-safe. */
void engine_kick(struct engine *engine, struct qp *qp);

/** Leave word that a queue pair has work, for whoever is the owner. MT-safe. */
void engine_push_kick(struct engine *engine, struct qp *qp);

/** Put every queue pair that was kicked on the ready list. Owner. */
void engine_drain_kicks(struct engine *engine);

/** Give the engine back, run what others posted meanwhile, and call the helper for the rest. Owner.
 */
void engine_release(struct engine *engine);

/** Call the helper, and ring where it sleeps. MT-safe. */
void handover_call(struct engine *engine, enum helper_call call);

/* Called by the helper thread: */

/** Fall asleep for a tick, or less. */
void handover_nap(struct engine *engine);

/** Fall asleep until there is something to do, at most `limit_ns`. Returns how long to sleep. */
uint64_t handover_doze(struct engine *engine, uint64_t now_ns, uint64_t limit_ns);

/** After one of these two: sleep, unless called, and be awake. */
void handover_sleep(struct engine *engine, uint64_t ns, bool for_frames);

/** The call that has come, which is answered by this. */
enum helper_call handover_take_call(struct engine *engine);

#endif
