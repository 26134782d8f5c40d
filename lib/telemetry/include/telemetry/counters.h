/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of a device by name. The thread that runs its engine writes them, any thread may
 * read. */
#ifndef TELEMETRY_COUNTERS_H
#define TELEMETRY_COUNTERS_H

#include <stdint.h>

enum counter {
#define COUNTER(name, meaning) COUNTER_##name,
#include "telemetry/counters.def"
#undef COUNTER
	COUNTER_COUNT
};

struct counters {
	uint64_t value[COUNTER_COUNT];
};

/* Add to a counter. Only the thread that runs the engine writes, so a plain addition is enough; the
 * atomic store lets readers see a complete value. */
static inline void counters_add(struct counters *counters, enum counter counter, uint64_t n)
{
	uint64_t *value = &counters->value[counter];

	__atomic_store_n(value, *value + n, __ATOMIC_RELAXED);
}

static inline uint64_t counters_get(const struct counters *counters, enum counter counter)
{
	return __atomic_load_n(&counters->value[counter], __ATOMIC_RELAXED);
}

/** Return the counter's name, as `rdma statistic` and the kernel's hw_counters spell it.
 * MT-safe. */
const char *counter_name(enum counter counter);

/** Return what a counter of that name counts, or NULL if there is none. MT-safe. */
const char *counter_meaning(const char *name);

#endif
