/* SPDX-License-Identifier: BSD-3-Clause */
/* Populate memif memory with pages before the first packets need them. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

/**
 * Populate memory, with huge pages if the kernel has some for madvise. Memory that cannot be
 * populated now, or that exceeds the limit of one connection, is populated later, page by page.
 *
 * @param before
 *   Bytes of the same connection that were passed to this function before.
 */
void memory_populate(void *memory, size_t bytes, size_t before);

#endif
