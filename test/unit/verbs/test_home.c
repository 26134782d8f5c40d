/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/verbs/home.c: which engine of a device its queues and queue pairs belong to, and
 * which engines must run while a thread sleeps on a channel. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "device/limits.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/srq.h"

#include "domains.h"
#include "fake_provider.h"
#include "test.h"

#define ENGINES 4

static struct ibv_context *context;
static struct ibv_pd *pd;

static int set_engines(TEST_STATE)
{
	fake_engines = ENGINES;
	return 0;
}

TEST_GROUP(set_engines, NULL);

static int set_up(void **state)
{
	fake_setup(state);
	context = *state;
	pd = ibv_alloc_pd(context);
	return pd ? 0 : -1;
}

static int tear_down(void **state)
{
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	return fake_close(state);
}

TEST_FIXTURE(set_up, tear_down);

static struct ibv_cq *create_cq(int comp_vector)
{
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, comp_vector);

	assert_non_null(cq);
	assert_false(face_cq(cq)->cq->shared);
	return cq;
}

static uint32_t engine_of(struct ibv_cq *cq)
{
	return face_cq(cq)->home->number;
}

static void destroy_cqs(struct ibv_cq **cqs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ibv_destroy_cq(cqs[i]), 0);
}

static struct ibv_qp *create_qp(struct ibv_cq *send_cq, struct ibv_cq *recv_cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.srq = srq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	assert_non_null(qp);
	/* The number names the engine, so that a frame finds it. */
	assert_int_equal(device_engine_of_qpn(fake.device, qp->qp_num), face_qp(qp)->home->number);
	assert_int_equal(fake.held, 0);
	return qp;
}

TEST(home_of_cq__a_completion_vector_chooses)
{
	struct ibv_cq *cqs[ENGINES];

	assert_int_equal(context->num_comp_vectors, ENGINES);
	for (int i = 0; i < ENGINES; i++) {
		cqs[i] = create_cq(i);
		if (i > 0)
			assert_int_equal(engine_of(cqs[i]), i);
	}
	destroy_cqs(cqs, ENGINES);
	assert_refused(ibv_create_cq(context, 4, NULL, NULL, ENGINES), EINVAL);
	assert_refused(ibv_create_cq(context, 4, NULL, NULL, -1), EINVAL);
}

static void *create_cq_elsewhere(void *arg)
{
	struct ibv_cq **cqs = arg;

	cqs[0] = create_cq(0);
	cqs[1] = create_cq(0);
	return NULL;
}

/* Threads that know no vectors get engines in turn, each always the same one. */
TEST(home_of_cq__vector_0_is_the_threads_engine)
{
	struct ibv_cq *cqs[ENGINES][2];
	bool has[ENGINES] = {false};

	for (int i = 0; i < ENGINES; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, create_cq_elsewhere, cqs[i]), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(engine_of(cqs[i][0]), engine_of(cqs[i][1]));
		assert_false(has[engine_of(cqs[i][0])]);
		has[engine_of(cqs[i][0])] = true;
		destroy_cqs(cqs[i], 2);
	}
}

TEST(home_of_cq__a_thread_domain_goes_before_the_thread)
{
	bool has[ENGINES] = {false};

	for (int i = 0; i < ENGINES; i++) {
		struct ibv_td *td = domains_td(context);
		struct ibv_pd *parent = domains_parent(pd, td);
		struct ibv_cq *cqs[2] = {domains_cq(parent, 0, 0), domains_cq(parent, 0, 0)};

		assert_non_null(cqs[0]);
		assert_non_null(cqs[1]);
		assert_int_equal(engine_of(cqs[0]), engine_of(cqs[1]));
		assert_false(has[engine_of(cqs[0])]);
		has[engine_of(cqs[0])] = true;
		destroy_cqs(cqs, 2);
		assert_int_equal(ibv_dealloc_pd(parent), 0);
		assert_int_equal(ibv_dealloc_td(td), 0);
	}
}

TEST(home_join__an_unused_queue_follows_the_send_queue)
{
	struct ibv_cq *cqs[] = {create_cq(2), create_cq(1)};
	struct ibv_qp *qp = create_qp(cqs[0], cqs[1], NULL);

	assert_int_equal(face_qp(qp)->home->number, 2);
	assert_int_equal(engine_of(cqs[0]), 2);
	assert_int_equal(engine_of(cqs[1]), 2);
	assert_false(face_cq(cqs[0])->cq->shared);
	assert_false(face_cq(cqs[1])->cq->shared);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	destroy_cqs(cqs, 2);
}

