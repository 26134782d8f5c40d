/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the pool of a program's own of pmd/attach/client_pool.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "client.h"
#include "port/port.h"
#include "test.h"

#define MBUFS 64
#define BYTES 4096

static struct port port;

static int set_up(TEST_STATE)
{
	port = (struct port){.mbufs = MBUFS, .mbuf_bytes = BYTES};
	return client_make_private_pool(&port);
}

static int tear_down(TEST_STATE)
{
	free(port.pool->pool_data);
	free(port.pool);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Each byte of each buffer is its own. */
TEST(client_make_private_pool__all_buffers_are_whole)
{
	struct rte_mbuf *mbufs[MBUFS], *more;

	assert_int_equal(rte_pktmbuf_alloc_bulk(port.pool, mbufs, MBUFS), 0);
	for (int i = 0; i < MBUFS; i++) {
		assert_int_equal(rte_pktmbuf_tailroom(mbufs[i]), BYTES);
		memset(rte_pktmbuf_mtod(mbufs[i], void *), i, BYTES);
	}
	for (int i = 0; i < MBUFS; i++) {
		const uint8_t *data = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);

		assert_ptr_equal(mbufs[i]->pool, port.pool);
		for (int byte = 0; byte < BYTES; byte++)
			assert_int_equal(data[byte], i);
	}
	assert_int_not_equal(rte_pktmbuf_alloc_bulk(port.pool, &more, 1), 0);
	rte_pktmbuf_free_bulk(mbufs, MBUFS);
	assert_int_equal(rte_pktmbuf_alloc_bulk(port.pool, mbufs, MBUFS), 0);
}

/* DPDK has few places, and its drivers take most of them. */
TEST(client_register_ops__takes_one_place_for_all_pools)
{
	uint32_t ours = 0;

	assert_int_equal(client_register_ops(), 0);
	for (uint32_t i = 0; i < rte_mempool_ops_table.num_ops; i++)
		ours += strncmp(rte_mempool_ops_table.ops[i].name, "uroce_", 6) == 0;
	assert_int_equal(ours, 1);
}

TEST(client_make_private_pool__gives_the_buffer_freed_last)
{
	struct rte_mbuf *first[2], *again;

	assert_int_equal(rte_pktmbuf_alloc_bulk(port.pool, first, 2), 0);
	rte_pktmbuf_free(first[0]);
	assert_int_equal(rte_pktmbuf_alloc_bulk(port.pool, &again, 1), 0);
	assert_ptr_equal(again, first[0]);
	assert_int_equal(rte_pktmbuf_headroom(again), RTE_PKTMBUF_HEADROOM);
}

/* The buffers are the parent's only, so that it need not copy a page that it writes. */
TEST(client_make_private_pool__a_child_has_no_buffers)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(port.pool);
	unsigned char present;
	void *at = (void *)((uintptr_t)mbuf & ~(page - 1));
	int status;
	pid_t child;

	assert_non_null(mbuf);
	assert_int_equal(mincore(at, page, &present), 0);
	child = fork();
	if (child == 0)
		_exit(mincore(at, page, &present) == -1 && errno == ENOMEM ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}
