/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/run.c, between two queue pairs: the order of traffic, pacing, and quiet queue
 * pairs. */
#include <stdint.h>

#include "mem/mw.h"
#include "qp_rig.h"
#include "queues.h"
#include "test.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

TEST(qp_run__carries_each_kind_of_work)
{
	uint64_t *counter_at = (uint64_t *)(void *)(B->memory.bytes + 32 * MTU);

	rig_connect();
	*counter_at = 41;
	assert_int_equal(end_receive(B, 10, 0, 3 * MTU), 0);
	assert_int_equal(end_receive(B, 11, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 8 * MTU, 2 * MTU + 3, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 16 * MTU, 3 * MTU, 4 * MTU), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, MTU, 8 * MTU), 0);
	assert_int_equal(end_send(A, 4, IBV_WR_RDMA_READ, 40 * MTU, 2 * MTU + 1, 50 * MTU), 0);
	assert_int_equal(end_send(A, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, 60 * MTU, 8, 32 * MTU), 0);
	assert_int_equal(end_send(A, 6, IBV_WR_SEND, 0, 0, 0), 0);
	assert_int_equal(end_receive(B, 12, 0, 8), 0);
	rig_run();
	for (uint64_t i = 1; i <= 6; i++)
		end_sent(A, i, IBV_WC_SUCCESS);
	assert_int_equal(end_received(B, 10, IBV_WC_SUCCESS).byte_len, 2 * MTU + 3);
	assert_int_equal(end_received(B, 11, IBV_WC_SUCCESS).src_qp, FIXTURE_QPN);
	assert_int_equal(end_received(B, 12, IBV_WC_SUCCESS).byte_len, 0);
	end_idle(A);
	end_idle(B);
	assert_memory_equal(B->memory.bytes, A->memory.bytes + 8 * MTU, 2 * MTU + 3);
	assert_memory_equal(B->memory.bytes + 4 * MTU, A->memory.bytes + 16 * MTU, 3 * MTU);
	assert_memory_equal(B->memory.bytes + 8 * MTU, A->memory.bytes, MTU);
	assert_memory_equal(A->memory.bytes + 40 * MTU, B->memory.bytes + 50 * MTU, 2 * MTU + 1);
	assert_int_equal(*counter_at, 42);
	assert_int_equal(*(uint64_t *)(void *)(A->memory.bytes + 60 * MTU), 41);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	assert_int_equal(A->events + B->events, 0);
}

TEST(qp_run__answers_before_it_asks_and_keeps_to_the_budget)
{
	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 3 * MTU, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_true(end_run(A, 1));
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	assert_true(end_run(A, 1));
	assert_true(end_run(A, 1));
	catcher_clear(&A->catcher);
	assert_true(end_run(A, 1));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_WRITE_FIRST);
	assert_false(end_run(A, 1));
	assert_int_equal(A->catcher.count, 2);
	assert_false(end_run(A, 1));
	assert_int_equal(A->catcher.count, 2);
}

TEST(qp_run__a_reply_comes_behind_the_acknowledgement)
{
	rig_connect();
	assert_int_equal(end_receive(A, 10, 0, MTU), 0);
	assert_int_equal(end_send(B, 1, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, 0, 8, 0), 0);
	assert_false(end_run(A, 9));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_ACKNOWLEDGE);
	assert_int_equal(catcher_at(&A->catcher, 1)->opcode, OPCODE_SEND_ONLY);
}

TEST(qp_run__what_the_peer_looks_for_in_memory_comes_first)
{
	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_false(end_run(A, 9));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_WRITE_ONLY);
	assert_int_equal(catcher_at(&A->catcher, 1)->opcode, OPCODE_ACKNOWLEDGE);
}

TEST(qp_run__a_peer_that_reads_on_leaves_requests_their_share)
{
	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 32 * MTU, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 40 * MTU), 0);
	assert_true(end_run(A, 4));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_READ_RESPONSE_FIRST);
	catcher_clear(&A->catcher);
	assert_true(end_run(A, 4));
	assert_int_equal(catcher_at(&A->catcher, 1)->opcode, OPCODE_WRITE_LAST);
	assert_int_equal(catcher_at(&A->catcher, 2)->opcode, OPCODE_READ_RESPONSE_MIDDLE);
	assert_int_equal(A->catcher.count, 4);
	/* What they leave of it is for responses. */
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, MTU, 40 * MTU), 0);
	assert_true(end_run(A, 4));
	catcher_clear(&A->catcher);
	assert_true(end_run(A, 4));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_WRITE_ONLY);
	assert_int_equal(A->catcher.count, 4);
}

