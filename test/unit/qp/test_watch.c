/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of qp_watch (lib/qp/watch.c): what a user is told of a queue pair that waits in vain. */
#include <stdint.h>

#include "away.h"
#include "printed.h"
#include "qp_rig.h"
#include "test.h"

#define BEFORE_ENOUGH_NS (QP_WATCH_NS - 1)

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

/* Look at A after so long, and return what is told. */
static const char *watch_after(uint64_t ns)
{
	const char *told;

	rig.now_ns += ns;
	printed_begin();
	qp_watch(A->qp, rig.now_ns);
	told = printed_take();
	printed_end();
	return told;
}

/* A waits from now on. Assert what is told after 2 s: no sooner, and once. */
static void expect_told(const char *text)
{
	assert_string_equal(watch_after(0), "");
	assert_string_equal(watch_after(BEFORE_ENOUGH_NS), "");
	assert_contains(watch_after(1), text);
	assert_string_equal(watch_after(QP_WATCH_NS), "");
}

static void write_eight(uint64_t wr_id)
{
	assert_int_equal(end_send(A, wr_id, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
}

/* Send a request to a peer that has no receive request, and take its answer. */
static void meet_rnr(void)
{
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
}

/* Let programs ask for each completion that they want, as most do. */
static void connect_unsignaled(void)
{
	rig.unsignaled = true;
	end_recreate(A, IBV_QPT_RC, NULL);
	rig_connect();
}

TEST(qp_watch__a_queue_pair_without_work_waits_for_nothing)
{
	rig_connect();
	assert_string_equal(watch_after(0), "");
	assert_string_equal(watch_after(2 * QP_WATCH_NS), "");
	/* The time before the first request does not count. */
	write_eight(1);
	end_run(A, 9);
	assert_string_equal(watch_after(0), "");
}

TEST(qp_watch__a_peer_that_does_not_answer)
{
	rig.now_ns = QP_WATCH_NS;
	rig_connect();
	write_eight(7);
	end_run(A, 9);
	expect_told("uroce: WRITE of 8 bytes (wr_id 7) by queue pair 0x11 to 10.0.0.2 queue pair "
		    "0x345678 waits for 2.0 s: the peer does not answer; it is sent again after "
		    "1.0 ms (timeout), at most 3 times\n");
}

TEST(qp_watch__that_retries_are_used_up_is_no_other_news)
{
	rig_connect();
	write_eight(1);
	end_run(A, 9);
	assert_string_equal(watch_after(0), "");
	end_time_out(A);
	assert_contains(watch_after(QP_WATCH_NS), "the peer does not answer");
	assert_string_equal(watch_after(QP_WATCH_NS), "");
}

TEST(qp_watch__without_a_timeout_nothing_is_sent_again)
{
	A->attr.timeout = 0;
	rig_connect();
	write_eight(1);
	end_run(A, 9);
	expect_told("does not answer; timeout is 0: it is never sent again\n");
}

TEST(qp_watch__a_peer_without_a_receive_request)
{
	rig_connect();
	meet_rnr();
	expect_told("absent; rnr_retry is 3\n");
}

TEST(qp_watch__a_peer_that_is_asked_without_end)
{
	A->attr.rnr_retry = 7;
	rig_connect();
	meet_rnr();
	expect_told("absent; rnr_retry is 7: without end\n");
}

/* Between two RNR NAKs an answer is awaited. */
TEST(qp_watch__a_peer_that_is_asked_again_has_no_receive_request_yet)
{
	rig_connect();
	meet_rnr();
	assert_string_equal(watch_after(0), "");
	end_time_out(A);
	end_run(A, 9);
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_ANSWER);
	assert_contains(watch_after(QP_WATCH_NS), "the peer has no receive request");
}

TEST(qp_watch__what_was_waited_for_before_is_forgotten)
{
	rig_connect();
	meet_rnr();
	assert_string_equal(watch_after(0), "");
	assert_int_equal(end_receive(B, 10, 0, 8), 0);
	end_time_out(A);
	rig_run();
	write_eight(2);
	end_run(A, 9);
	assert_string_equal(watch_after(0), "");
	assert_contains(watch_after(QP_WATCH_NS), "the peer does not answer");
}

TEST(qp_watch__a_page_that_does_not_come)
{
	rig_connect();
	away_begin(rig.fixture.pd);
	A->memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	away_go(A->memory.bytes, MEMORY);
	write_eight(1);
	end_run(A, 9);
	expect_told("a page of a region of this process that is on demand is not in memory\n");
	away_come();
	qp_retire(A->qp);
}

/* It has no request of its own. */
TEST(qp_watch__a_page_that_the_peer_reads)
{
	rig_connect();
	away_begin(rig.fixture.pd);
	A->memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	away_go(A->memory.bytes, MEMORY);
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	end_run(A, 9);
	expect_told("uroce: queue pair 0x11 waits for 2.0 s: a page of a region");
	qp_retire(A->qp);
}

/* The peer has no receive request, but a page that the next request needs is nearer to the user. */
TEST(qp_watch__a_page_comes_before_a_receive_request)
{
	rig_connect();
	meet_rnr();
	assert_string_equal(watch_after(0), "");
	away_begin(rig.fixture.pd);
	A->memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	away_go(A->memory.bytes, MEMORY);
	end_time_out(A);
	end_run(A, 9);
	assert_contains(watch_after(QP_WATCH_NS), "a page of a region");
	away_come();
	qp_retire(A->qp);
}

TEST(qp_watch__a_rate_that_lets_nothing_leave)
{
	const struct ibv_qp_rate_limit_attr limit = {.rate_limit = 5};

	rig_connect();
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	write_eight(1);
	write_eight(2);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	expect_told("its rate does not let it leave (rate_limit 5 kbps, or congestion control)\n");
}

TEST(qp_watch__a_thread_that_does_not_poll)
{
	rig_connect();
	write_eight(1);
	expect_told("no thread runs the queue pair, or the port takes no packets\n");
}

TEST(qp_watch__sqd)
{
	rig_connect();
	assert_int_equal(end_modify(A, IBV_QPS_SQD), 0);
	assert_string_equal(watch_after(0), "");
	assert_string_equal(watch_after(QP_WATCH_NS), "");
	write_eight(1);
	expect_told("the queue pair is in SQD; it sends again in RTS\n");
}

/* The request that was begun must end first. */
TEST(qp_watch__sqd_that_still_drains)
{
	rig_connect();
	write_eight(1);
	end_run(A, 9);
	assert_int_equal(end_modify(A, IBV_QPS_SQD), 0);
	write_eight(2);
	expect_told("the peer does not answer");
}

TEST(qp_watch__other_things_are_told_of_one_queue_pair)
{
	rig_connect();
	write_eight(1);
	assert_string_equal(watch_after(0), "");
	assert_contains(watch_after(QP_WATCH_NS), "no thread runs");
	end_run(A, 9);
	assert_contains(watch_after(0), "the peer does not answer");
}

TEST(qp_watch__each_completion_begins_the_time_anew)
{
	rig_connect();
	for (uint64_t i = 0; i < 3; i++) {
		write_eight(i);
		end_run(A, 9);
		assert_string_equal(watch_after(BEFORE_ENOUGH_NS), "");
		end_deliver(A);
		write_eight(10 + i); /* so that there is always one that waits */
		end_run(B, 9);
		end_deliver(B);
	}
}

TEST(qp_watch__each_new_request_begins_the_time_anew)
{
	rig_connect();
	for (uint64_t i = 0; i < 3; i++) {
		write_eight(i);
		assert_string_equal(watch_after(BEFORE_ENOUGH_NS), "");
	}
}

TEST(qp_watch__each_part_of_an_answer_begins_the_time_anew)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 3 * MTU, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	for (unsigned int i = 0; i < 3; i++) {
		assert_string_equal(watch_after(BEFORE_ENOUGH_NS), "");
		end_run(B, 1);
		end_deliver(B);
	}
}

