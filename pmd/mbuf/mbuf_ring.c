/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of DPDK's ring library that are not inline, for rings of one producer and one
 * consumer in memory of the caller. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ring.h>

ssize_t rte_ring_get_memsize(unsigned int count)
{
	if (count == 0 || !rte_is_power_of_2(count))
		return -EINVAL;
	return (ssize_t)RTE_ALIGN(sizeof(struct rte_ring) + count * sizeof(void *),
				  (size_t)RTE_CACHE_LINE_SIZE);
}

int rte_ring_init(struct rte_ring *ring, const char *name, unsigned int count, unsigned int flags)
{
	if (count == 0 || !rte_is_power_of_2(count) || flags != (RING_F_SP_ENQ | RING_F_SC_DEQ))
		return -EINVAL;
	memset(ring, 0, sizeof(*ring));
	snprintf(ring->name, sizeof(ring->name), "%s", name);
	ring->flags = (int)flags;
	ring->prod.sync_type = RTE_RING_SYNC_ST;
	ring->cons.sync_type = RTE_RING_SYNC_ST;
	ring->size = count;
	ring->mask = count - 1;
	ring->capacity = ring->mask;
	return 0;
}
