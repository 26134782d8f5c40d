/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says about ranges of this process's address space. Private to the room. */
#ifndef MEM_MAPS_H
#define MEM_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Whether a range is mapped from end to end. MT-safe.
 *
 * @param write
 *   The mappings must be writable as well as readable.
 * @return
 *   0; -EFAULT where a byte is not mapped so; where /proc/self does not say, as maps_no_answer.
 */
int maps_check_mapped(uintptr_t addr, size_t length, bool write);

/** Whether every mapping of a range is of huge pages (hugetlbfs). MT-safe. 0, -EINVAL where one is
 * not, or as above. */
int maps_check_huge(uintptr_t addr, size_t length);

/** For the errno with which a file of /proc/self was not opened: -ENOMEM where descriptors or
 * memory are short, else -ENOSYS. */
int maps_no_answer(int err);

#endif
