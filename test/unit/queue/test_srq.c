/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/srq.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "queue/srq.h"

static struct srq *srq;
static unsigned int lows;

static void count_low(void *user)
{
	assert_ptr_equal(user, &lows);
	lows++;
}

static int set_up(void **state)
{
	(void)state;
	lows = 0;
	if (srq_create(8, 2, NULL, &srq) != 0)
		return -1;
	srq->low = count_low;
	srq->user = &lows;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return srq_destroy(srq);
}

static void post(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		struct ibv_recv_wr wr = {.wr_id = i}, *bad;

		assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	}
}

static void take(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		assert_non_null(rq_head(&srq->rq));
		rq_pop(&srq->rq);
		srq_taken(srq);
	}
}

static void srq_create__refuses_a_queue_of_nothing(void **state)
{
	struct srq *none;

	(void)state;
	assert_int_equal(srq_create(0, 1, NULL, &none), -EINVAL);
	assert_int_equal(srq_create(UINT32_MAX, 1, NULL, &none), -EINVAL);
}

static void srq_destroy__refuses_while_it_is_used(void **state)
{
	(void)state;
	srq->users = 1;
	assert_int_equal(srq_destroy(srq), -EBUSY);
	srq->users = 0;
}

static void srq_set_limit__refuses_more_than_there_is_room_for(void **state)
{
	(void)state;
	assert_int_equal(srq_set_limit(srq, srq->rq.max_wr + 1), -EINVAL);
	assert_int_equal(srq_limit(srq), 0);
	assert_int_equal(srq_set_limit(srq, srq->rq.max_wr), 0);
	assert_int_equal(srq_limit(srq), srq->rq.max_wr);
}

static void srq_taken__tells_once_when_fewer_than_the_limit_are_left(void **state)
{
	(void)state;
	post(6);
	assert_int_equal(srq_set_limit(srq, 3), 0);
	take(3);
	assert_int_equal(lows, 0);
	take(1);
	assert_int_equal(lows, 1);
	assert_int_equal(srq_limit(srq), 0);
	take(2);
	assert_int_equal(lows, 1);
}

static void srq_taken__tells_again_when_it_is_armed_again(void **state)
{
	(void)state;
	post(4);
	assert_int_equal(srq_set_limit(srq, 4), 0);
	take(1);
	assert_int_equal(srq_set_limit(srq, 4), 0);
	take(1);
	assert_int_equal(lows, 2);
	assert_int_equal(srq_set_limit(srq, 4), 0);
	assert_int_equal(srq_set_limit(srq, 0), 0);
	take(1);
	assert_int_equal(lows, 2);
}

static void srq_resize__keeps_what_is_posted(void **state)
{
	(void)state;
	post(5);
	take(3);
	post(5);
	assert_int_equal(srq_resize(srq, 100), 0);
	assert_true(srq->rq.max_wr >= 100);
	post(93);
	for (unsigned int i = 0; i < 100; i++) {
		/* Two of the first posting, the next five, then the newest. */
		const uint64_t expected = i < 2 ? 3 + i : i < 7 ? i - 2 : i - 7;

		assert_int_equal(rq_head(&srq->rq)->wr_id, expected);
		take(1);
	}
	assert_null(rq_head(&srq->rq));
}

static void srq_resize__refuses_to_lose_anything(void **state)
{
	const uint32_t before = srq->rq.max_wr;

	(void)state;
	post(5);
	assert_int_equal(srq_resize(srq, 4), -EINVAL);
	assert_int_equal(srq_resize(srq, 0), -EINVAL);
	assert_int_equal(srq_resize(srq, UINT32_MAX), -EINVAL);
	take(3);
	assert_int_equal(srq_set_limit(srq, 5), 0);
	assert_int_equal(srq_resize(srq, 4), -EINVAL);
	assert_int_equal(srq->rq.max_wr, before);
	assert_int_equal(srq_set_limit(srq, 0), 0);
	assert_int_equal(srq_resize(srq, 4), 0);
	assert_int_equal(srq->rq.max_wr, 4);
	take(2);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(srq_create__refuses_a_queue_of_nothing),
		UNIT(srq_destroy__refuses_while_it_is_used),
		UNIT(srq_set_limit__refuses_more_than_there_is_room_for),
		UNIT(srq_taken__tells_once_when_fewer_than_the_limit_are_left),
		UNIT(srq_taken__tells_again_when_it_is_armed_again),
		UNIT(srq_resize__keeps_what_is_posted),
		UNIT(srq_resize__refuses_to_lose_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
