/* SPDX-License-Identifier: BSD-3-Clause */
/* Ownership of an engine. One thread at a time runs it. An engine poll is skipped if another thread
 * owns the engine; a control call waits for the engine, and has priority over engine polls. */
#ifndef ENGINE_OWNER_H
#define ENGINE_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/shared.h"

struct owner {
	uint32_t held;	  /* atomic */
	uint32_t waiters; /* atomic: control calls that wait; engine polls are skipped meanwhile */
};

/** Take it for an engine poll, unless another thread has it or waits for it. MT-safe. */
static inline bool owner_try(struct owner *owner)
{
	/* Not relaxed: a thread that has left work for the owner must not read these words before
	 * that store. */
	if (shared_load(&owner->held, __ATOMIC_SEQ_CST) != 0 ||
	    shared_load(&owner->waiters, __ATOMIC_SEQ_CST) != 0)
		return false;
	/* Acquire: the last owner's changes to the engine are visible. */
	return shared_exchange(&owner->held, 1) == 0;
}

/** Return true if a thread has it. The answer may be out of date. MT-safe. */
static inline bool owner_is_taken(const struct owner *owner)
{
	return shared_load(&owner->held, __ATOMIC_RELAXED) != 0;
}

/** Wait for the end of the current engine poll, and take it, unless `ended` is or becomes true
 * meanwhile. MT-safe; must not nest. Returns whether it was taken. */
static inline bool owner_lock_unless(struct owner *owner, const bool *ended)
{
	unsigned int tries = 0;
	bool taken = false;

	shared_fetch_add(&owner->waiters, 1);
	while (!taken && !__atomic_load_n(ended, __ATOMIC_ACQUIRE)) {
		taken = shared_load(&owner->held, __ATOMIC_RELAXED) == 0 &&
			shared_exchange(&owner->held, 1) == 0;
		if (!taken)
			tries = shared_wait(tries);
	}
	shared_fetch_sub(&owner->waiters, 1);
	return taken;
}

/** Do the same, however long it takes. */
static inline void owner_lock(struct owner *owner)
{
	static const bool never;

	(void)owner_lock_unless(owner, &never);
}

/**
 * Release it. This is an exchange and not a plain store: the caller then looks for work that other
 * threads left because the engine was taken. That load must not be ordered before the release.
 */
static inline void owner_unlock(struct owner *owner)
{
	(void)shared_exchange(&owner->held, 0);
}

#endif
