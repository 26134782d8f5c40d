/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/run.c between two UC queue pairs. */
#include <stdint.h>

#include "qp_rig.h"
#include "test.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

static void connect_unreliable(void)
{
	end_recreate(A, IBV_QPT_UC, NULL);
	end_recreate(B, IBV_QPT_UC, NULL);
	rig_connect();
}

TEST(qp_run__unreliable_a_loss_is_nobodys_fault)
{
	connect_unreliable();
	assert_int_equal(end_receive(B, 10, 0, 4 * MTU), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 3 * MTU, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, MTU, 2 * MTU, 0), 0);
	rig.lose[0] = 2;
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(end_received(B, 10, IBV_WC_SUCCESS).byte_len, 2 * MTU);
	assert_memory_equal(B->memory.bytes, A->memory.bytes + MTU, 2 * MTU);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
}

/* Its first packet has left. */
TEST(qp_run__unreliable_a_bad_request_stops_the_sending_half)
{
	struct ibv_sge sge[] = {region_sge(&A->memory, 0, MTU),
				{.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY}};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 2},
			   *bad;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	connect_unreliable();
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_LOC_PROT_ERR);
	end_sent(A, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_SQE);
	assert_int_equal(end_receive(A, 10, 0, 8), 0);
	assert_int_equal(end_send(B, 3, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_received(A, 10, IBV_WC_SUCCESS);
	assert_int_equal(end_send(A, 4, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 4, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE, NULL), 0);
	assert_int_equal(end_receive(B, 11, 0, 8), 0);
	assert_int_equal(end_send(A, 5, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 5, IBV_WC_SUCCESS);
	end_received(B, 11, IBV_WC_SUCCESS);
}

/* Nothing runs the queue pair again. */
TEST(qp_run__unreliable_a_bad_request_flushes_those_behind_it_at_once)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1},
			   *bad;

	connect_unreliable();
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, 0, 8, 0), 0);
	assert_false(end_run(A, 9));
	end_sent(A, 1, IBV_WC_LOC_PROT_ERR);
	end_sent(A, 2, IBV_WC_WR_FLUSH_ERR);
}

TEST(qp_run__unreliable_a_wrong_key_to_invalidate_stops_the_sending_half)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_LOCAL_INV}, *bad;

	connect_unreliable();
	wr.invalidate_rkey = FIXTURE_NOBODY;
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_MW_BIND_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_SQE);
}

/* A receive that fails stops both halves. */
TEST(qp_run__unreliable_a_bad_receive_is_an_error)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_recv_wr wr = {.wr_id = 10, .sg_list = &sge, .num_sge = 1}, *bad;

	connect_unreliable();
	assert_int_equal(qp_post_recv(B->qp, &wr, &bad), 0);
	assert_int_equal(end_receive(B, 11, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_received(B, 10, IBV_WC_LOC_PROT_ERR);
	end_received(B, 11, IBV_WC_WR_FLUSH_ERR);
	end_expect_error(B);
}

/* READ and atomic requests fail: UC has no answers. */
TEST(qp_run__unreliable_what_wants_an_answer_fails)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (uint64_t i = 0; i < 2; i++) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

		connect_unreliable();
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		assert_int_equal(end_send(A, 2, opcodes[i], 0, 8, 0), 0);
		assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		rig_run();
		end_sent(A, 1, IBV_WC_SUCCESS);
		end_sent(A, 2, IBV_WC_LOC_QP_OP_ERR);
		end_sent(A, 3, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(qp_state(A->qp), IBV_QPS_SQE);
		assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE, NULL), 0);
		assert_int_equal(end_send(A, 4, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		rig_run();
		end_sent(A, 4, IBV_WC_SUCCESS);
	}
}
