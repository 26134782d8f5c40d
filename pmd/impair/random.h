/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers from a seed: xorshift64*, as published by Vigna. */
#ifndef IMPAIR_RANDOM_H
#define IMPAIR_RANDOM_H

#include "base/mix.h"
#include "config/impair.h"
#include "impair/impair_path.h"

/* Mix the seed, so that neighbouring seeds give unrelated sequences. */
static inline void random_seed(struct impair_random *random, uint64_t seed, uint64_t stream)
{
	const uint64_t z = mix_stream(seed, stream + 1);

	random->state = z ? z : 1;
}

static inline uint64_t random_next(struct impair_random *random)
{
	random->state ^= random->state >> 12;
	random->state ^= random->state << 25;
	random->state ^= random->state >> 27;
	return random->state * UINT64_C(0x2545f4914f6cdd1d);
}

/* Return true for this fraction of calls, in units of 1 / IMPAIR_ALL. The upper 62 bits of the
 * random number are compared, because a fraction may be much smaller than 2^-32. */
static inline bool random_hits(struct impair_random *random, uint64_t fraction)
{
	return fraction > 0 && random_next(random) / (UINT64_MAX / IMPAIR_ALL + 1) < fraction;
}

/* Return a number from 0 to n - 1. */
static inline uint32_t random_below(struct impair_random *random, uint32_t n)
{
	return (uint32_t)((random_next(random) >> 32) * n >> 32);
}

#endif
