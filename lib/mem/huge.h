/* SPDX-License-Identifier: BSD-3-Clause */
/* Check of the huge pages that IBV_ACCESS_HUGETLB promises. */
#ifndef MEM_HUGE_H
#define MEM_HUGE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Check that the whole range is mapped from hugetlbfs, MAP_HUGETLB or a memfd of huge pages, of any
 * size. Transparent huge pages do not count: the kernel may split them at any time. MT-safe.
 *
 * @return
 *   0; -EINVAL if a page is not huge or this cannot be found out; -EFAULT if nothing is mapped;
 *   -ENOMEM if no descriptor can be opened.
 */
int huge_check(uintptr_t addr, size_t length);

/** Keep a descriptor that huge_check can use later, when a program without /proc has changed its
 * root directory. Needs Linux 6.11. MT-safe. */
void huge_prepare(void);

#endif
