/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of DPDK's mempool library that its inline functions need: the table of operations, and
 * the calling thread's lcore. A program without EAL has pools of its own kind only
 * (attach/client_pool.c), and no lcores.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

struct rte_mempool_ops_table rte_mempool_ops_table = {.sl = RTE_SPINLOCK_INITIALIZER};

RTE_DEFINE_PER_LCORE(unsigned int, _lcore_id) = LCORE_ID_ANY;

static int find_ops(const char *name)
{
	for (uint32_t i = 0; i < rte_mempool_ops_table.num_ops; i++) {
		if (strcmp(rte_mempool_ops_table.ops[i].name, name) == 0)
			return (int)i;
	}
	return -ENOENT;
}

/* Return the index of the operations in the table, or -errno. */
int rte_mempool_register_ops(const struct rte_mempool_ops *ops)
{
	int rc = -ENOSPC;

	rte_spinlock_lock(&rte_mempool_ops_table.sl);
	if (find_ops(ops->name) >= 0) {
		rc = -EEXIST;
	} else if (rte_mempool_ops_table.num_ops < RTE_MEMPOOL_MAX_OPS_IDX) {
		rc = (int)rte_mempool_ops_table.num_ops;
		rte_mempool_ops_table.ops[rc] = *ops;
		rte_mempool_ops_table.num_ops++;
	}
	rte_spinlock_unlock(&rte_mempool_ops_table.sl);
	return rc;
}

int rte_mempool_set_ops_byname(struct rte_mempool *pool, const char *name, void *pool_config)
{
	const int index = find_ops(name);

	if (index < 0)
		return -EINVAL;
	pool->ops_index = index;
	pool->pool_config = pool_config;
	return 0;
}

/* What DPDK's headers assert does not hold: a pool has operations that nobody registered. */
void __rte_panic(const char *function, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "uroce: %s: ", function);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	abort();
}
