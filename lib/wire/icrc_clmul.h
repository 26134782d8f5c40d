/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 by carry-less multiplication: the constants and the last step, for all vector widths. */
#ifndef WIRE_ICRC_CLMUL_H
#define WIRE_ICRC_CLMUL_H

#include <stdint.h>

#include <immintrin.h>

/*
 * A vector of data is a polynomial over GF(2), whose highest power is the first bit of the first
 * byte. Four accumulators hold the data so far. To advance by one stride, each 64-bit half of an
 * accumulator is multiplied by a constant, and added to the data at its new place. The constant is
 * congruent, modulo the CRC's polynomial P, to the power of x by which the half moves. At the end
 * each half is multiplied by the power that moves it to the end of the message and 32 bits further.
 * This leaves 96 bits, which one Barrett step reduces to 32.
 *
 * K(n) is x^n mod P, bit-reflected, and shifted left by one, because the product of two reflected
 * numbers is one bit short.
 *
 * The odd bytes of a message come first. They are moved to the end of a vector, behind zeros: zeros
 * in front do not change a CRC that starts with 0. The state so far is added to the first four
 * bytes.
 */

#define PAST_CACHES_MIN 256 /* bytes: a shorter copy is stored as any other */

struct fold {
	uint64_t low;  /* for the half with the higher powers: K(distance + 32) */
	uint64_t high; /* K(distance - 32) */
};

static const struct fold fold_256 = {0x11542778a, 0x1322d1430};
static const struct fold fold_64 = {0x154442bd4, 0x1c6e41596};

/* K(distance + 96) and K(distance + 32) for 16-byte lanes, the last of which is 0 bits from the
 * end. */
static const struct fold finish[16] __attribute__((aligned(64))) = {
	{0x1322d1430, 0x1db06f64c}, {0x1c47d2a9c, 0x19159bb02}, {0x125f17dfc, 0x1b35adb0e},
	{0x1e7146aac, 0x1821d8bc0}, {0x12e958ac4, 0x1816ab61c}, {0x10aae2566, 0x0e3543be0},
	{0x14b57d3f0, 0x1fdc60a7c}, {0x03f41287a, 0x1e88ef372}, {0x14a7fe880, 0x1ea89367e},
	{0x1d7cfc6ac, 0x0df068dc2}, {0x18cb44e58, 0x1c7569e54}, {0x0ae0b5394, 0x154442bd4},
	{0x1c6e41596, 0x03db1ecdc}, {0x174359406, 0x0f1da05aa}, {0x15a546366, 0x1751997d0},
	{0x0ccaa009e, 0x1db710640},
};

/* Barrett: floor(x^96 / P) without its lowest bit, and P, both reflected. */
static const struct fold barrett = {0xb4e5b025f7011641, 0x1db710641};

#define CLMUL_TARGET "avx2,pclmul"

/* Reduce 96 bits to 32; `x` holds them from its first bit on. */
__attribute__((target(CLMUL_TARGET), always_inline)) static inline uint32_t reduce_96(__m128i x)
{
	const __m128i constants = _mm_loadu_si128((const __m128i *)&barrett);
	__m128i quotient = _mm_clmulepi64_si128(x, constants, 0x00);

	x = _mm_xor_si128(x, _mm_clmulepi64_si128(quotient, constants, 0x10));
	return (uint32_t)_mm_extract_epi32(x, 2);
}

/* Return the part of a state that is left behind a message shorter than the state. */
__attribute__((target(CLMUL_TARGET), always_inline)) static inline uint32_t
state_behind(uint32_t state, size_t len)
{
	return len < 4 ? (uint32_t)((uint64_t)state >> 8 * len) : 0;
}

#endif
