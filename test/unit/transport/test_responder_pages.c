/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder.c and replies.c: requests whose pages are not in memory. */
#include "away.h"
#include "responder_rig.h"
#include "test.h"

#define LONG_NS UINT64_C(10000000)
#define KEPT	16

static struct ooo_pool *pool;

/* Make all of the memory absent that peers name. */
static void go(void)
{
	away_go(rig.memory.bytes, MEMORY);
}

static int set_up(void **state)
{
	responder_rig_set_up(state);
	away_begin(rig.fixture.pd);
	rig.memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	rig.responder.min_rnr_timer = 12;
	assert_int_equal(ooo_pool_create(KEPT, &pool), 0);
	rig.responder.ooo.pool = pool;
	go();
	return 0;
}

static int tear_down(void **state)
{
	ooo_clear(&rig.responder.ooo);
	ooo_pool_destroy(pool);
	return responder_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static void come(void)
{
	away_come();
	assert_int_equal(responder_resume(&rig.responder), FAULT_NONE);
	responder_check(&rig.responder);
}

TEST(responder_receive__of_an_absent_page_waits_silently)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	expect_no_answer();
	expect_memory_untouched();
	come();
	expect_aeth(ACK, 1, 2);
	expect_payload(rig.memory.bytes, 1, 8);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_page_waits), 1);
}

/* The pager learns how much of the message is still to come. */
TEST(responder_receive__tells_what_is_ahead_of_a_packet)
{
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = 2 * MTU + 8, .len = MTU);
	assert_int_equal(away.touch.now, MTU);
	assert_int_equal(away.touch.ahead, MTU + 8);
	come();
	EXPECT_TAKEN(OPCODE_WRITE_MIDDLE, 1, .len = MTU);
	assert_int_equal(away.touch.now, MTU);
	assert_int_equal(away.touch.ahead, 8);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .len = 8, .ack_req = true);
	assert_int_equal(away.touch.now, 8);
	assert_int_equal(away.touch.ahead, 0);
	expect_aeth(ACK, 2, 1);
}

TEST(responder_receive__that_comes_again_for_long_is_told_to_wait_as_long)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	for (unsigned int i = 0; i < PAGE_WAIT_SILENT_TIMES; i++) {
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8,
			     .ack_req = true);
		expect_no_answer();
	}
	rig.responder.page_wait.waited_ns = LONG_NS;
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(PAGE_WAIT_FACTOR * LONG_NS), 0, 0);
	/* The request was refused, and is executed only when it comes again. */
	come();
	expect_no_answer();
	expect_memory_untouched();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	expect_aeth(ACK, 0, 1);
	expect_payload(rig.memory.bytes, 0, 8);
}

TEST(responder_receive__that_cannot_be_kept_is_told_to_wait)
{
	rig.responder.ooo.pool = NULL;
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 0, TO_MEMORY);
	expect_aeth(AETH_RNR_NAK | 12, 0, 0);
	away_come();
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 0, TO_MEMORY);
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_ATOMIC_ACKNOWLEDGE, 0);
}

TEST(responder_receive__of_an_unreliable_write_is_dropped)
{
	rig.responder.service = OPCODE_UC;
	EXPECT_TAKEN(OPCODE_UC | OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8);
	expect_no_answer();
	expect_memory_untouched();
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_page_drops), 1);
	away_come();
	EXPECT_TAKEN(OPCODE_UC | OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8);
	expect_payload(rig.memory.bytes, 1, 8);
}

TEST(responder_resume__whose_packet_was_taken_away_asks_for_it)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	ooo_clear(&rig.responder.ooo);
	come();
	expect_aeth(AETH_NAK | NAK_PSN_SEQUENCE, 0, 0);
}

/* The request came out of order, and was kept. If another one with its PSN differs, the one that
 * came in order counts. */
TEST(responder_receive__keeps_what_came_in_its_turn)
{
	static const uint8_t forged[8] = "forged";

	away_come();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 8, .len = 8, .payload = forged);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8);
	go();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 8, .len = 8);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_page_waits), 1);
	come();
	expect_payload(rig.memory.bytes, 2, 8);
	assert_int_equal(rig.responder.epsn.v, psn_make(FIRST_PSN + 3).v);
}

