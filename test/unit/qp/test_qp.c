/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/qp.c: what a queue pair is made of, and what it tells. Posting: test_qp_post.c.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem/mw.h"
#include "mem/pd.h"
#include "qp_rig.h"
#include "queue/ah.h"
#include "transport/ooo.h"
#include "transport/loss.h"
#include "test.h"
#include "queues.h"

static bool is_full; /* there is no memory */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return TEST_FILE_RUNS() && is_full ? NULL : __real_calloc(count, size);
}

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

static struct qp_init init_of(struct end *end)
{
	return (struct qp_init){.pd = rig.fixture.other_pd,
				.send_cq = end->send_cq,
				.recv_cq = end->recv_cq,
				.cap = {.max_send_wr = 5,
					.max_recv_wr = 6,
					.max_send_sge = 3,
					.max_recv_sge = 4,
					.max_inline_data = 33},
				.type = IBV_QPT_RC,
				.qpn = 77,
				.counters = &rig.fixture.counters,
				.user = end,
				.max_rd_atomic = READS,
				.max_dest_rd_atomic = READS,
				.port_mtu = IBV_MTU_1024};
}

TEST(qp_create__grants_at_least_what_was_asked_for)
{
	const struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;
	struct qp *qp;

	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	assert_true(cap.max_send_wr >= 5 && cap.max_recv_wr >= 6);
	assert_true(cap.max_send_sge >= 3 && cap.max_recv_sge >= 4);
	assert_true(cap.max_inline_data >= 33);
	assert_int_equal(qp_state(qp), IBV_QPS_RESET);
	assert_int_equal(qp_number(qp), 77);
	assert_int_equal(qp_type(qp), IBV_QPT_RC);
	assert_ptr_equal(qp_user(qp), A);
	assert_int_equal(qp_deadline_ns(qp), UINT64_MAX);
	qp_destroy(qp);
}

TEST(qp_create__holds_its_domain_and_queues)
{
	struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;
	struct cq *cq;
	struct qp *qp;

	assert_int_equal(cq_create(4, NULL, NULL, NULL, &cq), 0);
	init.send_cq = cq;
	init.recv_cq = cq;
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	assert_int_equal(pd_destroy(rig.fixture.other_pd), -EBUSY);
	assert_int_equal(cq_destroy(cq), -EBUSY);
	qp_destroy(qp);
	assert_int_equal(rig.fixture.other_pd->users, 0);
	assert_int_equal(cq_destroy(cq), 0);
}

TEST(qp_create__holds_each_of_two_queues)
{
	struct qp_init init = init_of(A);
	struct cq *send_cq, *recv_cq;
	struct ibv_qp_cap cap;
	struct qp *qp;

	assert_int_equal(cq_create(4, NULL, NULL, NULL, &send_cq), 0);
	assert_int_equal(cq_create(4, NULL, NULL, NULL, &recv_cq), 0);
	init.send_cq = send_cq;
	init.recv_cq = recv_cq;
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	assert_int_equal(cq_destroy(send_cq), -EBUSY);
	assert_int_equal(cq_destroy(recv_cq), -EBUSY);
	qp_destroy(qp);
	assert_int_equal(cq_destroy(send_cq), 0);
	assert_int_equal(cq_destroy(recv_cq), 0);
}

static void expect_refused(struct qp_init init, int err)
{
	struct ibv_qp_cap cap;
	struct qp *qp;

	assert_int_equal(qp_create(&init, &cap, &qp), err);
	assert_int_equal(rig.fixture.other_pd->users, 0);
}

TEST(qp_create__refuses_more_than_a_packet_holds)
{
	struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;
	struct qp *qp;

	init.cap.max_send_sge = PACKET_FRAGS_MAX;
	init.cap.max_recv_sge = PACKET_FRAGS_MAX;
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	qp_destroy(qp);
	init.cap.max_send_sge = PACKET_FRAGS_MAX + 1;
	expect_refused(init, -EINVAL);
	init = init_of(A);
	init.cap.max_recv_sge = PACKET_FRAGS_MAX + 1;
	expect_refused(init, -EINVAL);
	init = init_of(A);
	init.cap.max_send_wr = UINT32_MAX;
	expect_refused(init, -EINVAL);
	init = init_of(A);
	init.cap.max_recv_wr = UINT32_MAX;
	expect_refused(init, -EINVAL);
}

/* Another holder of its handle has destroyed it. */
TEST(qp_create__refuses_a_domain_that_has_ended)
{
	struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;
	struct pd *pd;
	struct qp *qp;

	assert_int_equal(pd_create(rig.fixture.keys, &pd), 0);
	pd_hold(pd);
	assert_int_equal(pd_destroy(pd), 0);
	init.pd = pd;
	assert_int_equal(qp_create(&init, &cap, &qp), -EINVAL);
	pd_release_hold(pd);
}

