/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#include <pthread.h>

#include "queue/srq.h"

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define PAIRS 2

static uint8_t bytes[4096];

static struct ibv_srq *create(struct ibv_pd *pd, uint32_t max_wr)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = max_wr, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	assert_non_null(srq);
	assert_true(init.attr.max_wr >= max_wr);
	return srq;
}

TEST(create_srq__fills_the_public_struct)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	int mine;
	struct ibv_srq_init_attr init = {.srq_context = &mine, .attr = {.max_wr = 5, .max_sge = 3}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_srq_attr attr;

	assert_non_null(srq);
	assert_ptr_equal(srq->context, *state);
	assert_ptr_equal(srq->pd, pd);
	assert_ptr_equal(srq->srq_context, &mine);
	assert_true(init.attr.max_wr >= 5);
	assert_true(init.attr.max_sge >= 3);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, init.attr.max_wr);
	assert_int_equal(attr.max_sge, init.attr.max_sge);
	assert_int_equal(attr.srq_limit, 0);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(fake.device->quota[DEVICE_QUOTA_SRQ], 0);
}

TEST(create_srq__refuses_what_is_wrong)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	const struct ibv_srq_attr wrong[] = {
		{.max_wr = 0, .max_sge = 1},
		{.max_wr = UINT32_MAX, .max_sge = 1},
		{.max_wr = 1, .max_sge = UINT32_MAX},
	};
	struct ibv_srq_init_attr_ex tags = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = pd,
	};

	for (size_t i = 0; i < RTE_DIM(wrong); i++) {
		struct ibv_srq_init_attr init = {.attr = wrong[i]};

		errno = 0;
		assert_null(ibv_create_srq(pd, &init));
		assert_int_equal(errno, EINVAL);
	}
	assert_null(ibv_create_srq_ex(*state, &tags));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(fake.device->quota[DEVICE_QUOTA_SRQ], 0);
}

TEST(modify_srq__changes_all_or_nothing)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_srq *srq = create(pd, 16);
	struct ibv_srq_attr attr = {.max_wr = 64, .srq_limit = 65};
	struct ibv_srq_attr now;

	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, 1 << 7), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, 0), 0);
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.max_wr, 16);
	assert_int_equal(now.srq_limit, 0);
	attr.srq_limit = 40;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.max_wr, 64);
	assert_int_equal(now.srq_limit, 40);
	/* Smaller than what is armed. */
	attr.max_wr = 32;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.srq_limit = 10;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	attr.max_wr = UINT32_MAX;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.max_wr, 32);
	assert_int_equal(now.srq_limit, 10);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Senders and receivers of one type; those that receive share a queue. */
struct group {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *from[PAIRS];
	struct ibv_qp *to[PAIRS];
};

static struct ibv_qp *group_qp(struct group *group, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = group->cq,
		.recv_cq = group->cq,
		.srq = srq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = srq ? UINT32_MAX : 1},
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(group->pd, &init);

	assert_non_null(qp);
	assert_ptr_equal(qp->srq, srq);
	if (srq) {
		assert_int_equal(init.cap.max_recv_wr, 0);
	}
	return qp;
}

static void group_start(struct group *group, struct ibv_context *context, enum ibv_qp_type type)
{
	fake.carries = true;
	group->pd = ibv_alloc_pd(context);
	group->cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	group->srq = create(group->pd, 8);
	group->mr = ibv_reg_mr(group->pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
	for (int i = 0; i < PAIRS; i++) {
		group->from[i] = group_qp(group, type, NULL);
		group->to[i] = group_qp(group, type, group->srq);
		assert_int_equal(fake_connect(group->from[i], group->to[i]->qp_num, FAKE_GID_V4,
					      IBV_QPS_RTS),
				 0);
		assert_int_equal(fake_connect(group->to[i], group->from[i]->qp_num, FAKE_GID_V4,
					      IBV_QPS_RTS),
				 0);
	}
}

static void group_end(struct group *group)
{
	for (int i = 0; i < PAIRS; i++) {
		assert_int_equal(ibv_destroy_qp(group->from[i]), 0);
		assert_int_equal(ibv_destroy_srq(group->srq), EBUSY);
		assert_int_equal(ibv_destroy_qp(group->to[i]), 0);
	}
	assert_int_equal(ibv_destroy_srq(group->srq), 0);
	assert_int_equal(ibv_dereg_mr(group->mr), 0);
	assert_int_equal(ibv_destroy_cq(group->cq), 0);
	assert_int_equal(ibv_dealloc_pd(group->pd), 0);
}

static void group_post(struct group *group, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)bytes, 2048, group->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;

	assert_int_equal(ibv_post_srq_recv(group->srq, &wr, &bad), 0);
}

