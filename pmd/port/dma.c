/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps the application's memory for the port, and makes packets whose payload stays in it. */
#include "port/dma.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_vfio.h>

#include "base/log.h"

#define DMA_PARTS   4096 /* two per packet, for as many packets as rings hold */
#define DMA_PAGE    UINT64_C(4096)
#define DMA_PAGE_2M (UINT64_C(1) << 21)
#define DMA_PAGE_1G (UINT64_C(1) << 30)
#define TIB	    (UINT64_C(1) << 40)

/*
 * Windows of I/O addresses, in the order in which they are tried. DPDK's own memory is mapped at
 * its physical addresses, and every IOMMU translates at least 39 bits; or at its virtual addresses.
 * These are low or near the stack, but a program may choose them (--base-virtaddr: SPDK's memory
 * begins at 32 TiB). Position independent programs and their heap are beyond 80 TiB.
 */
static const struct dma_window dma_window_pa = {UINT64_C(1) << 38, UINT64_C(1) << 39};
static const struct dma_window dma_windows_va[] = {
	{32 * TIB, 48 * TIB}, {48 * TIB, 64 * TIB}, {64 * TIB, 80 * TIB}};

/* Return true if DPDK has reserved addresses in the window. Its memory may grow up to these. */
static int dma_list_is_in(const struct rte_memseg_list *list, void *arg)
{
	const struct dma_window *window = arg;
	const uint64_t first = (uintptr_t)list->base_va;

	return first < window->end && list->len > 0 && window->first < first + list->len;
}

static struct dma_window dma_choose_window(void)
{
	if (rte_eal_iova_mode() != RTE_IOVA_VA)
		return dma_window_pa;
	for (unsigned int i = 0; i < RTE_DIM(dma_windows_va); i++) {
		struct dma_window window = dma_windows_va[i];

		if (rte_memseg_list_walk(dma_list_is_in, &window) == 0)
			return window;
	}
	/* VFIO refuses to map what overlaps: payload is copied. */
	return dma_windows_va[0];
}

void dma_init(struct dma *dma, const struct port *port)
{
	LIST_INIT(&dma->regions);
	LIST_INIT(&dma->leaving);
	dma->window = dma_choose_window();
	dma->next_iova = dma->window.first;
	if (!port->gathers)
		return;
	dma->parts = rte_pktmbuf_pool_create_by_ops("uroce_parts", DMA_PARTS, 256, 0, 0,
						    port->numa_node, "stack");
}

/* Do nothing: only the reference count matters, and dma_unmap frees the region. */
static void dma_freed(void *addr, void *region)
{
	(void)addr, (void)region;
}

/*
 * Map or unmap a region with VFIO. rte_dev_dma_map does the same, but needs memory registered with
 * rte_extmem_register. That makes a table for each region, in a list of 128, which is useful only
 * to drivers that translate addresses themselves. Ports here let VFIO translate.
 */
static int dma_tell_vfio(int (*tell)(int container, uint64_t va, uint64_t iova, uint64_t len),
			 const struct dma_region *region)
{
	return tell(RTE_VFIO_DEFAULT_CONTAINER_FD, region->addr, region->iova, region->length);
}

rte_iova_t dma_map_buffers(void *addr, size_t length)
{
	static uint64_t next;
	const bool is_va = rte_eal_iova_mode() == RTE_IOVA_VA;
	const struct dma_region region = {
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = is_va ? (uintptr_t)addr : dma_window_pa.first + next,
	};

	next += RTE_ALIGN_CEIL(length, DMA_PAGE_1G);
	return dma_tell_vfio(rte_vfio_container_dma_map, &region) == 0 ? region.iova : RTE_BAD_IOVA;
}

static void dma_release(struct dma_region *region)
{
	if (dma_tell_vfio(rte_vfio_container_dma_unmap, region) != 0)
		log_warn("cannot unmap memory from the port: %s", rte_strerror(rte_errno));
	free(region);
}

static void dma_reap(struct dma *dma)
{
	struct dma_region *region = LIST_FIRST(&dma->leaving);

	while (region) {
		struct dma_region *next = LIST_NEXT(region, link);

		if (!dma_is_busy(region)) {
			LIST_REMOVE(region, link);
			dma_release(region);
		}
		region = next;
	}
}

static bool dma_overlaps(const struct dma_region *region, uint64_t iova, size_t length)
{
	return iova - region->iova < region->length || region->iova - iova < length;
}

