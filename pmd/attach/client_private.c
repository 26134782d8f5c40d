/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of an isolated process: packet buffers in memory of its own. It is made without EAL,
 * which a child after fork() could not start a second time. The pool gives the buffer that was
 * freed last, so few are in use, and they stay in the cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_mempool.h>
#include <rte_spinlock.h>

#include "base/log.h"
#include "client.h"
#include "port/port.h"

#define HUGE_BYTES ((size_t)2 << 20)
#define HUGE_SHIFT 21

struct private_pool {
	struct rte_mempool *pool;
	uint8_t *memory; /* an mbuf and its buffer for each index */
	size_t stride;
	uint32_t room;	     /* bytes of a buffer */
	rte_spinlock_t lock; /* the engines of a device free each other's buffers */
	uint32_t count;	     /* of free */
	uint32_t free[];
};

static int private_enqueue(struct rte_mempool *pool, void *const *objects, unsigned int n)
{
	struct private_pool *own = pool->pool_data;

	rte_spinlock_lock(&own->lock);
	for (unsigned int i = 0; i < n; i++)
		own->free[own->count++] =
			(uint32_t)((size_t)((const uint8_t *)objects[i] - own->memory) /
				   own->stride);
	rte_spinlock_unlock(&own->lock);
	return 0;
}

static int private_dequeue(struct rte_mempool *pool, void **objects, unsigned int n)
{
	struct private_pool *own = pool->pool_data;

	rte_spinlock_lock(&own->lock);
	if (own->count < n) {
		rte_spinlock_unlock(&own->lock);
		return -ENOBUFS;
	}
	for (unsigned int i = 0; i < n; i++) {
		uint8_t *place = own->memory + own->free[--own->count] * own->stride;
		struct rte_mbuf *mbuf = (struct rte_mbuf *)place;

		client_prepare_mbuf(mbuf, pool, place + sizeof(*mbuf), own->room);
		objects[i] = mbuf;
	}
	rte_spinlock_unlock(&own->lock);
	return 0;
}

static unsigned int private_count(const struct rte_mempool *pool)
{
	const struct private_pool *own = pool->pool_data;

	return own->count;
}

static const struct client_pool_kind private_pool_kind = {
	.enqueue = private_enqueue,
	.dequeue = private_dequeue,
	.get_count = private_count,
};

/* Return memory in huge pages, or NULL. The pages are touched: only then a cgroup's limit shows,
 * otherwise later as SIGBUS. Linux before 5.14 does not know this request. */
static uint8_t *map_huge(size_t len)
{
	void *memory = mmap(
		NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | HUGE_SHIFT << MAP_HUGE_SHIFT, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	if (madvise(memory, len, MADV_POPULATE_WRITE) == 0 || errno == EINVAL)
		return memory;
	munmap(memory, len);
	return NULL;
}

/* A child of fork() has no use for the buffers, and must not make the parent copy them. */
static uint8_t *map_memory(size_t bytes)
{
	const size_t len = RTE_ALIGN_CEIL(bytes, HUGE_BYTES);
	uint8_t *memory = map_huge(len);

	if (!memory) {
		memory =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return NULL;
		(void)madvise(memory, len, MADV_HUGEPAGE);
	}
	(void)madvise(memory, len, MADV_DONTFORK);
	(void)madvise(memory, len, MADV_DONTDUMP);
	return memory;
}

int client_make_private_pool(struct port *port)
{
	const uint32_t room = port->mbuf_bytes + RTE_PKTMBUF_HEADROOM;
	const size_t stride =
		RTE_ALIGN_CEIL(sizeof(struct rte_mbuf) + room, (size_t)RTE_CACHE_LINE_SIZE);
	struct private_pool *own;
	int rc = client_register_ops();

	if (rc != 0)
		return rc;
	own = calloc(1, sizeof(*own) + port->mbufs * sizeof(own->free[0]));
	if (own)
		own->pool = client_new_pool(&private_pool_kind, own, port->mbufs, room);
	if (own && own->pool)
		own->memory = map_memory(port->mbufs * stride);
	if (!own || !own->memory) {
		log_error("no memory for %zu MiB of packet buffers", port->mbufs * stride >> 20);
		free(own ? own->pool : NULL);
		free(own);
		return -ENOMEM;
	}
	own->stride = stride;
	own->room = room;
	while (own->count < port->mbufs) {
		own->free[own->count] = port->mbufs - 1 - own->count;
		own->count++;
	}
	port->pool = own->pool;
	return 0;
}
