/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time that packets wait for a process that does not take them. For a trusted process, each
 * packet that it takes renews the full time. An isolated process could take one packet now and
 * then, and so make all others wait. Therefore it earns only a little time with each packet that it
 * takes.
 */
#ifndef SHARE_PATIENCE_H
#define SHARE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Longer than a process waits for a CPU. */
#define PATIENCE_NS UINT64_C(4000000)

/* Time that a taken packet earns. A process that takes packets more slowly uses up its patience. */
#define PATIENCE_EARNED_NS UINT64_C(20000)

/* All zero: no packet has waited for the process. */
struct patience {
	uint64_t since_ns; /* time since which it has taken no packet; 0: it takes packets */
	uint64_t spent_ns; /* time of earlier waits that was not earned again */
};

/** Note that the process took no packet. Return true if the packet must wait, or false if it must
 * be dropped. */
static inline bool patience_waits(struct patience *patience, uint64_t now_ns)
{
	if (patience->since_ns == 0)
		patience->since_ns = now_ns;
	return patience->spent_ns + (now_ns - patience->since_ns) < PATIENCE_NS;
}

/** Note that a trusted process took a packet. */
static inline void patience_renew(struct patience *patience)
{
	patience->since_ns = 0;
}

/** Note that an untrusted process took a packet. */
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