TEST(home_join__one_queue_for_both_directions_stays)
{
	struct ibv_cq *cq = create_cq(3);
	struct ibv_qp *qps[] = {create_qp(cq, cq, NULL), create_qp(cq, cq, NULL)};

	for (int i = 0; i < 2; i++)
		assert_int_equal(face_qp(qps[i])->home->number, 3);
	assert_false(face_cq(cq)->cq->shared);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	destroy_cqs(&cq, 1);
}

TEST(home_join__a_queue_of_two_engines_is_shared)
{
	struct ibv_cq *cqs[] = {create_cq(1), create_cq(2), create_cq(3)};
	struct ibv_qp *first = create_qp(cqs[0], cqs[2], NULL);
	struct ibv_qp *second;

	assert_int_equal(engine_of(cqs[2]), 1);
	assert_false(face_cq(cqs[2])->cq->shared);
	second = create_qp(cqs[1], cqs[2], NULL);
	assert_int_equal(face_qp(second)->home->number, 2);
	assert_true(face_cq(cqs[2])->cq->shared);
	assert_false(face_cq(cqs[0])->cq->shared);
	assert_false(face_cq(cqs[1])->cq->shared);
	assert_int_equal(ibv_destroy_qp(first), 0);
	assert_int_equal(ibv_destroy_qp(second), 0);
	destroy_cqs(cqs, 3);
}

/* Give the device a range of twice as many numbers as there may be queue pairs. */
static int set_range(void **state)
{
	const int rc = set_up(state);

	fake.device->config.qpn_first = 0x4000;
	fake.device->config.qpn_count = 2 * ENGINES;
	fake.device->qpn_next = 0x4000;
	fake.device->qp_max = ENGINES;
	return rc;
}

/* The number names the engine, and this engine has no other one that may be in use. */
TEST(home_join__of_an_engine_without_numbers, .setup = set_range)
{
	struct ibv_cq *cq = create_cq(3);
	struct ibv_qp *qps[ENGINES];

	for (int i = 0; i < ENGINES; i++) {
		qps[i] = create_qp(cq, cq, NULL);
		assert_ptr_equal(qp_home(face_qp(qps[i])->qp), face_qp(qps[i])->home);
	}
	assert_int_equal(face_qp(qps[0])->home->number, 3);
	assert_int_not_equal(face_qp(qps[1])->home->number, 3);
	assert_true(face_cq(cq)->cq->shared);
	for (int i = 0; i < ENGINES; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	destroy_cqs(&cq, 1);
	fake.device->config.qpn_count = 0;
	fake.device->qp_max = DEVICE_MAX_QP;
}

static struct ibv_srq *create_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	assert_non_null(srq);
	return srq;
}

TEST(home_join__a_receive_queue_of_two_engines_is_shared)
{
	struct ibv_cq *cqs[] = {create_cq(1), create_cq(2)};
	struct ibv_srq *srq = create_srq();
	struct ibv_qp *qps[3];

	for (int i = 0; i < 2; i++) {
		qps[i] = create_qp(cqs[0], cqs[0], srq);
		assert_false(face_srq(srq)->srq->shared);
	}
	qps[2] = create_qp(cqs[1], cqs[1], srq);
	assert_true(face_srq(srq)->srq->shared);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	destroy_cqs(cqs, 2);
}

static struct ibv_xrcd *open_xrcd(void)
{
	struct ibv_xrcd_init_attr open = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &open);

	assert_non_null(xrcd);
	return xrcd;
}

static struct ibv_srq *create_xrc_srq(struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(context, &init);

	assert_non_null(srq);
	return srq;
}

/* Any queue pair of the domain may receive from it. */
TEST(device_share_xrc__a_receive_queue_of_an_xrc_domain_is_shared)
{
	struct ibv_xrcd *xrcd = open_xrcd();
	struct ibv_cq *cq = create_cq(1);
	struct ibv_srq *srq = create_xrc_srq(xrcd, cq);

	assert_true(face_srq(srq)->srq->shared);
	assert_true(face_cq(cq)->cq->shared);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static struct ibv_comp_channel *create_channel(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);

	assert_non_null(channel);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	return channel;
}

static struct ibv_cq *create_channel_cq(struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, channel, comp_vector);

	assert_non_null(cq);
	return cq;
}

/* Return bits of the engines that were asked to run since the last call. */
static uint32_t engines_asked(void)
{
	uint32_t asked = 0;

	for (uint32_t i = 0; i < ENGINES; i++)
		asked |= (fake.engine_waits[i] != 0) << i;
	memset(fake.engine_waits, 0, sizeof(fake.engine_waits));
	return asked;
}

/* The same for a thread that wants to sleep on a channel without events. */
static uint32_t asked_to_sleep(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *cq_context;

	engines_asked();
	assert_int_equal(ibv_get_cq_event(channel, &cq, &cq_context), -1);
	return engines_asked();
}

