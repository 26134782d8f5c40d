/* SPDX-License-Identifier: BSD-3-Clause */
/* All memory of DPDK's heap as regions of a protection domain, as SPDK registers it. One thread. */
#ifndef EXAMPLES_REGIONS_H
#define EXAMPLES_REGIONS_H

#include <stdint.h>

#include <infiniband/verbs.h>

/** Register the heap, and from now on what it grows by: within DPDK's memory callback, with DPDK's
 * locks held. 0 or -errno. */
int regions_begin(struct ibv_pd *pd);

/** Deregister everything. */
void regions_end(void);

/** Return the local key of the region that contains an address; 0: there is none. */
uint32_t regions_lkey(const void *addr);

/** Return how many regions were made because the heap grew. */
unsigned int regions_grown(void);

#endif
