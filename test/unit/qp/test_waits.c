/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/waits.c. */
#include "qp_rig.h"
#include "test.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

TEST(qp_waits_for__a_poll_and_then_for_the_answer)
{
	rig_connect();
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_NOTHING);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_POLL);
	end_run(A, 9);
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_ANSWER);
	end_deliver(A);
	rig_run();
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_NOTHING);
	assert_int_equal(qp_waits_for(B->qp), QP_WAITS_NOTHING);
}

TEST(qp_waits_for__an_answer_that_does_not_come)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	rig.now_ns += 2 * TIMEOUT_NS;
	qp_timeout(A->qp, rig.now_ns, &A->catcher.sink);
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_ANSWER_AGAIN);
}

TEST(qp_waits_for__a_receive_request_of_the_peer)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_RECEIVE);
}

TEST(qp_waits_for__nothing_in_error)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_NOTHING);
}

TEST(qp_waits_name__knows_what_it_knows)
{
	assert_null(qp_waits_name(QP_WAITS_NOTHING));
	assert_string_equal(qp_waits_name(QP_WAITS_PAGE), "page");
	assert_null(qp_waits_name(QP_WAITS_POLL + 1));
}
