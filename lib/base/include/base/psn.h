/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sequence numbers: 24 bits that wrap (IBTA 9.7.2), in a type that a plain `<` does not
 * take. */
#ifndef BASE_PSN_H
#define BASE_PSN_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu

struct psn {
	uint32_t v; /* always below 2^24, but for psn_none */
};

static inline struct psn psn_make(uint32_t v)
{
	return (struct psn){v & PSN_MASK};
}

/* No PSN: equal to none, and neither before nor behind any. */
static inline struct psn psn_none(void)
{
	return (struct psn){UINT32_MAX};
}

static inline struct psn psn_add(struct psn a, int32_t n)
{
	return psn_make(a.v + (uint32_t)n);
}

/* How far `a` is ahead of `b`: negative when behind, in [-2^23, 2^23). */
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

/* How far `a` has come since it was `b`, if that is less than 2^24. */
static inline uint32_t psn_since(struct psn a, struct psn b)
{
	return (a.v - b.v) & PSN_MASK;
}

#endif
