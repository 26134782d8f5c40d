/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations on memory that may not be mapped. */
#include "mem/atomics.h"

#include <stdbool.h>

#include "base/guard.h"

struct atomic {
	uint64_t *addr;
	uint64_t compare;
	uint64_t operand; /* to add, or to store */
	uint64_t original;
};

/* ThreadSanitizer would hold a lock of its own around the access, and a fault would leave it
 * locked. */
#define NO_LOCK __attribute__((no_sanitize("thread")))

NO_LOCK static void fetch_add(void *arg)
{
	struct atomic *atomic = arg;

	atomic->original = __atomic_fetch_add(atomic->addr, atomic->operand, __ATOMIC_SEQ_CST);
}

NO_LOCK static void compare_swap(void *arg)
{
	struct atomic *atomic = arg;

	atomic->original = atomic->compare;
	/* If the values differ, the builtin stores the original value in atomic->original. */
	__atomic_compare_exchange_n(atomic->addr, &atomic->original, atomic->operand, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

NO_LOCK static void store(void *arg)
{
	const struct atomic *atomic = arg;

	__atomic_store_n(atomic->addr, atomic->operand, __ATOMIC_RELEASE);
}

int atomics_fetch_add(uint64_t *addr, uint64_t add, uint64_t *original)
{
	struct atomic atomic = {.addr = addr, .operand = add};
	const int rc = guard_run(fetch_add, &atomic);

	*original = atomic.original;
	return rc;
}

int atomics_compare_swap(uint64_t *addr, uint64_t compare, uint64_t swap, uint64_t *original)
{
	struct atomic atomic = {.addr = addr, .compare = compare, .operand = swap};
	const int rc = guard_run(compare_swap, &atomic);

	*original = atomic.original;
	return rc;
}

int atomics_store(uint64_t *addr, uint64_t value)
{
	struct atomic atomic = {.addr = addr, .operand = value};

	return guard_run(store, &atomic);
}
