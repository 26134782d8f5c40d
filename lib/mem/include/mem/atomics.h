/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations of a peer. They are also atomic towards this process's own. */
#ifndef MEM_ATOMICS_H
#define MEM_ATOMICS_H

#include <stdint.h>

/** Add to memory that may not be mapped; return its former value in *original. `addr` is a multiple
 * of 8. MT-safe. 0, or -EFAULT. */
int atomics_fetch_add(uint64_t *addr, uint64_t add, uint64_t *original);

/** Store `swap` if memory holds `compare`. Otherwise as atomics_fetch_add. */
int atomics_compare_swap(uint64_t *addr, uint64_t compare, uint64_t swap, uint64_t *original);

/** Store eight bytes by one store, after all that this thread wrote before. Otherwise as above. */
int atomics_store(uint64_t *addr, uint64_t value);

#endif
