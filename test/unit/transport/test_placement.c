/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/placement.c, behind a responder: what ATOMIC WRITE and FLUSH do, need and
 * are answered with. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/guard.h"
#include "base/verbs_later.h"
#include "responder_rig.h"
#include "test.h"

#define FLUSH_RANGE	 FETH_PLACE_GLOBAL
#define FLUSH_REGION	 (FETH_SELECT_REGION << FETH_SELECT_SHIFT | FETH_PLACE_GLOBAL)
#define FLUSH_PERSISTENT FETH_PLACE_PERSISTENT
#define WORD		 ((const uint8_t *)"\1\2\3\4\5\6\7\10")
#define A_WORD		 .dma_length = 8, .payload = WORD, .len = 8

static struct mr *flushable; /* the rig's memory */

static int set_up(void **state)
{
	responder_rig_set_up(state);
	assert_int_equal(mr_register(rig.fixture.pd, rig.memory.bytes, MEMORY,
				     (uintptr_t)rig.memory.bytes, LATER_ACCESS_FLUSH_GLOBAL,
				     &flushable),
			 0);
	rig.responder.access |= LATER_ACCESS_FLUSH_GLOBAL | LATER_ACCESS_FLUSH_PERSISTENT;
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(mr_deregister(flushable), 0);
	return responder_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static void renew(void)
{
	tear_down(NULL);
	set_up(NULL);
}

/* Send what is owed: the empty READ response of one request. */
static void expect_empty_read(uint32_t psn, uint32_t msn)
{
	const struct packet *answer;

	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, psn);
	answer = catcher_at(&rig.fixture.catcher, 0);
	assert_int_equal(answer->payload_len, 0);
	assert_int_equal(answer->syndrome, ACK);
	assert_int_equal(answer->msn, msn);
}

static void expect_refused(enum fault fault, uint8_t nak, struct packet_fields fields)
{
	assert_int_equal(rig_take(fields), fault);
	expect_aeth(AETH_NAK | nak, 0, 0);
	expect_memory_untouched();
	renew();
}

TEST(atomic_write__stores_eight_bytes_in_their_order)
{
	EXPECT_TAKEN(OPCODE_ATOMIC_WRITE, 0, .iova = region_iova(&rig.memory, 16),
		     .rkey = rig.memory.mr->key, A_WORD);
	expect_empty_read(0, 1);
	assert_memory_equal(rig.memory.bytes + 16, WORD, 8);
	region_expect_pattern(&rig.memory, 0, 16, SEED);
	region_expect_pattern(&rig.memory, 24, MEMORY - 24, SEED);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_rx_payload_bytes_written), 8);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8, .ack_req = true);
	expect_aeth(ACK, 1, 2);
}

TEST(atomic_write__is_answered_again_and_not_executed)
{
	EXPECT_TAKEN(OPCODE_ATOMIC_WRITE, 0, TO_MEMORY, A_WORD);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8);
	rig_answers();
	EXPECT_TAKEN(OPCODE_ATOMIC_WRITE, 0, TO_MEMORY, A_WORD);
	expect_empty_read(0, 2);
	expect_payload(rig.memory.bytes, 1, 8);
	/* The number of READs that came meanwhile does not matter. */
	for (uint32_t psn = 2; psn < 2 + 2 * RESOURCES; psn++) {
		EXPECT_TAKEN(OPCODE_READ_REQUEST, psn, TO_MEMORY, .dma_length = 8);
		rig_answers();
	}
	EXPECT_TAKEN(OPCODE_ATOMIC_WRITE, 0, TO_MEMORY, A_WORD);
	EXPECT_TAKEN(OPCODE_ATOMIC_WRITE, 0, TO_MEMORY, A_WORD);
	expect_empty_read(0, 2 + 2 * RESOURCES);
}

