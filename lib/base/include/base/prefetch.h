/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetching what is written next, ahead of its turn. */
#ifndef BASE_PREFETCH_H
#define BASE_PREFETCH_H

/**
 * Bring a line into the cache as ours to write; it need not be there. MT-safe.
 *
 * DPDK's own asks for it as for a line to be read, where the compiler is not told of a processor that has this
 * instruction; on those that do not have it, it does nothing.
 */
static inline void prefetch_write(const void *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1, 3);
#endif
}

#endif
