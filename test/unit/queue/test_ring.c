/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/ring.c, and of what each queue does with an allocator's memory. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "queue/cq.h"
#include "queue/ring.h"
#include "queue/sq.h"
#include "queue/srq.h"
#include "test.h"

#define BLOCKS_MAX 8

/* An allocator that remembers what it gave. */
static struct {
	void *blocks[BLOCKS_MAX];
	size_t bytes[BLOCKS_MAX];
	enum ring_kind kinds[BLOCKS_MAX];
	unsigned int allocs;
	unsigned int frees;
	int rc;		 /* what alloc answers */
	bool declines;	 /* it leaves the memory to the heap */
	size_t misalign; /* bytes */
} source;

static int source_alloc(void *user, size_t bytes, size_t alignment, enum ring_kind kind,
			void **memory)
{
	uint8_t *block = NULL;

	assert_ptr_equal(user, &source);
	assert_true(source.allocs < BLOCKS_MAX);
	assert_true(bytes > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0);
	if (source.rc != 0 || source.declines)
		return source.rc;
	assert_int_equal(posix_memalign((void **)&block, alignment, bytes + source.misalign), 0);
	memset(block, 0, bytes + source.misalign);
	source.bytes[source.allocs] = bytes;
	source.kinds[source.allocs] = kind;
	source.blocks[source.allocs++] = block + source.misalign;
	*memory = block + source.misalign;
	return 0;
}

static void source_free(void *user, void *memory, enum ring_kind kind)
{
	assert_ptr_equal(user, &source);
	for (unsigned int i = 0; i < source.allocs; i++) {
		if (source.blocks[i] != memory)
			continue;
		assert_int_equal(source.kinds[i], kind);
		source.blocks[i] = NULL;
		source.frees++;
		free((uint8_t *)memory - source.misalign);
		return;
	}
	fail_msg("freed what was not given");
}

static const struct ring_allocator allocator = {
	.alloc = source_alloc, .free = source_free, .user = &source};
static const struct queue_domain domain = {.allocator = &allocator};

static int set_up(TEST_STATE)
{
	memset(&source, 0, sizeof(source));
	return 0;
}

static int tear_down(TEST_STATE)
{
	assert_int_equal(source.frees, source.allocs);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static bool is_in_block(unsigned int i, const void *at)
{
	const uint8_t *block = source.blocks[i];

	return (const uint8_t *)at >= block && (const uint8_t *)at < block + source.bytes[i];
}

TEST(ring_alloc__without_a_domain_is_the_heaps)
{
	const struct queue_domain none = {.allocator = NULL};
	struct ring_memory memory;

	assert_int_equal(ring_alloc(NULL, 4096, RING_SEND, &memory), 0);
	assert_non_null(memory.base);
	assert_int_equal((uintptr_t)memory.base % RTE_CACHE_LINE_SIZE, 0);
	ring_free(&memory);
	assert_null(memory.base);
	ring_free(&memory);
	assert_int_equal(ring_alloc(&none, 4096, RING_SEND, &memory), 0);
	ring_free(&memory);
}

TEST(ring_alloc__asks_the_allocator)
{
	struct ring_memory memory;

	assert_int_equal(ring_alloc(&domain, 640, RING_RECV, &memory), 0);
	assert_ptr_equal(memory.base, source.blocks[0]);
	assert_int_equal(source.bytes[0], 640);
	assert_int_equal(source.kinds[0], RING_RECV);
	ring_free(&memory);
	assert_int_equal(source.frees, 1);
	ring_free(&memory);
	assert_int_equal(source.frees, 1);
}

TEST(ring_alloc__what_the_allocator_declines_is_the_heaps)
{
	struct ring_memory memory;

	source.declines = true;
	assert_int_equal(ring_alloc(&domain, 640, RING_SEND, &memory), 0);
	memset(memory.base, 0xff, 640);
	ring_free(&memory);
	assert_int_equal(source.frees, 0);
}

TEST(ring_alloc__fails_as_the_allocator_does)
{
	struct ring_memory memory;

	source.rc = -ENOMEM;
	assert_int_equal(ring_alloc(&domain, 640, RING_SEND, &memory), -ENOMEM);
	ring_free(&memory);
	assert_int_equal(source.frees, 0);
}

TEST(ring_alloc__gives_back_what_is_not_aligned)
{
	struct ring_memory memory;

	source.misalign = 8;
	assert_int_equal(ring_alloc(&domain, 640, RING_SEND, &memory), -ENOMEM);
	assert_int_equal(source.allocs, 1);
	assert_int_equal(source.frees, 1);
	ring_free(&memory);
}

TEST(sq_init__is_in_the_allocators_memory)
{
	const struct sq_attr attr = {
		.max_wr = 5,
		.max_sge = 2,
		.max_inline = 100,
		.type = IBV_QPT_RC,
	};
	struct sq sq;

	assert_int_equal(sq_init_in(&domain, &sq, &attr), 0);
	assert_int_equal(source.kinds[0], RING_SEND);
	assert_true(is_in_block(0, sq_at(&sq, 0)));
	assert_true(is_in_block(0, (uint8_t *)sq_at(&sq, sq.attr.max_wr - 1) + sq.stride - 1));
	sq_fini(&sq);
	source.rc = -ENOMEM;
	assert_int_equal(sq_init_in(&domain, &sq, &attr), -ENOMEM);
	sq_fini(&sq);
}

TEST(rq_change_ring__gives_the_old_one_back)
{
	struct ibv_recv_wr wr = {.wr_id = 7}, *bad;
	struct rq_ring ring;
	struct rq rq;

	assert_int_equal(rq_init_in(&domain, RING_RECV, &rq, 4, 1), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rq_post(&rq, &wr, &bad), 0);
	assert_int_equal(rq_make_ring(&rq, 0, &ring), -EINVAL);
	assert_int_equal(rq_make_ring(&rq, 2, &ring), 0);
	assert_int_equal(rq_change_ring(&rq, &ring), -EINVAL);
	ring_free(&ring.memory);
	assert_ptr_equal(rq.ring, source.blocks[0]);

	assert_int_equal(rq_make_ring(&rq, 9, &ring), 0);
	assert_int_equal(rq_change_ring(&rq, &ring), 0);
	assert_ptr_equal(rq.ring, source.blocks[2]);
	assert_ptr_equal(ring.memory.base, source.blocks[0]);
	ring_free(&ring.memory);
	assert_int_equal(rq.max_wr, 16);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rq_head(&rq)->wr_id, 7);
		rq_pop(&rq);
	}
	assert_null(rq_head(&rq));
	rq_fini(&rq);
}