TEST(atomic_write__of_other_lengths_and_places_is_refused)
{
	for (uint32_t len = 0; len < 20; len++) {
		if (len == 8)
			continue;
		expect_refused(FAULT_INVALID_REQUEST, NAK_INVALID_REQUEST,
			       (struct packet_fields){.opcode = OPCODE_ATOMIC_WRITE,
						      TO_MEMORY,
						      .dma_length = len,
						      .len = len});
	}
	expect_refused(
		FAULT_INVALID_REQUEST, NAK_INVALID_REQUEST,
		(struct packet_fields){
			.opcode = OPCODE_ATOMIC_WRITE, TO_MEMORY, .dma_length = 16, .len = 8});
	expect_refused(FAULT_INVALID_REQUEST, NAK_INVALID_REQUEST,
		       (struct packet_fields){.opcode = OPCODE_ATOMIC_WRITE,
					      .iova = region_iova(&rig.memory, 4),
					      .rkey = rig.memory.mr->key,
					      A_WORD});
	expect_refused(FAULT_ACCESS, NAK_REMOTE_ACCESS,
		       (struct packet_fields){.opcode = OPCODE_ATOMIC_WRITE,
					      .iova = region_iova(&rig.memory, MEMORY),
					      .rkey = rig.memory.mr->key,
					      A_WORD});
	/* Peers may not write to this region. */
	expect_refused(FAULT_ACCESS, NAK_REMOTE_ACCESS,
		       (struct packet_fields){.opcode = OPCODE_ATOMIC_WRITE,
					      .iova = region_iova(&rig.inbox, 0),
					      .rkey = rig.inbox.mr->key,
					      A_WORD});
}

TEST(atomic_write__at_an_odd_place_of_this_process_is_refused)
{
	struct mr *odd;

	assert_int_equal(mr_register(rig.fixture.pd, rig.memory.bytes + 4, 64, 0,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &odd),
			 0);
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_ATOMIC_WRITE, 0, .iova = 0, .rkey = odd->key,
		     A_WORD);
	expect_aeth(AETH_NAK | NAK_INVALID_REQUEST, 0, 0);
	expect_memory_untouched();
	assert_int_equal(mr_deregister(odd), 0);
}

TEST(atomic_write__to_memory_that_went_is_an_access_error)
{
	uint8_t *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mr *mr;

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mr_register(rig.fixture.pd, page, 4096, (uintptr_t)page,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr),
			 0);
	assert_int_equal(munmap(page, 4096), 0);
	EXPECT_FAULT(FAULT_ACCESS, OPCODE_ATOMIC_WRITE, 0, .iova = (uintptr_t)page, .rkey = mr->key,
		     A_WORD);
	/* No answer says that it was executed. */
	expect_aeth(AETH_NAK | NAK_REMOTE_ACCESS, 0, 0);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(flush__of_range_and_region)
{
	EXPECT_TAKEN(OPCODE_FLUSH, 0, .feth = FLUSH_RANGE, .iova = region_iova(&rig.memory, 5),
		     .rkey = flushable->key, .dma_length = MEMORY - 5);
	expect_empty_read(0, 1);
	/* A FLUSH of the whole region ignores address and length. */
	EXPECT_TAKEN(OPCODE_FLUSH, 1, .feth = FLUSH_REGION, .iova = 3, .rkey = flushable->key,
		     .dma_length = 7);
	expect_empty_read(1, 2);
	EXPECT_TAKEN(OPCODE_FLUSH, 0, .feth = FLUSH_RANGE);
	expect_empty_read(0, 2);
	/* Reserved bits are ignored. */
	EXPECT_TAKEN(OPCODE_FLUSH, 2, .feth = FLUSH_REGION | 0xffffffc0, .rkey = flushable->key);
	expect_empty_read(2, 3);
	expect_memory_untouched();
}