static void group_send(struct group *group, int from)
{
	struct ibv_sge sge = {(uintptr_t)bytes + 2048, 100, group->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	assert_int_equal(ibv_post_send(group->from[from], &wr, &bad), 0);
}

static void expect_received(struct group *group, int to, uint64_t wr_id)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(group->cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.qp_num, group->to[to]->qp_num);
	assert_int_equal(wc.wr_id, wr_id);
}

static void post_srq_recv__serves_whoever_receives(void **state, enum ibv_qp_type type)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
	struct group group;

	group_start(&group, *state, type);
	for (uint64_t i = 0; i < 4; i++)
		group_post(&group, i);
	group_send(&group, 1);
	expect_received(&group, 1, 0);
	group_send(&group, 0);
	expect_received(&group, 0, 1);
	group_send(&group, 1);
	expect_received(&group, 1, 2);
	/* A queue pair with a shared queue has none of its own. */
	assert_int_equal(ibv_post_recv(group.to[0], &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	group_end(&group);
}

TEST(post_srq_recv__serves_rc)
{
	post_srq_recv__serves_whoever_receives(state, IBV_QPT_RC);
}

TEST(post_srq_recv__serves_uc)
{
	post_srq_recv__serves_whoever_receives(state, IBV_QPT_UC);
}

TEST(post_srq_recv__names_what_found_no_room)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_srq *srq = create(pd, 2);
	struct ibv_recv_wr wr[3] = {{.next = &wr[1]}, {.next = &wr[2]}, {0}}, *bad = NULL;

	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static struct ibv_async_event next_event(struct ibv_context *context)
{
	struct ibv_async_event event;

	do {
		assert_int_equal(ibv_get_async_event(context, &event), 0);
		if (event.event_type == IBV_EVENT_COMM_EST)
			ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	return event;
}

TEST(limit__is_told_once)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};
	struct ibv_async_event event;
	struct group group;

	group_start(&group, *state, IBV_QPT_RC);
	for (uint64_t i = 0; i < 4; i++)
		group_post(&group, i);
	assert_int_equal(ibv_modify_srq(group.srq, &attr, IBV_SRQ_LIMIT), 0);
	group_send(&group, 0);
	assert_int_equal(ibv_query_srq(group.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 3);
	group_send(&group, 1);
	event = next_event(*state);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, group.srq);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_query_srq(group.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	group_end(&group);
}

TEST(error__tells_of_the_last_request)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event event;
	struct group group;
	struct ibv_wc wc;

	group_start(&group, *state, IBV_QPT_RC);
	group_post(&group, 1);
	assert_int_equal(ibv_modify_qp(group.to[0], &attr, IBV_QP_STATE), 0);
	event = next_event(*state);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, group.to[0]);
	ibv_ack_async_event(&event);
	/* A request in the shared queue is not the queue pair's to flush. */
	assert_int_equal(ibv_poll_cq(group.cq, 1, &wc), 0);
	group_send(&group, 1);
	expect_received(&group, 1, 1);
	group_end(&group);
}

struct destroyer {
	struct ibv_srq *srq;
	bool done; /* atomic */
};

static void *destroy_thread(void *arg)
{
	struct destroyer *destroyer = arg;

	assert_int_equal(ibv_destroy_srq(destroyer->srq), 0);
	__atomic_store_n(&destroyer->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(destroy_srq__waits_for_the_acknowledgement)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct destroyer destroyer = {.srq = create(pd, 2)};
	struct ibv_async_event event;
	pthread_t thread;

	event_raise_srq_limit(face_srq(destroyer.srq));
	assert_int_equal(ibv_get_async_event(*state, &event), 0);
	assert_int_equal(pthread_create(&thread, NULL, destroy_thread, &destroyer), 0);
	fake_yield();
	assert_false(__atomic_load_n(&destroyer.done, __ATOMIC_SEQ_CST));
	ibv_ack_async_event(&event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
