/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of losses and timers between two queue pairs (lib/qp/run.c). */
#include <stdint.h>

#include "qp_rig.h"
#include "test.h"
#include "transport/recovery.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

TEST(qp_timeout__what_was_lost_is_sent_again)
{
	for (unsigned int lost = 1; lost <= 6; lost++) {
		for (unsigned int e = 0; e < 2; e++) {
			rig_connect();
			assert_int_equal(end_receive(B, 10, 0, 2 * MTU), 0);
			assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 2 * MTU, 0), 0);
			assert_int_equal(
				end_send(A, 2, IBV_WR_RDMA_READ, 20 * MTU, 3 * MTU, 40 * MTU), 0);
			assert_int_equal(
				end_send(A, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 60 * MTU, 8, 63 * MTU),
				0);
			rig.lose[e] = lost;
			rig_run();
			while (qp_deadline_ns(A->qp) != UINT64_MAX) {
				end_time_out(A);
				rig_run();
			}
			for (uint64_t i = 1; i <= 3; i++)
				end_sent(A, i, IBV_WC_SUCCESS);
			end_received(B, 10, IBV_WC_SUCCESS);
			assert_memory_equal(B->memory.bytes, A->memory.bytes, 2 * MTU);
			assert_memory_equal(A->memory.bytes + 20 * MTU, B->memory.bytes + 40 * MTU,
					    3 * MTU);
			/* Exactly once. */
			assert_int_equal(*(uint64_t *)(void *)(B->memory.bytes + 63 * MTU),
					 *(uint64_t *)(void *)(A->memory.bytes + 60 * MTU) + 1);
			qp_rig_tear_down(state);
			qp_rig_set_up(state);
		}
	}
}

/* Nobody can tell if an answer is to the first transmission or to the second. */
TEST(qp_run__times_nothing_that_is_sent_again)
{
	A->attr.timeout = 14;
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, MTU, 8, MTU), 0);
	rig.lose[0] = 1;
	end_run(A, 9);
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	/* Everything is sent again. */
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 2);
	rig.now_ns += RECOVERY_RETRANSMIT_NS;
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
	/* A probe waits as before. */
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns + RECOVERY_RETRANSMIT_NS);
	/* A packet that is sent once is timed. */
	rig.now_ns += RECOVERY_RETRANSMIT_NS;
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	end_sent(A, 3, IBV_WC_SUCCESS);
	assert_int_equal(end_send(A, 4, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(qp_deadline_ns(A->qp),
			 rig.now_ns + RECOVERY_RETRANSMIT_FACTOR * RECOVERY_RETRANSMIT_NS);
}

TEST(qp_timeout__a_silent_peer_is_given_up)
{
	/* Swift's window shrinks to one packet. */
	const unsigned int least = rig.cc.kind == CC_SWIFT ? 1 : 2;

	rig_connect();
	assert_int_equal(end_receive(A, 9, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	for (int i = 0; i <= RETRIES; i++) {
		end_run(A, 9);
		assert_in_range(A->catcher.count, least, 2);
		catcher_clear(&A->catcher);
		assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns + TIMEOUT_NS);
		end_time_out(A);
	}
	end_sent(A, 1, IBV_WC_RETRY_EXC_ERR);
	end_sent(A, 2, IBV_WC_WR_FLUSH_ERR);
	end_received(A, 9, IBV_WC_WR_FLUSH_ERR);
	end_expect_error(A);
}

TEST(qp_timeout__an_early_call_does_nothing)
{
	rig_connect();
	qp_timeout(A->qp, rig.now_ns, &A->catcher.sink);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	qp_timeout(A->qp, rig.now_ns + TIMEOUT_NS - 1, &A->catcher.sink);
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 1);
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 0);
	/* Nor does one that was due before an error. */
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	qp_timeout(A->qp, rig.now_ns + 2 * TIMEOUT_NS, &A->catcher.sink);
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 0);
}

TEST(qp_timeout__a_timeout_of_zero_waits_for_ever)
{
	A->attr.timeout = 0;
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
}

TEST(qp_timeout__waits_for_a_receiver_that_is_not_ready)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 2 * MTU, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, 0, 8, 0), 0);
	for (int i = 0; i < RETRIES; i++) {
		rig_run();
		assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns + RNR_NS);
		end_time_out(A);
	}
	assert_int_equal(end_receive(B, 10, 0, 2 * MTU), 0);
	assert_int_equal(end_receive(B, 11, 0, 2 * MTU), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
	end_received(B, 10, IBV_WC_SUCCESS);
	end_received(B, 11, IBV_WC_SUCCESS);
}

/* Its program may post a receive only when its own request is acknowledged. */
TEST(qp_receive__acknowledges_at_once_after_an_rnr_nak)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	assert_false(qp_sched(A->qp)->acks_at_once);
	rig_run();
	assert_true(qp_sched(A->qp)->acks_at_once);
	assert_false(qp_sched(B->qp)->acks_at_once);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	rig_connect();
	assert_int_equal(end_receive(B, 10, 0, 8), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_false(qp_sched(A->qp)->acks_at_once);
}

/* So it is for each request that takes a receive. */
TEST(qp_receive__acknowledges_at_once_after_an_rnr_nak_to_any_message)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
						     IBV_WR_RDMA_WRITE_WITH_IMM};

	for (size_t i = 0; i < RTE_DIM(opcodes); i++) {
		rig_connect();
		assert_int_equal(end_send(A, 1, opcodes[i], 0, 8, 0), 0);
		rig_run();
		assert_true(qp_sched(A->qp)->acks_at_once);
		assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
		assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	}
}

TEST(qp_timeout__gives_up_a_receiver_that_stays_not_ready)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	for (int i = 0; i < RETRIES; i++) {
		rig_run();
		assert_int_equal(qp_state(A->qp), IBV_QPS_RTS);
		end_time_out(A);
	}
	rig_run();
	end_sent(A, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	end_expect_error(A);
	assert_int_equal(qp_state(B->qp), IBV_QPS_RTS);
}
