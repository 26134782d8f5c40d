/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries to the kernel about ranges of this process's address space. Private to the room. */
#ifndef MEM_MAPS_H
#define MEM_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Check that a range is mapped from end to end. MT-safe.
 *
 * @param write
 *   The mappings must be writable as well as readable.
 * @return
 *   0; -EFAULT if a byte is not mapped for this access; the error of maps_no_answer if /proc/self
 *   cannot be read.
 */
int maps_check_mapped(uintptr_t addr, size_t length, bool write);

/** Check that every mapping of a range has huge pages (hugetlbfs). MT-safe. 0; -EINVAL if one has
 * not; otherwise as above. */
int maps_check_huge(uintptr_t addr, size_t length);

/** Return the error to report if a file of /proc/self could not be opened: -ENOMEM if descriptors
 * or memory are short, else -ENOSYS. */
int maps_no_answer(int err);

#endif
