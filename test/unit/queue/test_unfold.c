/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/unfold.c. */
#include <string.h>

#include "cq_rig.h"
#include "queue/unfold.h"

#define QPS	    3
#define COMPLETIONS 16

/* Add completions of all queue pairs in turn, from index `first` of the ring on. */
static void fill(struct cq *cq, uint32_t first)
{
	for (uint32_t i = 0; i < COMPLETIONS; i++) {
		const struct ibv_wc wc = {.wr_id = first + i, .qp_num = i % QPS};

		assert_int_equal(cq_push(cq, &wc, false), 0);
	}
}

TEST(unfold_order__changes_places_of_different_queue_pairs_only)
{
	struct ibv_wc wc[COMPLETIONS];
	unsigned int moved = 0;
	struct cq *cq;

	assert_int_equal(cq_create(COMPLETIONS, NULL, NULL, NULL, &cq), 0);
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint64_t last[QPS] = {0};

		fill(cq, 1);
		unfold_order(cq, seed);
		assert_int_equal(cq_poll(cq, COMPLETIONS, wc), COMPLETIONS);
		for (uint32_t i = 0; i < COMPLETIONS; i++) {
			assert_true(wc[i].wr_id > last[wc[i].qp_num]);
			last[wc[i].qp_num] = wc[i].wr_id;
			moved += wc[i].wr_id != i + 1;
		}
		/* Another round begins at another place of the ring. */
		fill(cq, 1);
		assert_int_equal(cq_poll(cq, 5, wc), 5);
		assert_int_equal(cq_poll(cq, COMPLETIONS, wc), COMPLETIONS - 5);
	}
	assert_true(moved > 20);
	assert_int_equal(cq_destroy(cq), 0);
}

/* A solicited completion raises an event wherever it goes. */
TEST(unfold_order__keeps_what_is_solicited, .setup = set_up_channel, .teardown = tear_down_channel)
{
	const struct ibv_wc plain = {.qp_num = 1}, solicited = {.qp_num = 2};
	struct ibv_wc wc;
	struct cq *cq;
	int user;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	for (uint64_t seed = 0; seed < 16; seed++) {
		assert_int_equal(cq_push(cq, &solicited, true), 0);
		assert_int_equal(cq_push(cq, &plain, false), 0);
		unfold_order(cq, seed);
		assert_int_equal(cq_poll(cq, 1, &wc), 1);
		if (wc.qp_num == plain.qp_num)
			assert_int_equal(events_of_arming(cq), 1);
		assert_int_equal(cq_poll(cq, 1, &wc), 1);
		assert_int_equal(events_of_arming(cq), 0);
	}
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(unfold_leave__what_is_left_raises_an_event_again, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	struct cq *cq;
	int user;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	cq_arm(cq, false);
	assert_int_equal(push(cq, 1), 0);
	assert_int_equal(events(&user), 1);
	/* Left before the queue is armed, and after. */
	unfold_leave(cq);
	assert_int_equal(events(&user), 0);
	cq_arm(cq, false);
	assert_int_equal(events(&user), 1);
	cq_arm(cq, false);
	assert_int_equal(events(&user), 0);
	unfold_leave(cq);
	assert_int_equal(events(&user), 1);
	assert_polled(cq, 1, 1);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(unfold_wake__raises_the_event_of_one_arming, .setup = set_up_channel,
     .teardown = tear_down_channel)
{
	struct cq *cq;
	int user;

	assert_int_equal(cq_create(8, &channel, &user, NULL, &cq), 0);
	unfold_wake(cq);
	assert_int_equal(events(&user), 0);
	cq_arm(cq, false);
	unfold_wake(cq);
	unfold_wake(cq);
	assert_int_equal(events(&user), 1);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(unfold_hide__receive_requests_come_back)
{
	struct ibv_recv_wr wr = {.wr_id = 7}, *bad;
	struct rq rq;

	assert_int_equal(rq_init(&rq, 4, 1), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rq_post(&rq, &wr, &bad), 0);
	rq_pop(&rq);
	unfold_hide(&rq);
	unfold_hide(&rq);
	assert_null(rq_head(&rq));
	assert_int_equal(rq_waiting(&rq), 0);
	unfold_show(&rq);
	assert_int_equal(rq_waiting(&rq), 2);
	unfold_show(&rq);
	assert_int_equal(rq_waiting(&rq), 2);
	/* A queue that is emptied hides nothing. */
	unfold_hide(&rq);
	rq_clear(&rq);
	unfold_show(&rq);
	assert_int_equal(rq_waiting(&rq), 0);
	rq_fini(&rq);
}
