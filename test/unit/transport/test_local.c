/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/local.c: local work that requester and completer execute when its turn
 * comes. */
#include <stdint.h>

#include "fixture.h"
#include "mem/mw.h"
#include "transport/completer.h"
#include "transport/local.h"
#include "transport/requester.h"
#include "wire/headers.h"
#include "test.h"
#include "queues.h"

#define MTU	 256u
#define SEED	 3u
#define SIGNALED IBV_SEND_SIGNALED
#define ACK	 (AETH_ACK | AETH_CREDIT_NONE)

static struct fixture fixture;
static struct region memory;
static struct mw *window; /* of type 2 */
static struct mw_list bound;
static struct sq sq;
static struct scoreboard board;
static struct loss loss;
static struct requester requester;
static struct completer completer;

static int set_up(TEST_STATE)
{
	const struct sq_attr attr = {.max_wr = 16, .max_sge = 1};

	fixture_set_up(&fixture, MTU, 16);
	region_set_up(&memory, fixture.pd, 4 * MTU, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
		      SEED);
	assert_int_equal(mw_create(fixture.pd, IBV_MW_TYPE_2, &window), 0);
	assert_int_equal(sq_init(&sq, &attr), 0);
	scoreboard_init(&board);
	loss.board = &board;
	loss_init(&loss, psn_make(0));
	loss.max_responses = 4;
	loss.allowed_responses = 4;
	loss.recovery = (struct recovery){.timeout_ns = 1000, .retry_cnt = 2};
	requester = (struct requester){.sq = &sq,
				       .pd = fixture.pd,
				       .peer = &fixture.peer,
				       .loss = &loss,
				       .pacer = &fixture.pacer,
				       .counters = &fixture.counters,
				       .windows = &bound,
				       .qpn = FIXTURE_QPN,
				       .service = OPCODE_RC};
	requester_reset(&requester, REQUESTER_RUNNING);
	completer = (struct completer){.sq = &sq,
				       .cq = fixture.cq,
				       .pd = fixture.pd,
				       .loss = &loss,
				       .counters = &fixture.counters,
				       .qpn = FIXTURE_QPN,
				       .mtu = MTU};
	return 0;
}

static int tear_down(TEST_STATE)
{
	sq_fini(&sq);
	mw_destroy(window);
	region_tear_down(&memory);
	fixture_tear_down(&fixture);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void post(struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(sq_post(&sq, IBV_QPT_RC, &wr, &bad), 0);
}

/* Post a request to the peer that uses the first bytes of the memory. */
static void post_remote(uint64_t wr_id, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = region_sge(&memory, 0, 8);

	post((struct ibv_send_wr){.wr_id = wr_id,
				  .opcode = opcode,
				  .send_flags = SIGNALED,
				  .sg_list = &sge,
				  .num_sge = 1});
}

/* Bind the window to the first 100 bytes of the memory. Return its new key. */
static uint32_t post_bind(uint64_t wr_id, unsigned int flags)
{
	struct ibv_mr region = {.lkey = memory.mr->key};
	struct ibv_mw mw = {.rkey = window->view.key};
	const uint32_t rkey = ibv_inc_rkey(mw.rkey);

	post((struct ibv_send_wr){
		.wr_id = wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = flags,
		.bind_mw = {.mw = &mw,
			    .rkey = rkey,
			    .bind_info = {.mr = &region,
					  .addr = region_iova(&memory, 0),
					  .length = 100,
					  .mw_access_flags = IBV_ACCESS_REMOTE_READ}}});
	return rkey;
}

static void post_invalidate(uint64_t wr_id, unsigned int flags, uint32_t rkey)
{
	post((struct ibv_send_wr){.wr_id = wr_id,
				  .opcode = IBV_WR_LOCAL_INV,
				  .send_flags = flags,
				  .invalidate_rkey = rkey});
}

/* Run an engine poll as a queue pair does. Return how many packets were sent. */
static unsigned int poll_once(void)
{
	unsigned int sent;
	bool more;

	catcher_clear(&fixture.catcher);
	sent = requester_send(&requester, &fixture.catcher.sink, 1000, &more);
	assert_int_equal(completer_executed(&completer), FAULT_NONE);
	assert_false(more);
	return sent;
}

static void take(uint8_t opcode, uint32_t psn)
{
	const struct packet_fields fields = {.opcode = opcode,
					     .psn = psn,
					     .syndrome = ACK,
					     .len = opcode == OPCODE_READ_RESPONSE_ONLY ? 8 : 0};

	assert_int_equal(completer_receive(&completer, fixture_packet(&fixture, &fields), 1),
			 FAULT_NONE);
}

static struct ibv_wc expect_success(uint64_t wr_id)
{
	return fixture_completion(fixture.cq, wr_id, IBV_WC_SUCCESS);
}

static void expect_none(void)
{
	fixture_no_completion(fixture.cq);
}

static bool is_bound(uint32_t rkey)
{
	uint8_t *addr;

	return mr_resolve_remote(fixture.pd, FIXTURE_QPN, rkey, region_iova(&memory, 0), 100,
				 IBV_ACCESS_REMOTE_READ, &addr) == MR_OK;
}

TEST(local__completes_in_the_poll_that_executes_it)
{
	uint32_t rkey;
	struct ibv_wc wc;

	rkey = post_bind(1, SIGNALED);
	assert_false(is_bound(rkey));
	assert_int_equal(poll_once(), 0);
	wc = expect_success(1);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc.qp_num, FIXTURE_QPN);
	assert_true(is_bound(rkey));
	post_invalidate(2, SIGNALED, rkey);
	assert_int_equal(poll_once(), 0);
	assert_int_equal(expect_success(2).opcode, IBV_WC_LOCAL_INV);
	assert_false(is_bound(rkey));
	/* The local work has used no PSN. */
	post_remote(3, IBV_WR_RDMA_WRITE);
	assert_int_equal(poll_once(), 1);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->psn.v, 0);
	take(OPCODE_ACKNOWLEDGE, 0);
	expect_success(3);
}

