/* SPDX-License-Identifier: BSD-3-Clause */
/* Nanoseconds from the time stamp counter. The clock is read once an engine poll, so reading must
 * be cheap.
 */
#ifndef ENGINE_CLOCK_H
#define ENGINE_CLOCK_H

#include <stdint.h>

#include <rte_cycles.h>

#include "base/monotonic.h"
#define CLOCK_SHIFT 32

struct engine_clock {
	uint64_t start_tsc;
	uint64_t start_ns;
	uint64_t ns_per_tsc; /* << CLOCK_SHIFT */
};

/* Initialise a clock for a time stamp counter of this frequency. */
static inline void clock_init(struct engine_clock *clock, uint64_t tsc_hz)
{
	clock->start_ns = monotonic_ns();
	clock->start_tsc = rte_rdtsc();
	clock->ns_per_tsc = (UINT64_C(1000000000) << CLOCK_SHIFT) / tsc_hz;
}

/** Return approximately the nanoseconds of CLOCK_MONOTONIC. MT-safe. */
static inline uint64_t clock_ns(const struct engine_clock *clock)
{
	const unsigned __int128 ticks = rte_rdtsc() - clock->start_tsc;

	return clock->start_ns + (uint64_t)(ticks * clock->ns_per_tsc >> CLOCK_SHIFT);
}

#endif
