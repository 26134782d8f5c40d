/* SPDX-License-Identifier: BSD-3-Clause */
/* What ports use of EAL: pools, captures, and DMA from the application's memory. */
#include "port/port_eal.h"

#include <errno.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include <rte_vfio.h>

#include "base/log.h"
#include "port/dma.h"
#include "port/port.h"

#define DESCRIPTORS 64
#define POOL_CACHE  256
#define DMA_PARTS   4096 /* two per packet, for as many packets as rings hold */
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

/* Make a pool that returns the buffer freed last: few buffers are in use at once, and they stay in
 * the cache. */
static int eal_make_pool(struct port *port, const char *name)
{
	const uint16_t room = (uint16_t)(port->mbuf_bytes + RTE_PKTMBUF_HEADROOM);

	port->pool = rte_pktmbuf_pool_create_by_ops(name, port->mbufs, POOL_CACHE, 0, room,
						    port->numa_node, "stack");
	if (!port->pool)
		port->pool = rte_pktmbuf_pool_create(name, port->mbufs, POOL_CACHE, 0, room,
						     port->numa_node);
	if (port->pool)
		return 0;
	log_error("no memory for %zu MiB of packet buffers: free some, or set up more huge pages",
		  port_memory_bytes(port) >> 20);
	return -ENOMEM;
}

/* Return true if DPDK has reserved addresses in the window. Its memory may grow up to these. */
static int dma_list_is_in(const struct rte_memseg_list *list, void *arg)
{
	const struct dma_window *window = arg;
	const uint64_t first = (uintptr_t)list->base_va;

	return first < window->end && list->len > 0 && window->first < first + list->len;
}

static struct dma_window eal_dma_window(void)
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

static struct rte_mempool *eal_dma_make_parts(const struct port *port)
{
	return rte_pktmbuf_pool_create_by_ops("uroce_parts", DMA_PARTS, 256, 0, 0, port->numa_node,
					      "stack");
}

/*
 * Map or unmap memory with VFIO. rte_dev_dma_map does the same, but needs memory registered with
 * rte_extmem_register. That makes a table for each region, in a list of 128, which is useful only
 * to drivers that translate addresses themselves. Ports here let VFIO translate.
 */
static int vfio_result(int rc)
{
	if (rc == 0)
		return 0;
	return rte_errno > 0 ? -rte_errno : -EIO;
}

static int eal_dma_map(uintptr_t addr, uint64_t iova, size_t length)
{
	return vfio_result(
		rte_vfio_container_dma_map(RTE_VFIO_DEFAULT_CONTAINER_FD, addr, iova, length));
}

static int eal_dma_unmap(uintptr_t addr, uint64_t iova, size_t length)
{
	return vfio_result(
		rte_vfio_container_dma_unmap(RTE_VFIO_DEFAULT_CONTAINER_FD, addr, iova, length));
}

rte_iova_t dma_map_buffers(void *addr, size_t length)
{
	static uint64_t next;
	const bool is_va = rte_eal_iova_mode() == RTE_IOVA_VA;
	const uint64_t iova = is_va ? (uintptr_t)addr : dma_window_pa.first + next;

	next += RTE_ALIGN_CEIL(length, DMA_PAGE_1G);
	return eal_dma_map((uintptr_t)addr, iova, length) == 0 ? iova : RTE_BAD_IOVA;
}

/* ---- an ethdev without a network, which stands in for a port that is no ethdev: DPDK's tools
 * (pdump) see the port's packets there ---- */

static int stand_in_make(const char *ifname, struct rte_mempool *pool, uint16_t *id)
{
	const struct rte_eth_conf conf = {0};
	char name[RTE_ETH_NAME_MAX_LEN];
	int rc;

	snprintf(name, sizeof(name), "net_null_%s", ifname);
	rc = rte_eal_hotplug_add("vdev", name, "no-rx=1");
	if (rc == 0)
		rc = rte_eth_dev_get_port_by_name(name, id);
	if (rc == 0)
		rc = rte_eth_dev_configure(*id, 1, 1, &conf);
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(*id, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(*id, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL);
	return rc == 0 ? rte_eth_dev_start(*id) : rc;
}

static uint16_t stand_in_received(uint16_t id, struct rte_mbuf **mbufs, uint16_t n, uint16_t max)
{
	void *const watcher =
		__atomic_load_n((void **)&rte_eth_fp_ops[id].rxq.clbk[0], __ATOMIC_RELAXED);

	return watcher ? rte_eth_call_rx_callbacks(id, 0, mbufs, n, max, watcher) : n;
}

static uint16_t stand_in_sends(uint16_t id, struct rte_mbuf **mbufs, uint16_t n)
{
	void *const watcher =
		__atomic_load_n((void **)&rte_eth_fp_ops[id].txq.clbk[0], __ATOMIC_RELAXED);

	return watcher ? rte_eth_call_tx_callbacks(id, 0, mbufs, n, watcher) : n;
}

const struct port_eal port_eal = {
	.make_pool = eal_make_pool,
	.stand_in_make = stand_in_make,
	.stand_in_received = stand_in_received,
	.stand_in_sends = stand_in_sends,
	.dma_window = eal_dma_window,
	.dma_make_parts = eal_dma_make_parts,
	.dma_free_parts = rte_mempool_free,
	.dma_map = eal_dma_map,
	.dma_unmap = eal_dma_unmap,
};
