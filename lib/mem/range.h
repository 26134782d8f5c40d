/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of this process's memory, before they become part of a region. */
#ifndef MEM_RANGE_H
#define MEM_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whether access flags may stand together. MT-safe. 0 or -EINVAL. Source: ibv_reg_mr(3). */
int range_check_access(unsigned int access);

/** Whether range and iova are possible. MT-safe. 0, or -EINVAL for what wraps, or whose page
 * offsets differ. */
int range_check(uintptr_t addr, size_t length, uint64_t iova, unsigned int access);

/** Whether a range is mapped, readable and with `write` writable. MT-safe. 0; -EFAULT where it is
 * not so, or nobody can tell; -ENOMEM. */
int range_check_mapped(uintptr_t addr, size_t length, bool write);

/**
 * Fault every page of a range in. MT-safe.
 *
 * @param write
 *   As a write would, so that none has to fault again.
 * @return
 *   0, -EFAULT where the range is not mapped so, -ENOMEM.
 */
int range_populate(uintptr_t addr, size_t length, bool write);

/**
 * Fault every page in that a region of this access needs now: writable where it has
 * IBV_ACCESS_LOCAL_WRITE, none where it has IBV_ACCESS_ON_DEMAND. See that they are huge where it
 * has IBV_ACCESS_HUGETLB. MT-safe.
 *
 * @return
 *   0, -EFAULT where the range is not mapped so, -EINVAL for pages that are not huge, -ENOMEM.
 */
int range_make_present(uintptr_t addr, size_t length, unsigned int access);

#endif
