/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the pool without EAL of pmd/owner/arena.c: this process does not start EAL. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include "arena.h"
#include "server.h"
#include "test.h"
#include "wire/build.h"

#define HELD 64

static struct server server;
static uint32_t buffers;

static int setup(TEST_STATE)
{
	struct port *port = &server.uplink.link.port;

	memset(&server, 0, sizeof(server));
	server.slots.max = 2;
	server.arena.held_max = HELD;
	server.arena.without_eal = true;
	port->mbuf_bytes = PACKET_FRAME_MAX;
	port->make_pool_arg = &server;
	if (arena_make_pool(port) != 0)
		return -1;
	buffers = server.arena.ownership.buffers;
	return 0;
}

static int teardown(TEST_STATE)
{
	arena_destroy(&server);
	return 0;
}

TEST_FIXTURE(setup, teardown);

TEST(arena_create_plain_pool__gives_every_buffer_once)
{
	struct rte_mempool *pool = server.uplink.link.port.pool;
	struct rte_mbuf **mbufs = test_calloc(buffers, sizeof(mbufs[0]));

	assert_int_equal(rte_mempool_avail_count(pool), buffers);
	for (uint32_t i = 0; i < buffers; i++) {
		mbufs[i] = rte_pktmbuf_alloc(pool);
		assert_non_null(mbufs[i]);
		/* so a buffer that is given twice is noticed */
		assert_int_equal(mbufs[i]->data_len, 0);
		rte_pktmbuf_append(mbufs[i], PACKET_FRAME_MAX);
		assert_int_equal(mbufs[i]->data_len, PACKET_FRAME_MAX);
		assert_ptr_equal(server.arena.mbufs[arena_buffer(&server, mbufs[i])], mbufs[i]);
		memset(rte_pktmbuf_mtod(mbufs[i], void *), (int)i, PACKET_FRAME_MAX);
	}
	assert_null(rte_pktmbuf_alloc(pool));
	assert_int_equal(rte_mempool_avail_count(pool), 0);
	for (uint32_t i = 0; i < buffers; i++)
		assert_int_equal(*rte_pktmbuf_mtod(mbufs[i], const uint8_t *), (uint8_t)i);
	rte_pktmbuf_free_bulk(mbufs, buffers);
	assert_int_equal(rte_mempool_avail_count(pool), buffers);
	test_free(mbufs);
}

TEST(arena_create_plain_pool__gives_the_buffer_freed_last)
{
	struct rte_mempool *pool = server.uplink.link.port.pool;
	struct rte_mbuf *first = rte_pktmbuf_alloc(pool), *second = rte_pktmbuf_alloc(pool);

	rte_pktmbuf_free(second);
	rte_pktmbuf_free(first);
	assert_ptr_equal(rte_pktmbuf_alloc(pool), first);
	assert_ptr_equal(rte_pktmbuf_alloc(pool), second);
	/* Nothing was made for the others. */
	assert_null(server.arena.mbufs[buffers - 1]);
}