static const struct dma_region *dma_find_overlap(const struct dma *dma, uint64_t iova,
						 size_t length)
{
	const struct dma_region *region;

	LIST_FOREACH (region, &dma->regions, link) {
		if (dma_overlaps(region, iova, length))
			return region;
	}
	LIST_FOREACH (region, &dma->leaving, link) {
		if (dma_overlaps(region, iova, length))
			return region;
	}
	return NULL;
}

/*
 * Take a free I/O address; 0: none is free. Addresses are taken in turn around the window, so that
 * each is reused as late as possible. An address has the same offset in a huge page as the memory
 * that it stands for, so that the IOMMU needs one entry per huge page.
 */
static uint64_t dma_take_iova(struct dma *dma, uintptr_t addr, size_t length)
{
	/* A small page stays free between two regions, so that they are not merged. */
	const uint64_t first = dma->window.first, end = dma->window.end;
	const uint64_t page = length >= DMA_PAGE_1G ? DMA_PAGE_1G : DMA_PAGE_2M;
	uint64_t from = dma->next_iova;
	bool again = false;

	for (;;) {
		const uint64_t iova = RTE_ALIGN_CEIL(from, page) + (addr & (page - 1));
		const struct dma_region *other;

		if (iova > end || length > end - iova) {
			if (again)
				return 0;
			again = true;
			from = first;
			continue;
		}
		other = dma_find_overlap(dma, iova, length);
		if (!other) {
			dma->next_iova = iova + length + DMA_PAGE;
			return iova;
		}
		from = other->iova + other->length + DMA_PAGE;
	}
}

struct dma_region *dma_map(struct dma *dma, const void *addr, size_t length)
{
	const uintptr_t first = RTE_ALIGN_FLOOR((uintptr_t)addr, DMA_PAGE);
	const uintptr_t end = RTE_ALIGN_CEIL((uintptr_t)addr + length, DMA_PAGE);
	struct dma_region *region;

	if (!dma->parts || length == 0)
		return NULL;
	dma_reap(dma);
	region = calloc(1, sizeof(*region));
	if (!region)
		return NULL;
	region->addr = first;
	region->length = end - first;
	region->iova = dma_take_iova(dma, region->addr, region->length);
	region->shared.free_cb = dma_freed;
	rte_mbuf_ext_refcnt_set(&region->shared, 1);
	rte_errno = ENOSPC;
	if (region->iova == 0 || dma_tell_vfio(rte_vfio_container_dma_map, region) != 0) {
		log_info("%zu bytes at %p are not mapped for the port, and will be copied: %s",
			 region->length, addr, rte_strerror(rte_errno));
		free(region);
		return NULL;
	}
	LIST_INSERT_HEAD(&dma->regions, region, link);
	return region;
}

void dma_forget(struct dma *dma, struct dma_region *region)
{
	LIST_REMOVE(region, link);
	if (dma->last == region)
		dma->last = NULL;
}

void dma_unmap(struct dma *dma, struct dma_region *region)
{
	dma_reap(dma);
	if (dma_is_busy(region))
		LIST_INSERT_HEAD(&dma->leaving, region, link);
	else
		dma_release(region);
}

static bool dma_has(const struct dma_region *region, const void *addr, size_t length)
{
	const uintptr_t offset = (uintptr_t)addr - region->addr;

	return offset < region->length && length <= region->length - offset;
}

struct dma_region *dma_find(struct dma *dma, const void *addr, size_t length)
{
	struct dma_region *region;

	if (dma->last && dma_has(dma->last, addr, length))
		return dma->last;
	LIST_FOREACH (region, &dma->regions, link) {
		if (dma_has(region, addr, length)) {
			dma->last = region;
			return region;
		}
	}
	return NULL;
}

void dma_chain(struct dma_region *region, struct rte_mbuf *head, struct rte_mbuf *const parts[2],
	       const void *payload, uint16_t length, uint8_t *tail, uint16_t tail_len)
{
	struct rte_mbuf *body = parts[0], *end = parts[1];

	rte_mbuf_ext_refcnt_update(&region->shared, 1);
	rte_pktmbuf_attach_extbuf(body, (void *)(uintptr_t)payload,
				  region->iova + ((uintptr_t)payload - region->addr), length,
				  &region->shared);
	body->data_len = length;
	rte_pktmbuf_attach(end, head);
	end->data_off = (uint16_t)(tail - (uint8_t *)head->buf_addr);
	end->data_len = tail_len;
	head->next = body;
	body->next = end;
	end->next = NULL;
	head->nb_segs = 3;
	head->pkt_len = (uint32_t)head->data_len + length + tail_len;
}