TEST(local__unsignaled_completes_silently)
{
	uint32_t rkey;

	rkey = post_bind(1, 0);
	poll_once();
	expect_none();
	assert_true(is_bound(rkey));
	assert_int_equal(sq.cons, sq_prod(&sq));
}

TEST(local__completions_keep_the_order_of_posting)
{
	uint32_t rkey;

	post_remote(1, IBV_WR_RDMA_WRITE);
	rkey = post_bind(2, SIGNALED);
	post_remote(3, IBV_WR_RDMA_WRITE);
	post_invalidate(4, SIGNALED, rkey);
	assert_int_equal(poll_once(), 2);
	expect_none();
	take(OPCODE_ACKNOWLEDGE, 0);
	expect_success(1);
	expect_success(2);
	expect_none();
	take(OPCODE_ACKNOWLEDGE, 1);
	expect_success(3);
	expect_success(4);
}

TEST(local__one_acknowledgement_completes_through_it)
{
	uint32_t rkey;

	post_remote(1, IBV_WR_RDMA_WRITE);
	rkey = post_bind(2, SIGNALED);
	post_invalidate(3, SIGNALED, rkey);
	post_remote(4, IBV_WR_RDMA_WRITE);
	assert_int_equal(poll_once(), 2);
	take(OPCODE_ACKNOWLEDGE, 1);
	for (uint64_t i = 1; i <= 4; i++)
		expect_success(i);
}

/* A READ's response acknowledges the requests before the local work. After that, the READ is the
 * oldest request, and the response is its answer. */
TEST(local__between_a_write_and_a_read)
{
	post_remote(1, IBV_WR_RDMA_WRITE);
	post_bind(2, SIGNALED);
	post_remote(3, IBV_WR_RDMA_READ);
	post_invalidate(4, SIGNALED, ibv_inc_rkey(window->view.key));
	assert_int_equal(poll_once(), 2);
	take(OPCODE_READ_RESPONSE_ONLY, 1);
	for (uint64_t i = 1; i <= 4; i++)
		expect_success(i);
}

TEST(local__is_executed_once_whatever_is_sent_again)
{
	uint32_t rkey;

	post_remote(1, IBV_WR_RDMA_WRITE);
	rkey = post_bind(2, SIGNALED);
	post_remote(3, IBV_WR_RDMA_WRITE);
	assert_int_equal(poll_once(), 2);
	loss_on_nak_ahead(&loss, 0);
	/* If the binding were executed again it would fail: a window of type 2 cannot be bound
	 * twice. */
	assert_int_equal(poll_once(), 2);
	assert_int_equal(requester.fault, FAULT_NONE);
	assert_true(is_bound(rkey));
	take(OPCODE_ACKNOWLEDGE, 0);
	/* The requester goes back once more, while the binding is the second oldest request. */
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(poll_once(), 1);
	take(OPCODE_ACKNOWLEDGE, 1);
	for (uint64_t i = 1; i <= 3; i++)
		expect_success(i);
}

