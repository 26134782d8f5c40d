/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of a queue's application side. It does nothing if the application promises to use the
 * queue from one thread at a time. */
#ifndef QUEUE_LOCK_H
#define QUEUE_LOCK_H

#include <stdbool.h>

#include <rte_spinlock.h>

#include "queue/ring.h"

struct queue_lock {
	rte_spinlock_t spin;
	bool unneeded; /* set at creation */
};

/** Return the lock of a new queue; `domain` may be NULL. */
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
 * Unlock by a release store only. DPDK's function is an exchange on x86, which waits until all
 * earlier stores have reached the cache. Code that must see others' stores after its own has a
 * barrier of its own.
 */
static inline void queue_unlock(struct queue_lock *lock)
{
	if (!lock->unneeded)
		__atomic_store_n(&lock->spin.locked, 0, __ATOMIC_RELEASE);
}

#endif
