/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "queue/cq.h"

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

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

struct destroyer {
	struct ibv_qp *qp;
	bool done; /* atomic */
};

static void *destroy_thread(void *arg)
{
	struct destroyer *destroyer = arg;

	assert_int_equal(ibv_destroy_qp(destroyer->qp), 0);
	__atomic_store_n(&destroyer->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(destroy_qp__waits_for_the_acknowledgement)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct destroyer destroyer = {.qp = pair.qp};
	const uint32_t qpn = pair.qp->qp_num;
	struct ibv_async_event event;
	pthread_t thread;

	event_raise_qp(face_qp(pair.qp), IBV_EVENT_QP_FATAL);
	event_raise_qp(face_qp(pair.qp), IBV_EVENT_COMM_EST);
	assert_int_equal(ibv_get_async_event(*state, &event), 0);
	assert_int_equal(pthread_create(&thread, NULL, destroy_thread, &destroyer), 0);
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
