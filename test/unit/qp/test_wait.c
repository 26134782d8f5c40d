/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/wait.c, between two queue pairs: pages that are not in memory, and come. */
#include "../../../lib/qp/qp_internal.h"
#include "away.h"
#include "qp_rig.h"
#include "queue/ah.h"
#include "transport/page_wait.h"
#include "wire/headers.h"
#include "test.h"
#include "queues.h"

#define KEPT	8
#define WAIT_NS UINT64_C(500000000) /* longer than all retries */

static struct qp *woken[4];
static unsigned int wakes;

static int set_up(void **state)
{
	qp_rig_set_up(state);
	away_begin(rig.fixture.pd);
	A->memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	B->memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	assert_int_equal(ooo_pool_create(KEPT, &rig.ooo), 0);
	end_recreate(A, IBV_QPT_RC, NULL);
	end_recreate(B, IBV_QPT_RC, NULL);
	wakes = 0;
	return 0;
}

static int tear_down(void **state)
{
	for (struct end *end = A; end <= B; end++)
		qp_retire(end->qp);
	return qp_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static void go(struct end *end)
{
	away_go(end->memory.bytes, MEMORY);
}

static void note(struct qp *qp, void *arg)
{
	(void)arg;
	assert_true(wakes < 4);
	woken[wakes++] = qp;
}

static unsigned int wake(void)
{
	wakes = 0;
	qp_wake_waiting(&rig.waiting, note, NULL);
	return wakes;
}

/* The page is there, and whoever waits is run. Nobody waits then. */
static void come(void)
{
	away_come();
	wake();
	rig_run();
	assert_true(TAILQ_EMPTY(&rig.waiting));
}

/* Connect with acknowledgement timers off. */
static void connect_without_timers(void)
{
	A->attr.timeout = 0;
	B->attr.timeout = 0;
	rig_connect();
}

/* Check that nothing happens without a new event. */
static void expect_stillness(void)
{
	rig_run();
	assert_true(qp_deadline_ns(A->qp) == UINT64_MAX);
	assert_true(qp_deadline_ns(B->qp) == UINT64_MAX);
	end_idle(A);
}

static void send_each(void)
{
	assert_int_equal(end_receive(B, 10, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 2 * MTU, MTU), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_READ, 4 * MTU, 3 * MTU, 4 * MTU), 0);
	assert_int_equal(end_send(A, 4, IBV_WR_ATOMIC_FETCH_AND_ADD, 8 * MTU, 8, 8 * MTU), 0);
}

static void expect_each(void)
{
	for (uint64_t i = 1; i <= 4; i++)
		end_sent(A, i, IBV_WC_SUCCESS);
	end_received(B, 10, IBV_WC_SUCCESS);
	end_idle(A);
	end_idle(B);
	assert_memory_equal(A->memory.bytes + 4 * MTU, B->memory.bytes + 4 * MTU, 3 * MTU);
}

TEST(qp_resume__needs_no_timer_where_the_peer_waits)
{
	connect_without_timers();
	send_each();
	go(B);
	expect_stillness();
	come();
	expect_each();
	assert_int_equal(rig_counter(COUNTER_retransmitted_packets), 0);
}

TEST(qp_resume__is_as_fast_afterwards_as_before)
{
	rig_connect();
	send_each();
	go(B);
	rig_run();
	assert_true(B->qp->unusual & QP_MET_ABSENT);
	come();
	expect_each();
	assert_false(B->qp->unusual & QP_MET_ABSENT);
}

/* Pages came, and the one that is needed was not among them. */
TEST(qp_resume__looks_once_for_each_wake)
{
	unsigned int looks;

	connect_without_timers();
	send_each();
	go(B);
	expect_stillness();
	assert_int_equal(wake(), 1);
	looks = away.looks;
	assert_false(end_run(B, 9));
	assert_true(away.looks > looks);
	looks = away.looks;
	assert_false(end_run(B, 9));
	assert_int_equal(away.looks, looks);
	come();
	expect_each();
}

TEST(qp_resume__needs_no_timer_where_the_requester_waits)
{
	connect_without_timers();
	send_each();
	go(A);
	expect_stillness();
	come();
	expect_each();
}

/* The answers come to pages that are not there. */
TEST(qp_resume__needs_no_timer_where_answers_wait)
{
	connect_without_timers();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 3 * MTU, 4 * MTU), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 16 * MTU, MTU, 0), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_READ, 8 * MTU, 2 * MTU, 4 * MTU), 0);
	away_go(A->memory.bytes + MTU, MTU);
	expect_stillness();
	/* The arrival of another page does not send the request whose data could not be stored. */
	assert_int_equal(wake(), 1);
	expect_stillness();
	assert_int_equal(rig_counter(COUNTER_retransmitted_packets), 0);
	away_go(A->memory.bytes + 9 * MTU, MTU);
	wake();
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
	expect_stillness();
	come();
	end_sent(A, 3, IBV_WC_SUCCESS);
	assert_memory_equal(A->memory.bytes, B->memory.bytes + 4 * MTU, 3 * MTU);
	assert_memory_equal(A->memory.bytes + 8 * MTU, B->memory.bytes + 4 * MTU, 2 * MTU);
}

