/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocation of small objects of which there may be very many, and each of which is used seldom. An
 * object occupies whole cache lines. Objects lie side by side, and on huge pages as soon as they
 * fill some. Ten thousand queue pairs from the heap lie on as many small pages, and each packet
 * then waits for a TLB miss.
 *
 * Freed memory is kept for objects of the same size or smaller, until the process ends. Neighbours
 * are not merged, and no page returns to the kernel.
 */
#ifndef BASE_CACHELINES_H
#define BASE_CACHELINES_H

#include <stddef.h>

/** Allocate `bytes` at the beginning of a cache line, not cleared. Return NULL if there is no
 * memory. MT-safe. */
void *cachelines_alloc(size_t bytes);

/** Free memory; `bytes` is the size that was asked for. Does nothing for NULL. MT-safe. */
void cachelines_free(void *at, size_t bytes);

#endif
