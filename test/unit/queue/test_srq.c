/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/srq.c. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/srq.h"
#include "wire/build.h"
#include "test.h"
#include "queues.h"

static unsigned int told;

static void tell(void *user)
{
	assert_ptr_equal(user, &told);
	told++;
}

static struct srq *make(uint32_t max_wr)
{
	struct srq *srq;

	assert_int_equal(srq_create(max_wr, 1, NULL, &srq), 0);
	srq->low = tell;
	srq->user = &told;
	told = 0;
	return srq;
}

static void post(struct srq *srq, unsigned int count)
{
	while (count-- > 0) {
		struct ibv_recv_wr wr = {0}, *bad;

		assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	}
}

static void take(struct srq *srq)
{
	assert_non_null(rq_head(&srq->rq));
	rq_pop(&srq->rq);
	srq_taken(srq);
}

TEST(srq_create__refuses_what_no_message_can_use)
{
	struct srq *srq;

	assert_int_equal(srq_create(0, 1, NULL, &srq), -EINVAL);
	assert_int_equal(srq_create(1, PACKET_FRAGS_MAX + 1, NULL, &srq), -EINVAL);
	assert_int_equal(srq_create(1, PACKET_FRAGS_MAX, NULL, &srq), 0);
	assert_int_equal(srq_destroy(srq), 0);
}

TEST(srq_destroy__not_while_queue_pairs_use_it)
{
	struct srq *srq = make(4);

	srq->users = 1;
	assert_int_equal(srq_destroy(srq), -EBUSY);
	srq->users = 0;
	assert_int_equal(srq_destroy(srq), 0);
}

TEST(srq_set_limit__within_the_queue)
{
	struct srq *srq = make(4);

	assert_int_equal(srq_limit(srq), 0);
	assert_int_equal(srq_set_limit(srq, srq->rq.max_wr + 1), -EINVAL);
	assert_int_equal(srq_limit(srq), 0);
	assert_int_equal(srq_set_limit(srq, srq->rq.max_wr), 0);
	assert_int_equal(srq_limit(srq), srq->rq.max_wr);
	assert_int_equal(srq_destroy(srq), 0);
}

/* ibv_modify_srq(3): once, when fewer than the limit are left; then it is disarmed. */
TEST(srq_taken__tells_once_below_the_limit)
{
	struct srq *srq = make(8);

	post(srq, 6);
	take(srq);
	assert_int_equal(told, 0);
	assert_int_equal(srq_set_limit(srq, 3), 0);
	take(srq);
	take(srq);
	assert_int_equal(told, 0);
	take(srq);
	assert_int_equal(told, 1);
	assert_int_equal(srq_limit(srq), 0);
	take(srq);
	assert_int_equal(told, 1);
	assert_int_equal(srq_set_limit(srq, 2), 0);
	take(srq);
	assert_int_equal(told, 2);
	assert_int_equal(srq_destroy(srq), 0);
}

TEST(srq_taken__a_limit_of_zero_is_none)
{
	struct srq *srq = make(4);

	post(srq, 2);
	assert_int_equal(srq_set_limit(srq, 2), 0);
	assert_int_equal(srq_set_limit(srq, 0), 0);
	take(srq);
	take(srq);
	assert_int_equal(told, 0);
	assert_int_equal(srq_destroy(srq), 0);
}
