/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of all packet buffers: a memory file that processes map, and the port's pool over it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>

#include "base/log.h"
#include "server.h"

#define POOL_CACHE  256
#define POOL_OPS    "stack" /* gives the buffer freed last, so few are in use */
#define OWN_BUFFERS 4096    /* for the port and for bursts under way */

static uint32_t arena_buffers(void)
{
	return OWN_BUFFERS + SERVE_SLOTS_MAX * SHARE_HELD_MAX;
}

int arena_create(struct server *server, uint32_t room_bytes)
{
	const uint32_t stride = RTE_CACHE_LINE_ROUNDUP(room_bytes);
	const uint32_t buffers = arena_buffers();
	const size_t bytes = RTE_ALIGN_CEIL((size_t)buffers * stride, (size_t)getpagesize());
	void *memory;
	int rc;

	server->arena_fd = memfd_create("uroced-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (server->arena_fd < 0)
		return -errno;
	/* Sealed: nobody who has the descriptor can make it shorter under our feet. */
	if (ftruncate(server->arena_fd, (off_t)bytes) != 0 ||
	    fcntl(server->arena_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, server->arena_fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	/* Where the system gives huge pages to shared memory, they are welcome. */
	madvise(memory, bytes, MADV_HUGEPAGE);
	server->arena = memory;
	server->buffer_stride = stride;
	server->mbufs = calloc(buffers, sizeof(server->mbufs[0]));
	rc = server->mbufs ? ledger_init(&server->ledger, buffers, room_bytes, SERVE_SLOTS_MAX)
			   : -ENOMEM;
	return rc;
}

static void note_mbuf(struct rte_mempool *pool, void *arg, void *object, unsigned int index)
{
	struct server *server = arg;
	struct rte_mbuf *mbuf = object;

	(void)pool, (void)index;
	server->mbufs[arena_buffer(server, mbuf)] = mbuf;
}

int arena_make_pool(struct port *port)
{
	struct server *server = port->make_pool_arg;
	const struct rte_pktmbuf_extmem memory = {
		.buf_ptr = server->arena,
		.buf_iova = (rte_iova_t)(uintptr_t)server->arena,
		.buf_len = (size_t)server->ledger.buffers * server->buffer_stride,
		.elt_size = (uint16_t)server->buffer_stride,
	};
	char name[RTE_MEMPOOL_NAMESIZE];

	rte_mbuf_set_user_mempool_ops(POOL_OPS);
	snprintf(name, sizeof(name), "uroced_%u", server->number);
	port->pool = rte_pktmbuf_pool_create_extbuf(name, server->ledger.buffers, POOL_CACHE, 0,
						    (uint16_t)server->ledger.buffer_bytes,
						    SOCKET_ID_ANY, &memory, 1);
	if (!port->pool) {
		log_error("no memory for %u packet buffers: %s", server->ledger.buffers,
			  rte_strerror(rte_errno));
		return -ENOMEM;
	}
	rte_mempool_obj_iter(port->pool, note_mbuf, server);
	return 0;
}

void arena_destroy(struct server *server)
{
	if (server->arena)
		munmap(server->arena,
		       RTE_ALIGN_CEIL((size_t)server->ledger.buffers * server->buffer_stride,
				      (size_t)getpagesize()));
	if (server->arena_fd >= 0)
		close(server->arena_fd);
	ledger_fini(&server->ledger);
	free(server->mbufs);
}
