/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. */
#include <fcntl.h>
#include <limits.h>

#include "queue/cq.h"

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

static void complete(struct ibv_cq *cq, uint64_t wr_id)
{
	const struct ibv_wc wc = {.wr_id = wr_id, .status = IBV_WC_SUCCESS};

	assert_int_equal(cq_push(face_cq(cq)->cq, &wc, false), 0);
}

TEST(create_cq__has_at_least_the_size_asked_for)
{
	int mine;
	struct ibv_cq *cq = ibv_create_cq(*state, 100, &mine, NULL, 0);

	assert_non_null(cq);
	assert_true(cq->cqe >= 100);
	assert_ptr_equal(cq->context, *state);
	assert_ptr_equal(cq->cq_context, &mine);
	assert_null(cq->channel);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(create_cq__checks_its_arguments)
{
	struct ibv_context *other = fake_open();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(other);
	struct ibv_device_attr limits;

	assert_int_equal(ibv_query_device(*state, &limits), 0);
	errno = 0;
	assert_null(ibv_create_cq(*state, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(*state, -1, NULL, NULL, 0));
	assert_null(ibv_create_cq(*state, limits.max_cqe + 1, NULL, NULL, 0));
	assert_null(ibv_create_cq(*state, 1, NULL, NULL, 1));
	assert_null(ibv_create_cq(*state, 1, NULL, NULL, -1));
	errno = 0;
	assert_null(ibv_create_cq(*state, 1, NULL, channel, 0));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

TEST(create_cq__tells_of_no_more_than_there_may_be)
{
	struct ibv_device_attr limits;
	struct ibv_cq *cq;

	assert_int_equal(ibv_query_device(*state, &limits), 0);
	cq = ibv_create_cq(*state, limits.max_cqe, NULL, NULL, 0);
	assert_non_null(cq);
	assert_int_equal(cq->cqe, limits.max_cqe);
	assert_int_equal(ibv_resize_cq(cq, cq->cqe), 0);
	assert_int_equal(cq->cqe, limits.max_cqe);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(poll_cq__runs_the_engine_when_there_is_less_than_asked_for)
{
	struct ibv_cq *cq = ibv_create_cq(*state, 8, NULL, NULL, 0);
	struct ibv_wc wc[4];

	assert_int_equal(ibv_poll_cq(cq, 4, wc), 0);
	assert_int_equal(fake.polls, 1);
	for (uint64_t i = 0; i < 5; i++)
		complete(cq, i);
	assert_int_equal(fake.found, 0);
	assert_int_equal(ibv_poll_cq(cq, 4, wc), 4);
	assert_int_equal(fake.polls, 1);
	assert_int_equal(fake.found, 4);
	assert_int_equal(wc[3].wr_id, 3);
	assert_int_equal(ibv_poll_cq(cq, 4, wc), 1);
	assert_int_equal(fake.polls, 2);
	assert_int_equal(fake.found, 4);
	assert_int_equal(wc[0].wr_id, 4);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(poll_cq__of_nothing_or_less)
{
	struct ibv_cq *cq = ibv_create_cq(*state, 8, NULL, NULL, 0);
	struct ibv_wc wc;

	complete(cq, 1);
	assert_int_equal(ibv_poll_cq(cq, 0, &wc), 0);
	assert_true(ibv_poll_cq(cq, -1, &wc) < 0);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(resize_cq__keeps_what_is_in_it)
{
	struct ibv_cq *cq = ibv_create_cq(*state, 4, NULL, NULL, 0);
	struct ibv_wc wc;

	complete(cq, 42);
	assert_int_equal(ibv_resize_cq(cq, 500), 0);
	assert_true(cq->cqe >= 500);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 42);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(resize_cq__refuses_less_than_is_in_it)
{
	struct ibv_cq *cq = ibv_create_cq(*state, 4, NULL, NULL, 0);
	const int cqe = cq->cqe;

	complete(cq, 1);
	complete(cq, 2);
	assert_int_equal(ibv_resize_cq(cq, 1), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, -1), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, INT_MAX), EINVAL);
	assert_int_equal(cq->cqe, cqe);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(destroy_cq__is_busy_while_queue_pairs_use_it)
{
	struct fake_pair pair = fake_pair_create(*state);

	assert_int_equal(ibv_destroy_cq(pair.cq), EBUSY);
	fake_pair_destroy(&pair);
}

static bool fired(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *user;

	if (ibv_get_cq_event(channel, &cq, &user) != 0)
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

TEST(modify_cq__moderates_events)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	struct ibv_cq *cq = ibv_create_cq(*state, 64, NULL, channel, 0);
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_count = 3, .cq_period = 5}};
	struct ibv_wc wc[3];

	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	complete(cq, 1);
	complete(cq, 2);
	assert_false(fired(channel));
	complete(cq, 3);
	assert_true(fired(channel));
	assert_int_equal(ibv_poll_cq(cq, 3, wc), 3);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	complete(cq, 4);
	moderator_expire(&device_first(fake.device)->moderator,
			 *device_first(fake.device)->now_ns + 4999);
	assert_false(fired(channel));
	moderator_expire(&device_first(fake.device)->moderator,
			 *device_first(fake.device)->now_ns + 5000);
	assert_true(fired(channel));
	attr.moderate = (struct ibv_moderate_cq){0};
	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
	assert_int_equal(ibv_poll_cq(cq, 3, wc), 1);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	complete(cq, 5);
	assert_true(fired(channel));
	attr.attr_mask = 0;
	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
	attr.attr_mask = 1u << 31;
	assert_int_equal(ibv_modify_cq(cq, &attr), EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}
