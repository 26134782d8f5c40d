/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/modify.c: the states, what their changes do to work and packets, and that a
 * refused one does nothing. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mem/pd.h"
#include "qp_rig.h"
#include "test.h"

static bool is_full;  /* there is no memory */
static int left = -1; /* allocations until there is none; negative: there is enough */
static size_t taken;  /* bytes that were allocated, and not freed */

void *__real_cachelines_alloc(size_t bytes);
void *__wrap_cachelines_alloc(size_t bytes);
void __real_cachelines_free(void *at, size_t bytes);
void __wrap_cachelines_free(void *at, size_t bytes);

void *__wrap_cachelines_alloc(size_t bytes)
{
	if (TEST_FILE_RUNS() && (is_full || left == 0))
		return NULL;
	left -= left > 0;
	taken += bytes;
	return __real_cachelines_alloc(bytes);
}

void __wrap_cachelines_free(void *at, size_t bytes)
{
	taken -= at != NULL ? bytes : 0;
	__real_cachelines_free(at, bytes);
}

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

static void expect_unchanged(const struct ibv_qp_attr *before)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	qp_query(A->qp, &attr, &init);
	assert_memory_equal(&attr, before, sizeof(attr));
}

TEST(qp_modify__goes_through_the_states)
{
	static const enum ibv_qp_state way[] = {
		IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_RTS,   IBV_QPS_SQD,
		IBV_QPS_SQD,  IBV_QPS_RTS,  IBV_QPS_ERR, IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_RESET};

	for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		assert_int_equal(end_modify(A, way[i]), 0);
		assert_int_equal(qp_state(A->qp), way[i]);
	}
}

TEST(qp_modify__refuses_other_ways)
{
	static const enum ibv_qp_state wrong[][3] = {
		[IBV_QPS_INIT] = {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE},
		[IBV_QPS_RTR] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_SQD},
		[IBV_QPS_RTS] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_SQE},
	};

	for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr before;

		assert_int_equal(end_modify(A, (enum ibv_qp_state)s), 0);
		qp_query(A->qp, &before, &init);
		for (size_t i = 0; i < 3; i++) {
			assert_int_equal(end_modify(A, wrong[s][i]), -EINVAL);
			expect_unchanged(&before);
		}
	}
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	assert_int_equal(end_modify(A, IBV_QPS_INIT), -EINVAL);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), -EINVAL);
	assert_int_equal(qp_state(A->qp), IBV_QPS_ERR);
}

/* Without a timeout it needs memory for its losses from the start. */
TEST(qp_modify__without_memory_is_an_error)
{
	int rc;

	end_raise(A, IBV_QPS_RTR);
	A->attr.timeout = 0;
	is_full = true;
	rc = end_modify(A, IBV_QPS_RTS);
	is_full = false;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTR);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
}

TEST(qp_modify__to_reset_gives_back_the_memory_for_losses)
{
	int rc;

	for (int round = 0; round < 2; round++) {
		end_raise(A, IBV_QPS_RTR);
		A->attr.timeout = 0;
		is_full = round == 1;
		rc = end_modify(A, IBV_QPS_RTS);
		is_full = false;
		assert_int_equal(rc, round == 0 ? 0 : -ENOMEM);
		assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	}
}

/* Whatever cannot be allocated. */
TEST(qp_create__without_memory_leaves_nothing)
{
	const struct qp_init init = {.pd = rig.fixture.other_pd,
				     .send_cq = A->send_cq,
				     .recv_cq = A->recv_cq,
				     .cap = {.max_send_wr = 1, .max_recv_wr = 1},
				     .type = IBV_QPT_RC,
				     .cc = {.kind = CC_DCQCN, .link_mbps = 1000},
				     .counters = &rig.fixture.counters,
				     .port_mtu = IBV_MTU_1024};
	struct ibv_qp_cap cap;
	int rc = -ENOMEM;
	struct qp *qp;

	for (int allocations = 0; rc != 0; allocations++) {
		left = allocations;
		rc = qp_create(&init, &cap, &qp);
		left = -1;
		if (rc != 0)
			assert_int_equal(rc, -ENOMEM);
		assert_int_equal(rig.fixture.other_pd->users, rc == 0);
	}
	qp_destroy(qp);
}

