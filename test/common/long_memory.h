/* SPDX-License-Identifier: BSD-3-Clause */
/* Long memory that takes little: it shows the same pages again and again. */
#ifndef UROCE_TEST_LONG_MEMORY_H
#define UROCE_TEST_LONG_MEMORY_H

#include <stddef.h>

#define LONG_MEMORY_CHUNK ((size_t)0x200000) /* what there is of it; its length is a multiple */

/* Return memory of zeros that can be read and written. munmap() ends it. */
void *long_memory(size_t length);

#endif
