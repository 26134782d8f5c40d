/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that helps engines, and what it knows of each of them.
 *
 * One thread serves all engines of the process that have hybrid progress. For each engine it
 * alternates between two states:
 *
 *   watching  The program polls. The helper checks from time to time that it still does.
 *   running   The program has stopped polling. The helper runs engine polls until the program polls
 * again. While there is nothing to do it sleeps longer and longer.
 *
 * In each round the thread makes one step of every engine that is awake: a look, or one engine
 * poll, which is bounded. So an engine with much work delays the others by an engine poll. When no
 * engine has work they all sleep, each until its time or for frames, and the thread sleeps for all
 * of them at once. It wakes only those that have a reason. While one has work for long, it wakes
 * the others as well, because nobody looks at their descriptors.
 */
#ifndef HELPER_THREAD_H
#define HELPER_THREAD_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "device/device.h"
#include "engine/clock.h"
#include "helper.h"

#define HELPER_ENGINES_MAX (DEVICE_ENGINES_MAX * 16) /* of 16 ports; more get another thread */

struct helper_thread {
	struct engine *first; /* atomic: list of its engines, through helper.next */
	uint32_t count;	      /* of engines; only starts and stops of helpers use it */
	pthread_t id;
	bool dedicated;			    /* serves one engine, and never sleeps; constant */
	bool quits;			    /* atomic: the thread ends, its engines do not */
	int wake_fd;			    /* eventfd that wakes the thread; constant */
	pid_t pid;			    /* of the process that has made the eventfd; constant */
	SLIST_ENTRY(helper_thread) retired; /* only starts and stops of helpers use it */

	struct engine_clock clock; /* its own: those of engines run apart; constant */

	/* the thread's own */
	uint64_t look_ns;  /* CPU time of one look at polling programs; atomic */
	uint64_t slept_ns; /* time of the last sleep's end */
	uint64_t cpu_ns;   /* CPU time at the last look; 0: there was another round since */
	struct pollfd fds[1 + HELPER_ENGINES_MAX]; /* wake_fd, and those of the engines' ports */
};

/* An engine tells its helper by this what to do after a step. */
enum helper_wish {
	HELPER_GO_ON,	    /* make the next step at once */
	HELPER_SHORT_SLEEP, /* sleep for wish_ns; frames need not wake the thread */
	HELPER_IDLE_SLEEP,  /* sleep until there is work, at most for wish_ns */
};

/* The state of one engine. Only the thread uses it. */
struct helper_charge {
	bool runs; /* else it watches */
	bool sleeps;
	uint64_t until_ns; /* end of its sleep, by the thread's clock */
	enum helper_wish wish;
	uint64_t wish_ns;

	/* watching */
	struct helper_watch watch;
	uint64_t tick_ns;    /* time between two looks */
	uint64_t look_at_ns; /* time of the next one */
	struct helper_losses losses;

	/* running */
	struct helper_polls seen;
	bool shares_cpu;   /* the program has only one CPU */
	uint64_t sleep_ns; /* the next idle sleep is not longer */
	uint64_t busy_ns;  /* time of the last engine poll with work */
};

/** Begin to help an engine: watch it. Before the thread knows it. */
void helper_begin(struct engine *engine);

/** Make one step of an engine, and set what it wishes next. Helper's thread. */
void helper_step(struct engine *engine);

/** Run an engine poll, and set how much work it did. Return false if another thread had the engine.
 * Helper's thread. */
bool helper_poll(struct engine *engine, unsigned int *work);

/** Disarm the port. If another thread has the engine, the port stays armed until after the next
 * sleep. Helper's thread. */
void helper_disarm(struct engine *engine);

/** Return true if the engine has ended. The helper does not use its port any more. MT-safe. */
bool helper_has_ended(const struct engine *engine);

/** Return true if the thread must end: all its engines have ended, or it was told so. MT-safe. */
bool helper_is_over(const struct helper_thread *thread);

/** Return true if the program has closed the descriptor on which the engine's helper sleeps: that
 * of `thread`, which is the engine's. MT-safe. */
bool helper_has_lost_fds(struct engine *engine, const struct helper_thread *thread);

#endif
