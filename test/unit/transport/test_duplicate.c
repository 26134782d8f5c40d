/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/duplicate.c: duplicate requests (IBTA 9.7.5.1.3). */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "responder_rig.h"
#include "test.h"

TEST_FIXTURE(responder_rig_set_up, responder_rig_tear_down);

TEST(responder__duplicate_send_is_acknowledged_and_not_executed)
{
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	rig_post(2, region_sge(&rig.inbox, MTU, MTU));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 8);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 9);
	fixture_no_completion(rig.fixture.cq);
	assert_int_equal(rig_posted(), 1);
	region_expect_pattern(&rig.inbox, 8, INBOX - 8, SEED + 1);
	expect_aeth(ACK, 0, 1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_duplicate_request), 1);
}

TEST(responder__duplicate_write_is_acknowledged_and_not_executed)
{
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = MTU + 4, .len = MTU);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 1, .len = 4);
	memset(rig.memory.bytes, 0, MTU + 4);
	/* A duplicate WRITE is acknowledged even if its key is not valid any more, because it is
	 * not checked. */
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, .rkey = FIXTURE_NOBODY, .dma_length = MTU + 4,
		     .len = MTU);
	expect_aeth(ACK, 1, 1);
	for (uint32_t i = 0; i < MTU + 4; i++)
		assert_int_equal(rig.memory.bytes[i], 0);
}

/* C9-112: the gap has had its NAK. */
TEST(responder__a_duplicate_before_a_gap_is_only_acknowledged)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	rig_answers();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	expect_aeth(ACK, 0, 1);
}

TEST(responder__duplicates_are_acknowledged_up_to_the_newest_write)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 2, TO_MEMORY, .dma_length = 2 * MTU);
	assert_int_equal(rig_answers(), 2);
	/* The acknowledgement does not cover the READ, because only a response answers a READ
	 * (9.7.5.1.1). */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	expect_aeth(ACK, 1, 3);
}

TEST(responder__a_packet_older_than_the_first_is_acknowledged)
{
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0u - 5, .len = 8);
	expect_aeth(ACK, 0u - 1, 0);
}

TEST(responder__duplicate_read_is_executed_again)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 4 * MTU);
	assert_int_equal(rig_answers(), 4);
	assert_int_equal(rig.responder.epsn.v, psn_make(FIRST_PSN + 4).v);
	/* 9.7.5.1.3: the data is read from memory again. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY);
	rig.memory.bytes[0] ^= 0xff;
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 4 * MTU);
	assert_int_equal(rig_answers(), 4);
	expect_answer(0, OPCODE_READ_RESPONSE_FIRST, 0);
	expect_answer(3, OPCODE_READ_RESPONSE_LAST, 3);
	for (unsigned int i = 0; i < 4; i++)
		assert_memory_equal(catcher_at(&rig.fixture.catcher, i)->payload,
				    rig.memory.bytes + i * MTU, MTU);
	assert_int_equal(rig.responder.epsn.v, psn_make(FIRST_PSN + 5).v);
	/* 9.7.7.1: the duplicate does not count, and its answer has the present MSN. */
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->msn, 2);
}

TEST(responder__duplicate_read_from_its_middle_on)
{
	const struct packet_fields rest = {.opcode = OPCODE_READ_REQUEST,
					   .psn = 2,
					   .iova = region_iova(&rig.memory, 2 * MTU),
					   .rkey = rig.memory.mr->key,
					   .dma_length = MTU + 7};

	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 3 * MTU + 7);
	rig_answers();
	assert_int_equal(rig_take(rest), FAULT_NONE);
	assert_int_equal(rig_answers(), 2);
	expect_answer(0, OPCODE_READ_RESPONSE_FIRST, 2);
	expect_answer(1, OPCODE_READ_RESPONSE_LAST, 3);
	assert_memory_equal(catcher_at(&rig.fixture.catcher, 0)->payload,
			    rig.memory.bytes + 2 * MTU, MTU);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 1)->payload_len, 7);
	assert_memory_equal(catcher_at(&rig.fixture.catcher, 1)->payload,
			    rig.memory.bytes + 3 * MTU, 7);
}

TEST(responder__duplicate_read_of_other_bytes_is_dropped)
{
	const uint64_t iova = region_iova(&rig.memory, 0);
	const struct packet_fields others[] = {
		{.opcode = OPCODE_READ_REQUEST,
		 .psn = 0,
		 .iova = iova + 1,
		 .rkey = rig.memory.mr->key,
		 .dma_length = MTU},
		{.opcode = OPCODE_READ_REQUEST,
		 .psn = 0,
		 .iova = iova,
		 .rkey = rig.inbox.mr->key,
		 .dma_length = MTU},
		{.opcode = OPCODE_READ_REQUEST,
		 .psn = 0,
		 .iova = iova,
		 .rkey = rig.memory.mr->key,
		 .dma_length = 2 * MTU + 1},
		{.opcode = OPCODE_READ_REQUEST,
		 .psn = 1,
		 .iova = iova,
		 .rkey = rig.memory.mr->key,
		 .dma_length = MTU},
		{.opcode = OPCODE_READ_REQUEST,
		 .psn = 1,
		 .iova = iova + MTU,
		 .rkey = rig.memory.mr->key,
		 .dma_length = MTU + 1},
		{.opcode = OPCODE_READ_REQUEST,
		 .psn = 1,
		 .iova = iova + MTU,
		 .rkey = rig.memory.mr->key,
		 .dma_length = UINT32_MAX},
		{.opcode = OPCODE_FETCH_ADD,
		 .psn = 0,
		 .iova = iova,
		 .rkey = rig.memory.mr->key,
		 .swap_add = 1},
	};

	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 2 * MTU);
	rig_answers();
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(rig_take(others[i]), FAULT_NONE);
		expect_no_answer();
	}
	expect_memory_untouched();
}

