/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying to memory whose cache lines are in no cache, or in another CPU's. */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

#include "base/prefetch.h"
#include "base/tuning.h"

/* Copy this many bytes while the cache lines of the next piece are being fetched. */
#define COPY_PIECE_BYTES ((size_t)1024)

/** Fetch the cache lines of `len` bytes that are written soon; of a long range only those of the
 * first piece. MT-safe. */
static inline void copy_expect(const void *to, size_t len)
{
	prefetch_write_bytes(to, RTE_MIN(len, COPY_PIECE_BYTES));
}

/**
 * memcpy that fetches the destination's cache lines before it writes them: a CPU has room for a few
 * pending stores, and would wait for each cache line. MT-safe.
 *
 * @param next
 *   Bytes directly behind these that are written next; their first cache lines are fetched as well.
 */
static inline void copy_ahead(uint8_t *to, const uint8_t *from, size_t len, size_t next)
{
	while (len > COPY_PIECE_BYTES) {
		if (likely(tuning.prefetch))
			copy_expect(to + COPY_PIECE_BYTES, len - COPY_PIECE_BYTES + next);
		memcpy(to, from, COPY_PIECE_BYTES);
		to += COPY_PIECE_BYTES;
		from += COPY_PIECE_BYTES;
		len -= COPY_PIECE_BYTES;
	}
	if (next > 0 && likely(tuning.prefetch))
		copy_expect(to + len, next);
	memcpy(to, from, len);
}

/**
 * memcpy that stores whole cache lines past the caches, where the processor can. These stores are
 * not ordered with later ones: call rte_wmb before another thread is told of the bytes. MT-safe.
 */
static inline void copy_past_caches(uint8_t *to, const uint8_t *from, size_t len)
{
#ifdef __x86_64__
	const size_t before = -(uintptr_t)to % RTE_CACHE_LINE_SIZE;

	if (len >= before + RTE_CACHE_LINE_SIZE) {
		memcpy(to, from, before);
		to += before;
		from += before;
		len -= before;
		for (; len >= RTE_CACHE_LINE_SIZE; len -= RTE_CACHE_LINE_SIZE) {
			for (int i = 0; i < RTE_CACHE_LINE_SIZE / 16; i++, to += 16, from += 16)
				_mm_stream_si128(
					(__m128i *)(void *)to,
					_mm_loadu_si128((const __m128i *)(const void *)from));
		}
	}
#endif
	memcpy(to, from, len);
}

#endif