/* The requests that waited have had their share: the next ones wait for acknowledgements again. */
TEST(qp_run__requests_that_waited_go_first_once)
{
	rig_connect();
	assert_int_equal(end_receive(A, 10, 0, 8), 0);
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 5 * MTU, 0), 0);
	assert_int_equal(end_send(B, 3, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 1);
	end_deliver(B);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, MTU, 40 * MTU), 0);
	assert_true(end_run(A, 4));
	catcher_clear(&A->catcher);
	assert_false(end_run(A, 4));
	assert_int_equal(A->catcher.count, 2);
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_WRITE_ONLY);
	catcher_clear(&A->catcher);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(end_send(A, 4, IBV_WR_SEND, 0, 8, 0), 0);
	assert_false(end_run(A, 9));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_ACKNOWLEDGE);
	assert_int_equal(catcher_at(&A->catcher, 1)->opcode, OPCODE_SEND_ONLY);
}

/* They were complete before their share came: the next ones have waited for nothing. */
TEST(qp_run__requests_that_need_not_wait_any_more_do_not_go_first)
{
	rig_connect();
	assert_int_equal(end_receive(A, 10, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 40 * MTU), 0);
	end_run(A, 9);
	assert_int_equal(end_send(B, 2, IBV_WR_RDMA_READ, 0, 5 * MTU, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_true(end_run(A, 2));
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
	rig_run();
	assert_int_equal(end_send(B, 3, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(end_send(A, 4, IBV_WR_SEND, 0, 8, 0), 0);
	assert_false(end_run(A, 9));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_ACKNOWLEDGE);
}

TEST(qp_run__a_read_that_no_answer_may_be_awaited_for_fails)
{
	A->attr.max_rd_atomic = 0;
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_LOC_QP_OP_ERR);
	end_expect_error(A);
}

TEST(qp_run__owes_no_answers_after_its_own_fault)
{
	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 32 * MTU, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	end_run(A, 2);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	end_run(A, 4);
	end_run(A, 4);
	catcher_clear(&A->catcher);
	for (int i = 0; i <= RETRIES; i++)
		end_time_out(A);
	end_sent(A, 2, IBV_WC_RETRY_EXC_ERR);
	assert_false(end_run(A, 9));
	assert_int_equal(A->catcher.count, 0);
}

TEST(qp_run__waits_for_a_port_that_takes_nothing)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	A->catcher.room = 1;
	assert_true(end_run(A, 9));
	assert_int_equal(A->catcher.count, 1);
	end_deliver(A);
	assert_false(end_run(A, 9));
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_run__gives_up_on_a_port_that_never_takes_anything)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	for (int i = 0; i <= RETRIES; i++) {
		A->catcher.room = 0;
		assert_true(end_run(A, 9));
		end_time_out(A);
	}
	end_sent(A, 1, IBV_WC_RETRY_EXC_ERR);
	end_expect_error(A);
}

TEST(qp_run__a_port_that_was_stuck_before_local_work_is_no_silent_peer)
{
	struct ibv_mw window = {.type = IBV_MW_TYPE_1};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW, .bind_mw.mw = &window}, *bad;
	struct mw *mw;

	rig_connect();
	assert_int_equal(mw_create(rig.fixture.pd, IBV_MW_TYPE_1, &mw), 0);
	window.rkey = mw->view.key;
	wr.bind_mw.rkey = ibv_inc_rkey(window.rkey);
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_true(end_run(A, 0));
	assert_false(end_run(A, 9));
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	mw_destroy(mw);
}

