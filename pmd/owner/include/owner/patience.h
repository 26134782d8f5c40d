/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long packets wait for a process that takes none: as a rule until it takes one, or for a
 * while. Who is isolated might take one now and then, just to have everybody wait on: it has to
 * earn by what it takes that it is waited for again.
 */
#ifndef OWNER_PATIENCE_H
#define OWNER_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Longer than a process waits for a CPU. */
#define PATIENCE_NS UINT64_C(4000000)

/* What a packet earns: who takes fewer than one in that time is waited for ever less. */
#define PATIENCE_EARNED_NS UINT64_C(20000)

/* All zero: it has not been waited for. */
struct patience {
	uint64_t since_ns; /* it takes nothing; 0: it does */
	uint64_t spent_ns; /* by earlier waits, and not earned since */
};

/** It took no packet. Returns whether that should wait on; false: it is to be dropped. */
static inline bool patience_waits(struct patience *patience, uint64_t now_ns)
{
	if (patience->since_ns == 0)
		patience->since_ns = now_ns;
	return patience->spent_ns + (now_ns - patience->since_ns) < PATIENCE_NS;
}

/** It took one, and is trusted. */
static inline void patience_renew(struct patience *patience)
{
	patience->since_ns = 0;
}

/** It took one, and is not trusted. */
static inline void patience_earn(struct patience *patience, uint64_t now_ns)
{
	if (patience->since_ns != 0) {
		const uint64_t left = PATIENCE_NS - patience->spent_ns;
		const uint64_t waited = now_ns - patience->since_ns;

		patience->spent_ns += waited < left ? waited : left;
		patience->since_ns = 0;
	}
	patience->spent_ns -=
		patience->spent_ns < PATIENCE_EARNED_NS ? patience->spent_ns : PATIENCE_EARNED_NS;
}

#endif
