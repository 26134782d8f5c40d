/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder.c: XRC, where each packet names a shared receive queue, which
 * may be destroyed at any time. */
#include <stddef.h>
#include <stdint.h>

#include "mem/pd.h"
#include "queue/srq.h"
#include "responder_rig.h"
#include "test.h"
#include "queues.h"

#define NUMBER 0x123456u
#define OTHER  0x654321u

static struct srq *srq, *other;
static int domain;

static struct srq *find_srq(void *user, uint32_t number)
{
	assert_ptr_equal(user, &domain);
	if (number == NUMBER)
		return srq;
	return number == OTHER ? other : NULL;
}

static int set_up(void **state)
{
	responder_rig_set_up(state);
	assert_int_equal(srq_create(CQE, 1, rig.fixture.pd, &srq), 0);
	assert_int_equal(srq_create(CQE, 1, rig.fixture.pd, &other), 0);
	srq->cq = rig.fixture.cq;
	other->cq = rig.fixture.cq;
	rig.responder.service = OPCODE_XRC;
	rig.responder.find_srq = find_srq;
	rig.responder.domain = &domain;
	/* An XRC_RECV queue pair has a domain of its own, and neither a completion queue nor a
	 * receive queue. */
	rig.responder.pd = rig.fixture.other_pd;
	rig.responder.cq = NULL;
	rig.responder.rq = NULL;
	return 0;
}

