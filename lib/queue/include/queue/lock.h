/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of a queue's application side, which a promise of single-threaded use makes needless. */
#ifndef QUEUE_LOCK_H
#define QUEUE_LOCK_H

#include <stdbool.h>

#include <rte_spinlock.h>

#include "queue/ring.h"

struct queue_lock {
	rte_spinlock_t spin;
	bool unneeded; /* set at creation */
};

/** The lock of a new queue; `domain` may be NULL. */
static inline struct queue_lock queue_lock_make(const struct queue_domain *domain)
{
	return (struct queue_lock){
		.spin = RTE_SPINLOCK_INITIALIZER,
		.unneeded = domain && domain->single_threaded,
	};
}

static inline void queue_lock(struct queue_lock *lock)
{
	if (!lock->unneeded)
		rte_spinlock_lock(&lock->spin);
}

/*
 * A release, and no more: DPDK's own is an exchange on x86, which waits until all that was stored
 * before is in the cache. Who has to see others' stores after his own says so where that is.
 */
static inline void queue_unlock(struct queue_lock *lock)
{
	if (!lock->unneeded)
		__atomic_store_n(&lock->spin.locked, 0, __ATOMIC_RELEASE);
}

#endif
