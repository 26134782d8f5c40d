/* SPDX-License-Identifier: BSD-3-Clause */
/* The atomic operations of a peer, atomic towards this process's own as well. */
#ifndef MEM_ATOMICS_H
#define MEM_ATOMICS_H

#include <stdint.h>

/** Add to memory that may not be there; *original is what it held. `addr` is a multiple of 8.
 * MT-safe. 0, or -EFAULT. */
int atomics_fetch_add(uint64_t *addr, uint64_t add, uint64_t *original);

/** Store `swap` where memory holds `compare`. As above. */
int atomics_compare_swap(uint64_t *addr, uint64_t compare, uint64_t swap, uint64_t *original);

/** Store a word at once, behind all that this thread wrote before. As above. */
int atomics_store(uint64_t *addr, uint64_t value);

#endif
