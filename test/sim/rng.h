/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers by splitmix64: a run depends only on its seed. */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Return a separate stream for each purpose, so that one more number drawn here changes nothing
 * there. */
static inline struct rng rng_fork(uint64_t seed, uint64_t purpose)
{
	struct rng rng = {seed ^ (purpose * 0xd1342543de82ef95u)};

	rng_next(&rng);
	return rng;
}

/* Return a number in [0, n); n > 0. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return rng_next(rng) % n;
}

/* Return a number in [low, high]. */
static inline uint64_t rng_range(struct rng *rng, uint64_t low, uint64_t high)
{
	return low + rng_below(rng, high - low + 1);
}

/* Return true so many times in a million. */
static inline bool rng_chance(struct rng *rng, uint32_t ppm)
{
	return rng_below(rng, 1000000) < ppm;
}

#endif
