/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/run.c: a retry is used up only by a packet that left and was not acknowledged in
 * its time (transport/recovery.h), whatever holds packets back. */
#include <stdint.h>

#include "../../../lib/qp/qp_internal.h"
#include "away.h"
#include "qp_rig.h"
#include "test.h"

#define SLOW_KBPS 100 /* a packet of MTU bytes takes 20 ms, longer than all retries */

static struct cc_paths paths;

static int set_up(void **state)
{
	qp_rig_set_up(state);
	away_begin(rig.fixture.pd);
	A->memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	return 0;
}

static int tear_down(void **state)
{
	qp_retire(A->qp);
	qp_retire(B->qp);
	return qp_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static void connect(enum cc_kind kind, uint8_t retries)
{
	rig.cc = (struct cc_attr){.kind = kind, .link_mbps = 1000, .paths = &paths};
	end_recreate(A, IBV_QPT_RC, NULL);
	end_recreate(B, IBV_QPT_RC, NULL);
	A->attr.retry_cnt = retries;
	rig_connect();
}

/* Make the next packet of A wait for the longest time of Swift. */
static void make_wait(void)
{
	struct swift *swift = &A->qp->pacer.cc->swift;

	swift->cwnd = SWIFT_CWND_MIN;
	swift->rtt_ns = SWIFT_WAIT_MAX_NS;
	swift->sent_ns = rig.now_ns;
	A->qp->pacer.cc->wait_ns = rig.now_ns + SWIFT_WAIT_MAX_NS;
}

/* Run A. It may send nothing. */
static void expect_held(void)
{
	end_run(A, 64);
	assert_int_equal(A->catcher.count, 0);
}

/* Let A's deadlines pass until it sends something. Return how many retries it used meanwhile. */
static unsigned int pass_time_until_sent(void)
{
	const uint8_t before = A->qp->loss.recovery.retries_left;

	for (int i = 0; A->catcher.count == 0; i++) {
		assert_true(i < 100);
		end_time_out(A);
		assert_int_equal(qp_state(A->qp), IBV_QPS_RTS);
		end_run(A, 64);
	}
	return before - A->qp->loss.recovery.retries_left;
}

static void post_three(void)
{
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(end_send(A, id, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
}

/* Lose the first of three WRITEs. The NAK that reports it comes back. */
static void lose_first(void)
{
	post_three();
	rig.lose[0] = 1;
	end_run(A, 64);
	end_deliver(A);
	end_run(B, 64);
	end_deliver(B);
}

static void expect_all(void)
{
	rig_run();
	while (qp_deadline_ns(A->qp) != UINT64_MAX) {
		end_time_out(A);
		rig_run();
	}
	for (uint64_t id = 1; id <= 3; id++)
		end_sent(A, id, IBV_WC_SUCCESS);
	assert_int_equal(A->qp->loss.recovery.retries_left, A->attr.retry_cnt);
}

/* Even a queue pair without retries sends again what a NAK has reported. */
TEST(qp_timeout__swifts_wait_uses_up_no_retry)
{
	for (uint8_t retries = 0; retries <= 1; retries++) {
		connect(CC_SWIFT, retries);
		lose_first();
		make_wait();
		expect_held();
		assert_int_equal(A->qp->loss.recovery.state, RECOVERY_PAUSED);
		assert_int_equal(pass_time_until_sent(), 0);
		expect_all();
		assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 0);
	}
}

/* Each timeout that is counted was one of a packet that left. */
TEST(qp_timeout__a_rate_limit_uses_up_no_retry)
{
	const struct ibv_qp_rate_limit_attr limit = {.rate_limit = SLOW_KBPS};

	connect(CC_NONE, RETRIES);
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
	end_run(A, 64);
	for (int retry = 0; retry < RETRIES; retry++) {
		assert_int_equal(A->catcher.count, 1);
		catcher_clear(&A->catcher);
		assert_int_equal(pass_time_until_sent(), 1);
		assert_true(A->qp->loss.recovery.deadline_ns == rig.now_ns + TIMEOUT_NS);
	}
	/* A dead peer is still found. */
	catcher_clear(&A->catcher);
	end_time_out(A);
	end_sent(A, 1, IBV_WC_RETRY_EXC_ERR);
}

/* The pauses do not count, but what is between them does: a loss that is reported for ever ends. */
TEST(qp_timeout__a_loss_that_is_reported_for_ever_ends)
{
	unsigned int reports = 0;
	struct packet nak;

	connect(CC_SWIFT, 0);
	post_three();
	rig.lose[0] = 1;
	end_run(A, 64);
	end_deliver(A);
	end_run(B, 64);
	nak = *catcher_at(&B->catcher, 0);
	A->qp->loss.peer = LOSS_PEER_DROPS;
	while (true) {
		qp_receive(A->qp, &nak, rig.now_ns);
		make_wait();
		expect_held();
		end_time_out(A);
		if (qp_state(A->qp) != IBV_QPS_RTS)
			break;
		end_run(A, 64);
		assert_int_equal(A->catcher.count, 1);
		catcher_clear(&A->catcher);
		rig.now_ns += TIMEOUT_NS / 10;
		reports++;
	}
	assert_in_range(reports, 10, 11);
	end_sent(A, 1, IBV_WC_RETRY_EXC_ERR);
}

/* A change of the algorithm sets held packets free, and the timers go on. */
TEST(qp_change_cc__ends_a_pause)
{
	const struct cc_attr none = {.kind = CC_NONE};

	connect(CC_SWIFT, 0);
	lose_first();
	make_wait();
	expect_held();
	assert_int_equal(qp_change_cc(A->qp, &none), 0);
	end_run(A, 64);
	assert_true(A->catcher.count > 0);
	assert_true(A->qp->loss.recovery.deadline_ns <= rig.now_ns + TIMEOUT_NS);
	expect_all();
}

/* The first part of a message is in flight, and its peer was not asked to acknowledge it, because a
 * page of the rest is absent. That is no loss: congestion control must not slow down. While the
 * page of the oldest packet is absent, no timer runs. */
TEST(qp_timeout__an_absent_page_is_no_loss)
{
	for (int kind = CC_NONE; kind < CC_KINDS; kind++) {
		connect((enum cc_kind)kind, 0);
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
		away_go(A->memory.bytes + MTU, MTU);
		end_run(A, 64);
		assert_int_equal(A->catcher.count, 1);
		catcher_clear(&A->catcher);
		away_go(A->memory.bytes, 2 * MTU);
		end_time_out(A);
		assert_int_equal(A->qp->loss.losses, 0);
		assert_int_equal(A->qp->loss.window, LOSS_WINDOW_MAX);
		expect_held();
		assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
		away_come();
		rig_run();
		end_sent(A, 1, IBV_WC_SUCCESS);
	}
}

/* A page of the oldest packet is absent at one moment, and the pacer holds it back at another (seed
 * 12045394758419066967 of the simulator). */
TEST(qp_timeout__a_page_and_swift_by_turns_use_up_no_retry)
{
	connect(CC_SWIFT, 0);
	lose_first();
	for (int i = 0; i < 10; i++) {
		away_go(A->memory.bytes, MTU);
		A->qp->pacer.cc->wait_ns = 0;
		expect_held();
		assert_true(A->qp->requester.absent);
		away_come();
		make_wait();
		expect_held();
		assert_false(A->qp->requester.absent);
		rig.now_ns += TIMEOUT_NS;
		qp_timeout(A->qp, rig.now_ns, &A->catcher.sink);
	}
	expect_all();
}

/* A port that takes no packets is like a peer that does not answer. */
TEST(qp_timeout__a_stuck_port_uses_up_retries)
{
	connect(CC_NONE, RETRIES);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	A->catcher.room = 0;
	for (int i = 0; i <= RETRIES; i++) {
		end_run(A, 64);
		assert_true(qp_deadline_ns(A->qp) == rig.now_ns + TIMEOUT_NS);
		end_time_out(A);
	}
	end_sent(A, 1, IBV_WC_RETRY_EXC_ERR);
}
