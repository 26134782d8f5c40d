/* SPDX-License-Identifier: BSD-3-Clause */
/* Random-looking numbers from seeds: splitmix64, as published by Vigna. */
#ifndef BASE_MIX_H
#define BASE_MIX_H

#include <stdint.h>

/** Mix the bits of a number: each one changes half of the result's. MT-safe. */
static inline uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/** Return the n-th number of a seed; neighbouring seeds and numbers are unrelated. MT-safe. */
static inline uint64_t mix_stream(uint64_t seed, uint64_t n)
{
	return mix(seed + n * UINT64_C(0x9e3779b97f4a7c15));
}

#endif