static void pass(uint64_t ns)
{
	const uint64_t until_ns = rig.now_ns + ns;

	while (RTE_MIN(qp_deadline_ns(A->qp), qp_deadline_ns(B->qp)) < until_ns) {
		end_time_out(qp_deadline_ns(A->qp) < qp_deadline_ns(B->qp) ? A : B);
		rig_run();
	}
	rig.now_ns = until_ns;
}

/* Run timers for longer than a peer that does not answer is given. */
static void pass_time(void)
{
	pass(WAIT_NS);
}

TEST(qp_timeout__uses_up_no_retry_while_a_page_is_absent)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	away_go(A->memory.bytes + MTU, MTU);
	rig_run();
	pass_time();
	end_idle(A);
	come();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_timeout__a_peer_that_waits_for_long_is_patient)
{
	A->attr.rnr_retry = 7;
	rig_connect();
	send_each();
	go(B);
	rig_run();
	pass_time();
	assert_in_range(rig_counter(COUNTER_rnr_nak_sent), 1, 12);
	away_come();
	wake();
	rig_run();
	pass_time();
	expect_each();
}

/* It has the request, and waits for the page of its response. */
TEST(qp_timeout__a_peer_whose_response_waits_is_patient)
{
	A->attr.rnr_retry = 7;
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	go(B);
	rig_run();
	pass_time();
	assert_in_range(rig_counter(COUNTER_rnr_nak_sent), 1, 12);
	away_come();
	wake();
	rig_run();
	pass_time();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

/* Assert that six RNR retries last while a page is absent for so long. */
static void expect_few_retries(uint64_t ns)
{
	A->attr.rnr_retry = 6;
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	go(B);
	rig_run();
	pass(ns);
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTS);
	away_come();
	wake();
	pass_time();
	pass_time();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

/* Each lasts at most 0.65 s. */
TEST(page_wait_syndrome__grows_so_that_few_retries_last)
{
	expect_few_retries(WAIT_NS);
}

/* The request is refused at once, and not only when it comes again: the first retries are short. */
TEST(page_wait_syndrome__grows_without_room_for_the_request)
{
	struct ooo_pool *const pool = rig.ooo;

	rig.ooo = NULL;
	end_recreate(B, IBV_QPT_RC, NULL);
	rig.ooo = pool;
	expect_few_retries(WAIT_NS / 25);
}

/* The pager brings in only so many pages at a time and serves them in order of arrival. */
TEST(qp_wake_waiting__in_the_order_of_waiting)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	away_go(NULL, SIZE_MAX);
	end_run(B, 9);
	end_run(A, 9);
	assert_int_equal(wake(), 2);
	assert_ptr_equal(woken[0], B->qp);
	end_run(B, 9);
	end_run(A, 9);
	assert_int_equal(wake(), 2);
	assert_ptr_equal(woken[0], B->qp);
	assert_ptr_equal(woken[1], A->qp);
}

TEST(qp_modify__of_a_queue_pair_that_waits_ends_its_waiting)
{
	static const enum ibv_qp_state to[] = {IBV_QPS_ERR, IBV_QPS_RESET};

	for (unsigned int i = 0; i < RTE_DIM(to); i++) {
		rig_connect();
		send_each();
		go(B);
		rig_run();
		assert_int_equal(end_modify(B, to[i]), 0);
		assert_int_equal(wake(), 1);
		end_run(B, 9);
		assert_int_equal(wake(), 0);
		assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
		assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	}
}

/* A waits. Assert that it does not wait in another state. */
static void expect_end_of_waiting(enum ibv_qp_state to)
{
	assert_int_equal(end_modify(A, to), 0);
	assert_int_equal(wake(), 1);
	end_run(A, 9);
	assert_int_equal(wake(), 0);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	away_come();
}

TEST(qp_modify__of_a_requester_that_waits_ends_its_waiting)
{
	static const enum ibv_qp_state to[] = {IBV_QPS_ERR, IBV_QPS_RESET};

	for (unsigned int i = 0; i < RTE_DIM(to); i++) {
		rig_connect();
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		go(A);
		end_run(A, 9);
		expect_end_of_waiting(to[i]);
		/* The same while an answer waits. */
		rig_connect();
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
		end_run(A, 9);
		go(A);
		rig_run();
		expect_end_of_waiting(to[i]);
	}
}

/* The next connection need not wait for it. */
TEST(qp_modify__to_reset_forgets_an_answer_that_waits)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	go(A);
	rig_run();
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_PAGE);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	rig_connect();
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 0, 0), 0);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
}