/* The allocator is told the size again, and believes it. */
TEST(qp_destroy__gives_back_all_that_was_taken)
{
	struct qp_init init = {
		.pd = rig.fixture.pd,
		.send_cq = A->send_cq,
		.recv_cq = A->recv_cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_recv_sge = PACKET_FRAGS_MAX},
		.type = IBV_QPT_RC,
		.counters = &rig.fixture.counters,
		.max_dest_rd_atomic = READS,
		.port_mtu = IBV_MTU_1024};
	const size_t before = taken;
	struct ibv_qp_cap cap;
	struct qp *qp;

	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	assert_true(taken > before);
	qp_destroy(qp);
	assert_int_equal(taken, before);
}

TEST(qp_change_cc__without_memory_changes_nothing)
{
	const struct cc_attr attr = {.kind = CC_DCQCN, .link_mbps = 1000};
	struct qp_view view;
	int rc;

	rig.cc = (struct cc_attr){.kind = CC_NONE};
	end_recreate(A, IBV_QPT_RC, NULL);
	rig_connect();
	is_full = true;
	rc = qp_change_cc(A->qp, &attr);
	is_full = false;
	assert_int_equal(rc, -ENOMEM);
	qp_look(A->qp, &view);
	assert_int_equal(view.cc, CC_NONE);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_modify__a_refused_one_changes_nothing)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr before;

	end_raise(A, IBV_QPS_INIT);
	qp_query(A->qp, &before, &init);
	A->attr.path_mtu = IBV_MTU_2048; /* more than the port carries */
	assert_int_equal(end_modify(A, IBV_QPS_RTR), -EINVAL);
	expect_unchanged(&before);
	A->attr.path_mtu = IBV_MTU_256;
	A->attr.max_dest_rd_atomic = READS + 1;
	assert_int_equal(end_modify(A, IBV_QPS_RTR), -EINVAL);
	expect_unchanged(&before);
	A->attr.max_dest_rd_atomic = READS;
	assert_int_equal(end_modify(A, IBV_QPS_RTR), 0);
	qp_query(A->qp, &before, &init);
	A->attr.max_rd_atomic = READS + 1;
	assert_int_equal(end_modify(A, IBV_QPS_RTS), -EINVAL);
	expect_unchanged(&before);
}

TEST(qp_modify__assumes_the_state_that_it_is_in)
{
	struct ibv_qp_attr attr = A->attr;

	end_raise(A, IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_SQD;
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE, NULL), -EINVAL);
	attr.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE, NULL), 0);
}

TEST(qp_modify__without_attributes_stays)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(qp_modify(A->qp, &A->attr, 0, NULL), 0);
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTS);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_modify__to_error_flushes_in_order)
{
	rig_connect();
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(end_send(A, i, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
		assert_int_equal(end_receive(A, 10 + i, 0, 8), 0);
	}
	/* Half of them on the way, one half sent. */
	end_run(A, 5);
	assert_true(qp_deadline_ns(A->qp) != UINT64_MAX);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(end_sent(A, i, IBV_WC_WR_FLUSH_ERR).qp_num, FIXTURE_QPN);
		assert_int_equal(end_received(A, 10 + i, IBV_WC_WR_FLUSH_ERR).qp_num, FIXTURE_QPN);
	}
	end_idle(A);
	/* ibv_modify_qp(3) says it, no event does. */
	assert_int_equal(A->events, 0);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	/* Answers that come late find nothing. */
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	assert_false(end_run(A, 9));
	assert_int_equal(A->catcher.count, 0);
	end_idle(A);
}

/* IBTA 10.3.1: from any state. */
TEST(qp_modify__to_error_before_anything_else)
{
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_receive(A, 2, 0, 8), 0);
	assert_false(end_run(A, 9));
	end_sent(A, 1, IBV_WC_WR_FLUSH_ERR);
	end_received(A, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(A->catcher.count, 0);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	rig_connect();
}

TEST(qp_modify__to_error_takes_owed_answers_back)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 2 * MTU, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	assert_int_equal(end_modify(B, IBV_QPS_ERR), 0);
	assert_false(end_run(B, 9));
	assert_int_equal(B->catcher.count, 0);
}

