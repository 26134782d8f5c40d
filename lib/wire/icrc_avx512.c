/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 over bytes, over masked bytes, or together with a copy: 64 bytes at a time with
 * VPCLMULQDQ. */
#include "wire/icrc_kernel.h"

#ifdef __x86_64__

#include "icrc_clmul.h"

#define AVX512_TARGET "avx512f,avx512bw,avx512vl,avx512vbmi,vpclmulqdq,bmi2," CLMUL_TARGET
#define AVX512	      __attribute__((target(AVX512_TARGET), always_inline)) static inline
#define AVX512_ENTRY  __attribute__((target(AVX512_TARGET))) static

struct stream {
	const uint8_t *from;
	uint8_t *to;	     /* NULL: only read the bytes */
	const uint8_t *ones; /* NULL: mask none */
	bool nontemporal;    /* store whole vectors past the caches; they must be aligned */
};

AVX512 __m512i load_64(const struct stream *s)
{
	__m512i v = _mm512_loadu_si512(s->from);

	if (s->nontemporal)
		_mm512_stream_si512((void *)s->to, v);
	else if (s->to)
		_mm512_storeu_si512(s->to, v);
	if (s->ones)
		v = _mm512_or_si512(v, _mm512_loadu_si512(s->ones));
	return v;
}

AVX512 void skip(struct stream *s, size_t len)
{
	s->from += len;
	if (s->to)
		s->to += len;
	if (s->ones)
		s->ones += len;
}

AVX512 __m512i take_64(struct stream *s)
{
	const __m512i v = load_64(s);

	skip(s, 64);
	return v;
}

AVX512 __m512i add_state_64(__m512i v, uint32_t state)
{
	return _mm512_xor_si512(v, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
}

/* Move the first `len` bytes, 1 to 63, to the end, behind zeros. */
AVX512 __m512i align_64(__m512i v, size_t len)
{
	static const uint8_t iota[64] __attribute__((aligned(64))) = {
		0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15,
		16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
		32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
		48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
	};
	const __m512i index = _mm512_add_epi8(_mm512_load_si512(iota), _mm512_set1_epi8((char)len));

	return _mm512_maskz_permutexvar_epi8(~UINT64_C(0) << (64 - len), index, v);
}

AVX512 __m512i multiply_64(__m512i v, __m512i constants)
{
	return _mm512_xor_si512(_mm512_clmulepi64_epi128(v, constants, 0x00),
				_mm512_clmulepi64_epi128(v, constants, 0x11));
}

AVX512 __m512i fold_64_by(__m512i v, __m512i constants, __m512i data)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, constants, 0x00),
					 _mm512_clmulepi64_epi128(v, constants, 0x11), data, 0x96);
}

