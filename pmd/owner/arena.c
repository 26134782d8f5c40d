/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of all packet buffers: a memory file that processes map, and the port's pool over it.
 *
 * A port that does DMA reads and writes this memory by itself. Behind an IOMMU the whole memory
 * file is mapped for the port, and no other memory of the processes. Without an IOMMU the memory
 * must keep its physical addresses, as huge pages do. Then a buffer must lie inside one huge page;
 * the numbers of buffers that do not are not used.
 */
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include "base/log.h"
#include "port/dma.h"
#include "server.h"

#define PLAIN_POOL_OPS "uroced_plain"

/*
 * The arena's pool in a process without EAL. It makes the mbuf of a buffer when the buffer is taken
 * for the first time, because most buffers of an owner are never used, and gives the one that was
 * freed last. Only the owner's thread uses it.
 */
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
		.name = PLAIN_POOL_OPS,
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

static struct rte_mempool *arena_create_plain_pool(struct server *server)
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
	if (rte_mempool_set_ops_byname(pool, PLAIN_POOL_OPS, NULL) != 0)
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

static void arena_destroy_plain_pool(struct rte_mempool *pool)
{
	struct plain_pool *plain = pool->pool_data;

	munmap(plain->mbufs, plain->bytes);
	free(plain);
	free(pool);
}

#define POOL_CACHE  256
#define POOL_OPS    "stack" /* gives the buffer freed last, so few are in use */
#define OWN_BUFFERS 4096    /* for the port and for bursts that are being forwarded */
#define HUGE_BYTES  ((size_t)2 << 20)

uint32_t arena_held_min(const struct server *server)
{
	return RTE_MIN(server->arena.held_max, (uint32_t)SHARE_HELD_MIN);
}

uint32_t arena_buffers(const struct server *server)
{
	const uint32_t full = RTE_MIN(server->slots.max, SERVER_FULL_SHARES);
	const uint32_t others = server->slots.max - full;

	return OWN_BUFFERS + server->arena.held_back + full * server->arena.held_max +
	       others * arena_held_min(server);
}

/* Make the memory file and map it. 0 or -errno; after an error arena_destroy frees what was
 * made. */
