/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/rq.c. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "posters.h"
#include "queue/rq.h"
#include "test.h"
#include "queues.h"

static int post(struct rq *rq, uint64_t wr_id, struct ibv_sge *sges, int num_sge)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sges, .num_sge = num_sge}, *bad = NULL;
	const int rc = rq_post(rq, &wr, &bad);

	assert_ptr_equal(bad, rc == 0 ? NULL : &wr);
	return rc;
}

TEST(rq_init__grants_at_least_what_was_asked_for)
{
	struct rq rq;

	assert_int_equal(rq_init(&rq, UINT32_MAX, 1), -EINVAL);
	assert_int_equal(rq_init(&rq, 1, UINT32_MAX), -EINVAL);
	assert_int_equal(rq_init(&rq, 5, 3), 0);
	assert_true(rq.max_wr >= 5);
	assert_int_equal(rq.max_sge, 3);
	for (uint32_t i = 0; i < rq.max_wr; i++)
		assert_int_equal(post(&rq, i, NULL, 0), 0);
	assert_int_equal(post(&rq, 0, NULL, 0), ENOMEM);
	rq_fini(&rq);
}

TEST(rq_init__a_queue_of_0_takes_nothing)
{
	struct rq rq;

	assert_int_equal(rq_init(&rq, 0, 0), 0);
	assert_int_equal(post(&rq, 0, NULL, 0), ENOMEM);
	assert_null(rq_head(&rq));
	rq_fini(&rq);
}

TEST(rq_post__copies_the_request)
{
	struct ibv_sge sges[3] = {{.addr = 1, .length = UINT32_MAX, .lkey = 2},
				  {.addr = 3, .length = 0, .lkey = 4},
				  {.addr = 5, .length = UINT32_MAX, .lkey = 6}};
	const struct ibv_sge copy[3] = {sges[0], sges[1], sges[2]};
	struct recv_wqe *wqe;
	struct rq rq;

	assert_int_equal(rq_init(&rq, 2, 3), 0);
	assert_int_equal(post(&rq, 77, sges, 3), 0);
	sges[0].addr = 0; /* the application's again */
	wqe = rq_head(&rq);
	assert_non_null(wqe);
	assert_int_equal(wqe->wr_id, 77);
	assert_int_equal(wqe->num_sge, 3);
	assert_int_equal(wqe->length, 2 * (uint64_t)UINT32_MAX);
	assert_memory_equal(wqe->sge, copy, sizeof(copy));
	rq_pop(&rq);
	assert_null(rq_head(&rq));
	rq_fini(&rq);
}

TEST(rq_post__bad_lists_are_refused)
{
	struct ibv_sge sges[3] = {{0}};
	struct rq rq;

	assert_int_equal(rq_init(&rq, 2, 2), 0);
	assert_int_equal(post(&rq, 0, sges, 3), EINVAL);
	assert_int_equal(post(&rq, 0, sges, -1), EINVAL);
	assert_int_equal(post(&rq, 0, NULL, 1), EINVAL);
	assert_null(rq_head(&rq));
	assert_int_equal(post(&rq, 0, sges, 2), 0);
	rq_fini(&rq);
}

TEST(rq_post__what_stands_before_the_bad_one_is_posted)
{
	struct ibv_recv_wr wrs[3] = {
		{.wr_id = 0, .next = &wrs[1]}, {.wr_id = 1, .next = &wrs[2]}, {.wr_id = 2}};
	struct ibv_recv_wr *bad = NULL;
	struct rq rq;

	assert_int_equal(rq_init(&rq, 2, 1), 0);
	assert_int_equal(rq_post(&rq, NULL, &bad), 0);
	assert_int_equal(rq_post(&rq, wrs, &bad), ENOMEM);
	assert_ptr_equal(bad, &wrs[2]);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(rq_head(&rq)->wr_id, i);
		rq_pop(&rq);
	}
	assert_null(rq_head(&rq));
	rq_fini(&rq);
}

TEST(rq_post__counters_may_wrap)
{
	struct rq rq;

	assert_int_equal(rq_init(&rq, 4, 1), 0);
	rq.prod = rq.cons = UINT32_MAX - 1;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(post(&rq, i, NULL, 0), 0);
	assert_int_equal(post(&rq, 4, NULL, 0), ENOMEM);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(rq_head(&rq)->wr_id, i);
		rq_pop(&rq);
	}
	assert_null(rq_head(&rq));
	rq_fini(&rq);
}

