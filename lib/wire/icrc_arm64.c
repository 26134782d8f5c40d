/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 over bytes, over masked bytes, or together with a copy, by arm64's instructions: CRC32 for
 * eight bytes, and PMULL for 16 bytes of long messages. */
#include "wire/icrc_kernel.h"

#ifdef __aarch64__

#include <string.h>

#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>

#define CRC32	    __attribute__((target("+crc"), always_inline)) static inline
#define CRC32_ENTRY __attribute__((target("+crc"))) static
#define PMULL	    __attribute__((target("+crc+crypto"), always_inline)) static inline
#define PMULL_ENTRY __attribute__((target("+crc+crypto"))) static

#define VECTOR	    16
#define PMULL_LEAST 128 /* bytes: CRC32 alone is as fast for fewer */

struct stream {
	const uint8_t *from;
	uint8_t *to;	     /* NULL: only read the bytes */
	const uint8_t *ones; /* NULL: mask none */
};

/* Load `len` bytes, at most eight, once: the application may be changing them. */
CRC32 uint64_t take(struct stream *s, size_t len)
{
	uint64_t bytes = 0, ones = 0;

	memcpy(&bytes, s->from, len);
	s->from += len;
	if (s->to) {
		memcpy(s->to, &bytes, len);
		s->to += len;
	}
	if (s->ones) {
		memcpy(&ones, s->ones, len);
		s->ones += len;
	}
	return bytes | ones;
}

/* Return the register (a state without its inversion) after `len` bytes. */
CRC32 uint32_t run_words(uint32_t reg, struct stream *s, size_t len)
{
	for (; len >= 8; len -= 8)
		reg = __crc32d(reg, take(s, 8));
	if (len & 4)
		reg = __crc32w(reg, (uint32_t)take(s, 4));
	if (len & 2)
		reg = __crc32h(reg, (uint16_t)take(s, 2));
	if (len & 1)
		reg = __crc32b(reg, (uint8_t)take(s, 1));
	return reg;
}

/*
 * Constants to move the two halves of a vector by a distance (icrc_clmul.h explains them). The
 * halves of 64 bytes are x^(512 + 32) and x^(512 - 32), those of one vector x^(128 + 32) and
 * x^(128 - 32).
 */
static const uint64_t fold_64[2] = {0x154442bd4, 0x1c6e41596};
static const uint64_t fold_16[2] = {0x1751997d0, 0x0ccaa009e};

PMULL uint64x2_t take_vector(struct stream *s)
{
	const uint8x16_t v = vld1q_u8(s->from);

	s->from += VECTOR;
	if (s->to) {
		vst1q_u8(s->to, v);
		s->to += VECTOR;
	}
	return vreinterpretq_u64_u8(v);
}

PMULL uint64x2_t fold_by(uint64x2_t v, uint64x2_t constants, uint64x2_t data)
{
	const poly128_t low =
		vmull_p64((poly64_t)vgetq_lane_u64(v, 0), (poly64_t)vgetq_lane_u64(constants, 0));
	const poly128_t high =
		vmull_high_p64(vreinterpretq_p64_u64(v), vreinterpretq_p64_u64(constants));

	return veorq_u64(veorq_u64(vreinterpretq_u64_p128(low), vreinterpretq_u64_p128(high)),
			 data);
}

/* Process whole vectors, at least four. */
PMULL uint32_t run_vectors(uint32_t reg, struct stream *s, size_t vectors)
{
	const uint64x2_t by_64 = vld1q_u64(fold_64), by_16 = vld1q_u64(fold_16);
	uint64x2_t acc[4];

	acc[0] = veorq_u64(take_vector(s), vsetq_lane_u64(reg, vdupq_n_u64(0), 0));
	acc[1] = take_vector(s);
	acc[2] = take_vector(s);
	acc[3] = take_vector(s);
	for (vectors -= 4; vectors >= 4; vectors -= 4) {
		acc[0] = fold_by(acc[0], by_64, take_vector(s));
		acc[1] = fold_by(acc[1], by_64, take_vector(s));
		acc[2] = fold_by(acc[2], by_64, take_vector(s));
		acc[3] = fold_by(acc[3], by_64, take_vector(s));
	}
	acc[1] = fold_by(acc[0], by_16, acc[1]);
	acc[2] = fold_by(acc[1], by_16, acc[2]);
	acc[3] = fold_by(acc[2], by_16, acc[3]);
	for (; vectors > 0; vectors--)
		acc[3] = fold_by(acc[3], by_16, take_vector(s));
	return __crc32d(__crc32d(0, vgetq_lane_u64(acc[3], 0)), vgetq_lane_u64(acc[3], 1));
}

/* The bytes beyond whole vectors come first. */
PMULL uint32_t run(uint32_t state, struct stream s, size_t len)
{
	if (len < PMULL_LEAST)
		return ~run_words(~state, &s, len);
	return ~run_vectors(run_words(~state, &s, len % VECTOR), &s, len / VECTOR);
}

PMULL_ENTRY uint32_t update_pmull(uint32_t state, const void *data, size_t len)
{
	return run(state, (struct stream){.from = data}, len);
}

PMULL_ENTRY uint32_t copy_pmull(uint32_t state, void *dst, const void *src, size_t len)
{
	return run(state, (struct stream){.from = src, .to = dst}, len);
}

CRC32_ENTRY uint32_t update_crc32(uint32_t state, const void *data, size_t len)
{
	struct stream s = {.from = data};

	return ~run_words(~state, &s, len);
}

CRC32_ENTRY uint32_t copy_crc32(uint32_t state, void *dst, const void *src, size_t len)
{
	struct stream s = {.from = src, .to = dst};

	return ~run_words(~state, &s, len);
}

CRC32_ENTRY uint32_t masked_crc32(uint32_t state, const uint8_t *data, const uint8_t *ones,
				  size_t len)
{
	struct stream s = {.from = data, .ones = ones};

	return ~run_words(~state, &s, len);
}

CRC32_ENTRY uint32_t copy_masked_crc32(uint32_t state, uint8_t *dst, const uint8_t *src,
				       const uint8_t *ones, size_t len)
{
	struct stream s = {.from = src, .to = dst, .ones = ones};

	return ~run_words(~state, &s, len);
}

static bool supported_crc32(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

static bool supported_pmull(void)
{
	return supported_crc32() && (getauxval(AT_HWCAP) & HWCAP_PMULL);
}

const struct icrc_kernel icrc_kernel_pmull = {
	.name = "pmull",
	.supported = supported_pmull,
	.update = update_pmull,
	.copy = copy_pmull,
	.masked = masked_crc32,
	.copy_masked = copy_masked_crc32,
};

const struct icrc_kernel icrc_kernel_crc32 = {
	.name = "crc32",
	.supported = supported_crc32,
	.update = update_crc32,
	.copy = copy_crc32,
	.masked = masked_crc32,
	.copy_masked = copy_masked_crc32,
};

#endif