TEST(flush__needs_the_right_of_region_and_queue_pair)
{
	const struct packet_fields good = {.opcode = OPCODE_FLUSH,
					   .feth = FLUSH_RANGE,
					   .iova = region_iova(&rig.memory, 0),
					   .dma_length = 8};
	struct packet_fields fields;

	/* The rig's own region does not have this right, which every length needs. */
	fields = good;
	fields.rkey = rig.memory.mr->key;
	expect_refused(FAULT_ACCESS, NAK_REMOTE_ACCESS, fields);
	fields.dma_length = 0;
	fields.rkey = rig.memory.mr->key;
	expect_refused(FAULT_ACCESS, NAK_REMOTE_ACCESS, fields);
	fields.feth = FLUSH_REGION;
	fields.rkey = FIXTURE_NOBODY;
	expect_refused(FAULT_ACCESS, NAK_REMOTE_ACCESS, fields);
	fields = good;
	fields.iova = region_iova(&rig.memory, 0);
	fields.rkey = flushable->key;
	fields.dma_length = MEMORY + 1;
	expect_refused(FAULT_ACCESS, NAK_REMOTE_ACCESS, fields);
	/* No region grants persistence, even if the queue pair does. */
	fields = good;
	fields.rkey = flushable->key;
	fields.feth = FLUSH_PERSISTENT;
	expect_refused(FAULT_ACCESS, NAK_REMOTE_ACCESS, fields);
	fields.rkey = flushable->key;
	rig.responder.access = REMOTE | LATER_ACCESS_FLUSH_GLOBAL;
	expect_refused(FAULT_INVALID_REQUEST, NAK_INVALID_REQUEST, fields);
	fields.rkey = flushable->key;
	fields.feth = FLUSH_RANGE;
	rig.responder.access = REMOTE | LATER_ACCESS_FLUSH_PERSISTENT;
	expect_refused(FAULT_INVALID_REQUEST, NAK_INVALID_REQUEST, fields);
}

TEST(flush__of_no_known_kind_is_refused)
{
	static const uint32_t bits[] = {0, FETH_SELECT_REGION << FETH_SELECT_SHIFT,
					2u << FETH_SELECT_SHIFT | FETH_PLACE_GLOBAL,
					FETH_PLACE_GLOBAL | 4, 8};

	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		expect_refused(FAULT_INVALID_REQUEST, NAK_INVALID_REQUEST,
			       (struct packet_fields){.opcode = OPCODE_FLUSH,
						      .feth = bits[i],
						      .rkey = flushable->key});
}

/* The peer sends more FLUSHes at a time than there is room for answers: Linux's Soft-RoCE does not
 * count them. */
TEST(flush__without_room_is_asked_for_again)
{
	uint32_t psn = 0;

	for (; replies_reserve_empty_read(&rig.replies); psn++)
		EXPECT_TAKEN(OPCODE_FLUSH, psn, .feth = FLUSH_REGION, .rkey = flushable->key);
	EXPECT_TAKEN(OPCODE_FLUSH, psn, .feth = FLUSH_REGION, .rkey = flushable->key);
	EXPECT_TAKEN(OPCODE_FLUSH, psn + 1, .feth = FLUSH_REGION, .rkey = flushable->key);
	assert_int_equal(rig_answers(), psn + 1);
	expect_answer(psn - 1, OPCODE_READ_RESPONSE_ONLY, psn - 1);
	expect_answer(psn, OPCODE_ACKNOWLEDGE, psn);
	assert_int_equal(catcher_at(&rig.fixture.catcher, psn)->syndrome,
			 AETH_NAK | NAK_PSN_SEQUENCE);
	EXPECT_TAKEN(OPCODE_FLUSH, psn, .feth = FLUSH_REGION, .rkey = flushable->key);
	EXPECT_TAKEN(OPCODE_FLUSH, psn + 1, .feth = FLUSH_REGION, .rkey = flushable->key);
	assert_int_equal(rig_answers(), 2);
	expect_answer(1, OPCODE_READ_RESPONSE_ONLY, psn + 1);
}
