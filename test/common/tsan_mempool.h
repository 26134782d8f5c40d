/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells the thread sanitizer about DPDK's pools. The compiler includes it in each file of such a
 * build. An element that one thread puts back and another one gets is handed over by the pool's
 * ring or stack, which is in DPDK's libraries, and these are not built with the sanitizer. So it
 * would report each first write to a packet buffer. Pools with operations of our own tell nothing
 * here.
 */
#ifndef TEST_COMMON_TSAN_MEMPOOL_H
#define TEST_COMMON_TSAN_MEMPOOL_H

#include <string.h>

/* the sanitizer's runtime */
void __tsan_acquire(void *address);
void __tsan_release(void *address);

/* Stand for DPDK's header of the same guard, whose trace points are in the right places. */
#define _RTE_MEMPOOL_TRACE_FP_H_

#define TSAN_IS_DPDK_POOL(pool)                                                   \
	(strncmp(rte_mempool_get_ops((pool)->ops_index)->name, "ring", 4) == 0 || \
	 strncmp(rte_mempool_get_ops((pool)->ops_index)->name, "stack", 5) == 0)
#define rte_mempool_trace_generic_put(pool, ...) \
	(TSAN_IS_DPDK_POOL(pool) ? __tsan_release(pool) : (void)0)
#define rte_mempool_trace_generic_get(pool, ...) \
	(TSAN_IS_DPDK_POOL(pool) ? __tsan_acquire(pool) : (void)0)

/* These calls are elsewhere, or in DPDK's libraries (below). */
#define rte_mempool_trace_ops_dequeue_bulk(...)		 ((void)0)
#define rte_mempool_trace_ops_dequeue_contig_blocks(...) ((void)0)
#define rte_mempool_trace_ops_enqueue_bulk(...)		 ((void)0)
#define rte_mempool_trace_put_bulk(...)			 ((void)0)
#define rte_mempool_trace_get_bulk(...)			 ((void)0)
#define rte_mempool_trace_get_contig_blocks(...)	 ((void)0)
#define rte_mempool_trace_default_cache(...)		 ((void)0)
#define rte_mempool_trace_cache_flush(...)		 ((void)0)

#if __has_include(<rte_mbuf.h>)
#include <rte_mbuf.h>

/* The function itself is in a library of DPDK. */
static inline void tsan_free_bulk(struct rte_mbuf **mbufs, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		for (const struct rte_mbuf *mbuf = mbufs[i]; mbuf; mbuf = mbuf->next) {
			if (TSAN_IS_DPDK_POOL(mbuf->pool))
				__tsan_release(mbuf->pool);
		}
	}
	rte_pktmbuf_free_bulk(mbufs, count);
}

#define rte_pktmbuf_free_bulk tsan_free_bulk
#endif

#endif
