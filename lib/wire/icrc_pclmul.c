/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 fused with a copy, 16 bytes at a time with PCLMULQDQ: for processors without AVX-512. */
#include "wire/icrc_kernel.h"

#ifdef __x86_64__

#include "icrc_clmul.h"

#define PCLMUL	     __attribute__((target(CLMUL_TARGET), always_inline)) static inline
#define PCLMUL_ENTRY __attribute__((target(CLMUL_TARGET))) static

#define LINE_BYTES 64

/* Source and destination of the bytes; `to` is NULL if they are only read. */
struct stream {
	const uint8_t *from;
	uint8_t *to;
	bool nontemporal; /* store past the caches; `to` is aligned */
};

PCLMUL void skip(struct stream *s, size_t len)
{
	s->from += len;
	if (s->to)
		s->to += len;
}

PCLMUL __m128i load_16(const struct stream *s)
{
	const __m128i v = _mm_loadu_si128((const __m128i *)s->from);

	if (s->nontemporal)
		_mm_stream_si128((__m128i *)s->to, v);
	else if (s->to)
		_mm_storeu_si128((__m128i *)s->to, v);
	return v;
}

PCLMUL __m128i take_16(struct stream *s)
{
	const __m128i v = load_16(s);

	skip(s, 16);
	return v;
}

/* Move the first `len` bytes, 1 to 15, to the end, behind zeros. */
PCLMUL __m128i align_16(__m128i v, size_t len)
{
	/* An index whose top bit is set yields a zero. */
	static const uint8_t index[32] = {
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0,    1,	  2,	3,    4,    5,
		6,    7,    8,	  9,	10,   11,   12,	  13,	14,   15,
	};

	return _mm_shuffle_epi8(v, _mm_loadu_si128((const __m128i *)(index + len)));
}

PCLMUL __m128i multiply_16(__m128i v, __m128i constants)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(v, constants, 0x00),
			     _mm_clmulepi64_si128(v, constants, 0x11));
}

PCLMUL __m128i fold_16_by(__m128i v, __m128i constants, __m128i data)
{
	return _mm_xor_si128(multiply_16(v, constants), data);
}

PCLMUL uint32_t finish_16(const __m128i acc[4])
{
	const __m128i *constants = (const __m128i *)&finish[12];
	__m128i sum = multiply_16(acc[3], _mm_load_si128(&constants[3]));

	sum = _mm_xor_si128(sum, multiply_16(acc[2], _mm_load_si128(&constants[2])));
	sum = _mm_xor_si128(sum, multiply_16(acc[1], _mm_load_si128(&constants[1])));
	sum = _mm_xor_si128(sum, multiply_16(acc[0], _mm_load_si128(&constants[0])));
	return reduce_96(sum);
}

/* Take the first one to four vectors into the accumulators, so that the number of the remaining
 * vectors is a multiple of four. */
PCLMUL void begin_16(__m128i acc[4], __m128i first, struct stream *s, size_t vectors)
{
	acc[0] = acc[1] = acc[2] = _mm_setzero_si128();
	switch (vectors % 4) {
	case 1:
		acc[3] = first;
		return;
	case 2:
		acc[2] = first;
		break;
	case 3:
		acc[1] = first;
		acc[2] = take_16(s);
		break;
	default:
		acc[0] = first;
		acc[1] = take_16(s);
		acc[2] = take_16(s);
		break;
	}
	acc[3] = take_16(s);
}

/* Process 16 bytes or more. */
PCLMUL uint32_t run_16(uint32_t state, struct stream s, size_t len)
{
	const __m128i constants = _mm_loadu_si128((const __m128i *)&fold_64);
	const size_t odd = len % 16;
	__m128i acc[4], first;
	size_t vectors;

	first = _mm_xor_si128(load_16(&s), _mm_cvtsi32_si128((int)~state));
	if (odd != 0)
		first = align_16(first, odd);
	skip(&s, odd != 0 ? odd : 16);
	vectors = len / 16 + (odd != 0);
	begin_16(acc, first, &s, vectors);
	for (vectors = (vectors - 1) / 4; vectors != 0; vectors--) {
		acc[0] = fold_16_by(acc[0], constants, take_16(&s));
		acc[1] = fold_16_by(acc[1], constants, take_16(&s));
		acc[2] = fold_16_by(acc[2], constants, take_16(&s));
		acc[3] = fold_16_by(acc[3], constants, take_16(&s));
	}
	return ~finish_16(acc);
}

/* Return how many bytes at the start must be processed without vectors: all of a message that is
 * shorter than a vector, or the bytes beyond whole vectors if they are fewer than the four bytes of
 * the state. */
static size_t short_part(size_t len)
{
	if (len < 16)
		return len;
	return len % 16 < 4 ? len % 16 : 0;
}

PCLMUL_ENTRY uint32_t update_pclmul(uint32_t state, const void *data, size_t len)
{
	const size_t part = short_part(len);

	if (part != 0)
		state = icrc_kernel_portable.update(state, data, part);
	if (part == len)
		return state;
	return run_16(state, (struct stream){.from = (const uint8_t *)data + part}, len - part);
}

PCLMUL_ENTRY uint32_t copy_pclmul(uint32_t state, void *dst, const void *src, size_t len)
{
	const size_t part = short_part(len);

	if (part != 0)
		state = icrc_kernel_portable.copy(state, dst, src, part);
	if (part == len)
		return state;
	return run_16(
		state,
		(struct stream){.from = (const uint8_t *)src + part, .to = (uint8_t *)dst + part},
		len - part);
}

PCLMUL_ENTRY uint32_t copy_past_caches_pclmul(uint32_t state, void *dst, const void *src,
					      size_t len)
{
	const size_t before = -(uintptr_t)dst % LINE_BYTES;
	const size_t behind = (len + (uintptr_t)dst) % LINE_BYTES;
	const size_t lines = len - before - behind;
	uint8_t *to = (uint8_t *)dst + before;
	const uint8_t *from = (const uint8_t *)src + before;

	if (len < PAST_CACHES_MIN)
		return copy_pclmul(state, dst, src, len);
	state = copy_pclmul(state, dst, src, before);
	state = run_16(state, (struct stream){.from = from, .to = to, .nontemporal = true}, lines);
	return copy_pclmul(state, to + lines, from + lines, behind);
}

static uint32_t masked_pclmul(uint32_t state, const uint8_t *data, const uint8_t *ones, size_t len)
{
	return icrc_kernel_portable.masked(state, data, ones, len);
}

static uint32_t copy_masked_pclmul(uint32_t state, uint8_t *dst, const uint8_t *src,
				   const uint8_t *ones, size_t len)
{
	return icrc_kernel_portable.copy_masked(state, dst, src, ones, len);
}

static bool supported_pclmul(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul");
}

const struct icrc_kernel icrc_kernel_pclmul = {
	.name = "pclmul",
	.supported = supported_pclmul,
	.update = update_pclmul,
	.copy = copy_pclmul,
	.copy_past_caches = copy_past_caches_pclmul,
	.masked = masked_pclmul,
	.copy_masked = copy_masked_pclmul,
};

#endif