AVX512 uint32_t reduce_lanes(__m512i v)
{
	const __m256i half =
		_mm256_xor_si256(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));

	return reduce_96(
		_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

/* Reduce the accumulators to the CRC. `last` is the number of 64-byte vectors that end the message,
 * 1 to 4; the accumulators before them are zero. */
AVX512 uint32_t finish_64(const __m512i acc[4], unsigned int last)
{
	__m512i sum = multiply_64(acc[3], _mm512_load_si512(&finish[12]));

	if (last > 1)
		sum = _mm512_xor_si512(sum, multiply_64(acc[2], _mm512_load_si512(&finish[8])));
	if (last > 2) {
		sum = _mm512_xor_si512(sum, multiply_64(acc[1], _mm512_load_si512(&finish[4])));
		sum = _mm512_xor_si512(sum, multiply_64(acc[0], _mm512_load_si512(&finish[0])));
	}
	return reduce_lanes(sum);
}

/* Handle fewer than 64 bytes. Masked loads do not touch bytes behind the buffer, which may be
 * unmapped. */
AVX512 uint32_t run_short(uint32_t state, const struct stream *s, size_t len)
{
	const __mmask64 mask = _bzhi_u64(~UINT64_C(0), (unsigned int)len);
	__m512i v;

	if (len == 0)
		return state;
	v = _mm512_maskz_loadu_epi8(mask, s->from);
	if (s->to)
		_mm512_mask_storeu_epi8(s->to, mask, v);
	if (s->ones)
		v = _mm512_or_si512(v, _mm512_maskz_loadu_epi8(mask, s->ones));
	v = align_64(add_state_64(v, state), len);
	v = multiply_64(v, _mm512_load_si512(&finish[12]));
	return reduce_lanes(v) ^ state_behind(state, len);
}

/* Fill the accumulators with the first vectors, so many that the number of those left is a multiple
 * of four. */
AVX512 void begin_64(__m512i acc[4], __m512i first, struct stream *s, size_t vectors)
{
	acc[0] = acc[1] = acc[2] = _mm512_setzero_si512();
	switch (vectors % 4) {
	case 1:
		acc[3] = first;
		return;
	case 2:
		acc[2] = first;
		break;
	case 3:
		acc[1] = first;
		acc[2] = take_64(s);
		break;
	default:
		acc[0] = first;
		acc[1] = take_64(s);
		acc[2] = take_64(s);
		break;
	}
	acc[3] = take_64(s);
}

/* Load the first vector, whose first `odd` bytes come before the whole vectors. Bytes that are read
 * twice, behind the odd bytes, are also written twice; the CRC is of the last read. But write each
 * byte once if the vectors behind these bytes are stored past the caches. */
AVX512 __m512i load_first(const struct stream *s, size_t odd)
{
	__m512i v;

	if (!s->nontemporal || odd == 0)
		return load_64(s);
	v = _mm512_loadu_si512(s->from);
	_mm512_mask_storeu_epi8(s->to, _bzhi_u64(~UINT64_C(0), (unsigned int)odd), v);
	return v;
}

/* Handle 64 bytes and more. */
AVX512 uint32_t run_long(uint32_t state, struct stream s, size_t len)
{
	const __m512i constants =
		_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)&fold_256));
	size_t odd = len % 64, vectors;
	__m512i acc[4], first;

	if (odd != 0 && odd < 4) {
		/* The odd bytes are too few to hold the state. */
		state = run_short(state, &s, odd);
		skip(&s, odd);
		odd = 0;
	}
	first = add_state_64(load_first(&s, odd), state);
	if (odd != 0)
		first = align_64(first, odd);
	skip(&s, odd != 0 ? odd : 64);
	vectors = len / 64 + (odd != 0);
	begin_64(acc, first, &s, vectors);
	if (vectors <= 2)
		return finish_64(acc, 2);
	for (vectors = (vectors - 1) / 4; vectors != 0; vectors--) {
		acc[0] = fold_64_by(acc[0], constants, take_64(&s));
		acc[1] = fold_64_by(acc[1], constants, take_64(&s));
		acc[2] = fold_64_by(acc[2], constants, take_64(&s));
		acc[3] = fold_64_by(acc[3], constants, take_64(&s));
	}
	return finish_64(acc, 4);
}

AVX512 uint32_t run_64(uint32_t state, struct stream s, size_t len)
{
	return len < 64 ? ~run_short(~state, &s, len) : ~run_long(~state, s, len);
}

AVX512_ENTRY uint32_t update_avx512(uint32_t state, const void *data, size_t len)
{
	return run_64(state, (struct stream){.from = data}, len);
}

AVX512_ENTRY uint32_t copy_avx512(uint32_t state, void *dst, const void *src, size_t len)
{
	return run_64(state, (struct stream){.from = src, .to = dst}, len);
}

/* Copy the bytes before the first whole cache line of `dst` together with the lines, and those
 * behind the last one alone. */
AVX512_ENTRY uint32_t copy_past_caches_avx512(uint32_t state, void *dst, const void *src,
					      size_t len)
{
	const size_t behind = (len + (uintptr_t)dst) % 64;
	struct stream s = {.from = src, .to = dst, .nontemporal = true};

	if (len < PAST_CACHES_MIN)
		return copy_avx512(state, dst, src, len);
	state = run_64(state, s, len - behind);
	skip(&s, len - behind);
	s.nontemporal = false;
	return behind == 0 ? state : run_64(state, s, behind);
}

AVX512_ENTRY uint32_t masked_avx512(uint32_t state, const uint8_t *data, const uint8_t *ones,
				    size_t len)
{
	return run_64(state, (struct stream){.from = data, .ones = ones}, len);
}

AVX512_ENTRY uint32_t copy_masked_avx512(uint32_t state, uint8_t *dst, const uint8_t *src,
					 const uint8_t *ones, size_t len)
{
	return run_64(state, (struct stream){.from = src, .to = dst, .ones = ones}, len);
}

static bool supported_avx512(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
	       __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul") &&
	       __builtin_cpu_supports("bmi2");
}

const struct icrc_kernel icrc_kernel_avx512 = {
	.name = "avx512",
	.supported = supported_avx512,
	.update = update_avx512,
	.copy = copy_avx512,
	.copy_past_caches = copy_past_caches_avx512,
	.masked = masked_avx512,
	.copy_masked = copy_masked_avx512,
};

#endif
