/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers DPDK's memory, and follows the heap as it grows and shrinks. */
#include "regions.h"

#include <errno.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_memory.h>

#define NAME	    "example_regions"
#define REGIONS_MAX 256

static struct ibv_pd *regions_pd;
static struct ibv_mr *regions[REGIONS_MAX];
static unsigned int grown;

static int add(const void *addr, size_t len)
{
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (regions[i])
			continue;
		regions[i] = ibv_reg_mr(regions_pd, (void *)(uintptr_t)addr, len,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
		return regions[i] ? 0 : -errno;
	}
	return -ENOSPC;
}

/* Deregister the regions in a range: DPDK unmaps it after this. */
static void drop(const void *addr, size_t len)
{
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (regions[i] && (uintptr_t)regions[i]->addr - (uintptr_t)addr < len &&
		    ibv_dereg_mr(regions[i]) == 0)
			regions[i] = NULL;
	}
}

static void on_memory(enum rte_mem_event event, const void *addr, size_t len, void *arg)
{
	(void)arg;
	if (event == RTE_MEM_EVENT_FREE)
		drop(addr, len);
	else if (add(addr, len) == 0)
		grown++;
}

static int add_present(const struct rte_memseg_list *list, const struct rte_memseg *seg, size_t len,
		       void *arg)
{
	(void)list;
	(void)arg;
	return add(seg->addr, len);
}

int regions_begin(struct ibv_pd *pd)
{
	int rc;

	regions_pd = pd;
	rc = rte_memseg_contig_walk(add_present, NULL);
	if (rc == 0)
		rc = rte_mem_event_callback_register(NAME, on_memory, NULL);
	/* Without huge pages the heap has one size. */
	return rc < 0 && rte_eal_has_hugepages() ? rc : 0;
}

void regions_end(void)
{
	rte_mem_event_callback_unregister(NAME, NULL);
	drop(NULL, SIZE_MAX);
}

uint32_t regions_lkey(const void *addr)
{
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (regions[i] &&
		    (uintptr_t)addr - (uintptr_t)regions[i]->addr < regions[i]->length)
			return regions[i]->lkey;
	}
	return 0;
}

unsigned int regions_grown(void)
{
	return grown;
}