TEST(qp_run__a_shared_queue_is_not_flushed)
{
	struct ibv_recv_wr wr = {.wr_id = 10}, *bad;
	struct srq *srq;

	assert_int_equal(srq_create(4, 2, rig.fixture.pd, &srq), 0);
	end_recreate(B, IBV_QPT_RC, srq);
	rig_connect();
	for (int i = 0; i < 2; i++)
		assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 0, 0), 0);
	rig_run();
	end_received(B, 10, IBV_WC_SUCCESS);
	assert_int_equal(end_modify(B, IBV_QPS_ERR), 0);
	end_run(B, 9);
	end_idle(B);
	assert_int_equal(srq->rq.prod - srq->rq.cons, 1);
	/* The program may destroy the queue pair, and is told so once. */
	assert_int_equal(end_modify(B, IBV_QPS_ERR), 0);
	assert_int_equal(B->events, 1);
	end_expect_event(B, 0, IBV_EVENT_QP_LAST_WQE_REACHED);
	end_recreate(B, IBV_QPT_RC, NULL);
	assert_int_equal(srq_destroy(srq), 0);
}

/* Pacing. */

TEST(qp_run__paced_to_its_rate)
{
	/* The rate lets two packets go at once and the others 8 ms apart. */
	const struct ibv_qp_rate_limit_attr limit = {
		.rate_limit = 300, .max_burst_sz = 2 * (MTU + 74), .typical_pkt_sz = MTU + 74};
	const uint64_t start_ns = rig.now_ns;

	A->attr.retry_cnt = 0;
	rig_connect();
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 7 * MTU, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
	rig_run();
	/* No packet is in flight, so only the pacer's timer runs. */
	for (int i = 0; i < 6; i++) {
		end_idle(A);
		end_time_out(A);
		rig_run();
		if (i == 4)
			end_sent(A, 1, IBV_WC_SUCCESS);
	}
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	/* Six packets of 256 bytes with their headers at 300 bits a millisecond. */
	assert_in_range(rig.now_ns - start_ns, 6 * MTU * UINT64_C(8000000) / 300,
			6 * (MTU + 74) * UINT64_C(8000000) / 300);
	assert_int_equal(rig_counter(COUNTER_retransmitted_packets), 0);
	assert_memory_equal(B->memory.bytes + MTU, A->memory.bytes + MTU, 6 * MTU);
}

/* Return how many requests of one packet leave at once, beside the time that each takes. */
static unsigned int burst(void)
{
	for (uint64_t i = 0; i < WRS; i++)
		assert_int_equal(end_send(A, i, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
	end_run(A, 64);
	return A->catcher.count;
}

/* As long as its program says, if the last packet is as long as the port carries. */
TEST(qp_limit_rate__of_a_burst_without_a_length_of_packets)
{
	const struct ibv_qp_rate_limit_attr limit = {
		.rate_limit = 1000, .max_burst_sz = PACKET_HDR_MAX + 1024 + 2 * (MTU + 74)};

	rig_connect();
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	assert_int_equal(burst(), 3);
}

/* What leaves in a millisecond, less a packet of the port. */
TEST(qp_modify__of_a_rate_has_the_usual_burst)
{
	const struct ibv_qp_attr attr = {.rate_limit = 30000};

	rig_connect();
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_RATE_LIMIT, NULL), 0);
	assert_int_equal(burst(), (30000 / 8 - PACKET_HDR_MAX - 1024) / (MTU + 74) + 1);
}

TEST(qp_run__paced_and_in_error_waits_for_nothing)
{
	const struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1};

	rig_connect();
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 4 * MTU, 0), 0);
	rig_run();
	assert_true(qp_deadline_ns(A->qp) != UINT64_MAX);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	end_sent(A, 1, IBV_WC_WR_FLUSH_ERR);
	end_expect_error(A);
}

/* Queue pairs that need no engine poll. */

TEST(qp_is_quiet__when_all_is_complete_and_nothing_is_owed)
{
	rig_connect();
	assert_true(qp_is_quiet(A->qp));
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_false(qp_is_quiet(A->qp));
	end_run(A, 9);
	assert_false(qp_is_quiet(A->qp));
	end_deliver(A);
	assert_false(qp_is_quiet(B->qp));
	end_run(B, 9);
	assert_true(qp_is_quiet(B->qp));
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_true(qp_is_quiet(A->qp));
	/* A request posted in ERR still has to be flushed. */
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	assert_false(qp_is_quiet(A->qp));
}

/* The pacer holds what is to be sent again, and then its acknowledgement comes. */
TEST(qp_is_quiet__with_no_timer_left)
{
	const struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1};

	rig_connect();
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
	end_run(A, 9);
	end_time_out(A);
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 1);
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_true(qp_is_quiet(A->qp));
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_idle(A);
	end_time_out(A);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
}
