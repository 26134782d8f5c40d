/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetching what is written next, ahead of its turn. */
#ifndef BASE_PREFETCH_H
#define BASE_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

/**
 * Bring a line into the cache as ours to write; it need not be there. MT-safe.
 *
 * DPDK's own asks for it as for a line to be read, where the compiler is not told of a processor
 * that has this instruction; on those that do not have it, it does nothing.
 */
static inline void prefetch_write(const void *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1, 3);
#endif
}

/** How many lines `len` bytes lie in. MT-safe. */
static inline size_t prefetch_lines(const void *from, size_t len)
{
	const size_t before = (uintptr_t)from % RTE_CACHE_LINE_SIZE;

	return len > 0 ? (before + len - 1) / RTE_CACHE_LINE_SIZE + 1 : 0;
}

/** prefetch_write, of all lines that `len` bytes lie in. MT-safe. */
static inline void prefetch_write_bytes(const void *from, size_t len)
{
	const char *const line = (const char *)from - (uintptr_t)from % RTE_CACHE_LINE_SIZE;
	const size_t lines = prefetch_lines(from, len);

	for (size_t i = 0; i < lines; i++)
		prefetch_write(line + i * RTE_CACHE_LINE_SIZE);
}

#endif
