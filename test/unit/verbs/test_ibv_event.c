/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels, asynchronous events, and what comes out of them. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "fake_provider.h"
#include "queue/cq.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

static void complete(struct ibv_cq *cq)
{
	const struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	assert_int_equal(cq_push(face_cq(cq)->cq, &wc, false), 0);
}

TEST(create__gives_a_pollable_descriptor)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	struct ibv_cq *cq = ibv_create_cq(*state, 4, NULL, channel, 0);
	struct pollfd pollfd = {.fd = channel->fd, .events = POLLIN};

	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	complete(cq);
	assert_int_equal(poll(&pollfd, 1, 0), 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

TEST(get_cq_event__returns_queue_and_context)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	int mine;
	struct ibv_cq *cq = ibv_create_cq(*state, 4, &mine, channel, 0), *got = NULL;
	const unsigned int waits = fake.waits;
	void *context = NULL;

	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(fake.waits, waits + 1);
	complete(cq);
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
	assert_int_equal(fake.waits, waits + 2);
	assert_ptr_equal(got, cq);
	assert_ptr_equal(context, &mine);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

TEST(get_cq_event__does_not_sleep_where_the_user_said_so)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* A program that polls, arms and sleeps, without a poll in between, is woken by what came after its
 * poll. */
TEST(req_notify__wakes_for_what_is_in_the_queue)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	struct ibv_cq_init_attr_ex init = {.cqe = 4, .channel = channel};
	struct ibv_cq *cq = ibv_create_cq(*state, 4, NULL, channel, 0), *got = NULL;
	struct ibv_cq_ex *ex = ibv_create_cq_ex(*state, &init);
	struct ibv_poll_cq_attr nothing = {.comp_mask = 0};
	struct pollfd pollfd = {.fd = channel->fd, .events = POLLIN};
	struct ibv_wc wc;
	void *context;

	complete(cq);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
	assert_ptr_equal(got, cq);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	/* An iterator has taken what it shows. */
	complete(ibv_cq_ex_to_cq(ex));
	complete(ibv_cq_ex_to_cq(ex));
	assert_int_equal(ibv_start_poll(ex, &nothing), 0);
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(ex), 0), 0);
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
	assert_ptr_equal(got, ibv_cq_ex_to_cq(ex));
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(ex), 0), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	ibv_end_poll(ex);
	ibv_ack_cq_events(cq, 1);
	ibv_ack_cq_events(ibv_cq_ex_to_cq(ex), 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

TEST(req_notify__without_a_channel_wakes_nobody)
{
	struct ibv_cq *cq = ibv_create_cq(*state, 4, NULL, NULL, 0);

	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(fake.waits, 0);
	complete(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(destroy__is_busy_while_queues_use_it)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	struct ibv_cq *cq = ibv_create_cq(*state, 4, NULL, channel, 0);

	assert_int_equal(channel->refcnt, 1);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(channel->refcnt, 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

struct cq_destroyer {
	struct ibv_cq *cq;
	bool done; /* atomic */
};

static void *destroy_cq_thread(void *arg)
{
	struct cq_destroyer *destroyer = arg;

	assert_int_equal(ibv_destroy_cq(destroyer->cq), 0);
	__atomic_store_n(&destroyer->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(destroy_cq__waits_until_events_are_acknowledged)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	struct cq_destroyer destroyer = {.cq = ibv_create_cq(*state, 4, NULL, channel, 0)};
	struct ibv_cq *cq = destroyer.cq;
	pthread_t thread;
	void *context;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		complete(cq);
		assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
	}
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(pthread_create(&thread, NULL, destroy_cq_thread, &destroyer), 0);
	fake_yield();
	assert_false(__atomic_load_n(&destroyer.done, __ATOMIC_SEQ_CST));
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(destroyer.done);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static bool readable(struct ibv_context *context)
{
	struct pollfd pollfd = {.fd = context->async_fd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 1;
}

TEST(get__names_the_queue_pair)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_async_event event;

	assert_false(readable(*state));
	event_raise_qp(face_qp(pair.qp), IBV_EVENT_COMM_EST);
	event_raise_qp(face_qp(pair.qp), IBV_EVENT_QP_ACCESS_ERR);
	assert_true(readable(*state));
	assert_int_equal(ibv_get_async_event(*state, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(event.element.qp, pair.qp);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_get_async_event(*state, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	ibv_ack_async_event(&event);
	assert_false(readable(*state));
	fake_pair_destroy(&pair);
}

TEST(get__names_the_completion_queue_that_overran)
{
	struct ibv_cq *cq = ibv_create_cq(*state, 1, NULL, NULL, 0);
	const struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	struct ibv_async_event event;

	for (int i = 0; i <= cq->cqe; i++)
		cq_push(face_cq(cq)->cq, &wc, false);
	assert_int_equal(ibv_get_async_event(*state, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, cq);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(get__tells_every_context_of_the_port)
{
	struct ibv_context *other = fake_open();
	struct ibv_async_event event;

	device_raise(fake.device, IBV_EVENT_PORT_ERR);
	assert_int_equal(ibv_get_async_event(*state, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	assert_int_equal(event.element.port_num, 1);
	ibv_ack_async_event(&event);
	assert_true(readable(other));
	assert_int_equal(ibv_close_device(other), 0);
	device_raise(fake.device, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(ibv_get_async_event(*state, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ACTIVE);
	ibv_ack_async_event(&event);
}

TEST(get__does_not_sleep_where_the_user_said_so)
{
	struct ibv_context *context = *state;
	struct ibv_async_event event;

	assert_int_equal(fcntl(context->async_fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_async_event(context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

TEST(destroy_qp__drops_what_was_not_read)
{
	struct fake_pair pair = fake_pair_create(*state);

	event_raise_qp(face_qp(pair.qp), IBV_EVENT_QP_FATAL);
	fake_pair_destroy(&pair);
	assert_false(readable(*state));
}

struct qp_destroyer {
	struct ibv_qp *qp;
	bool done; /* atomic */
};

static void *destroy_qp_thread(void *arg)
{
	struct qp_destroyer *destroyer = arg;

	assert_int_equal(ibv_destroy_qp(destroyer->qp), 0);
	__atomic_store_n(&destroyer->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(destroy_qp__waits_for_the_acknowledgement)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct qp_destroyer destroyer = {.qp = pair.qp};
	const uint32_t qpn = pair.qp->qp_num;
	struct ibv_async_event event;
	pthread_t thread;

	event_raise_qp(face_qp(pair.qp), IBV_EVENT_QP_FATAL);
	event_raise_qp(face_qp(pair.qp), IBV_EVENT_COMM_EST);
	assert_int_equal(ibv_get_async_event(*state, &event), 0);
	assert_int_equal(pthread_create(&thread, NULL, destroy_qp_thread, &destroyer), 0);
	while (__atomic_load_n(&fake.detaches, __ATOMIC_SEQ_CST) == 0)
		fake_yield();
	fake_yield();
	assert_false(__atomic_load_n(&destroyer.done, __ATOMIC_SEQ_CST));
	/* The queue pair receives no packets meanwhile. */
	assert_null(device_find_qp(fake.device, qpn));
	ibv_ack_async_event(&event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(ibv_destroy_cq(pair.cq), 0);
	assert_int_equal(ibv_dealloc_pd(pair.pd), 0);
}
