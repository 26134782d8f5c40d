/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the application that the port reads by DMA. We choose the I/O addresses (an IOMMU
 * translates them) and never reuse one: a packet that the port still holds after its region has
 * gone cannot read another region.
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
	/* references: one of ours, and one for each packet that the port holds */
	struct rte_mbuf_ext_shared_info shared;
};

/* Addresses from `first` to before `end`. */
struct dma_window {
	uint64_t first, end;
};

/* Engine's thread or lock. */
struct dma {
	const struct port_eal *eal; /* NULL: the port is of a program without EAL */
	/* mbufs without a buffer; NULL: the port cannot read application memory */
	struct rte_mempool *parts;
	struct dma_window window; /* I/O addresses of regions */
	uint64_t next_iova;
	struct dma_region *last; /* the last result of dma_find */
	LIST_HEAD(, dma_region) regions;
	LIST_HEAD(, dma_region)
	leaving; /* deregistered, but the port still holds packets of them */
};

/**
 * Map packet buffers that are not in DPDK's memory, until the process ends. For PORT_DMA_IOMMU
 * ports without regions. Not MT-safe.
 *
 * @return
 *   The port's address of the memory, or RTE_BAD_IOVA (rte_errno has the reason).
 */
rte_iova_t dma_map_buffers(void *addr, size_t length);

/** Initialise, for an opened port. If memory is short, there is no DMA. */
void dma_init(struct dma *dma, const struct port *port);

/** Free the pool of a port that is closed. */
void dma_fini(struct dma *dma);

/** Return true if dma_map may succeed: the port reads application memory. MT-safe. */
static inline bool dma_is_possible(const struct dma *dma)
{
	return dma->parts != NULL;
}

/** Map memory. NULL: it cannot be mapped, so payload is copied. */
struct dma_region *dma_map(struct dma *dma, const void *addr, size_t length);

/** Make dma_find ignore a region. Call dma_unmap after it. */
void dma_forget(struct dma *dma, struct dma_region *region);

/** Return true if the port still holds packets with payload in the region. */
static inline bool dma_is_busy(const struct dma_region *region)
{
	return rte_mbuf_ext_refcnt_read(&region->shared) > 1;
}

/** Unmap and free a forgotten region: now, or later if it is busy. */
void dma_unmap(struct dma *dma, struct dma_region *region);

/** Find the region that contains these bytes. NULL: there is none. */
struct dma_region *dma_find(struct dma *dma, const void *addr, size_t length);

/**
 * Make a packet of three segments: the data in its first buffer, `length` bytes of the region in
 * place, and the bytes at `tail` in the first buffer. The caller provides two mbufs of dma->parts.
 */
void dma_chain(struct dma_region *region, struct rte_mbuf *head, struct rte_mbuf *const parts[2],
	       const void *payload, uint16_t length, uint8_t *tail, uint16_t tail_len);

#endif