static int tear_down(void **state)
{
	if (srq)
		assert_int_equal(srq_destroy(srq), 0);
	assert_int_equal(srq_destroy(other), 0);
	return responder_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static void post(struct srq *to, uint64_t wr_id)
{
	struct ibv_sge sge = region_sge(&rig.inbox, 0, INBOX);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(rq_post(&to->rq, &wr, &bad), 0);
}

static enum fault take(uint32_t srqn, struct packet_fields fields)
{
	fields.psn += FIRST_PSN;
	fixture_packet(&rig.fixture, &fields);
	rig.fixture.packet.op = opcode_info(OPCODE_XRC | fields.opcode);
	rig.fixture.packet.xrc_srqn = srqn;
	return rig_receive(&rig.fixture.packet);
}

#define TAKE(srqn, op, number, ...) \
	take((srqn), (struct packet_fields){.opcode = (op), .psn = (number), ##__VA_ARGS__})

/* Destroy the shared queue while the engine is stopped, as when an application does so. */
static void destroy_srq(void)
{
	const bool received = rig.responder.srq == srq;

	responder_forget_srq(&rig.responder, srq, rig.fixture.other_pd);
	if (received)
		assert_ptr_equal(rig.responder.pd, rig.fixture.other_pd);
	replies_forget_pd(&rig.replies, srq->pd, rig.fixture.other_pd);
	assert_int_equal(srq_destroy(srq), 0);
	srq = NULL;
}

TEST(responder__xrc_receives_where_the_packet_says)
{
	post(srq, 1);
	post(other, 2);
	assert_int_equal(TAKE(OTHER, OPCODE_SEND_ONLY, 0, .len = 5), FAULT_NONE);
	fixture_completion(rig.fixture.cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(TAKE(NUMBER, OPCODE_SEND_ONLY, 1, .len = 5), FAULT_NONE);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
}

TEST(responder__xrc_refuses_a_number_that_is_nobodys)
{
	post(srq, 1);
	assert_int_equal(TAKE(NUMBER + 1, OPCODE_SEND_ONLY, 0, .len = 5), FAULT_INVALID_REQUEST);
	fixture_no_completion(rig.fixture.cq);
	expect_memory_untouched();
}

TEST(responder__xrc_refuses_a_message_to_two_queues)
{
	post(srq, 1);
	post(other, 2);
	assert_int_equal(TAKE(NUMBER, OPCODE_SEND_FIRST, 0, .len = MTU), FAULT_NONE);
	assert_int_equal(TAKE(OTHER, OPCODE_SEND_LAST, 1, .len = 1), FAULT_INVALID_REQUEST);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	fixture_no_completion(rig.fixture.cq);
}

/* Kept messages go into the queues that they name, and their requester learns which are missing. */
TEST(responder__xrc_tells_which_packets_it_keeps)
{
	const struct packet *answer;
	struct ooo_pool *pool;

	assert_int_equal(ooo_pool_create(8, &pool), 0);
	rig.responder.ooo.pool = pool;
	rig.replies.kept = &rig.responder.ooo;
	rig.replies.service = OPCODE_XRC;
	post(srq, 1);
	post(other, 2);
	post(srq, 3);
	assert_int_equal(TAKE(NUMBER, OPCODE_SEND_ONLY, 0, .len = 5, .ack_req = true,
			      .capability = BTH_SACK_REQUEST),
			 FAULT_NONE);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(rig_answers(), 1);
	answer = catcher_at(&rig.fixture.catcher, 0);
	assert_int_equal(answer->opcode, OPCODE_XRC | OPCODE_ACKNOWLEDGE);
	assert_int_equal(answer->capability & BTH_SACK_KIND, BTH_SACK_RESPONSE);
	assert_int_equal(TAKE(OTHER, OPCODE_SEND_ONLY, 2, .len = 5), FAULT_NONE);
	assert_int_equal(rig_answers(), 1);
	answer = catcher_at(&rig.fixture.catcher, 0);
	assert_int_equal(answer->opcode, OPCODE_SACK);
	assert_int_equal(answer->psn.v, psn_make(FIRST_PSN + 1).v);
	assert_int_equal(answer->payload[0], 1);
	fixture_no_completion(rig.fixture.cq);
	assert_int_equal(TAKE(NUMBER, OPCODE_SEND_ONLY, 1, .len = 5), FAULT_NONE);
	fixture_completion(rig.fixture.cq, 3, IBV_WC_SUCCESS);
	fixture_completion(rig.fixture.cq, 2, IBV_WC_SUCCESS);
	ooo_clear(&rig.responder.ooo);
	ooo_pool_destroy(pool);
}

TEST(responder_forget_srq__ends_the_message_in_progress)
{
	post(srq, 1);
	post(other, 2);
	assert_int_equal(TAKE(NUMBER, OPCODE_SEND_FIRST, 0, .len = MTU), FAULT_NONE);
	destroy_srq();
	assert_null(rig.responder.srq);
	/* The message does not go into the buffer that was posted to the destroyed queue. */
	assert_int_equal(TAKE(OTHER, OPCODE_SEND_LAST, 1, .len = 1), FAULT_INVALID_REQUEST);
	fixture_no_completion(rig.fixture.cq);
	responder_flush(&rig.responder);
	fixture_no_completion(rig.fixture.cq);
}

TEST(responder_forget_srq__leaves_a_message_to_another_queue)
{
	post(other, 2);
	assert_int_equal(TAKE(OTHER, OPCODE_SEND_FIRST, 0, .len = MTU), FAULT_NONE);
	destroy_srq();
	assert_int_equal(TAKE(OTHER, OPCODE_SEND_LAST, 1, .len = 1), FAULT_NONE);
	fixture_completion(rig.fixture.cq, 2, IBV_WC_SUCCESS);
}

TEST(responder_forget_srq__ends_a_write)
{
	assert_int_equal(
		TAKE(NUMBER, OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = 2 * MTU, .len = MTU),
		FAULT_NONE);
	destroy_srq();
	assert_int_equal(TAKE(NUMBER, OPCODE_WRITE_LAST, 1, .len = MTU), FAULT_INVALID_REQUEST);
	region_expect_pattern(&rig.memory, MTU, MEMORY - MTU, SEED);
}

TEST(replies_forget_pd__fails_reads_that_are_owed)
{
	struct catcher *catcher = &rig.fixture.catcher;
	enum fault fault;
	bool more;

	assert_int_equal(TAKE(NUMBER, OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8),
			 FAULT_NONE);
	destroy_srq();
	replies_send(&rig.replies, &catcher->sink, 1000, &more, &fault);
	assert_int_equal(fault, FAULT_ACCESS);
}

/* The requester asks for the answer again, and its memory is not this queue pair's any more. */
TEST(replies_forget_pd__fails_reads_that_are_stored)
{
	assert_int_equal(TAKE(NUMBER, OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8),
			 FAULT_NONE);
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, 0);
	destroy_srq();
	assert_int_equal(TAKE(NUMBER, OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8),
			 FAULT_NONE);
	expect_aeth(AETH_NAK | NAK_REMOTE_ACCESS, 0, 1);
}

TEST(responder__xrc_messages_of_one_psn_to_two_queues_are_dropped)
{
	struct ooo_pool *pool;

	assert_int_equal(ooo_pool_create(8, &pool), 0);
	rig.responder.ooo.pool = pool;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(TAKE(NUMBER, OPCODE_SEND_ONLY, 1, .len = 5), FAULT_NONE);
		assert_int_equal(rig.responder.ooo.count, 1);
	}
	assert_int_equal(TAKE(OTHER, OPCODE_SEND_ONLY, 1, .len = 5), FAULT_NONE);
	assert_int_equal(rig.responder.ooo.count, 0);
	ooo_pool_destroy(pool);
}
