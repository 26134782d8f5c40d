/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts that one thread writes and others read. The stores are plain ones of the processor, and a
 * reader sees a complete value. */
#ifndef TESTROCE_COUNT_H
#define TESTROCE_COUNT_H

#include <stdint.h>

/** Set a count. Only its owner may call this. */
static inline void count_set(uint64_t *count, uint64_t value)
{
	__atomic_store_n(count, value, __ATOMIC_RELAXED);
}

/** Add to a count. Only its owner may call this. */
static inline void count_add(uint64_t *count, uint64_t n)
{
	count_set(count, *count + n);
}

/** Read a count. MT-safe. */
static inline uint64_t count_get(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

#endif
