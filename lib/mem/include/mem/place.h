/* SPDX-License-Identifier: BSD-3-Clause */
/* Placing of received bytes in memory: a program that polls the last byte finds all others in
 * place, and all bytes of earlier packets. */
#ifndef MEM_PLACE_H
#define MEM_PLACE_H

#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "base/copy.h"

/* Return how many bytes at the end of a range one store can write: only an aligned store becomes
 * visible as a whole on any processor. `len` is not 0. */
static inline uint32_t place_end_bytes(const uint8_t *dst, uint32_t len)
{
	uint32_t bytes = sizeof(uint64_t);

	while (unlikely(bytes > len || ((uintptr_t)dst + len) % bytes != 0))
		bytes /= 2;
	return bytes;
}

/* Store the end of a range. The stores are volatile, and not atomic: ThreadSanitizer would hold a
 * lock of its own around them, and a fault would leave it locked. */
static inline void place_end(uint8_t *dst, const uint8_t *src, uint32_t bytes)
{
	typedef uint64_t __attribute__((may_alias)) word;
	typedef uint32_t __attribute__((may_alias)) half;
	typedef uint16_t __attribute__((may_alias)) quarter;
	uint64_t end = 0;

	if (likely(bytes == sizeof(word))) {
		memcpy(&end, src, sizeof(word));
		*(volatile word *)(void *)dst = end;
	} else if (bytes == sizeof(half)) {
		memcpy(&end, src, sizeof(half));
		*(volatile half *)(void *)dst = *(const half *)&end;
	} else if (bytes == sizeof(quarter)) {
		memcpy(&end, src, sizeof(quarter));
		*(volatile quarter *)(void *)dst = *(const quarter *)&end;
	} else {
		*(volatile uint8_t *)dst = *src;
	}
}

/*
 * Copy, and store the end last. memcpy alone may store the end first. Programs poll the last byte
 * of an RDMA WRITE (perftest's latency test does), or an aligned word there. `next` is the number
 * of bytes that will be written directly behind these; their cache lines are fetched.
 *
 * The first fence orders the bytes of earlier packets before these, the second one these before the
 * end. Both pair with the load of the program that polls.
 */
static inline void place_strict(uint8_t *dst, const uint8_t *src, uint32_t len, uint32_t next)
{
	uint32_t end;

	if (unlikely(len == 0))
		return;
	end = place_end_bytes(dst, len);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (len > end) {
		copy_ahead(dst, src, len - end, next > 0 ? end + next : 0);
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	place_end(dst + len - end, src + len - end, end);
}

/** Do place_strict to memory that may not be mapped; the `next` bytes may not be mapped either.
 * MT-safe. 0, or -EFAULT: some of the bytes may have been stored. */
int place_guarded(uint8_t *dst, const uint8_t *src, uint32_t len, uint32_t next);

#endif
