/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/refusal.c: what a user is told of a refused request. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/guard.h"
#include "base/reason.h"
#include "responder_rig.h"
#include "test.h"

static int set_up(void **state)
{
	reason_wanted = true;
	return responder_rig_set_up(state);
}

static int tear_down(void **state)
{
	reason_wanted = false;
	return responder_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

/* Assert what was said, and begin anew. */
static void assert_why(const char *text)
{
	const char *why = reason_take(REASON_FAULT);

	assert_non_null(why);
	assert_contains(why, text);
	responder_rig_renew();
}

TEST(refusal_fault__of_a_message_out_of_order)
{
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_WRITE_LAST, 0, .len = 8);
	assert_why("continues a message that has not begun");
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = 2 * MTU, .len = MTU);
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_WRITE_ONLY, 1, TO_MEMORY, .len = 8);
	assert_why("does not continue the message in progress");
}

TEST(refusal_fault__of_a_right_that_the_queue_pair_does_not_give)
{
	rig.responder.access = IBV_ACCESS_REMOTE_WRITE;
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
	assert_why("qp_access_flags lack IBV_ACCESS_REMOTE_READ");
}

TEST(refusal_fault__of_lengths)
{
	rig_post(1, region_sge(&rig.inbox, 0, 8));
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_SEND_ONLY, 0, .len = MTU + 4);
	assert_why("260 bytes of payload, and the queue pair's path_mtu is 256 bytes");
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_READ_REQUEST, 0, TO_MEMORY,
		     .dma_length = WIRE_MESSAGE_MAX + 1);
	assert_why("2147483649 bytes are more than a message may have");
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 9,
		     .len = 8);
	assert_why("a packet of a WRITE has 8 bytes");
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = 2 * MTU, .len = MTU);
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_WRITE_LAST, 1);
	assert_why("behind the first one of its message has no payload");
}

TEST(refusal_fault__of_a_receive_request_that_is_too_short)
{
	rig_post(7, region_sge(&rig.inbox, 0, 8));
	EXPECT_FAULT(FAULT_MESSAGE_TOO_LONG, OPCODE_SEND_ONLY, 0, .len = 9);
	assert_why("longer than the receive request (wr_id 7), which has room for 8 bytes");
}

TEST(refusal_fault__of_more_reads_than_agreed)
{
	for (uint32_t i = 0; i < RESOURCES; i++)
		EXPECT_TAKEN(OPCODE_READ_REQUEST, i, TO_MEMORY, .dma_length = 8);
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_READ_REQUEST, RESOURCES, TO_MEMORY,
		     .dma_length = 8);
	assert_why("the queue pair's max_dest_rd_atomic of 2");
}

TEST(refusal_fault__of_an_atomic_between_two_words)
{
	char text[64];

	snprintf(text, sizeof(text), "the address 0x%" PRIx64 " is no multiple of 8",
		 region_iova(&rig.memory, 4));
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_FETCH_ADD, 0,
		     .iova = region_iova(&rig.memory, 4), .rkey = rig.memory.mr->key);
	assert_why(text);
}

TEST(refusal_fault__of_an_atomic_in_a_region_between_two_words)
{
	struct mr *mr;

	assert_int_equal(mr_register(rig.fixture.pd, rig.memory.bytes + 4, 64, 0,
				     REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED, &mr),
			 0);
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_FETCH_ADD, 0, .iova = 8, .rkey = mr->key);
	mr_deregister(mr);
	assert_why("is at no multiple of 8 in its process");
}

/* Only the first packet of a WRITE names its key. */
TEST(refusal_fault__of_memory_that_is_not_mapped)
{
	static const struct {
		uint8_t opcode;
		bool is_write;
	} cases[] = {{OPCODE_FETCH_ADD, false}, {OPCODE_WRITE_LAST, true}};

	assert_int_equal(guard_install(), 0);
	for (size_t i = 0; i < 2; i++) {
		uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct mr *mr;
		char text[32];

		assert_int_equal(mr_register(rig.fixture.pd, page, 4096, (uintptr_t)page,
					     IBV_ACCESS_LOCAL_WRITE | REMOTE, &mr),
				 0);
		if (cases[i].is_write)
			EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, .iova = mr->iova, .rkey = mr->key,
				     .dma_length = 2 * MTU, .len = MTU);
		assert_int_equal(munmap(page, 4096), 0);
		EXPECT_FAULT(FAULT_ACCESS, cases[i].opcode, cases[i].is_write, .iova = mr->iova,
			     .rkey = mr->key, .len = cases[i].is_write ? MTU : 0);
		snprintf(text, sizeof(text), "0x%x", mr->key);
		assert_int_equal(mr_deregister(mr), 0);
		assert_why(text);
	}
}