/* The requester may have no timer, and nothing more to send. */
TEST(responder_resume__asks_for_what_was_not_kept)
{
	for (uint32_t psn = 0; psn < KEPT + 3; psn++)
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, psn, TO_MEMORY, .dma_length = 8, .len = 8);
	expect_no_answer();
	come();
	expect_aeth(AETH_NAK | NAK_PSN_SEQUENCE, KEPT, KEPT);
	for (uint32_t psn = KEPT; psn < KEPT + 3; psn++)
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, psn, TO_MEMORY, .dma_length = 8, .len = 8,
			     .ack_req = psn == KEPT + 2);
	expect_aeth(ACK, KEPT + 2, KEPT + 3);
	/* Nothing was dropped since. */
	go();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, KEPT + 3, TO_MEMORY, .dma_length = 8, .len = 8,
		     .ack_req = true);
	expect_no_answer();
	come();
	expect_aeth(ACK, KEPT + 3, KEPT + 4);
}

/* What came meanwhile shows it, and perhaps nothing more comes. */
TEST(responder_resume__asks_for_what_is_missing_behind_an_absent_page)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 8, .len = 8);
	expect_no_answer();
	come();
	expect_aeth(AETH_NAK | NAK_PSN_SEQUENCE, 1, 1);
}

TEST(replies_send__of_an_absent_page_waits_with_all_behind_it)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	away_come();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	go();
	expect_no_answer();
	away_come();
	assert_int_equal(rig_answers(), 2);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, 0);
	expect_answer(1, OPCODE_ACKNOWLEDGE, 1);
}

/* The pager may bring in what the next responses read, and no more. */
TEST(replies_send__names_the_rest_of_the_read_to_the_pager)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 2 * MTU + 8);
	expect_no_answer();
	assert_int_equal(away.touch.now, MTU);
	assert_int_equal(away.touch.ahead, MTU + 8);
	away_come();
	assert_int_equal(rig_answers(), 3);
	assert_int_equal(away.touch.now, 8);
	assert_int_equal(away.touch.ahead, 0);
}

TEST(replies_send__tells_a_requester_that_asks_again_to_wait)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	rig.replies.page_wait.waited_ns = LONG_NS;
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(PAGE_WAIT_FACTOR * LONG_NS), 0, 1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_rnr_nak_sent), 1);
	/* Each repetition of the request is answered once. */
	expect_no_answer();
	away_come();
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, 0);
}

TEST(replies_send__waits_for_each_page_anew)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	rig.replies.page_wait.waited_ns = LONG_NS;
	away_come();
	assert_int_equal(rig_answers(), 1);
	go();
	for (unsigned int i = 0; i < 2; i++) {
		EXPECT_TAKEN(OPCODE_READ_REQUEST, 1, TO_MEMORY, .dma_length = 8);
		expect_no_answer();
	}
	assert_int_equal(rig.replies.page_wait.since_ns, PAGE_WAIT_NEW);
}

TEST(replies_send__acknowledges_what_is_before_an_absent_page)
{
	away_come();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 1, TO_MEMORY, .dma_length = 8);
	go();
	expect_aeth(ACK, 0, 1);
	expect_no_answer();
}

/* An acknowledgement of a request behind the READ would say that the READ is answered. */
TEST(replies_ask_to_wait__acknowledges_all_before_an_absent_page)
{
	away_come();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 1, TO_MEMORY, .dma_length = 8);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	go();
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	expect_aeth(ACK, 0, 1);
	away_come();
	assert_int_equal(rig_answers(), 2);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, 1);
	expect_answer(1, OPCODE_ACKNOWLEDGE, 2);
}

/* A requester goes back to the request that it waits for, and sends everything behind that again,
 * too. */
TEST(replies_ask_to_wait__takes_no_notice_of_what_is_behind_an_absent_page)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	away_come();
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 1, TO_MEMORY);
	go();
	for (int i = 0; i < 5; i++)
		EXPECT_TAKEN(OPCODE_FETCH_ADD, 1, TO_MEMORY);
	rig.replies.page_wait.waited_ns = LONG_NS;
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 1, TO_MEMORY);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(PAGE_WAIT_FACTOR * LONG_NS), 0, 1);
}

/* The requester may have received the answer that is sent for the second time, and wait for the
 * answers behind it. */
