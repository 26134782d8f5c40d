/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of small objects of which there may be very many, each used now and then: whole cache
 * lines, side by side, on huge pages once they fill some. From the heap ten thousand queue pairs
 * lie on as many small pages, and each packet waits for the translation of its addresses.
 *
 * What is given back is kept for objects of its size and of smaller ones, and the process's until
 * it ends: neither are neighbours joined nor pages given back to the kernel.
 */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include <stddef.h>

/** Get so many bytes, at the beginning of a cache line and not cleared; NULL where there is no
 * memory. MT-safe. */
void *lines_alloc(size_t bytes);

/** Give them back; `bytes` as they were asked for. Nothing for NULL. MT-safe. */
void lines_free(void *at, size_t bytes);

#endif
