/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ports use of EAL, as a table. Code that also runs in programs without EAL, such as attached
 * ones, reaches EAL only through `port.eal`, so it links none of DPDK's libraries.
 */
#ifndef PORT_PORT_EAL_H
#define PORT_PORT_EAL_H

#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct dma_window;
struct port;

struct port_eal {
	/* Make the port's pool in DPDK's memory. 0 or -errno (logged). */
	int (*make_pool)(struct port *port, const char *name);

	/*
	 * The ethdev by which captures see the packets of a port that is not an ethdev
	 * (stand_in.h). `stand_in_make` sets its number. The others show packets to the captures,
	 * and return how many remain. Engine's thread, except for `stand_in_make`.
	 */
	int (*stand_in_make)(const char *ifname, struct rte_mempool *pool, uint16_t *id);
	uint16_t (*stand_in_received)(uint16_t id, struct rte_mbuf **mbufs, uint16_t n,
				      uint16_t max);
	uint16_t (*stand_in_sends)(uint16_t id, struct rte_mbuf **mbufs, uint16_t n);

	/*
	 * DMA from the application's memory (port/dma.h): the window of I/O addresses; the pool of
	 * mbufs without a buffer, NULL if memory is short; and the IOMMU's mappings, which return 0
	 * or -errno.
	 */
	struct dma_window (*dma_window)(void);
	struct rte_mempool *(*dma_make_parts)(const struct port *port);
	void (*dma_free_parts)(struct rte_mempool *parts);
	int (*dma_map)(uintptr_t addr, uint64_t iova, size_t length);
	int (*dma_unmap)(uintptr_t addr, uint64_t iova, size_t length);
};

extern const struct port_eal port_eal;

#endif