TEST(qp_retire__of_a_queue_pair_that_waits)
{
	rig_connect();
	send_each();
	go(B);
	rig_run();
	qp_retire(B->qp);
	assert_int_equal(wake(), 0);
}

/* The page has gone again before the engine poll, in which the port has no room for a notification.
 */
TEST(qp_resume__after_a_poll_that_could_not_notify)
{
	static struct cc_paths paths;

	rig.cc = (struct cc_attr){.kind = CC_DCQCN, .link_mbps = 1000, .paths = &paths};
	end_recreate(A, IBV_QPT_RC, NULL);
	end_recreate(B, IBV_QPT_RC, NULL);
	connect_without_timers();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	end_run(B, 9);
	go(A);
	end_deliver_marked(B);
	away_come();
	assert_int_equal(wake(), 1);
	go(A);
	A->catcher.room = 0;
	assert_true(end_run(A, 9));
	catcher_clear(&A->catcher);
	come();
	/* The peer has been notified, and sends the response later. */
	rig.now_ns += WAIT_NS;
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

/* A region may go while its page is brought in. */
TEST(qp_resume__of_memory_that_is_gone_fails)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	go(B);
	rig_run();
	region_deregister(&B->memory);
	come();
	end_sent(A, 1, IBV_WC_REM_ACCESS_ERR);
}

static void set_up_datagrams(void)
{
	for (struct end *end = A; end <= B; end++) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

		qp_retire(end->qp);
		end_recreate(end, IBV_QPT_UD, NULL);
		assert_int_equal(
			qp_modify(end->qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
				  NULL),
			0);
		attr.qp_state = IBV_QPS_RTR;
		assert_int_equal(qp_modify(end->qp, &attr, IBV_QP_STATE, NULL), 0);
		attr.qp_state = IBV_QPS_RTS;
		assert_int_equal(qp_modify(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL), 0);
	}
}

static void send_datagram(uint64_t wr_id)
{
	struct ah ah = {.path = A->path};
	struct ibv_sge sge = region_sge(&A->memory, 0, 8);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.ud = {.ah = &ah.ibv, .remote_qpn = FIXTURE_PEER_QPN}},
			   *bad;

	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
}

TEST(qp_resume__of_datagrams)
{
	set_up_datagrams();
	go(B);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(end_receive(B, 10 + i, i * MTU, MTU), 0);
		send_datagram(i);
	}
	rig_run();
	end_sent(A, 0, IBV_WC_SUCCESS);
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_idle(B);
	come();
	end_received(B, 10, IBV_WC_SUCCESS);
	end_received(B, 11, IBV_WC_SUCCESS);
	assert_int_equal(rig_counter(COUNTER_page_drops), 0);
}

TEST(qp_modify__of_datagrams_that_wait_ends_their_waiting)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	set_up_datagrams();
	away_go(NULL, SIZE_MAX);
	send_datagram(1);
	end_run(A, 9);
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE, NULL), 0);
	assert_int_equal(wake(), 1);
	end_run(A, 9);
	assert_int_equal(wake(), 0);
	set_up_datagrams();
	send_datagram(1);
	end_run(A, 9);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE, NULL), 0);
	end_sent(A, 1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wake(), 1);
	end_run(A, 9);
	assert_int_equal(wake(), 0);
	away_go(B->memory.bytes, MEMORY);
	set_up_datagrams();
	assert_int_equal(end_receive(B, 10, 0, MTU), 0);
	send_datagram(1);
	rig_run();
	assert_int_equal(qp_modify(B->qp, &attr, IBV_QP_STATE, NULL), 0);
	end_received(B, 10, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wake(), 1);
	end_run(B, 9);
	assert_int_equal(wake(), 0);
}

/* It was dropped after it had taken the request, and the program may have freed the buffer. */
TEST(qp_modify__to_reset_forgets_the_receive_request_of_a_datagram)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	set_up_datagrams();
	assert_int_equal(end_receive(B, 10, 0, MTU), 0);
	go(B);
	send_datagram(1);
	rig_run();
	assert_int_equal(qp_modify(B->qp, &attr, IBV_QP_STATE, NULL), 0);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(qp_modify(B->qp, &attr, IBV_QP_STATE, NULL), 0);
	end_idle(B);
}

TEST(qp_waits_for__a_page_of_a_request)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	go(A);
	end_run(A, 9);
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_PAGE);
	come();
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_NOTHING);
}

TEST(qp_waits_for__a_page_of_a_response)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	go(B);
	end_run(B, 9);
	assert_int_equal(qp_waits_for(B->qp), QP_WAITS_PAGE);
	come();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_waits_for__a_page_of_a_datagram)
{
	set_up_datagrams();
	send_datagram(1);
	go(A);
	end_run(A, 9);
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_PAGE);
	come();
	assert_int_equal(qp_waits_for(A->qp), QP_WAITS_NOTHING);
}
