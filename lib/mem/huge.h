/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether memory is made of huge pages, as IBV_ACCESS_HUGETLB promises. */
#ifndef MEM_HUGE_H
#define MEM_HUGE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Whether the whole range is mapped from hugetlbfs, MAP_HUGETLB or a memfd of huge pages, of any
 * size. Transparent huge pages do not count: the kernel may split them at any time. MT-safe.
 *
 * @return
 *   0; -EINVAL where a page is not huge, or nobody can tell; -EFAULT where nothing is mapped;
 * -ENOMEM where there is no descriptor to ask with.
 */
int huge_check(uintptr_t addr, size_t length);

/** Keep a descriptor by which huge_check finds out later in a program without /proc: it may change
 * its root directory. Since Linux 6.11. MT-safe. */
void huge_prepare(void);

#endif