TEST(qp_create__has_the_window_that_was_asked_for)
{
	static const uint16_t asked[] = {0, 1, LOSS_WINDOW_LIMIT};
	struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;
	struct qp *qp;

	for (size_t i = 0; i < RTE_DIM(asked); i++) {
		init.window_max = asked[i];
		assert_int_equal(qp_create(&init, &cap, &qp), 0);
		qp_destroy(qp);
	}
	init.window_max = LOSS_WINDOW_LIMIT + 1;
	expect_refused(init, -EINVAL);
}

TEST(qp_run__keeps_to_the_window_that_was_asked_for)
{
	struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;

	init.pd = rig.fixture.pd;
	init.window_max = 4;
	qp_destroy(A->qp);
	assert_int_equal(qp_create(&init, &cap, &A->qp), 0);
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8 * MTU, 0), 0);
	assert_false(end_run(A, 16));
	assert_int_equal(A->catcher.count, 4);
}

TEST(qp_create__refuses_types_that_are_not_built)
{
	struct qp_init init = init_of(A);

	init.type = IBV_QPT_RAW_PACKET;
	expect_refused(init, -EOPNOTSUPP);
	init.type = IBV_QPT_DRIVER;
	expect_refused(init, -EOPNOTSUPP);
}

/* The receive queue is another object's, which has capabilities of its own. */
TEST(qp_create__grants_no_receive_queue_beside_a_shared_one)
{
	struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;
	struct srq *srq;
	struct qp *qp;

	assert_int_equal(srq_create(4, 1, rig.fixture.pd, &srq), 0);
	init.srq = srq;
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	assert_true(cap.max_send_wr >= 5);
	assert_int_equal(cap.max_recv_wr, 0);
	assert_int_equal(cap.max_recv_sge, 0);
	qp_destroy(qp);
	assert_int_equal(srq_destroy(srq), 0);
}

/* A queue that is never used takes no memory. */
TEST(qp_create__xrc_has_only_the_send_queue)
{
	struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;
	struct qp *qp;

	init.type = IBV_QPT_XRC_SEND;
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	assert_true(cap.max_send_wr >= 5);
	assert_int_equal(cap.max_recv_wr, 0);
	qp_destroy(qp);
	init.type = IBV_QPT_XRC_RECV;
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	assert_int_equal(cap.max_send_wr, 0);
	assert_int_equal(cap.max_recv_wr, 0);
	qp_destroy(qp);
}

static int find_no_link(void *user, uint32_t srqn, struct pass_link **link)
{
	(void)user;
	(void)srqn;
	(void)link;
	return -ENOENT;
}

TEST(qp_create__without_memory_to_pass_requests_on_is_an_error)
{
	struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;
	struct qp *qp;
	int rc;

	init.type = IBV_QPT_XRC_RECV;
	init.cc = (struct cc_attr){.kind = CC_DCQCN};
	init.find_link = find_no_link;
	is_full = true;
	rc = qp_create(&init, &cap, &qp);
	is_full = false;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(rig.fixture.other_pd->users, 0);
}

/* Nothing of the attributes is taken then. */
TEST(qp_modify__without_memory_for_other_resources)
{
	struct ibv_qp_attr attr = {.max_dest_rd_atomic = 1, .retry_cnt = 1};
	struct ibv_qp_init_attr init;
	int rc;

	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	rig_run();
	end_sent(B, 1, IBV_WC_SUCCESS);
	assert_int_equal(end_modify(A, IBV_QPS_SQD), 0);
	is_full = true;
	rc = qp_modify(A->qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_RETRY_CNT, NULL);
	is_full = false;
	assert_int_equal(rc, -ENOMEM);
	qp_query(A->qp, &attr, &init);
	assert_int_equal(attr.max_dest_rd_atomic, READS);
	assert_int_equal(attr.retry_cnt, RETRIES);
}

TEST(qp_create__without_room_nothing_can_be_posted)
{
	struct qp_init init = init_of(A);
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_qp_cap cap;
	struct qp *qp;

	init.cap = (struct ibv_qp_cap){0};
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	assert_int_equal(cap.max_send_wr, 0);
	qp_destroy(A->qp);
	A->qp = qp;
	end_raise(A, IBV_QPS_RTS);
	assert_int_equal(qp_post_send(qp, &send, &bad_send), ENOMEM);
	assert_int_equal(qp_post_recv(qp, &recv, &bad_recv), ENOMEM);
	assert_false(end_run(A, 9));
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	assert_false(end_run(A, 9));
	end_idle(A);
}