TEST(srq_create_in__is_in_the_allocators_memory)
{
	struct srq *srq;

	assert_int_equal(srq_create_in(&domain, 4, 1, NULL, &srq), 0);
	assert_int_equal(source.kinds[0], RING_SHARED_RECV);
	assert_ptr_equal(srq->rq.ring, source.blocks[0]);
	assert_int_equal(srq_destroy(srq), 0);
	source.rc = -ENOMEM;
	assert_int_equal(srq_create_in(&domain, 4, 1, NULL, &srq), -ENOMEM);
}

TEST(cq_create_in__is_in_the_allocators_memory_with_its_stamps)
{
	const uint64_t clock_ns = 17;
	const struct cq_attr attr = {.cqe = 3, .stamp_ns = &clock_ns, .domain = &domain};
	const struct ibv_wc wc = {.wr_id = 5};
	struct ibv_wc polled;
	uint64_t stamp_ns = 0;
	struct cq_ring ring;
	struct cq *cq;

	assert_int_equal(cq_create_in(&attr, &cq), 0);
	assert_int_equal(source.allocs, 1);
	assert_int_equal(source.kinds[0], RING_COMPLETION);
	assert_true(is_in_block(0, cq->ring.entries));
	assert_true(is_in_block(0, (uint8_t *)&cq->ring.stamps[cq->ring.mask + 1] - 1));
	assert_int_equal(cq_push(cq, &wc, false), 0);
	assert_int_equal(cq_make_ring(cq, 8, &ring), 0);
	assert_int_equal(cq_change_ring(cq, &ring), 0);
	assert_ptr_equal(ring.memory.base, source.blocks[0]);
	ring_free(&ring.memory);
	assert_true(cq_poll_stamped(cq, &polled, &stamp_ns));
	assert_int_equal(polled.wr_id, 5);
	assert_int_equal(stamp_ns, 17);
	assert_int_equal(cq_destroy(cq), 0);
	source.rc = -ENOMEM;
	assert_int_equal(cq_create_in(&attr, &cq), -ENOMEM);
}

/* The test holds each lock, as another thread would for ever. */
TEST(queues__of_one_thread_take_no_lock)
{
	const struct queue_domain single = {.single_threaded = true};
	const struct sq_attr sq_attr = {.max_wr = 4, .max_sge = 1, .type = IBV_QPT_RC};
	const struct cq_attr cq_attr = {.cqe = 4, .domain = &single};
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_wc wc = {0};
	struct cq *cq;
	struct sq sq;
	struct rq rq;

	assert_int_equal(sq_init_in(&single, &sq, &sq_attr), 0);
	assert_int_equal(rq_init_in(&single, RING_RECV, &rq, 4, 1), 0);
	assert_int_equal(cq_create_in(&cq_attr, &cq), 0);
	rte_spinlock_lock(&sq.lock.spin);
	rte_spinlock_lock(&rq.lock.spin);
	rte_spinlock_lock(&cq->lock.spin);
	assert_int_equal(sq_post(&sq, IBV_QPT_RC, &send, &bad_send), 0);
	assert_int_equal(rq_post(&rq, &recv, &bad_recv), 0);
	assert_int_equal(cq_push(cq, &wc, false), 0);
	assert_int_equal(cq_poll(cq, 1, &wc), 1);
	assert_true(rte_spinlock_is_locked(&sq.lock.spin));
	assert_true(rte_spinlock_is_locked(&rq.lock.spin));
	assert_true(rte_spinlock_is_locked(&cq->lock.spin));
	sq_fini(&sq);
	rq_fini(&rq);
	assert_int_equal(cq_destroy(cq), 0);
}