TEST(replies_ask_to_wait__speaks_of_what_is_behind_a_repeated_answer)
{
	away_come();
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	assert_int_equal(rig_answers(), 1);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 1, TO_MEMORY);
	go();
	expect_no_answer();
	rig.replies.page_wait.waited_ns = LONG_NS;
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 1, TO_MEMORY);
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(PAGE_WAIT_FACTOR * LONG_NS), 1, 1);
}

static struct srq *no_srq(void *user, uint32_t number)
{
	(void)user;
	(void)number;
	return NULL;
}

/* A READ that another process passed on looks like a repeated one, but its memory is this one's. */
TEST(duplicate_answer__tells_a_passed_read_that_comes_again_to_wait)
{
	rig.responder.find_srq = no_srq;
	rig.responder.stand_in = rig.fixture.pd;
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0u - 1, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	rig.replies.page_wait.waited_ns = LONG_NS;
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0u - 1, TO_MEMORY, .dma_length = 8);
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(PAGE_WAIT_FACTOR * LONG_NS), 0u - 1, 0);
}

/* The expected request does not wait behind such an answer either: perhaps nobody asks for that
 * answer again. */
TEST(replies_send__refuses_what_is_expected_before_a_repeated_answer)
{
	away_come();
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	assert_int_equal(rig_answers(), 1);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	go();
	expect_aeth(ACK, 1, 2);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 2, TO_MEMORY);
	expect_no_answer();
	rig.responder.page_wait.waited_ns = LONG_NS;
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 2, TO_MEMORY);
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(PAGE_WAIT_FACTOR * LONG_NS), 2, 2);
}

TEST(replies_grow__does_not_forget_how_long_a_page_takes)
{
	assert_int_equal(replies_init(&rig.replies, 8), 0);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	rig.replies.page_wait.since_ns = 1;
	page_wait_tell(&rig.replies.page_wait, 1 + LONG_NS);
	for (uint32_t psn = 1; psn < 4; psn++)
		EXPECT_TAKEN(OPCODE_READ_REQUEST, psn, TO_MEMORY, .dma_length = 8);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(PAGE_WAIT_FACTOR * LONG_NS), 0, 1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_page_waits), 1);
}

TEST(replies_grow__does_not_forget_what_is_told_meanwhile)
{
	assert_int_equal(replies_init(&rig.replies, 8), 0);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	rig.replies.page_wait.waited_ns = LONG_NS;
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	for (uint32_t psn = 1; psn < 4; psn++)
		EXPECT_TAKEN(OPCODE_READ_REQUEST, psn, TO_MEMORY, .dma_length = 8);
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(PAGE_WAIT_FACTOR * LONG_NS), 0, 1);
}

TEST(replies_clear__ends_the_wait_for_a_page)
{
	for (uint64_t waits = 1; waits <= 2; waits++) {
		EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
		expect_no_answer();
		assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_page_waits), waits);
		replies_clear(&rig.replies);
		responder_reset(&rig.responder, psn_make(FIRST_PSN));
	}
}

/* A wait that begins anew is silent again, however often the request before was asked for. */
TEST(responder_rnr_page__each_request_waits_for_itself)
{
	for (uint32_t psn = 0; psn < 2; psn++) {
		for (unsigned int i = 0; i <= PAGE_WAIT_SILENT_TIMES; i++) {
			EXPECT_TAKEN(OPCODE_WRITE_ONLY, psn, TO_MEMORY, .dma_length = 8, .len = 8,
				     .ack_req = true);
			expect_no_answer();
		}
		come();
		expect_aeth(ACK, psn, psn + 1);
		go();
	}
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_page_waits), 2);
}

/* The second request was refused, and then sent again while the first one waited. */
TEST(responder_resume__tells_of_each_refusal)
{
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 8, .ack_req = true);
	expect_aeth(AETH_RNR_NAK | 12, 0, 0);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 1, .len = 8, .ack_req = true);
	rig_post(1, region_sge(&rig.memory, 0, 8));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 8, .ack_req = true);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 1, .len = 8, .ack_req = true);
	expect_no_answer();
	come();
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(rig_answers(), 2);
	expect_answer(0, OPCODE_ACKNOWLEDGE, 0);
	expect_answer(1, OPCODE_ACKNOWLEDGE, 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 1)->syndrome, AETH_RNR_NAK | 12);
}