/* The pool is the device's: who retires a queue pair holds the engine, who destroys it does not. */
TEST(qp_retire__gives_back_what_came_out_of_order)
{
	struct qp_init init = init_of(B);
	struct ooo_pool *pool;
	struct ibv_qp_cap cap;

	assert_int_equal(ooo_pool_create(1, &pool), 0);
	init.pd = rig.fixture.pd;
	init.qpn = FIXTURE_PEER_QPN;
	init.ooo = pool;
	for (int round = 0; round < 2; round++) {
		qp_destroy(B->qp);
		assert_int_equal(qp_create(&init, &cap, &B->qp), 0);
		end_recreate(A, IBV_QPT_RC, NULL);
		rig_connect();
		rig.lose[0] = 1;
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
		assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, MTU, MTU, MTU), 0);
		assert_false(end_run(A, 9));
		end_deliver(A);
		/* The only place in the pool is free again in the second round. */
		assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_out_of_order_kept),
				 round + 1);
		qp_retire(B->qp);
	}
	qp_destroy(B->qp);
	B->qp = NULL;
	ooo_pool_destroy(pool);
}

TEST(qp_retire__gives_back_responses_that_came_out_of_order)
{
	assert_int_equal(ooo_pool_create(1, &rig.ooo), 0);
	end_recreate(A, IBV_QPT_RC, NULL);
	rig_connect();
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(end_send(A, i, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	end_run(B, 9);
	rig.lose[1] = 1;
	end_deliver(B);
	assert_int_equal(rig_counter(COUNTER_out_of_order_kept), 1);
	qp_retire(A->qp);
	/* The place in the pool is free again. */
	qp_destroy(A->qp);
	A->qp = NULL;
}

TEST(qp_retire__drops_completions_that_nobody_has_polled)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	qp_retire(A->qp);
	end_idle(A);
}

/* Bind a window of type 2 to a region. */
static void bind(struct mw *mw, const struct mr *region, enum ibv_wc_status status)
{
	struct ibv_mr mr = {.lkey = region->key};
	struct ibv_mw window = {.type = IBV_MW_TYPE_2, .rkey = mw->view.key};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = &window,
			    .rkey = ibv_inc_rkey(window.rkey),
			    .bind_info = {.mr = &mr,
					  .addr = region->iova,
					  .length = 8,
					  .mw_access_flags = IBV_ACCESS_REMOTE_READ}}};
	struct ibv_send_wr *bad;

	rig_connect();
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_false(end_run(A, 9));
	end_sent(A, 1, status);
	assert_int_equal(region->windows, status == IBV_WC_SUCCESS);
}

