/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the application that the port reads by itself. Addresses that it is given are ours to
 * choose (an IOMMU translates them), and are never used for two regions at once: what the port
 * still holds of a region that has gone is not another one's.
 */
#ifndef PORT_DMA_H
#define PORT_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_mbuf.h>

#include "port/port.h"

struct dma_region {
	LIST_ENTRY(dma_region) link;
	uintptr_t addr; /* whole pages */
	size_t length;
	uint64_t iova;
	/* its references: one of ours, and one a packet that is with the port */
	struct rte_mbuf_ext_shared_info shared;
};

/* Engine's thread or lock. */
struct dma {
	/* mbufs without a buffer of their own; NULL: the port has no DMA of that kind */
	struct rte_mempool *parts;
	uint64_t next_iova;
	struct dma_region *last; /* that dma_find found */
	LIST_HEAD(, dma_region) regions;
	LIST_HEAD(, dma_region) leaving; /* deregistered, and the port was slow to give them back */
};

/**
 * Map memory for PORT_DMA_IOMMU, for as long as the process lives: packet buffers that are not
 * DPDK's. For ports that have no regions. Not MT-safe.
 *
 * @return
 *   The address that the port has for it, or RTE_BAD_IOVA (rte_errno says why).
 */
rte_iova_t dma_map_buffers(void *addr, size_t length);

/** For a port that was opened. Where memory is short there is no DMA. */
void dma_init(struct dma *dma, const struct port *port);

/** Map memory. NULL where that cannot be: it is sent by copy. */
struct dma_region *dma_map(struct dma *dma, const void *addr, size_t length);

/** Find no more packets' payload in it. Followed by dma_unmap. */
void dma_forget(struct dma *dma, struct dma_region *region);

/** Whether packets that the port may still read from the region have not come back. */
static inline bool dma_is_busy(const struct dma_region *region)
{
	return rte_mbuf_ext_refcnt_read(&region->shared) > 1;
}

/** Unmap and free a forgotten region: now, or where it is busy when it no longer is. */
void dma_unmap(struct dma *dma, struct dma_region *region);

/** The region that has these bytes, or NULL. */
struct dma_region *dma_find(struct dma *dma, const void *addr, size_t length);

/**
 * Make a packet of three parts: what is in its first buffer already, `length` bytes of a region in
 * their place, and what stands at `tail` in the first buffer. The caller has two mbufs of
 * dma->parts for it.
 */
void dma_chain(struct dma_region *region, struct rte_mbuf *head, struct rte_mbuf *const parts[2],
	       const void *payload, uint16_t length, uint8_t *tail, uint16_t tail_len);

#endif
