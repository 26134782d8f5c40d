/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of packet buffers for tests of pmd/mbuf: a list of free buffers. */
#ifndef MBUF_POOL_H
#define MBUF_POOL_H

#include <rte_mbuf.h>

#define POOL_ROOM 64 /* bytes of data behind the headroom */

/** Make a pool of `size` buffers; at most four at a time. */
struct rte_mempool *pool_make(uint32_t size);

/** Free all pools. */
void pool_free_all(void);

/** Return how many buffers are in it. */
uint32_t pool_has(const struct rte_mempool *pool);

/** Make a packet of `len` bytes, which count up from `first`, in as many buffers as it takes. */
struct rte_mbuf *pool_packet(struct rte_mempool *pool, uint32_t len, uint8_t first);

#endif
