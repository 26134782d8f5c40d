/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/mbuf/mbuf.c. */
#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>

#include "pool.h"
#include "test.h"

#define MANY 150 /* more than go back to a pool at once */

static int tear_down(TEST_STATE)
{
	pool_free_all();
	return 0;
}

TEST_FIXTURE(NULL, tear_down);

static void check_bytes(const struct rte_mbuf *mbuf, uint32_t len, uint8_t first)
{
	uint8_t bytes[256];
	const uint8_t *at = rte_pktmbuf_read(mbuf, 0, len, bytes);

	assert_int_equal(mbuf->pkt_len, len);
	assert_non_null(at);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(at[i], (uint8_t)(first + i));
}

TEST(rte_pktmbuf_free_bulk__of_chains_of_several_pools)
{
	struct rte_mempool *pools[] = {pool_make(MANY * 3), pool_make(MANY * 3)};
	struct rte_mbuf *mbufs[MANY];

	for (uint32_t i = 0; i < MANY; i++)
		mbufs[i] = pool_packet(pools[i % 7 == 0], i % 3 * POOL_ROOM + 1, 0);
	mbufs[5] = NULL;
	rte_pktmbuf_free_bulk(mbufs, MANY);
	/* but for the packet that was not passed */
	assert_int_equal(pool_has(pools[0]), MANY * 3 - 3);
	assert_int_equal(pool_has(pools[1]), MANY * 3);
	rte_pktmbuf_free_bulk(mbufs, 0);
}

TEST(rte_pktmbuf_free_bulk__leaves_what_others_hold)
{
	struct rte_mempool *pool = pool_make(4);
	struct rte_mbuf *mbuf = pool_packet(pool, 10, 0);

	rte_mbuf_refcnt_update(mbuf, 1);
	rte_pktmbuf_free_bulk(&mbuf, 1);
	assert_int_equal(pool_has(pool), 3);
	rte_pktmbuf_free_bulk(&mbuf, 1);
	assert_int_equal(pool_has(pool), 4);
}

TEST(rte_pktmbuf_read__across_segments)
{
	struct rte_mbuf *mbuf = pool_packet(pool_make(4), 3 * POOL_ROOM, 0);
	uint8_t bytes[3 * POOL_ROOM];
	const uint8_t *at;

	/* in place, if one segment has all of it */
	at = rte_pktmbuf_read(mbuf, POOL_ROOM + 3, POOL_ROOM - 3, bytes);
	assert_ptr_equal(at, rte_pktmbuf_mtod_offset(mbuf->next, const uint8_t *, 3));
	at = rte_pktmbuf_read(mbuf, POOL_ROOM - 1, POOL_ROOM + 2, bytes);
	assert_ptr_equal(at, bytes);
	assert_int_equal(bytes[0], POOL_ROOM - 1);
	assert_int_equal(bytes[POOL_ROOM + 1], 2 * POOL_ROOM);
	assert_null(rte_pktmbuf_read(mbuf, 1, 3 * POOL_ROOM, bytes));
	assert_null(rte_pktmbuf_read(mbuf, 3 * POOL_ROOM + 1, 1, bytes));
	assert_null(__rte_pktmbuf_read(mbuf, 2, UINT32_MAX, bytes));
}

TEST(rte_pktmbuf_copy__of_a_part)
{
	struct rte_mempool *pool = pool_make(8);
	struct rte_mbuf *mbuf = pool_packet(pool, 3 * POOL_ROOM, 7), *copy;

	mbuf->port = 42;
	mbuf->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	copy = rte_pktmbuf_copy(mbuf, pool, POOL_ROOM - 2, POOL_ROOM + 10);
	check_bytes(copy, POOL_ROOM + 10, 7 + POOL_ROOM - 2);
	assert_int_equal(copy->nb_segs, 2);
	assert_int_equal(copy->port, 42);
	assert_true(copy->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	rte_pktmbuf_free(copy);
	copy = rte_pktmbuf_copy(mbuf, pool, 1, UINT32_MAX);
	check_bytes(copy, 3 * POOL_ROOM - 1, 8);
	rte_pktmbuf_free(copy);
	assert_null(rte_pktmbuf_copy(mbuf, pool, 3 * POOL_ROOM, 1));
	check_bytes(mbuf, 3 * POOL_ROOM, 7);
	rte_pktmbuf_free(mbuf);
	assert_int_equal(pool_has(pool), 8);
}

TEST(rte_pktmbuf_copy__without_memory)
{
	struct rte_mempool *pool = pool_make(5);
	struct rte_mbuf *mbuf = pool_packet(pool, 3 * POOL_ROOM, 0);

	/* The third buffer of the copy is missing. */
	assert_null(rte_pktmbuf_copy(mbuf, pool, 0, UINT32_MAX));
	assert_int_equal(pool_has(pool), 2);
}
