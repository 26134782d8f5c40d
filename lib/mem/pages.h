/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries which pages of this process are in memory, and brings pages in. */
#ifndef MEM_PAGES_H
#define MEM_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most pages of one call of pages_ask. */
#define PAGES_ASK_MAX 64

/** Open the file that pages_ask reads; call it again in a child of fork(). Return a descriptor, or
 * -1: then pages_ask uses another method. MT-safe. */
int pages_open(void);
void pages_close(int fd);

/** Return true if the system reports pages at all: some sandboxes do not. MT-safe. */
bool pages_are_reported(int fd);

/**
 * Find out which of `count` pages can be accessed without a fault that waits. MT-safe.
 *
 * @param fd
 *   From pages_open.
 * @param first
 *   The address of the first page.
 * @param there
 *   Set for each page.
 */
void pages_ask(int fd, uintptr_t first, unsigned int count, bool write, bool *there);

/** Return true if something is mapped at this page's address. MT-safe. */
bool pages_is_mapped(uintptr_t page);

/**
 * Access each page of a range, one after the other, and wait for it. MT-safe; no byte changes.
 *
 * @param failed
 *   On -EFAULT: the address of the page that cannot be accessed in this way. Pages behind it were
 *   not accessed.
 * @return
 *   0 or -EFAULT.
 */
int pages_touch(uintptr_t addr, size_t length, bool write, uintptr_t *failed);

#endif
