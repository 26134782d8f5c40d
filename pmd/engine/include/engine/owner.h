/* SPDX-License-Identifier: BSD-3-Clause */
/* The ownership of an engine. One thread at a time runs it. A turn is skipped if another thread has
 * the engine; a control call waits, and comes before turns. */
#ifndef ENGINE_OWNER_H
#define ENGINE_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/shared.h"

struct owner {
	uint32_t held;	  /* atomic */
	uint32_t waiters; /* atomic: control calls that want it; turns stand back */
};

/** Take it for a turn, unless somebody has it or waits for it. MT-safe. */
static inline bool owner_try(struct owner *owner)
{
	/* Not relaxed: a thread that has left word for the owner must not have looked before. */
	if (shared_load(&owner->held, __ATOMIC_SEQ_CST) != 0 ||
	    shared_load(&owner->waiters, __ATOMIC_SEQ_CST) != 0)
		return false;
	/* Acquire: what the last owner did to the engine is seen. */
	return shared_exchange(&owner->held, 1) == 0;
}

/** Take it, waiting for the end of a turn. MT-safe; may not nest. */
static inline void owner_lock(struct owner *owner)
{
	unsigned int tries = 0;

	shared_fetch_add(&owner->waiters, 1);
	while (shared_load(&owner->held, __ATOMIC_RELAXED) != 0 ||
	       shared_exchange(&owner->held, 1) != 0)
		tries = shared_wait(tries);
	shared_fetch_sub(&owner->waiters, 1);
}

/**
 * Give it back. An exchange, and not a plain store: the caller goes on to look for work that others
 * left because they saw the engine taken, and that look must not come before this.
 */
static inline void owner_unlock(struct owner *owner)
{
	(void)shared_exchange(&owner->held, 0);
}

#endif
