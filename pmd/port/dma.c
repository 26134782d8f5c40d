/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps the application's memory for the port, and makes packets whose payload stays in it. */
#include "port/dma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/log.h"
#include "port/port_eal.h"

#define DMA_PAGE    UINT64_C(4096)
#define DMA_PAGE_2M (UINT64_C(1) << 21)
#define DMA_PAGE_1G (UINT64_C(1) << 30)

void dma_init(struct dma *dma, const struct port *port)
{
	LIST_INIT(&dma->regions);
	LIST_INIT(&dma->leaving);
	dma->eal = port->eal;
	if (!dma->eal)
		return;
	dma->window = dma->eal->dma_window();
	dma->next_iova = dma->window.first;
	if (port->gathers)
		dma->parts = dma->eal->dma_make_parts(port);
}

void dma_fini(struct dma *dma)
{
	if (dma->parts)
		dma->eal->dma_free_parts(dma->parts);
}

/* Do nothing: only the reference count matters, and dma_unmap frees the region. */
static void dma_freed(void *addr, void *region)
{
	(void)addr, (void)region;
}

static void dma_release(const struct dma *dma, struct dma_region *region)
{
	const int rc = dma->eal->dma_unmap(region->addr, region->iova, region->length);

	if (rc != 0)
		log_warn("cannot unmap memory from the port: %s", strerror(-rc));
	free(region);
}

static void dma_reap(struct dma *dma)
{
	struct dma_region *region = LIST_FIRST(&dma->leaving);

	while (region) {
		struct dma_region *next = LIST_NEXT(region, link);

		if (!dma_is_busy(region)) {
			LIST_REMOVE(region, link);
			dma_release(dma, region);
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
	int rc;

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
	rc = region->iova == 0 ? -ENOSPC
			       : dma->eal->dma_map(region->addr, region->iova, region->length);
	if (rc != 0) {
		log_info("%zu bytes at %p are not mapped for the port, and will be copied: %s",
			 region->length, addr, strerror(-rc));
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
		dma_release(dma, region);
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
