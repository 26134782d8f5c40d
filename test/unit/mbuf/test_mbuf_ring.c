/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/mbuf/mbuf_ring.c. */
#include <errno.h>
#include <stdlib.h>

#include <rte_ring.h>

#include "test.h"

#define FLAGS (RING_F_SP_ENQ | RING_F_SC_DEQ)

TEST(rte_ring_init__makes_a_ring)
{
	struct rte_ring *ring = aligned_alloc(RTE_CACHE_LINE_SIZE, (size_t)rte_ring_get_memsize(8));
	int objects[8];
	void *in[8], *out[8];

	for (int i = 0; i < 8; i++)
		in[i] = &objects[i];
	assert_int_equal(rte_ring_init(ring, "ring", 8, FLAGS), 0);
	for (int lap = 0; lap < 5; lap++) {
		assert_int_equal(rte_ring_enqueue_burst(ring, in, 8, NULL), 7);
		assert_int_equal(rte_ring_enqueue_burst(ring, in, 1, NULL), 0);
		assert_int_equal(rte_ring_dequeue_burst(ring, out, 8, NULL), 7);
		for (int i = 0; i < 7; i++)
			assert_ptr_equal(out[i], in[i]);
		assert_true(rte_ring_empty(ring));
	}
	free(ring);
}

TEST(rte_ring_init__of_another_size_or_kind)
{
	struct rte_ring ring;

	assert_int_equal(rte_ring_get_memsize(7), -EINVAL);
	assert_int_equal(rte_ring_get_memsize(0), -EINVAL);
	assert_int_equal(rte_ring_init(&ring, "ring", 7, FLAGS), -EINVAL);
	assert_int_equal(rte_ring_init(&ring, "ring", 8, 0), -EINVAL);
}
