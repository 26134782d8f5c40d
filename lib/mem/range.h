/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of ranges of this process's memory, before they become part of a region. */
#ifndef MEM_RANGE_H
#define MEM_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Check that access flags do not contradict each other. MT-safe. 0 or -EINVAL. Source:
 * ibv_reg_mr(3). */
int range_check_access(unsigned int access);

/** Check a range and its iova. MT-safe. 0, or -EINVAL if one wraps, or their page offsets
 * differ. */
int range_check(uintptr_t addr, size_t length, uint64_t iova, unsigned int access);

/** Check that a range is mapped and readable, and writable with `write`. MT-safe. 0; -EFAULT if it
 * is not, or if this cannot be found out; -ENOMEM. */
int range_check_mapped(uintptr_t addr, size_t length, bool write);

/**
 * Fault in every page of a range. MT-safe.
 *
 * @param write
 *   Fault it in as a write would, so that no write faults later.
 * @return
 *   0, -EFAULT if the range is not mapped for this access, -ENOMEM.
 */
int range_populate(uintptr_t addr, size_t length, bool write);

/**
 * Fault in the pages that a region with this access needs at registration: writable with
 * IBV_ACCESS_LOCAL_WRITE, none with IBV_ACCESS_ON_DEMAND. With IBV_ACCESS_HUGETLB also check that
 * they are huge. MT-safe.
 *
 * @return
 *   0, -EFAULT if the range is not mapped for this access, -EINVAL for pages that are not huge,
 *   -ENOMEM.
 */
int range_make_present(uintptr_t addr, size_t length, unsigned int access);

#endif