TEST(qp_watch__a_whole_queue_without_a_completion)
{
	connect_unsignaled();
	for (uint64_t i = 0; i < WRS; i++) {
		write_eight(i);
		rig_run();
	}
	expect_told("queue pair 0x11: none of its last 16 send requests has IBV_SEND_SIGNALED, so "
		    "none has a completion");
}

TEST(qp_watch__less_than_a_queue_without_a_completion_is_usual)
{
	connect_unsignaled();
	for (uint64_t i = 1; i < WRS; i++) {
		write_eight(i);
		rig_run();
	}
	assert_string_equal(watch_after(0), "");
	assert_string_equal(watch_after(QP_WATCH_NS), "");
}

TEST(qp_watch__one_completion_of_a_whole_queue_is_enough)
{
	rig_connect();
	for (uint64_t i = 0; i < WRS; i++) {
		write_eight(i);
		rig_run();
	}
	assert_string_equal(watch_after(0), "");
	assert_string_equal(watch_after(QP_WATCH_NS), "");
}

/* The oldest request of the queue may be the one with a completion. */
TEST(qp_watch__the_oldest_completion_of_a_whole_queue_is_enough)
{
	struct ibv_sge sge = region_sge(&A->memory, 0, 8);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.rdma = {.remote_addr = region_iova(&B->memory, 0),
					     .rkey = B->memory.mr->key}},
			   *bad;

	connect_unsignaled();
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	for (uint64_t i = 1; i < WRS; i++) {
		write_eight(i);
		rig_run();
	}
	assert_string_equal(watch_after(0), "");
	assert_string_equal(watch_after(QP_WATCH_NS), "");
	/* Now it has left the queue. */
	write_eight(WRS);
	rig_run();
	expect_told("none of its last 16");
}

TEST(qp_watch__a_queue_pair_that_cannot_send)
{
	end_recreate(A, IBV_QPT_XRC_RECV, NULL);
	end_raise(A, IBV_QPS_RTS);
	assert_string_equal(watch_after(0), "");
	assert_string_equal(watch_after(QP_WATCH_NS), "");
}
