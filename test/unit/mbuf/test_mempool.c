/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/mbuf/mbuf.c. */
#include <errno.h>
#include <stdio.h>

#include <rte_lcore.h>
#include <rte_mempool.h>

#include "test.h"

TEST(rte_mempool_register_ops__until_the_table_is_full)
{
	struct rte_mempool_ops ops = {0};
	struct rte_mempool pool = {0};
	int config;

	for (int i = 0; i < RTE_MEMPOOL_MAX_OPS_IDX; i++) {
		snprintf(ops.name, sizeof(ops.name), "kind %d", i);
		assert_int_equal(rte_mempool_register_ops(&ops), i);
	}
	assert_int_equal(rte_mempool_register_ops(&ops), -EEXIST);
	snprintf(ops.name, sizeof(ops.name), "one more");
	assert_int_equal(rte_mempool_register_ops(&ops), -ENOSPC);
	assert_int_equal(rte_mempool_set_ops_byname(&pool, "kind 3", &config), 0);
	assert_int_equal(pool.ops_index, 3);
	assert_ptr_equal(pool.pool_config, &config);
	assert_int_equal(rte_mempool_set_ops_byname(&pool, "one more", NULL), -EINVAL);
}

TEST(rte_lcore_id__is_none)
{
	assert_int_equal(rte_lcore_id(), LCORE_ID_ANY);
}
