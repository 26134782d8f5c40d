/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sequence numbers of 24 bits that wrap (IBTA 9.7.2). They have a type of their own, so that
 * a plain `<` does not compile. */
#ifndef BASE_PSN_H
#define BASE_PSN_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu

struct psn {
	uint32_t v; /* always below 2^24, except in psn_none */
};

static inline struct psn psn_make(uint32_t v)
{
	return (struct psn){v & PSN_MASK};
}

/* Return "no PSN": it equals itself only, and is neither before nor behind any PSN. */
static inline struct psn psn_none(void)
{
	return (struct psn){UINT32_MAX};
}

static inline struct psn psn_add(struct psn a, int32_t n)
{
	return psn_make(a.v + (uint32_t)n);
}

/* Return the distance from `b` to `a` in [-2^23, 2^23): negative if `a` is behind `b`. */
static inline int32_t psn_diff(struct psn a, struct psn b)
{
	assert(a.v <= PSN_MASK && b.v <= PSN_MASK);
	return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline bool psn_eq(struct psn a, struct psn b)
{
	return a.v == b.v;
}

static inline bool psn_before(struct psn a, struct psn b)
{
	return psn_diff(a, b) < 0;
}

/* Return how far `a` has advanced since it was `b`, if that is less than 2^24. */
static inline uint32_t psn_since(struct psn a, struct psn b)
{
	return (a.v - b.v) & PSN_MASK;
}

#endif
