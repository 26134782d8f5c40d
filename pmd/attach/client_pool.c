/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of an attached process. Its buffers are those of the arena that the owner gave to the
 * process; its mbufs are the process's own.
 *
 * It is a rte_mempool without EAL: only the members that are used (the operations, the size of the
 * buffers) are filled in here. It gives the buffer that was freed last, so few are in use. A
 * surplus goes back to the owner.
 * When buffers run short, the pool takes those that the owner put into the ring of free buffers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_bitops.h>
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

#define POOL_OPS  "uroce_attach"
#define CACHE_MAX 512 /* empty buffers that are kept */
/* The same, as a part of the buffers that the process may hold. As many may wait in the ring of
 * free buffers, and the rest is for packets that it receives. */
#define CACHE_PART  3
#define CACHE_BATCH 64

static void client_return(struct share_client *client, uint32_t n)
{
	uint64_t words[CACHE_BATCH];
	uint32_t put;

	n = RTE_MIN(n, (uint32_t)CACHE_BATCH);
	for (uint32_t i = 0; i < n; i++)
		words[i] = share_pack(&(struct share_packet){
			.buffer = client->cache[client->cache_count - 1 - i]});
	put = share_ring_put(&client->rings[SHARE_RING_RETURN], words, n);
	client->cache_count -= put;
}

void client_keep(struct share_client *client, uint32_t buffer)
{
	client->cache[client->cache_count++] = buffer;
}

static int pool_enqueue(struct rte_mempool *pool, void *const *objects, unsigned int n)
{
	struct share_client *client = pool->pool_data;

	for (unsigned int i = 0; i < n; i++)
		client_keep(client,
			    (uint32_t)((const struct rte_mbuf *)objects[i] - client->mbufs));
	if (client->cache_count > client->cache_max)
		client_return(client, client->cache_count - client->cache_max / 2);
	return 0;
}

/* Take more empty buffers from the owner. Returns how many. Engine's thread or lock. */
static uint32_t client_refill_cache(struct share_client *client)
{
	uint64_t words[CACHE_BATCH];
	const uint32_t n = share_ring_take(&client->rings[SHARE_RING_FREE], words, CACHE_BATCH);

	for (uint32_t i = 0; i < n; i++) {
		const struct share_packet packet = share_unpack(words[i]);

		if (packet.buffer < client->buffers)
			client_keep(client, packet.buffer);
	}
	return n;
}

static int pool_dequeue(struct rte_mempool *pool, void **objects, unsigned int n)
{
	struct share_client *client = pool->pool_data;

	while (client->cache_count < n && client_refill_cache(client) > 0)
		;
	if (unlikely(client->cache_count < n)) {
		/* The owner gives more when it is awake. Packets of the socket do not wake it. */
		client_wake_owner(client);
		return -ENOBUFS;
	}
	for (unsigned int i = 0; i < n; i++)
		objects[i] = client_mbuf(client, client->cache[--client->cache_count]);
	return 0;
}

static unsigned int pool_count(const struct rte_mempool *pool)
{
	const struct share_client *client = pool->pool_data;

	return client->cache_count;
}

static const struct client_pool_kind shared_pool_kind = {
	.enqueue = pool_enqueue,
	.dequeue = pool_dequeue,
	.get_count = pool_count,
};

/* DPDK has room for 16 sets of operations, and Debian's drivers take 14 of them. So there is one
 * set for all kinds of pools. */

static const struct client_pool_kind *kind_of(const struct rte_mempool *pool)
{
	return pool->pool_config;
}

static int kind_alloc(struct rte_mempool *pool)
{
	return pool->pool_data ? 0 : -EINVAL;
}

static int kind_enqueue(struct rte_mempool *pool, void *const *objects, unsigned int n)
{
	return kind_of(pool)->enqueue(pool, objects, n);
}

static int kind_dequeue(struct rte_mempool *pool, void **objects, unsigned int n)
{
	return kind_of(pool)->dequeue(pool, objects, n);
}

static unsigned int kind_count(const struct rte_mempool *pool)
{
	return kind_of(pool)->get_count(pool);
}

static const struct rte_mempool_ops pool_ops = {
	.name = POOL_OPS,
	.alloc = kind_alloc,
	.enqueue = kind_enqueue,
	.dequeue = kind_dequeue,
	.get_count = kind_count,
};

struct rte_mbuf *client_mbuf(struct share_client *client, uint32_t buffer)
{
	struct rte_mbuf *mbuf = &client->mbufs[buffer];

	client_prepare_mbuf(mbuf, client->pool,
			    client->arena + (size_t)buffer * client->buffer_stride,
			    client->buffer_bytes);
	return mbuf;
}

struct rte_mempool *client_new_pool(const struct client_pool_kind *kind, void *data, uint32_t size,
				    uint32_t room)
{
	struct rte_pktmbuf_pool_private *private;
	struct rte_mempool *pool;
	const size_t bytes = sizeof(*pool) + sizeof(*private);

	pool = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_CACHE_LINE_ROUNDUP(bytes));
	if (!pool)
		return NULL;
	memset(pool, 0, bytes);
	pool->size = size;
	pool->populated_size = size;
	pool->elt_size = sizeof(struct rte_mbuf);
	pool->private_data_size = sizeof(*private);
	pool->socket_id = SOCKET_ID_ANY;
	private = rte_mempool_get_priv(pool);
	private->mbuf_data_room_size = (uint16_t)room;
	if (rte_mempool_set_ops_byname(pool, POOL_OPS, (void *)(uintptr_t)kind) != 0) {
		free(pool);
		return NULL;
	}
	pool->pool_data = data;
	return pool;
}

/*
 * Register the operations. A constructor must not do this, because DPDK identifies operations by
 * the order of their registration. A DPDK secondary process (engine/owning.c) must have the same
 * order as its primary, and it uses none of these operations.
 */
int client_register_ops(void)
{
	static bool registered;

	if (registered)
		return 0;
	if (rte_mempool_register_ops(&pool_ops) < 0)
		return -ENOSPC;
	registered = true;
	return 0;
}

void client_forget_buffers(struct share_client *client, uint32_t quota)
{
	client->quota = quota;
	client->cache_max = RTE_MIN((uint32_t)CACHE_MAX, quota / CACHE_PART);
	client->cache_count = 0;
}

int client_make_pool(struct share_client *client)
{
	const int rc = client_register_ops();

	if (rc != 0)
		return rc;
	client_forget_buffers(client, client->quota);
	client->cache = malloc(client->buffers * sizeof(client->cache[0]));
	client->pool =
		client_new_pool(&shared_pool_kind, client, client->buffers, client->buffer_bytes);
	if (client->cache && client->pool)
		return 0;
	free(client->pool);
	free(client->cache);
	return -ENOMEM;
}
