/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of packet buffers for tests of pmd/mbuf. */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include <rte_mempool.h>

#define STRIDE (sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + POOL_ROOM)

#define POOLS_MAX 4

static struct rte_mempool *pools[POOLS_MAX];
static uint32_t pool_count;

struct list {
	void *memory; /* of all buffers */
	uint32_t count;
	void *free[];
};

static int list_put(struct rte_mempool *pool, void *const *objects, unsigned int n)
{
	struct list *list = pool->pool_data;

	memcpy(&list->free[list->count], objects, n * sizeof(objects[0]));
	list->count += n;
	return 0;
}

static int list_get(struct rte_mempool *pool, void **objects, unsigned int n)
{
	struct list *list = pool->pool_data;

	if (list->count < n)
		return -1;
	list->count -= n;
	memcpy(objects, &list->free[list->count], n * sizeof(objects[0]));
	return 0;
}

static unsigned int list_count(const struct rte_mempool *pool)
{
	return ((const struct list *)pool->pool_data)->count;
}

static int list_alloc(struct rte_mempool *pool)
{
	return pool->pool_data ? 0 : -1;
}

uint32_t pool_has(const struct rte_mempool *pool)
{
	return list_count(pool);
}

static void fill(struct rte_mempool *pool, struct list *list, uint32_t size)
{
	uint8_t *memory = aligned_alloc(RTE_CACHE_LINE_SIZE, size * STRIDE);

	list->memory = memory;
	memset(memory, 0, size * STRIDE);
	for (uint32_t i = 0; i < size; i++) {
		struct rte_mbuf *mbuf = (void *)(memory + i * STRIDE);

		mbuf->pool = pool;
		mbuf->buf_addr = mbuf + 1;
		mbuf->buf_len = RTE_PKTMBUF_HEADROOM + POOL_ROOM;
		mbuf->nb_segs = 1;
		rte_mbuf_refcnt_set(mbuf, 1);
		list->free[list->count++] = mbuf;
	}
}

struct rte_mempool *pool_make(uint32_t size)
{
	static const struct rte_mempool_ops ops = {.name = "list",
						   .alloc = list_alloc,
						   .enqueue = list_put,
						   .dequeue = list_get,
						   .get_count = list_count};
	const size_t bytes = sizeof(struct rte_mempool) + sizeof(struct rte_pktmbuf_pool_private);
	struct rte_mempool *pool =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_CACHE_LINE_ROUNDUP(bytes));
	struct list *list = calloc(1, sizeof(*list) + size * sizeof(list->free[0]));

	memset(pool, 0, bytes);
	(void)rte_mempool_register_ops(&ops); /* by the first pool */
	pool->size = size;
	pool->private_data_size = sizeof(struct rte_pktmbuf_pool_private);
	if (rte_mempool_set_ops_byname(pool, ops.name, NULL) != 0)
		return NULL;
	pool->pool_data = list;
	fill(pool, list, size);
	pools[pool_count++] = pool;
	return pool;
}

void pool_free_all(void)
{
	while (pool_count > 0) {
		struct rte_mempool *pool = pools[--pool_count];
		struct list *list = pool->pool_data;

		free(list->memory);
		free(list);
		free(pool);
	}
}

struct rte_mbuf *pool_packet(struct rte_mempool *pool, uint32_t len, uint8_t first)
{
	struct rte_mbuf *head = rte_pktmbuf_alloc(pool), *last = head;

	for (uint32_t i = 0; i < len; i++) {
		if (rte_pktmbuf_tailroom(last) == 0) {
			last->next = rte_pktmbuf_alloc(pool);
			last = last->next;
			head->nb_segs++;
		}
		*rte_pktmbuf_mtod_offset(last, uint8_t *, last->data_len) = (uint8_t)(first + i);
		last->data_len++;
		head->pkt_len++;
	}
	return head;
}