/* The same for one that arms a queue. */
static uint32_t asked_to_arm(struct ibv_cq *cq)
{
	engines_asked();
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	return engines_asked();
}

/* Engines whose queues are on other channels, or on none, are left alone: a call would take them
 * from the threads that poll them. */
TEST(home_wait_channel__only_engines_of_its_queues_must_run)
{
	struct ibv_comp_channel *channels[] = {create_channel(), create_channel()};
	struct ibv_cq *polled = create_cq(3), *cqs[3];

	assert_int_equal(asked_to_sleep(channels[0]), 0);
	cqs[0] = create_channel_cq(channels[0], 1);
	cqs[1] = create_channel_cq(channels[0], 1);
	cqs[2] = create_channel_cq(channels[1], 2);
	assert_int_equal(asked_to_sleep(channels[0]), 1 << 1);
	assert_int_equal(asked_to_sleep(channels[1]), 1 << 2);
	assert_int_equal(asked_to_arm(cqs[0]), 1 << 1);
	assert_int_equal(asked_to_arm(polled), 0);
	assert_int_equal(ibv_destroy_cq(cqs[0]), 0);
	assert_int_equal(asked_to_sleep(channels[0]), 1 << 1);
	assert_int_equal(ibv_destroy_cq(cqs[1]), 0);
	assert_int_equal(asked_to_sleep(channels[0]), 0);
	assert_int_equal(ibv_destroy_cq(cqs[2]), 0);
	assert_int_equal(ibv_destroy_cq(polled), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_comp_channel(channels[i]), 0);
}

/* Another thread may sleep on the channel when a queue pair is created. */
TEST(home_wait_channel__a_queue_that_moves_takes_its_engine_along)
{
	struct ibv_comp_channel *channel = create_channel();
	struct ibv_cq *cqs[] = {create_cq(2), create_channel_cq(channel, 1)};
	struct ibv_qp *qp;

	assert_int_equal(asked_to_arm(cqs[1]), 1 << 1);
	qp = create_qp(cqs[0], cqs[1], NULL);
	assert_int_equal(engine_of(cqs[1]), 2);
	assert_int_equal(engines_asked(), 1 << 2);
	assert_int_equal(asked_to_sleep(channel), 1 << 2);
	assert_int_equal(asked_to_arm(cqs[1]), 1 << 2);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	destroy_cqs(cqs, 2);
	assert_int_equal(asked_to_sleep(channel), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

TEST(home_wait_channel__all_engines_of_a_shared_queue_must_run)
{
	struct ibv_comp_channel *channel = create_channel();
	struct ibv_cq *cqs[] = {create_cq(1), create_cq(2), create_channel_cq(channel, 1)};
	struct ibv_qp *qps[] = {create_qp(cqs[0], cqs[2], NULL), NULL};

	assert_int_equal(asked_to_sleep(channel), 1 << 1);
	assert_int_equal(asked_to_arm(cqs[2]), 1 << 1);
	qps[1] = create_qp(cqs[1], cqs[2], NULL);
	assert_int_equal(engines_asked(), 1 << 2);
	assert_int_equal(asked_to_sleep(channel), 1 << 1 | 1 << 2);
	assert_int_equal(asked_to_arm(cqs[2]), 1 << 1 | 1 << 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	destroy_cqs(cqs, 3);
	assert_int_equal(asked_to_sleep(channel), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* No thread waits for events of a queue that is not armed. */
TEST(home_wait_channel__a_queue_that_nobody_has_armed_moves_silently)
{
	struct ibv_comp_channel *channel = create_channel();
	struct ibv_cq *cqs[] = {create_cq(2), create_channel_cq(channel, 1)};
	struct ibv_qp *qp;

	engines_asked();
	qp = create_qp(cqs[0], cqs[1], NULL);
	assert_int_equal(engines_asked(), 0);
	assert_int_equal(asked_to_sleep(channel), 1 << 2);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	destroy_cqs(cqs, 2);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* The queue pairs that receive for an XRC domain belong to the first engine. */
TEST(home_wait_channel__the_first_engine_receives_for_an_xrc_domain)
{
	struct ibv_comp_channel *channel = create_channel();
	struct ibv_xrcd *xrcd = open_xrcd();
	struct ibv_cq *cq = create_channel_cq(channel, 2);
	struct ibv_srq *srq;

	assert_int_equal(asked_to_arm(cq), 1 << 2);
	srq = create_xrc_srq(xrcd, cq);
	assert_int_equal(engines_asked(), 1 << 0);
	assert_int_equal(asked_to_sleep(channel), 1 << 0 | 1 << 2);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}
