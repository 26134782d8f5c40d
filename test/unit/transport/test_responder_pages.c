/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder.c and replies.c: requests whose pages are not in memory. */
#include "mem/pager.h"
#include "mem/pd.h"
#include "responder_rig.h"
#include "test.h"

#define LONG_NS UINT64_C(10000000)

static bool absent;

static bool look(struct pager *pager, uintptr_t addr, struct mr_touch touch, bool write)
{
	(void)pager;
	(void)addr;
	(void)touch;
	(void)write;
	return !absent;
}

static struct pager fake = {.look = look};
static struct early_pool *pool;

static int set_up(void **state)
{
	responder_rig_set_up(state);
	rig.fixture.pd->pager = &fake;
	rig.memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	rig.responder.min_rnr_timer = 12;
	assert_int_equal(early_pool_create(16, &pool), 0);
	rig.responder.early.pool = pool;
	absent = true;
	return 0;
}

static int tear_down(void **state)
{
	early_clear(&rig.responder.early);
	early_pool_destroy(pool);
	return responder_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static void come(void)
{
	absent = false;
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
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(LONG_NS), 0, 0);
	/* It was refused, and is executed only when it comes again. */
	come();
	expect_no_answer();
	expect_memory_untouched();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	expect_aeth(ACK, 0, 1);
	expect_payload(rig.memory.bytes, 0, 8);
}

TEST(responder_receive__that_cannot_be_kept_is_told_to_wait)
{
	rig.responder.early.pool = NULL;
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 0, TO_MEMORY);
	expect_aeth(AETH_RNR_NAK | 12, 0, 0);
	absent = false;
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
	absent = false;
	EXPECT_TAKEN(OPCODE_UC | OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8);
	expect_payload(rig.memory.bytes, 1, 8);
}

TEST(responder_resume__whose_packet_was_taken_away_asks_for_it)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	early_clear(&rig.responder.early);
	come();
	expect_aeth(AETH_NAK | NAK_PSN_SEQUENCE, 0, 0);
}

TEST(replies_send__of_an_absent_page_waits_with_all_behind_it)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	absent = false;
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	absent = true;
	expect_no_answer();
	absent = false;
	assert_int_equal(rig_answers(), 2);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, 0);
	expect_answer(1, OPCODE_ACKNOWLEDGE, 1);
}

TEST(replies_send__tells_a_requester_that_asks_again_to_wait)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	rig.replies.page_wait.waited_ns = LONG_NS;
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_aeth(AETH_RNR_NAK | rnr_timer_code(LONG_NS), 0, 1);
	/* Once each time. */
	expect_no_answer();
	absent = false;
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, 0);
}