/* Change to a ring of another size while `count` requests are posted, the first one at `cons`. */
static void change_ring(uint32_t max_wr, uint32_t cons, uint32_t count, uint32_t new_max_wr,
			int result)
{
	struct ibv_sge sge = {.length = 1, .lkey = 2};
	const struct recv_wqe *wqe;
	struct rq_ring ring;
	struct rq rq;

	assert_int_equal(rq_init(&rq, max_wr, 1), 0);
	rq.prod = rq.cons = cons;
	for (uint32_t i = 0; i < count; i++) {
		sge.addr = 100 + i;
		assert_int_equal(post(&rq, i, &sge, 1), 0);
	}
	assert_int_equal(rq_make_ring(&rq, new_max_wr, &ring), 0);
	assert_int_equal(rq_change_ring(&rq, &ring), result);
	assert_int_equal(rq.max_wr, result == 0 ? new_max_wr : max_wr);
	assert_int_equal(ring.slots, result == 0 ? max_wr : new_max_wr);
	ring_free(&ring.memory);
	for (uint32_t i = count; i < rq.max_wr; i++)
		assert_int_equal(post(&rq, i, &sge, 1), 0);
	assert_int_equal(post(&rq, 0, &sge, 1), ENOMEM);
	for (uint32_t i = 0; i < rq.max_wr; i++) {
		wqe = rq_head(&rq);
		assert_non_null(wqe);
		assert_int_equal(wqe->wr_id, i);
		assert_int_equal(wqe->num_sge, 1);
		if (i < count)
			assert_int_equal(wqe->sge[0].addr, 100 + i);
		rq_pop(&rq);
	}
	assert_null(rq_head(&rq));
	rq_fini(&rq);
}

/* The indices stay, so a request may have another place in the new ring: it may stand behind the
 * end of the old one, and the requests may wrap in one ring only. */
TEST(rq_change_ring__keeps_what_is_posted)
{
	for (uint32_t cons = 0; cons < 16; cons++) {
		change_ring(4, cons, 4, 8, 0);
		change_ring(4, cons, 3, 16, 0);
		change_ring(8, cons, 2, 2, 0);
		change_ring(8, cons, 4, 4, 0);
		change_ring(8, cons, 5, 4, -EINVAL);
	}
	change_ring(4, UINT32_MAX - 1, 4, 8, 0);
}

TEST(rq_clear__drops_everything)
{
	struct rq rq;

	assert_int_equal(rq_init(&rq, 2, 1), 0);
	assert_int_equal(post(&rq, 0, NULL, 0), 0);
	assert_int_equal(post(&rq, 1, NULL, 0), 0);
	rq_clear(&rq);
	assert_null(rq_head(&rq));
	assert_int_equal(post(&rq, 2, NULL, 0), 0);
	assert_int_equal(rq_head(&rq)->wr_id, 2);
	rq_fini(&rq);
}

/* The entry's address repeats the id, and its length the number. */
static void post_many(void *queue, uint64_t id)
{
	for (uint32_t i = 0; i < POSTS; i++, id++) {
		struct ibv_sge sge = {.addr = id, .length = i};
		struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
		struct ibv_recv_wr *bad;

		while (rq_post(queue, &wr, &bad) != 0)
			sched_yield();
	}
}

TEST(rq_post__threads_keep_their_order)
{
	struct rq rq;
	struct posters posters = {.post = post_many, .queue = &rq};

	assert_int_equal(rq_init(&rq, 1024, 1), 0);
	posters_start(&posters);
	for (uint32_t n = 0; n < POSTS_OF_ALL;) {
		const struct recv_wqe *wqe = rq_head(&rq);

		if (!wqe) {
			sched_yield();
			continue;
		}
		posters_expect(&posters, wqe->wr_id);
		assert_int_equal(wqe->sge[0].addr, wqe->wr_id);
		assert_int_equal(wqe->length, POSTED_NTH(wqe->wr_id));
		rq_pop(&rq);
		n++;
	}
	posters_join(&posters);
	assert_null(rq_head(&rq));
	rq_fini(&rq);
}
