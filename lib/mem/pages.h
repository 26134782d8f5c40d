/* SPDX-License-Identifier: BSD-3-Clause */
/* Which pages of this process are in memory, and bringing them there. */
#ifndef MEM_PAGES_H
#define MEM_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pages that pages_ask tells of at most. */
#define PAGES_ASK_MAX 64

/** Open what pages_ask asks; again in a child of fork(). A descriptor, or -1: then it is asked in
 * another way. MT-safe. */
int pages_open(void);
void pages_close(int fd);

/** Return true if the system tells of pages at all: some sandboxes do not. MT-safe. */
bool pages_are_told(int fd);

/**
 * Tell which of `count` pages can be accessed without a fault that waits. MT-safe.
 *
 * @param fd
 *   Of pages_open.
 * @param first
 *   The address of the first page.
 * @param there
 *   Set for each page.
 */
void pages_ask(int fd, uintptr_t first, unsigned int count, bool write, bool *there);

/** Return true if something is mapped at this page's address. MT-safe. */
bool pages_is_mapped(uintptr_t page);

/** Access each page of a range, and wait for it. MT-safe; no byte changes. 0, or -EFAULT where one
 * cannot be accessed so. */
int pages_touch(uintptr_t addr, size_t length, bool write);

#endif
