/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/qp.c: when work may be posted to a queue pair. */
#include <errno.h>
#include <stdint.h>

#include "qp_rig.h"
#include "queue/sq_build.h"
#include "queues.h"
#include "test.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

/* ibv_post_send(3), ibv_post_recv(3), IBTA 10.3.1: what each state does with posted work. */

TEST(qp_post_send__only_from_rts_on)
{
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), EINVAL);
	for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTR; s++) {
		assert_int_equal(end_modify(A, (enum ibv_qp_state)s), 0);
		assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), EINVAL);
	}
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, 0, 8, 0), 0);
	assert_int_equal(end_modify(A, IBV_QPS_SQD), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_SEND, 0, 8, 0), 0);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	end_sent(A, 2, IBV_WC_WR_FLUSH_ERR);
	end_sent(A, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(end_send(A, 4, IBV_WR_SEND, 0, 8, 0), 0);
	end_idle(A);
	end_run(A, 1);
	end_sent(A, 4, IBV_WC_WR_FLUSH_ERR);
	end_idle(A);
}

/* A list that is refused leaves the queue to the next thread. */
TEST(qp_post_built__only_from_rts_on)
{
	struct sq *sq = qp_sq(A->qp);

	end_raise(A, IBV_QPS_RTR);
	sq_build_start(sq, 1u << IBV_WR_SEND);
	assert_non_null(sq_build_next(sq, IBV_WR_SEND, 1, 0));
	assert_int_equal(qp_post_built(A->qp), EINVAL);
	assert_false(rte_spinlock_is_locked(&sq->lock.spin));
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	assert_false(end_run(A, 9));
	assert_int_equal(A->catcher.count, 0);
	sq_build_start(sq, 1u << IBV_WR_SEND);
	assert_non_null(sq_build_next(sq, IBV_WR_SEND, 2, 0));
	sq_build_sge_list(sq, 0, NULL);
	assert_int_equal(qp_post_built(A->qp), 0);
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 1);
}

/* Requests that fail by order of the user. */

TEST(qp_post_failure__completes_with_its_status)
{
	const struct ibv_send_wr wr = {.wr_id = 2, .opcode = IBV_WR_SEND};

	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(qp_post_failure(A->qp, &wr, IBV_WC_RETRY_EXC_ERR), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_RETRY_EXC_ERR);
	end_expect_error(A);
}

TEST(qp_post_failure__refuses_what_is_no_failure)
{
	const struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	const struct ibv_send_wr unknown = {.opcode = (enum ibv_wr_opcode)32};

	end_raise(A, IBV_QPS_RTR);
	assert_int_equal(qp_post_failure(A->qp, &wr, IBV_WC_RETRY_EXC_ERR), EINVAL);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	assert_int_equal(qp_post_failure(A->qp, &wr, IBV_WC_SUCCESS), EINVAL);
	assert_int_equal(qp_post_failure(A->qp, &unknown, IBV_WC_RETRY_EXC_ERR), EINVAL);
	assert_true(qp_is_quiet(A->qp));
}

TEST(qp_fail_built__completes_with_its_status)
{
	struct sq *sq = qp_sq(A->qp);
	struct send_wqe *wqe;

	rig_connect();
	sq_build_start(sq, 1u << IBV_WR_SEND);
	wqe = sq_build_next(sq, IBV_WR_SEND, 1, 0);
	assert_non_null(wqe);
	qp_fail_built(wqe, IBV_WC_REM_OP_ERR);
	assert_int_equal(qp_post_built(A->qp), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_REM_OP_ERR);
}

TEST(qp_post_recv__from_init_on)
{
	uint64_t wr_id = 0;

	assert_int_equal(end_receive(A, 9, 0, 8), EINVAL);
	for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++) {
		assert_int_equal(end_modify(A, (enum ibv_qp_state)s), 0);
		assert_int_equal(end_receive(A, wr_id++, 0, 8), 0);
	}
	assert_int_equal(end_modify(A, IBV_QPS_SQD), 0);
	assert_int_equal(end_receive(A, wr_id++, 0, 8), 0);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	assert_int_equal(end_receive(A, wr_id++, 0, 8), 0);
	end_run(A, 1);
	for (uint64_t i = 0; i < wr_id; i++)
		end_received(A, i, IBV_WC_WR_FLUSH_ERR);
	end_idle(A);
}

TEST(qp_post_send__a_full_queue)
{
	rig_connect();
	for (uint64_t i = 0; i < WRS; i++)
		assert_int_equal(end_send(A, i, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, WRS, IBV_WR_RDMA_WRITE, 0, 8, 0), ENOMEM);
	rig_run();
	assert_int_equal(end_send(A, WRS, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	for (uint64_t i = 0; i <= WRS; i++)
		end_sent(A, i, IBV_WC_SUCCESS);
}

TEST(qp_post_recv__not_to_a_queue_that_is_shared)
{
	struct srq *srq;

	assert_int_equal(srq_create(4, 2, rig.fixture.pd, &srq), 0);
	end_recreate(A, IBV_QPT_RC, srq);
	assert_int_equal(srq_destroy(srq), -EBUSY);
	end_raise(A, IBV_QPS_RTS);
	assert_int_equal(end_receive(A, 1, 0, 8), EINVAL);
	end_recreate(A, IBV_QPT_RC, NULL);
	assert_int_equal(srq_destroy(srq), 0);
}

/* The peer is told that there is none, and asks again. */
TEST(qp_show_receives__a_message_finds_no_hidden_request)
{
	rig_connect();
	assert_int_equal(end_receive(B, 10, 0, 8), 0);
	assert_false(qp_hides_receives(B->qp));
	qp_show_receives(B->qp, false);
	assert_true(qp_hides_receives(B->qp));
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_idle(B);
	qp_show_receives(B->qp, true);
	assert_false(qp_hides_receives(B->qp));
	end_time_out(A);
	rig_run();
	end_received(B, 10, IBV_WC_SUCCESS);
}

TEST(qp_show_receives__a_shared_queue_hides_nothing)
{
	struct ibv_recv_wr wr = {.wr_id = 10}, *bad;
	struct srq *srq;

	assert_int_equal(srq_create(4, 2, rig.fixture.pd, &srq), 0);
	end_recreate(B, IBV_QPT_RC, srq);
	rig_connect();
	assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	qp_show_receives(B->qp, false);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 0, 0), 0);
	rig_run();
	end_received(B, 10, IBV_WC_SUCCESS);
	end_recreate(B, IBV_QPT_RC, NULL);
	assert_int_equal(srq_destroy(srq), 0);
}