TEST(qp_modify__to_reset_forgets_work_without_a_word)
{
	rig_connect();
	assert_int_equal(end_receive(A, 1, 0, 2 * MTU), 0);
	assert_int_equal(end_receive(A, 2, 0, 8), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	assert_int_equal(end_send(B, 4, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	assert_int_equal(end_send(B, 5, IBV_WR_SEND, 0, 2 * MTU, 0), 0);
	/* A message on its way in each direction, and an answer owed. */
	end_run(A, 1);
	end_deliver(A);
	end_run(B, 2);
	end_deliver(B);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_false(end_run(A, 9));
	assert_int_equal(A->catcher.count, 0);
	end_idle(A);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	end_idle(A);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	catcher_clear(&A->catcher);
	catcher_clear(&B->catcher);
	/* The queue pair comes up again as a new one with other PSNs. */
	A->attr.sq_psn = B->attr.rq_psn = 5;
	A->attr.rq_psn = B->attr.sq_psn = 0xfffff0;
	rig_connect();
	assert_int_equal(end_receive(A, 5, 0, 8), 0);
	assert_int_equal(end_send(B, 6, IBV_WR_SEND, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 7, IBV_WR_RDMA_READ, 0, 2 * MTU, 0), 0);
	rig_run();
	end_received(A, 5, IBV_WC_SUCCESS);
	end_sent(B, 6, IBV_WC_SUCCESS);
	end_sent(A, 7, IBV_WC_SUCCESS);
	end_idle(A);
	end_idle(B);
}

TEST(qp_modify__to_reset_forgets_completions_of_both_queues)
{
	rig_connect();
	for (struct end *end = A; end; end = end == A ? B : NULL) {
		assert_int_equal(end_receive(end, 1, 0, 8), 0);
		assert_int_equal(end_send(end, 2, IBV_WR_SEND, 0, 8, 0), 0);
	}
	rig_run();
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	end_idle(A);
	end_received(B, 1, IBV_WC_SUCCESS);
	end_sent(B, 2, IBV_WC_SUCCESS);
}

/* Each end of XRC has one of them. */
TEST(qp_modify__to_reset_without_completion_queues)
{
	struct qp_init init = {.pd = rig.fixture.pd,
			       .type = IBV_QPT_XRC_RECV,
			       .counters = &rig.fixture.counters,
			       .port_mtu = IBV_MTU_1024};
	struct ibv_qp_cap cap;

	qp_destroy(A->qp);
	assert_int_equal(qp_create(&init, &cap, &A->qp), 0);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	qp_destroy(A->qp);
	init.type = IBV_QPT_XRC_SEND;
	init.send_cq = A->send_cq;
	assert_int_equal(qp_create(&init, &cap, &A->qp), 0);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
}

TEST(qp_modify__from_error_only_through_reset)
{
	rig_connect();
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	/* The peer's PSNs went on, ours are set anew to match. */
	end_raise(A, IBV_QPS_RTS);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_modify__rights_change_while_connected)
{
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	rig_connect();
	assert_int_equal(qp_modify(B->qp, &attr, IBV_QP_ACCESS_FLAGS, NULL), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_REM_INV_REQ_ERR);
}

/* SQD. */

static int drain(struct end *end, bool notify)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify};

	return qp_modify(end->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, NULL);
}

static bool is_draining(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	qp_query(end->qp, &attr, &init);
	return attr.sq_draining;
}

TEST(qp_modify__sqd_finishes_what_is_begun_and_tells)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 3 * MTU, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 1);
	assert_int_equal(drain(A, true), 0);
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 3);
	assert_true(is_draining(A));
	assert_int_equal(A->events, 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_idle(A);
	assert_false(is_draining(A));
	assert_int_equal(A->events, 1);
	end_expect_event(A, 0, IBV_EVENT_SQ_DRAINED);
	/* Work may be posted, and waits. */
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_idle(A);
	assert_int_equal(A->events, 1);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
	end_sent(A, 3, IBV_WC_SUCCESS);
}

TEST(qp_modify__sqd_without_work_is_drained_at_once)
{
	rig_connect();
	assert_int_equal(drain(A, true), 0);
	end_run(A, 9);
	assert_int_equal(A->events, 1);
	/* Each time raises one event. */
	end_run(A, 9);
	assert_int_equal(A->events, 1);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	assert_int_equal(drain(A, true), 0);
	end_run(A, 9);
	assert_int_equal(A->events, 2);
}

TEST(qp_modify__sqd_does_not_tell_who_did_not_ask)
{
	rig_connect();
	assert_int_equal(drain(A, false), 0);
	end_run(A, 9);
	assert_int_equal(A->events, 0);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	assert_int_equal(drain(A, true), 0);
	end_run(A, 9);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	assert_int_equal(end_modify(A, IBV_QPS_SQD), 0);
	end_run(A, 9);
	assert_int_equal(A->events, 1);
}

/* Only a transition asks anew for the event, or does not. */
TEST(qp_modify__sqd_that_is_not_a_transition_keeps_the_request_for_the_event)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .retry_cnt = 1};

	rig_connect();
	assert_int_equal(drain(A, true), 0);
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_RETRY_CNT, NULL), 0);
	end_run(A, 9);
	assert_int_equal(A->events, 1);
}

