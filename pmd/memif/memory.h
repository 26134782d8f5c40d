/* SPDX-License-Identifier: BSD-3-Clause */
/* Having the pages of a wire's memory there before its first packets need them. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

/**
 * In large pages where the kernel has some for who asks. What cannot be had, or would be too much
 * at once, comes later, page by page.
 *
 * @param had
 *   Bytes of the same wire that this was called for before.
 */
void memory_have(void *memory, size_t bytes, size_t had);

#endif
