/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/pass.c and lib/qp/run.c: READs that an XRC target passes on, their losses,
 * and the requests behind them. */
#include <stdint.h>

#include "test.h"
#include "xrc_rig.h"

TEST_FIXTURE(xrc_set_up, xrc_tear_down);

TEST(pass__a_read_comes_from_the_other_process)
{
	xrc_post(xrc_far.srq, 2, 0, MTU);
	xrc_send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, 6 * MTU + 9, MTU);
	xrc_send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
	assert_memory_equal(B->memory.bytes + 20 * MTU, A->memory.bytes + MTU, 6 * MTU + 9);
}

TEST(pass__a_read_survives_losses)
{
	for (unsigned int i = 1; i < 5; i++) {
		xrc_lose_passed = i;
		xrc_send_to(FAR, i, IBV_WR_RDMA_READ, 20 * MTU, 4 * MTU, i * MTU);
		xrc_run_with_losses();
		end_sent(B, i, IBV_WC_SUCCESS);
		assert_memory_equal(B->memory.bytes + 20 * MTU, A->memory.bytes + i * MTU, 4 * MTU);
		xrc_lose_answer = i;
		xrc_send_to(FAR, 10 + i, IBV_WR_RDMA_READ, 30 * MTU, 4 * MTU, 2 * i * MTU);
		xrc_run_with_losses();
		end_sent(B, 10 + i, IBV_WC_SUCCESS);
		assert_memory_equal(B->memory.bytes + 30 * MTU, A->memory.bytes + 2 * i * MTU,
				    4 * MTU);
	}
}

TEST(pass__memory_that_is_nobodys_there_is_an_access_error)
{
	struct ibv_sge sge = region_sge(&B->memory, 0, MTU);
	struct ibv_send_wr wr = {.wr_id = 3,
				 .opcode = IBV_WR_RDMA_READ,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	wr.qp_type.xrc.remote_srqn = FAR;
	wr.wr.rdma.remote_addr = 4096;
	wr.wr.rdma.rkey = FIXTURE_NOBODY;
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
	xrc_run();
	end_sent(B, 3, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_ERR);
}

/* The network loses all but some packets that the requester has just sent. */
static void deliver_only(unsigned int count)
{
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	assert_true(count < B->catcher.count);
	for (unsigned int i = 0; i < count; i++)
		qp_receive(A->qp, catcher_at(&B->catcher, i), rig.now_ns);
	catcher_clear(&B->catcher);
}

/* The READ's response is lost, and some of the message behind it has arrived. */
TEST(pass__a_read_is_answered_again_within_a_message)
{
	xrc_post(xrc_far.srq, 2, 0, 8 * MTU);
	xrc_send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, 2 * MTU, 40 * MTU);
	xrc_send_to(FAR, 4, IBV_WR_SEND, 0, 8 * MTU, 0);
	deliver_only(4);
	xrc_lose_response = 1;
	while (xrc_poll(A->qp, &A->catcher) + xrc_poll(xrc_far.qp, &xrc_far.catcher) > 0)
		;
	assert_int_equal(xrc_lose_response, 0);
	assert_int_equal(xrc_passed, 5);
	xrc_run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
	assert_memory_equal(B->memory.bytes + 20 * MTU, A->memory.bytes + 40 * MTU, 2 * MTU);
	assert_memory_equal(A->memory.bytes, B->memory.bytes, 8 * MTU);
}

/* The requester may have got the response, and the program there has deregistered the memory. */
TEST(pass__a_read_that_cannot_be_answered_again_is_no_fault)
{
	xrc_lose_response = 1;
	xrc_send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	xrc_run();
	end_idle(B);
	region_deregister(&A->memory);
	xrc_run_with_losses();
	end_sent(B, 3, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTR);
	assert_int_equal(qp_state(xrc_far.qp), IBV_QPS_RTR);
}

/* A message was passed on twice. The stand-in had no receive request at first, and then one. */
TEST(pass__a_read_is_answered_again_before_a_message_that_was_not_ready)
{
	struct packet packet, read;

	xrc_lose_response = 1;
	xrc_send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	read = xrc_kept(&B->catcher);
	xrc_run();
	xrc_send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	xrc_poll(B->qp, &B->catcher);
	while (qp_run(A->qp, rig.now_ns, &A->catcher.sink, 64))
		;
	assert_int_equal(A->catcher.count, 1);
	packet = *catcher_at(&A->catcher, 0);
	for (int i = 0; i < 2; i++) {
		qp_receive(xrc_far.qp, &packet, rig.now_ns);
		while (qp_run(xrc_far.qp, rig.now_ns, &xrc_far.catcher.sink, 64))
			;
		if (i == 0)
			xrc_post(xrc_far.srq, 2, 0, 8);
	}
	catcher_clear(&A->catcher);
	xrc_deliver(&xrc_far.catcher);
	xrc_lose_response = 1;
	xrc_poll(A->qp, &A->catcher);
	qp_receive(A->qp, &read, rig.now_ns);
	while (xrc_poll(A->qp, &A->catcher) + xrc_poll(xrc_far.qp, &xrc_far.catcher) > 0)
		;
	xrc_run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
	fixture_no_completion(xrc_far.cq);
}

/* Its key is checked in the domain of its shared receive queue, which has ended. */
TEST(pass__a_read_of_a_queue_that_has_ended_is_refused)
{
	struct srq *ended = xrc_far.srq;

	xrc_lose_response = 1;
	xrc_send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	xrc_run();
	qp_forget_srq(xrc_far.qp, ended, true);
	xrc_far.srq = NULL;
	xrc_run_with_losses();
	xrc_far.srq = ended;
	end_sent(B, 3, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTR);
}

/* The requester sends the READ again, but not the message that is behind it. */
TEST(pass__a_lost_message_does_not_hold_a_read_back)
{
	struct packet packet;

	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_lose_response = 1;
	xrc_lose_passed = 2;
	xrc_send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	packet = xrc_kept(&B->catcher);
	xrc_send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	assert_int_equal(xrc_lose_passed, 0);
	end_idle(B);
	qp_receive(A->qp, &packet, rig.now_ns);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
}

/* The port is full when the last response of a READ could be sent. */
TEST(pass__a_request_behind_a_read_goes_on_when_the_port_has_room)
{
	xrc_post(xrc_far.srq, 2, 0, MTU);
	xrc_send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	xrc_send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	xrc_poll(B->qp, &B->catcher);
	xrc_poll(A->qp, &A->catcher);
	while (qp_run(xrc_far.qp, rig.now_ns, &xrc_far.catcher.sink, 64))
		;
	xrc_deliver(&xrc_far.catcher);
	assert_true(qp_run(A->qp, rig.now_ns, &A->catcher.sink, 0));
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
}

static void note(struct qp *qp, void *arg)
{
	(void)arg;
	assert_ptr_equal(qp, A->qp);
}

/* Pages come for whatever queue pair; the requester has not sent its request again. */
TEST(pass__a_request_in_flight_is_not_passed_again_when_a_page_comes)
{
	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_send_to(FAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	xrc_send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	xrc_poll(B->qp, &B->catcher);
	for (unsigned int i = 1; i <= 2; i++) {
		xrc_poll(A->qp, &A->catcher);
		assert_int_equal(xrc_passed, i);
		qp_wake_waiting(&rig.waiting, note, NULL);
		xrc_poll(A->qp, &A->catcher);
		assert_int_equal(xrc_passed, i);
		xrc_poll(xrc_far.qp, &xrc_far.catcher);
	}
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
}
