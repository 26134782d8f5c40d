/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of faults between two queue pairs (lib/qp/run.c): the completions, events and states at
 * both ends. */
#include <stddef.h>
#include <stdint.h>

#include "qp_rig.h"
#include "queues.h"
#include "test.h"
#include "wire/headers.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

static void expect_refused(enum ibv_wr_opcode opcode, uint32_t length, enum ibv_wc_status status,
			   enum ibv_event_type event)
{
	rig_connect();
	assert_int_equal(end_receive(B, 20, 0, MTU), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, opcode, 0, length, MEMORY - length + 8), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(B, 4, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, status);
	end_sent(A, 3, IBV_WC_WR_FLUSH_ERR);
	end_expect_error(A);
	end_expect_error(B);
	assert_int_equal(B->events, 1);
	end_expect_event(B, 0, event);
	assert_int_equal(A->events, 0);
	end_received(B, 20, IBV_WC_WR_FLUSH_ERR);
	/* No request of B's is at fault. */
	end_sent(B, 4, IBV_WC_WR_FLUSH_ERR);
}

/* The READ's memory goes after the WRITE behind it has ended the queue pair. */
TEST(qp_run__a_second_fault_raises_no_second_event)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 4 * MTU, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	end_run(A, 9);
	end_deliver(A);
	end_expect_error(B);
	region_deregister(&B->memory);
	while (end_run(B, 9))
		;
	assert_int_equal(B->events, 1);
	end_expect_event(B, 0, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(qp_run__memory_beyond_the_peers_region)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (size_t i = 0; i < 3; i++) {
		expect_refused(opcodes[i], i == 2 ? 8 : 4 * MTU, IBV_WC_REM_ACCESS_ERR,
			       IBV_EVENT_QP_ACCESS_ERR);
		assert_int_equal(rig_counter(COUNTER_resp_remote_access_errors), 1);
		assert_int_equal(rig_counter(COUNTER_req_remote_access_errors), 1);
		qp_rig_tear_down(state);
		qp_rig_set_up(state);
	}
}

TEST(qp_run__an_operation_that_the_peer_does_not_allow)
{
	B->attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	expect_refused(IBV_WR_RDMA_READ, 8, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

TEST(qp_run__a_message_longer_than_its_receive)
{
	rig_connect();
	assert_int_equal(end_receive(B, 10, 0, 8), 0);
	assert_int_equal(end_receive(B, 11, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 9, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_REM_INV_REQ_ERR);
	end_received(B, 10, IBV_WC_LOC_LEN_ERR);
	end_received(B, 11, IBV_WC_WR_FLUSH_ERR);
	end_expect_error(A);
	end_expect_error(B);
	/* The completions tell. */
	assert_int_equal(B->events, 0);
}

TEST(qp_run__a_receive_whose_memory_may_not_be_written)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_recv_wr wr = {.wr_id = 10, .sg_list = &sge, .num_sge = 1}, *bad;

	rig_connect();
	assert_int_equal(qp_post_recv(B->qp, &wr, &bad), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 9, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_REM_OP_ERR);
	end_received(B, 10, IBV_WC_LOC_PROT_ERR);
	end_expect_error(A);
	end_expect_error(B);
}

TEST(qp_run__our_own_memory_may_not_be_read)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_send_wr wr = {.wr_id = 2, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1},
			   *bad;

	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	/* The WRITE before it is lost once, and completes all the same. */
	rig.lose[0] = 2;
	end_run(A, 9);
	end_deliver(A);
	rig_run();
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTS);
	end_time_out(A);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_LOC_PROT_ERR);
	end_sent(A, 3, IBV_WC_WR_FLUSH_ERR);
	end_expect_error(A);
	assert_int_equal(qp_state(B->qp), IBV_QPS_RTS);
}

TEST(qp_run__memory_deregistered_while_it_is_read)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 4 * MTU, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	end_run(B, 2);
	end_deliver(B);
	region_deregister(&B->memory);
	rig_run();
	end_sent(A, 1, IBV_WC_REM_ACCESS_ERR);
	end_expect_error(A);
	end_expect_error(B);
	assert_int_equal(B->events, 1);
	end_expect_event(B, 0, IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(rig_counter(COUNTER_resp_remote_access_errors), 1);
	region_expect_pattern(&A->memory, 2 * MTU, 8 * MTU, SEED);
}

TEST(qp_run__in_error_says_why_and_nothing_more)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	end_run(A, 9);
	end_deliver(A);
	assert_int_equal(end_send(B, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_expect_error(B);
	assert_false(end_run(B, 9));
	assert_int_equal(B->catcher.count, 1);
	assert_int_equal(catcher_at(&B->catcher, 0)->syndrome, AETH_NAK | NAK_REMOTE_ACCESS);
	end_sent(B, 2, IBV_WC_WR_FLUSH_ERR);
}

TEST(qp_run__a_completion_queue_that_overruns)
{
	end_recreate_with_small_cq(A);
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_expect_error(A);
	assert_int_equal(A->events, 1);
	end_expect_event(A, 0, IBV_EVENT_QP_FATAL);
	assert_int_equal(rig_counter(COUNTER_cq_overrun), 1);
}
