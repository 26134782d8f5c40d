/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that faults pages in. It exists only while there are pages to fault in: a process that
 * never asks for them has no extra thread, and nobody has to stop the thread.
 */
#include "prefetch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <rte_common.h>

#include "base/thread.h"
#include "mem/advise.h"
#include "mem/mr.h"
#include "range.h"

/* Bytes that are faulted in before the thread checks again whether the range is still wanted. */
#define STEP_BYTES ((size_t)1 << 20)

struct prefetch {
	STAILQ_ENTRY(prefetch) link;
	struct advise_range range;
	bool write;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
/* under lock */
static STAILQ_HEAD(, prefetch) waiting = STAILQ_HEAD_INITIALIZER(waiting);
static struct prefetch *current;
static bool running;  /* the thread exists */
static bool unwanted; /* the current range is cancelled; atomic, because the thread reads it without
			 the lock */

static void fault_in(const struct prefetch *prefetch)
{
	uintptr_t addr = prefetch->range.addr;
	size_t left = prefetch->range.length;

	while (left > 0 && !__atomic_load_n(&unwanted, __ATOMIC_RELAXED)) {
		const size_t step = RTE_MIN(left, STEP_BYTES);

		/* Ignore the error: nobody waits for a result, and a later access will report the
		 * fault. */
		if (range_populate(addr, step, prefetch->write) != 0)
			return;
		addr += step;
		left -= step;
	}
}

static void *prefetch_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while ((current = STAILQ_FIRST(&waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&waiting, link);
		__atomic_store_n(&unwanted, false, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&lock);
		fault_in(current);
		pthread_mutex_lock(&lock);
		/* Release: the thread does not touch the region any more. */
		__atomic_sub_fetch(&current->range.mr->prefetches, 1, __ATOMIC_RELEASE);
		free(current);
		pthread_cond_broadcast(&done);
	}
	running = false;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* Start empty: the thread exists only in the parent, and so does its work. */
static void after_fork_in_child(void)
{
	STAILQ_INIT(&waiting);
	current = NULL;
	running = false;
	done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	pthread_mutex_unlock(&lock);
}

static int start_thread_locked(void)
{
	static bool prepared;
	int rc;

	if (running)
		return 0;
	if (!prepared && pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0)
		return -ENOMEM;
	prepared = true;
	rc = thread_start(prefetch_main, NULL, 0);
	running = rc == 0;
	return rc == 0 ? 0 : -ENOMEM;
}

int prefetch_post(const struct advise_range *range, bool write)
{
	struct prefetch *prefetch = malloc(sizeof(*prefetch));
	int rc;

	if (!prefetch)
		return -ENOMEM;
	*prefetch = (struct prefetch){.range = *range, .write = write};
	pthread_mutex_lock(&lock);
	rc = start_thread_locked();
	if (rc == 0) {
		__atomic_add_fetch(&range->mr->prefetches, 1, __ATOMIC_RELAXED);
		STAILQ_INSERT_TAIL(&waiting, prefetch, link);
	}
	pthread_mutex_unlock(&lock);
	if (rc != 0)
		free(prefetch);
	return rc;
}

static void forget_waiting_locked(struct mr *mr)
{
	struct prefetch *prefetch = STAILQ_FIRST(&waiting), *next;

	for (; prefetch; prefetch = next) {
		next = STAILQ_NEXT(prefetch, link);
		if (prefetch->range.mr != mr)
			continue;
		STAILQ_REMOVE(&waiting, prefetch, prefetch, link);
		__atomic_sub_fetch(&mr->prefetches, 1, __ATOMIC_RELAXED);
		free(prefetch);
	}
}

/* Return true if the thread faults in a range of the region. It stops after the step that it is
 * in. */
static bool stop_current_locked(const struct mr *mr)
{
	if (!current || current->range.mr != mr)
		return false;
	__atomic_store_n(&unwanted, true, __ATOMIC_RELAXED);
	return true;
}

bool prefetch_cancel(struct mr *mr)
{
	bool busy;

	/* Acquire: only the thread changes the number now, and only towards 0. */
	if (__atomic_load_n(&mr->prefetches, __ATOMIC_ACQUIRE) == 0)
		return true;
	pthread_mutex_lock(&lock);
	forget_waiting_locked(mr);
	busy = stop_current_locked(mr);
	pthread_mutex_unlock(&lock);
	return !busy;
}

void prefetch_wait(const struct mr *mr)
{
	int cancel_state;

	/* A thread that is cancelled in the wait would keep the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&lock);
	while (stop_current_locked(mr))
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel_state, NULL);
}