TEST(local__a_failure_waits_for_its_turn)
{
	post_remote(1, IBV_WR_RDMA_WRITE);
	post_invalidate(2, 0, memory.mr->key);
	post_remote(3, IBV_WR_RDMA_WRITE);
	assert_int_equal(poll_once(), 1);
	assert_int_equal(requester.fault, FAULT_SEND_WINDOW);
	assert_false(requester_fault_due(&requester));
	take(OPCODE_ACKNOWLEDGE, 0);
	expect_success(1);
	assert_int_equal(poll_once(), 0);
	assert_true(requester_fault_due(&requester));
	assert_int_equal(completer_fail(&completer, requester.fault), FAULT_NONE);
	assert_int_equal(fixture_completion(fixture.cq, 2, IBV_WC_MW_BIND_ERR).opcode,
			 IBV_WC_LOCAL_INV);
}

TEST(local__a_fence_waits_for_reads)
{
	uint32_t rkey;

	post_remote(1, IBV_WR_RDMA_READ);
	rkey = post_bind(2, SIGNALED | IBV_SEND_FENCE);
	assert_int_equal(poll_once(), 1);
	assert_false(is_bound(rkey));
	take(OPCODE_READ_RESPONSE_ONLY, 0);
	expect_success(1);
	expect_none();
	assert_int_equal(poll_once(), 0);
	expect_success(2);
	assert_true(is_bound(rkey));
}

TEST(local__draining_begins_none)
{
	uint32_t rkey;

	requester.state = REQUESTER_DRAINING;
	rkey = post_bind(1, SIGNALED);
	assert_int_equal(poll_once(), 0);
	assert_false(is_bound(rkey));
	assert_true(requester_drained(&requester));
	requester.state = REQUESTER_RUNNING;
	poll_once();
	expect_success(1);
}

TEST(local__what_is_not_executed_is_flushed)
{
	requester.state = REQUESTER_STOPPED;
	post_bind(1, 0);
	poll_once();
	completer_flush(&completer);
	fixture_completion(fixture.cq, 1, IBV_WC_WR_FLUSH_ERR);
}

/* The window stops a retransmission just before a binding that was executed. Then an
 * acknowledgement of everything before the binding completes the binding, too, and its slot is free
 * for the next request. */
TEST(local__its_slot_is_not_sent_from_once_it_has_left)
{
	for (uint64_t i = 0; i < 8; i++)
		post_remote(i, IBV_WR_RDMA_WRITE);
	post_bind(8, SIGNALED);
	for (uint64_t i = 9; i < 16; i++)
		post_remote(i, IBV_WR_RDMA_WRITE);
	assert_int_equal(poll_once(), 15);
	loss.window = 8;
	assert_true(loss_on_nak_ahead(&loss, 0));
	assert_int_equal(poll_once(), 8);
	assert_int_equal(sq.next, 8);
	take(OPCODE_ACKNOWLEDGE, 7);
	for (uint64_t i = 0; i <= 8; i++)
		expect_success(i);
	assert_int_equal(sq.next, 9);
	for (uint64_t i = 16; i < 25; i++)
		post_remote(i, IBV_WR_SEND);
	/* The packets that are sent again are still WRITEs. */
	assert_int_equal(poll_once(), 16);
	for (unsigned int i = 0; i < 16; i++) {
		assert_int_equal(catcher_at(&fixture.catcher, i)->psn.v, 8 + i);
		assert_int_equal(catcher_at(&fixture.catcher, i)->opcode,
				 i < 7 ? OPCODE_WRITE_ONLY : OPCODE_SEND_ONLY);
	}
}

/* The same without a full window: the local work is the last request, and the next one is posted
 * after it is complete. */
TEST(local__what_is_posted_behind_it_is_sent_after_a_late_answer)
{
	post_remote(1, IBV_WR_RDMA_WRITE);
	post_bind(2, SIGNALED);
	assert_int_equal(poll_once(), 1);
	loss_on_nak_ahead(&loss, 0);
	take(OPCODE_ACKNOWLEDGE, 0);
	expect_success(1);
	expect_success(2);
	assert_int_equal(sq.next, sq_prod(&sq));
	post_remote(3, IBV_WR_SEND);
	assert_int_equal(poll_once(), 1);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->opcode, OPCODE_SEND_ONLY);
	assert_int_equal(catcher_at(&fixture.catcher, 0)->psn.v, 1);
}
