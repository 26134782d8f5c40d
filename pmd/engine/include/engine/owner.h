/* SPDX-License-Identifier: BSD-3-Clause */
/* Who runs an engine: one thread at a time; turns are tried for, control calls wait and come first.
 */
#ifndef ENGINE_OWNER_H
#define ENGINE_OWNER_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_pause.h>

#define OWNER_SPINS 200 /* a turn takes microseconds: longer, and its thread has lost its CPU */

struct owner {
	uint32_t held;	  /* atomic */
	uint32_t waiters; /* atomic: control calls that want it; turns stand back */
};

/** Take it for a turn, unless somebody has it or waits for it. MT-safe. */
static inline bool owner_try(struct owner *owner)
{
	if (__atomic_load_n(&owner->held, __ATOMIC_RELAXED) != 0 ||
	    __atomic_load_n(&owner->waiters, __ATOMIC_RELAXED) != 0)
		return false;
	/* Acquire: what the last owner did to the engine is seen. */
	return __atomic_exchange_n(&owner->held, 1, __ATOMIC_SEQ_CST) == 0;
}

/** Take it, waiting for the end of a turn. MT-safe; may not nest. */
static inline void owner_lock(struct owner *owner)
{
	unsigned int spins = 0;

	__atomic_fetch_add(&owner->waiters, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&owner->held, __ATOMIC_RELAXED) != 0 ||
	       __atomic_exchange_n(&owner->held, 1, __ATOMIC_SEQ_CST) != 0) {
		if (++spins < OWNER_SPINS)
			rte_pause();
		else
			sched_yield();
	}
	__atomic_fetch_sub(&owner->waiters, 1, __ATOMIC_SEQ_CST);
}

/**
 * Give it back. An exchange, and not a plain store: the caller goes on to look for work that others
 * left because they saw the engine taken, and that look must not come before this.
 */
static inline void owner_unlock(struct owner *owner)
{
	__atomic_exchange_n(&owner->held, 0, __ATOMIC_SEQ_CST);
}

#endif