/* No one else could invalidate the windows, and a later queue pair gets the number. */
TEST(qp_retire__and_reset_unbind_windows)
{
	struct region region;
	struct mw *mw;

	region_set_up(&region, rig.fixture.pd, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
		      SEED);
	assert_int_equal(mw_create(rig.fixture.pd, IBV_MW_TYPE_2, &mw), 0);
	bind(mw, region.mr, IBV_WC_SUCCESS);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	assert_int_equal(region.mr->windows, 1);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_int_equal(region.mr->windows, 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	bind(mw, region.mr, IBV_WC_SUCCESS);
	qp_retire(A->qp);
	assert_int_equal(region.mr->windows, 0);
	mw_destroy(mw);
	region_tear_down(&region);
}

TEST(qp_run__reads_a_window_that_it_has_bound_itself)
{
	struct ibv_sge sge = region_sge(&B->memory, 0, 8);
	struct ibv_send_wr wr = {.wr_id = 2,
				 .opcode = IBV_WR_RDMA_READ,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;
	struct region region;
	struct mw *mw;

	region_set_up(&region, rig.fixture.pd, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
		      SEED);
	assert_int_equal(mw_create(rig.fixture.pd, IBV_MW_TYPE_2, &mw), 0);
	bind(mw, region.mr, IBV_WC_SUCCESS);
	wr.wr.rdma.remote_addr = region.mr->iova;
	wr.wr.rdma.rkey = mw->view.key;
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
	rig_run();
	end_sent(B, 2, IBV_WC_SUCCESS);
	assert_memory_equal(B->memory.bytes, region.bytes, 8);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	mw_destroy(mw);
	region_tear_down(&region);
}

/* Such a window would be valid only on the queue pair that has bound it, which gets no requests. */
TEST(qp_run__xrc_binds_no_window_of_type_2)
{
	struct region region;
	struct mw *mw;

	end_recreate(A, IBV_QPT_XRC_SEND, NULL);
	end_recreate(B, IBV_QPT_XRC_RECV, NULL);
	region_set_up(&region, rig.fixture.pd, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
		      SEED);
	assert_int_equal(mw_create(rig.fixture.pd, IBV_MW_TYPE_2, &mw), 0);
	bind(mw, region.mr, IBV_WC_MW_BIND_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_ERR);
	mw_destroy(mw);
	region_tear_down(&region);
}

static void expect_queried(struct end *end, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	qp_query(end->qp, attr, &init);
	assert_int_equal(attr->qp_state, state);
	assert_int_equal(attr->cur_qp_state, state);
	assert_int_equal(attr->path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(attr->cap.max_send_wr, WRS);
	assert_int_equal(init.cap.max_send_wr, WRS);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_int_equal(init.sq_sig_all, 1);
}

TEST(qp_query__tells_what_was_set)
{
	struct ibv_qp_attr attr;

	expect_queried(A, IBV_QPS_RESET, &attr);
	assert_int_equal(attr.qp_access_flags, 0);
	end_raise(A, IBV_QPS_INIT);
	expect_queried(A, IBV_QPS_INIT, &attr);
	assert_int_equal(attr.qp_access_flags, REMOTE);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(end_modify(A, IBV_QPS_RTR), 0);
	expect_queried(A, IBV_QPS_RTR, &attr);
	assert_int_equal(attr.path_mtu, IBV_MTU_256);
	assert_int_equal(attr.dest_qp_num, FIXTURE_PEER_QPN);
	assert_int_equal(attr.rq_psn, 0xfffffe);
	assert_int_equal(attr.max_dest_rd_atomic, READS);
	assert_int_equal(attr.min_rnr_timer, RNR_CODE);
	assert_memory_equal(attr.ah_attr.grh.dgid.raw, B->gid, 16);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	expect_queried(A, IBV_QPS_RTS, &attr);
	assert_int_equal(attr.sq_psn, 100);
	assert_int_equal(attr.max_rd_atomic, READS);
	assert_int_equal(attr.timeout, TIMEOUT);
	assert_int_equal(attr.retry_cnt, RETRIES);
	assert_int_equal(attr.rnr_retry, RETRIES);
	assert_int_equal(attr.sq_draining, 0);
}

TEST(qp_query__psns_go_on_with_the_traffic)
{
	struct ibv_qp_attr attr;

	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_WRITE, 0, 3 * MTU, 0), 0);
	rig_run();
	end_sent(B, 1, IBV_WC_SUCCESS);
	expect_queried(A, IBV_QPS_RTS, &attr);
	assert_int_equal(attr.rq_psn, 1);
	expect_queried(B, IBV_QPS_RTS, &attr);
	assert_int_equal(attr.sq_psn, 1);
}

static uint32_t queried_sq_psn(const struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct qp_view view;

	qp_query(end->qp, &attr, &init);
	qp_look(end->qp, &view);
	assert_int_equal(view.sq_psn, attr.sq_psn);
	return attr.sq_psn;
}

TEST(qp_query__psns_of_every_type_go_on)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		end_recreate(A, types[i], NULL);
		end_raise(A, IBV_QPS_RTS);
		assert_int_equal(queried_sq_psn(A), 100);
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 3 * MTU, 0), 0);
		end_run(A, 16);
		assert_int_equal(queried_sq_psn(A), 103);
		/* The PSN is the same after an error, and while lost packets are retransmitted. */
		if (types[i] != IBV_QPT_UC)
			end_time_out(A);
		assert_int_equal(queried_sq_psn(A), 103);
		assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
		assert_int_equal(queried_sq_psn(A), 103);
		qp_query(A->qp, &attr, &init);
		assert_int_equal(attr.rq_psn, 0xfffffe);
	}
}

TEST(qp_query__psns_of_datagrams_go_on)
{
	end_recreate(A, IBV_QPT_UD, NULL);
	for (int round = 0; round < 2; round++) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .sq_psn = 5};
		struct ibv_qp_init_attr init;

		assert_int_equal(
			qp_modify(A->qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
				  NULL),
			0);
		attr.qp_state = IBV_QPS_RTR;
		assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE, NULL), 0);
		/* Values from before the reset are not reported. */
		assert_int_equal(queried_sq_psn(A), 0);
		attr.qp_state = IBV_QPS_RTS;
		attr.sq_psn = 100;
		assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL), 0);
		assert_int_equal(queried_sq_psn(A), 100);
		for (uint64_t i = 0; i < 5; i++) {
			struct ah ah = {.path = A->path};
			struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
						 .wr.ud = {.ah = (struct ibv_ah *)&ah,
							   .remote_qpn = FIXTURE_PEER_QPN}},
					   *bad;

			assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
			end_run(A, 16);
		}
		attr.qp_state = IBV_QPS_SQD;
		assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE, NULL), 0);
		assert_int_equal(queried_sq_psn(A), 105);
		qp_query(A->qp, &attr, &init);
		assert_int_equal(attr.rq_psn, 0);
		assert_int_equal(qp_modify(A->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
					   IBV_QP_STATE, NULL),
				 0);
		assert_int_equal(queried_sq_psn(A), 0);
	}
}