TEST(responder__duplicate_read_outside_resources_is_dropped)
{
	for (uint32_t psn = 0; psn < RESOURCES + 1; psn++) {
		EXPECT_TAKEN(OPCODE_READ_REQUEST, psn, TO_MEMORY, .dma_length = 8);
		assert_int_equal(rig_answers(), 1);
	}
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 1, TO_MEMORY, .dma_length = 8);
	assert_int_equal(rig_answers(), 1);
}

TEST(responder__duplicate_read_leaves_room_for_a_new_one)
{
	for (uint32_t psn = 0; psn < RESOURCES; psn++)
		EXPECT_TAKEN(OPCODE_READ_REQUEST, psn, TO_MEMORY, .dma_length = 8);
	rig_answers();
	for (uint32_t psn = 0; psn < RESOURCES; psn++)
		EXPECT_TAKEN(OPCODE_READ_REQUEST, psn, TO_MEMORY, .dma_length = 8);
	for (uint32_t psn = RESOURCES; psn < 2 * RESOURCES; psn++)
		EXPECT_TAKEN(OPCODE_READ_REQUEST, psn, TO_MEMORY, .dma_length = 8);
	assert_int_equal(rig_answers(), 2 * RESOURCES);
}

TEST(responder__duplicate_atomic_is_answered_from_memory)
{
	uint64_t *counter = (uint64_t *)(void *)rig.memory.bytes;

	*counter = 40;
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 0, TO_MEMORY, .swap_add = 2);
	assert_int_equal(rig_answers(), 1);
	assert_int_equal(*counter, 42);
	for (int i = 0; i < 3; i++) {
		EXPECT_TAKEN(OPCODE_FETCH_ADD, 0, TO_MEMORY, .swap_add = 2);
		assert_int_equal(rig_answers(), 1);
		expect_answer(0, OPCODE_ATOMIC_ACKNOWLEDGE, 0);
		assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->atomic_original, 40);
		assert_int_equal(*counter, 42);
	}
	/* A READ request with the PSN of an atomic reads nothing. */
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, .iova = 0);
	expect_no_answer();
}

/* A stored answer must not answer another request that has the same PSN, 2^24 PSNs later. */
TEST(responder__a_request_is_forgotten_before_its_psn_comes_again)
{
	const uint32_t all = 1u << 24;
	uint32_t psn = 1;

	assert_int_equal(replies_init(&rig.replies, 8), 0);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 0, TO_MEMORY, .swap_add = 1);
	assert_int_equal(rig_answers(), 1);
	rig_read_on(psn, all - 10);
	for (psn += all - 10; psn < all + 10; psn++)
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, psn, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, all, TO_MEMORY, .swap_add = 1);
	expect_no_answer();
}

/* A requester may have almost 2^23 PSNs in flight, and go back as far. */
TEST(responder__a_request_is_remembered_for_almost_2_23_psns)
{
	const uint32_t half = 1u << 23;

	assert_int_equal(replies_init(&rig.replies, 8), 0);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 0, TO_MEMORY, .swap_add = 1);
	assert_int_equal(rig_answers(), 1);
	rig_read_on(1, half - 2);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 0, TO_MEMORY, .swap_add = 1);
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_ATOMIC_ACKNOWLEDGE, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, half - 1, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 0, TO_MEMORY, .swap_add = 1);
	assert_int_equal(rig_answers(), 1);
	/* Then the request is forgotten, even if no other request comes that has to be remembered.
	 */
	for (uint32_t i = 0; i < RESPONDER_AGE_PSNS; i++)
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, half + i, TO_MEMORY);
	assert_int_equal(rig.replies.remembered, 1);
}

static struct srq *find_none(void *domain, uint32_t number)
{
	(void)domain;
	(void)number;
	return NULL;
}

/* A target asks its stand-in for a part of a READ, of one packet, with a PSN from before. */
TEST(responder__a_stand_in_reads_for_an_old_psn)
{
	rig.responder.stand_in = rig.fixture.pd;
	rig.responder.find_srq = find_none;
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0u - 2, TO_MEMORY, .dma_length = MTU);
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, 0u - 2);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->payload_len, MTU);
	assert_memory_equal(catcher_at(&rig.fixture.catcher, 0)->payload, rig.memory.bytes, MTU);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0u - 2, TO_MEMORY, .dma_length = MTU + 1);
	expect_no_answer();
	/* Other requests are duplicates as anywhere. */
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_duplicate_request), 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0u - 1, TO_MEMORY, .len = 4, .dma_length = 4);
	expect_aeth(ACK, 0u - 1, 0);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_duplicate_request), 1);
	expect_memory_untouched();
}