static int arena_map(struct server *server, size_t page_bytes, unsigned int flags)
{
	const size_t bytes =
		RTE_ALIGN_CEIL((size_t)arena_buffers(server) * server->arena.stride, page_bytes);
	void *memory;

	server->arena.fd = memfd_create("uroced-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	if (server->arena.fd < 0)
		return -errno;
	/* Seal the file: no process that has the descriptor can make it shorter while we use it. */
	if (ftruncate(server->arena.fd, (off_t)bytes) != 0 ||
	    fcntl(server->arena.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, server->arena.fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	/* A core file needs no packets, which are also those of other programs. */
	madvise(memory, bytes, MADV_DONTDUMP);
	server->arena.memory = memory;
	server->arena.bytes = bytes;
	return 0;
}

static void arena_unmap(struct server *server)
{
	if (server->arena.memory)
		munmap(server->arena.memory, server->arena.bytes);
	if (server->arena.fd >= 0)
		close(server->arena.fd);
	server->arena.memory = NULL;
	server->arena.fd = -1;
}

/* Map huge pages and allocate them now, so that a limit that forbids them shows here. */
static int arena_map_huge(struct server *server)
{
	int rc = arena_map(server, HUGE_BYTES, MFD_HUGETLB | MFD_HUGE_2MB);

	if (rc == 0 && madvise(server->arena.memory, server->arena.bytes, MADV_POPULATE_WRITE) != 0)
		rc = -errno;
	if (rc != 0)
		arena_unmap(server);
	return rc;
}

static int arena_map_plain(struct server *server)
{
	const int rc = arena_map(server, (size_t)getpagesize(), 0);

	/* Use huge pages if the system gives them to shared memory. */
	if (rc == 0)
		madvise(server->arena.memory, server->arena.bytes, MADV_HUGEPAGE);
	return rc;
}

static int arena_create(struct server *server, uint32_t room_bytes, enum port_dma dma)
{
	const uint32_t buffers = arena_buffers(server);
	int rc = -ENOMEM;

	server->arena.stride = RTE_CACHE_LINE_ROUNDUP(room_bytes);
	if (dma != PORT_COPIES)
		rc = arena_map_huge(server);
	if (rc != 0 && dma == PORT_DMA_PHYSICAL) {
		log_error("a port without an IOMMU needs its packet buffers in huge pages of 2 "
			  "MiB: provide %zu more of them, or fewer with --max-buffers, or bind the "
			  "port to vfio-pci",
			  (size_t)buffers * server->arena.stride / HUGE_BYTES + 1);
		return rc;
	}
	if (rc != 0)
		rc = arena_map_plain(server);
	server->arena.mbufs = calloc(buffers, sizeof(server->arena.mbufs[0]));
	if (rc == 0)
		rc = server->arena.mbufs
			     ? ownership_init(&server->arena.ownership, buffers, room_bytes,
					      SERVE_SLOTS_MAX, arena_held_min(server))
			     : -ENOMEM;
	if (rc != 0)
		log_error("no memory for packet buffers: %s", strerror(-rc));
	return rc;
}

/* Describe the whole buffers between two offsets. Returns how many there are; 0 is possible. */
static uint32_t arena_piece(const struct server *server, size_t begin, size_t end, rte_iova_t iova,
			    struct rte_pktmbuf_extmem *piece)
{
	const size_t first = (begin + server->arena.stride - 1) / server->arena.stride;
	const size_t last =
		RTE_MIN(end / server->arena.stride, (size_t)server->arena.ownership.buffers);
	const size_t at = first * server->arena.stride;

	if (last <= first)
		return 0;
	*piece = (struct rte_pktmbuf_extmem){
		.buf_ptr = server->arena.memory + at,
		.buf_iova = iova + (at - begin),
		.buf_len = (last - first) * server->arena.stride,
		.elt_size = (uint16_t)server->arena.stride,
	};
	return (uint32_t)(last - first);
}

/* Describe the buffers in each huge page, with the page's physical address. Returns how many
 * buffers. */
static uint32_t arena_find_pages(const struct server *server, struct rte_pktmbuf_extmem *pieces,
				 unsigned int *count)
{
	uint32_t buffers = 0, n;

	*count = 0;
	for (size_t at = 0; at < server->arena.bytes; at += HUGE_BYTES) {
		const rte_iova_t iova = rte_mem_virt2iova(server->arena.memory + at);

		if (iova == RTE_BAD_IOVA) {
			rte_errno = EPERM;
			return 0;
		}
		n = arena_piece(server, at, at + HUGE_BYTES, iova, &pieces[*count]);
		*count += n > 0;
		buffers += n;
	}
	return buffers;
}

/* Describe the buffers that the port can use. Returns how many; 0: rte_errno says why. */
static uint32_t arena_find_pieces(const struct server *server, enum port_dma dma,
				  struct rte_pktmbuf_extmem *pieces, unsigned int *count)
{
	rte_iova_t iova = (uintptr_t)server->arena.memory;

	if (dma == PORT_DMA_PHYSICAL)
		return arena_find_pages(server, pieces, count);
	if (dma == PORT_DMA_IOMMU)
		iova = dma_map_buffers(server->arena.memory, server->arena.bytes);
	if (iova == RTE_BAD_IOVA)
		return 0;
	*count = 1;
	return arena_piece(server, 0, server->arena.bytes, iova, pieces);
}

static void note_mbuf(struct rte_mempool *pool, void *arg, void *object, unsigned int index)
{
	struct server *server = arg;
	struct rte_mbuf *mbuf = object;

	(void)pool, (void)index;
	server->arena.mbufs[arena_buffer(server, mbuf)] = mbuf;
}

static struct rte_mempool *arena_create_pool(const struct server *server, enum port_dma dma)
{
	const size_t pieces_max = server->arena.bytes / HUGE_BYTES + 1;
	struct rte_pktmbuf_extmem *pieces = calloc(pieces_max, sizeof(pieces[0]));
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool = NULL;
	unsigned int count;
	uint32_t buffers;

	rte_errno = ENOMEM;
	buffers = pieces ? arena_find_pieces(server, dma, pieces, &count) : 0;
	rte_mbuf_set_user_mempool_ops(POOL_OPS);
	snprintf(name, sizeof(name), "uroced_%u", server->number);
	if (buffers > 0)
		pool = rte_pktmbuf_pool_create_extbuf(
			name, buffers, POOL_CACHE, 0,
			(uint16_t)server->arena.ownership.buffer_bytes, SOCKET_ID_ANY, pieces,
			count);
	free(pieces);
	return pool;
}

int arena_make_pool(struct port *port)
{
	struct server *server = port->make_pool_arg;
	int rc;

	/* Memory for DMA is pinned, used or not. */
	if (port->dma != PORT_COPIES)
		server->slots.max = RTE_MIN(server->slots.max, (uint16_t)SERVE_SLOTS_DMA);
	rc = arena_create(server, port->mbuf_bytes + RTE_PKTMBUF_HEADROOM, port->dma);
	if (rc != 0)
		return rc;
	if (server->arena.without_eal)
		port->pool = server->arena.plain_pool = arena_create_plain_pool(server);
	else
		port->pool = arena_create_pool(server, port->dma);
	if (!port->pool) {
		log_error("%u packet buffers cannot be used: %s", server->arena.ownership.buffers,
			  rte_strerror(rte_errno));
		return -ENOMEM;
	}
	if (!server->arena.without_eal)
		rte_mempool_obj_iter(port->pool, note_mbuf, server);
	return 0;
}

void arena_destroy(struct server *server)
{
	if (server->arena.plain_pool)
		arena_destroy_plain_pool(server->arena.plain_pool);
	arena_unmap(server);
	ownership_fini(&server->arena.ownership);
	free(server->arena.mbufs);
}