static void expect_view(struct qp_view expected)
{
	struct qp_view view;

	memset(&view, 0x5a, sizeof(view));
	qp_look(A->qp, &view);
	assert_int_equal(view.qpn, expected.qpn);
	assert_int_equal(view.dest_qpn, expected.dest_qpn);
	assert_int_equal(view.type, expected.type);
	assert_int_equal(view.state, expected.state);
	assert_int_equal(view.path_mtu, expected.path_mtu);
	assert_int_equal(view.sq_psn, expected.sq_psn);
	assert_int_equal(view.rq_psn, expected.rq_psn);
	assert_int_equal(view.sends, expected.sends);
	assert_int_equal(view.receives, expected.receives);
	assert_int_equal(view.pd, expected.pd);
	assert_int_equal(view.send_cq, expected.send_cq);
	assert_int_equal(view.recv_cq, expected.recv_cq);
	assert_memory_equal(view.dgid, expected.dgid, sizeof(view.dgid));
}

/* What belongs to the peer is nothing before RTR, and in datagrams. */
TEST(qp_look__shows_what_the_state_has)
{
	struct qp_view view = {.qpn = FIXTURE_QPN,
			       .type = IBV_QPT_RC,
			       .state = IBV_QPS_RESET,
			       .pd = 7,
			       .send_cq = 8,
			       .recv_cq = 9};

	rig.fixture.pd->number = 7;
	A->send_cq->number = 8;
	A->recv_cq->number = 9;
	expect_view(view);
	end_raise(A, IBV_QPS_INIT);
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_receive(A, 2, 0, 8), 0);
	view.state = IBV_QPS_INIT;
	view.receives = 2;
	expect_view(view);
	assert_int_equal(end_modify(A, IBV_QPS_RTR), 0);
	view.state = IBV_QPS_RTR;
	view.dest_qpn = FIXTURE_PEER_QPN;
	view.path_mtu = IBV_MTU_256;
	view.rq_psn = 0xfffffe;
	memcpy(view.dgid, B->gid, sizeof(view.dgid));
	expect_view(view);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	end_raise(B, IBV_QPS_RTS);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(end_send(A, i, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
	view.state = IBV_QPS_RTS;
	view.sq_psn = 101;
	view.sends = 3;
	expect_view(view);
	end_run(A, 16);
	view.sq_psn = 104;
	expect_view(view);
	end_recreate(A, IBV_QPT_UD, NULL);
	view = (struct qp_view){.qpn = FIXTURE_QPN,
				.type = IBV_QPT_UD,
				.state = IBV_QPS_RTR,
				.pd = 7,
				.send_cq = 8,
				.recv_cq = 9};
	for (int to = IBV_QPS_INIT; to <= IBV_QPS_RTR; to++) {
		struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)to, .port_num = 1};
		const int first = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

		assert_int_equal(qp_modify(A->qp, &attr,
					   IBV_QP_STATE | (to == IBV_QPS_INIT ? first : 0), NULL),
				 0);
	}
	expect_view(view);
}

TEST(qp_look__of_no_queue_shows_nothing)
{
	struct qp_init init = init_of(A);
	struct ibv_qp_cap cap;
	struct qp_view view;
	struct srq *srq;
	struct qp *qp;

	assert_int_equal(srq_create(4, 1, rig.fixture.pd, &srq), 0);
	end_recreate(A, IBV_QPT_RC, srq);
	qp_look(A->qp, &view);
	assert_int_equal(view.receives, 0);
	end_recreate(A, IBV_QPT_RC, NULL);
	assert_int_equal(srq_destroy(srq), 0);
	init.type = IBV_QPT_XRC_SEND;
	init.recv_cq = NULL;
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	qp_look(qp, &view);
	assert_int_equal(view.receives, 0);
	assert_int_equal(view.recv_cq, 0);
	qp_destroy(qp);
	init.type = IBV_QPT_XRC_RECV;
	init.send_cq = NULL;
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	qp_look(qp, &view);
	assert_int_equal(view.send_cq, 0);
	qp_destroy(qp);
}
