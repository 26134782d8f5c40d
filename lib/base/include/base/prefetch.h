/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetching of memory that is written next. */
#ifndef BASE_PREFETCH_H
#define BASE_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

/**
 * Fetch a cache line for writing. The address need not be mapped. MT-safe.
 *
 * DPDK's function fetches it for reading, unless the compiler is told that the processor has this
 * instruction. Processors without the instruction ignore it.
 */
static inline void prefetch_write(const void *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1, 3);
#endif
}

/** Return how many cache lines `len` bytes touch. MT-safe. */
static inline size_t prefetch_lines(const void *from, size_t len)
{
	const size_t before = (uintptr_t)from % RTE_CACHE_LINE_SIZE;

	return len > 0 ? (before + len - 1) / RTE_CACHE_LINE_SIZE + 1 : 0;
}

/** Call prefetch_write for all cache lines that `len` bytes touch. MT-safe. */
static inline void prefetch_write_bytes(const void *from, size_t len)
{
	/* An integer, because the line behind the last one may be behind all addresses. */
	uintptr_t line = (uintptr_t)from - (uintptr_t)from % RTE_CACHE_LINE_SIZE;

	for (size_t left = prefetch_lines(from, len); left > 0; left--) {
		prefetch_write((const void *)line);
		line += RTE_CACHE_LINE_SIZE;
	}
}

#endif
