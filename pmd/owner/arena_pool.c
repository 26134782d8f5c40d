/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arena's pool in a process without EAL. It makes the mbuf of a buffer when the buffer is taken
 * for the first time, because most buffers of an owner are never used, and gives the one that was
 * freed last. Only the owner's thread uses it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_mempool.h>

#include "arena.h"
#include "server.h"

#define POOL_OPS "uroced_plain"

struct plain_pool {
	struct server *server;
	struct rte_mbuf *mbufs; /* by buffer number */
	void **free;		/* those that were used before */
	uint32_t free_count;
	uint32_t made; /* mbufs that exist: the first ones */
	size_t bytes;  /* of the memory of `mbufs` and `free` */
};

static struct rte_mbuf *plain_make_mbuf(struct rte_mempool *pool, struct plain_pool *plain)
{
	struct server *server = plain->server;
	const uint32_t buffer = plain->made++;
	struct rte_mbuf *mbuf = &plain->mbufs[buffer];

	mbuf->pool = pool;
	mbuf->buf_addr = server->arena.memory + (size_t)buffer * server->arena.stride;
	mbuf->buf_len = (uint16_t)server->arena.ownership.buffer_bytes;
	mbuf->nb_segs = 1;
	rte_mbuf_refcnt_set(mbuf, 1);
	server->arena.mbufs[buffer] = mbuf;
	return mbuf;
}

static int plain_put(struct rte_mempool *pool, void *const *objects, unsigned int n)
{
	struct plain_pool *plain = pool->pool_data;

	memcpy(&plain->free[plain->free_count], objects, n * sizeof(objects[0]));
	plain->free_count += n;
	return 0;
}

static int plain_get(struct rte_mempool *pool, void **objects, unsigned int n)
{
	struct plain_pool *plain = pool->pool_data;

	while (plain->free_count < n && plain->made < pool->size)
		plain->free[plain->free_count++] = plain_make_mbuf(pool, plain);
	if (plain->free_count < n)
		return -ENOBUFS;
	for (unsigned int i = 0; i < n; i++)
		objects[i] = plain->free[--plain->free_count];
	return 0;
}

static unsigned int plain_count(const struct rte_mempool *pool)
{
	const struct plain_pool *plain = pool->pool_data;

	return plain->free_count + pool->size - plain->made;
}

static int plain_alloc(struct rte_mempool *pool)
{
	return pool->pool_data ? 0 : -EINVAL;
}

static int plain_register(void)
{
	static const struct rte_mempool_ops ops = {
		.name = POOL_OPS,
		.alloc = plain_alloc,
		.enqueue = plain_put,
		.dequeue = plain_get,
		.get_count = plain_count,
	};
	const int rc = rte_mempool_register_ops(&ops);

	return rc < 0 && rc != -EEXIST ? rc : 0;
}

/* Map the memory of the mbufs and of the list. Pages that are never used cost nothing. */
static int plain_map(struct plain_pool *plain, uint32_t buffers)
{
	const size_t list_bytes = buffers * sizeof(plain->free[0]);
	const size_t mbufs_bytes = buffers * sizeof(plain->mbufs[0]);
	uint8_t *memory = mmap(NULL, mbufs_bytes + list_bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	plain->bytes = mbufs_bytes + list_bytes;
	plain->mbufs = (struct rte_mbuf *)memory;
	plain->free = (void **)(memory + mbufs_bytes);
	return 0;
}

struct rte_mempool *arena_create_plain_pool(struct server *server)
{
	const size_t bytes = sizeof(struct rte_mempool) + sizeof(struct rte_pktmbuf_pool_private);
	struct rte_mempool *pool =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_CACHE_LINE_ROUNDUP(bytes));
	struct plain_pool *plain = calloc(1, sizeof(*plain));
	struct rte_pktmbuf_pool_private *private;

	if (!pool || !plain || plain_register() != 0 ||
	    plain_map(plain, server->arena.ownership.buffers) != 0)
		goto fail;
	memset(pool, 0, bytes);
	plain->server = server;
	pool->size = pool->populated_size = server->arena.ownership.buffers;
	pool->elt_size = sizeof(struct rte_mbuf);
	pool->private_data_size = sizeof(*private);
	pool->socket_id = SOCKET_ID_ANY;
	private = rte_mempool_get_priv(pool);
	private->mbuf_data_room_size = (uint16_t)server->arena.ownership.buffer_bytes;
	if (rte_mempool_set_ops_byname(pool, POOL_OPS, NULL) != 0)
		goto fail;
	pool->pool_data = plain;
	return pool;
fail:
	if (plain && plain->mbufs)
		munmap(plain->mbufs, plain->bytes);
	free(plain);
	free(pool);
	rte_errno = ENOMEM;
	return NULL;
}

void arena_destroy_plain_pool(struct rte_mempool *pool)
{
	struct plain_pool *plain = pool->pool_data;

	munmap(plain->mbufs, plain->bytes);
	free(plain);
	free(pool);
}
