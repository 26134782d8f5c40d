/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that do not come: madvise(2) of this process waits for them, as for pages of a userfaultfd
 * whose server has no answer yet. It needs no privilege. */
#ifndef TEST_HELD_PAGES_H
#define TEST_HELD_PAGES_H

#include <stddef.h>

/** Hold the pages of a range back: a thread that faults one in by madvise(2) waits. */
void held_pages_begin(const void *addr, size_t length);

/** Wait until a thread waits for one of them. */
void held_pages_await(void);

/** Let the pages come. */
void held_pages_end(void);

/** Let the next calls of madvise(2) that fault pages in fail with this error, as many as given. */
void held_pages_refuse(int error, unsigned int times);

#endif