TEST(qp_modify__sqd_still_receives_and_answers)
{
	rig_connect();
	assert_int_equal(drain(A, false), 0);
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	assert_int_equal(end_send(B, 3, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	rig_run();
	end_received(A, 1, IBV_WC_SUCCESS);
	end_sent(B, 2, IBV_WC_SUCCESS);
	end_sent(B, 3, IBV_WC_SUCCESS);
}

TEST(qp_modify__sqd_sends_again_what_was_lost)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	end_run(A, 9);
	catcher_clear(&A->catcher);
	assert_int_equal(drain(A, true), 0);
	end_time_out(A);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_int_equal(A->events, 1);
}

TEST(qp_modify__sqd_takes_other_retries_and_resources)
{
	struct ibv_qp_attr attr = {.timeout = TIMEOUT + 1,
				   .retry_cnt = 1,
				   .rnr_retry = 1,
				   .max_rd_atomic = 1,
				   .max_dest_rd_atomic = 2,
				   .min_rnr_timer = 1};
	const int mask = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	rig_connect();
	/* A READ is owed when the resources change. */
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 2 * MTU, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(drain(A, false), 0);
	assert_int_equal(qp_modify(A->qp, &attr, mask, NULL), 0);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	rig_run();
	end_sent(B, 1, IBV_WC_SUCCESS);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 1);
	assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns + 2 * TIMEOUT_NS);
}

TEST(qp_modify__sqd_takes_another_path)
{
	static const uint8_t elsewhere[16] = {[10] = 0xff, 0xff, 10, 0, 0, 3};
	struct path_attr path = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};
	struct ibv_qp_attr attr = A->attr;

	rig_connect();
	assert_int_equal(drain(A, false), 0);
	memcpy(path.sgid, A->gid, 16);
	memcpy(path.dgid, elsewhere, 16);
	memcpy(attr.ah_attr.grh.dgid.raw, elsewhere, 16);
	assert_int_equal(path_init(&A->path, &path), 0);
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_AV, &A->path), 0);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_memory_equal(catcher_at(&A->catcher, 0)->dgid, elsewhere, 16);
}

TEST(qp_limit_rate__is_set_asked_for_and_forgotten)
{
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = RATE_MAX, .max_burst_sz = 4096};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.rate_limit = 7};

	assert_int_equal(qp_limit_rate(A->qp, &limit), -EINVAL);
	rig_connect();
	qp_query(A->qp, &attr, &init);
	assert_int_equal(attr.rate_limit, 0);
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	qp_query(A->qp, &attr, &init);
	assert_int_equal(attr.rate_limit, RATE_MAX);
	limit.rate_limit = RATE_MAX + 1;
	assert_int_equal(qp_limit_rate(A->qp, &limit), -EINVAL);
	limit.rate_limit = 0;
	assert_int_equal(qp_limit_rate(A->qp, &limit), -EINVAL);
	limit.max_burst_sz = 0;
	limit.typical_pkt_sz = 64;
	assert_int_equal(qp_limit_rate(A->qp, &limit), -EINVAL);
	limit.typical_pkt_sz = 0;
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	attr.rate_limit = 5000;
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_RATE_LIMIT, NULL), 0);
	qp_query(A->qp, &attr, &init);
	assert_int_equal(attr.rate_limit, 5000);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	qp_query(A->qp, &attr, &init);
	assert_int_equal(attr.rate_limit, 0);
}

TEST(qp_limit_rate__of_who_does_not_send)
{
	const struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1000};

	end_recreate(A, IBV_QPT_XRC_RECV, NULL);
	end_raise(A, IBV_QPS_RTS);
	assert_int_equal(qp_limit_rate(A->qp, &limit), -EINVAL);
}

/* Programs do this that treat XRC queue pairs like RC ones. */
TEST(qp_modify__xrc_passes_over_what_the_other_half_has)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	end_recreate(A, IBV_QPT_XRC_SEND, NULL);
	end_recreate(B, IBV_QPT_XRC_RECV, NULL);
	rig_connect();
	qp_query(A->qp, &attr, &init);
	assert_int_equal(attr.retry_cnt, RETRIES);
	assert_int_equal(attr.min_rnr_timer, 0);
	qp_query(B->qp, &attr, &init);
	assert_int_equal(attr.retry_cnt, 0);
	assert_int_equal(attr.min_rnr_timer, RNR_CODE);
}
