/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder_ooo.c: packets that arrive out of order for memory with relaxed
 * ordering.
 */
#include <stddef.h>
#include <stdint.h>

#include "responder_ooo_rig.h"

TEST_FIXTURE(responder_ooo_set_up, responder_ooo_tear_down);

TEST(responder__a_relaxed_region_takes_out_of_order_bytes_at_once)
{
	rig_post(1, (struct ibv_sge){0});
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_RELAXED, .dma_length = 3 * MTU + 8, .len = MTU);
	EXPECT_TAKEN(OPCODE_WRITE_LAST_IMM, 3, .len = 8, .ack_req = true);
	expect_payload(relaxed.bytes + 3 * MTU, 3, 8);
	EXPECT_TAKEN(OPCODE_WRITE_MIDDLE, 2, .len = MTU);
	expect_payload(relaxed.bytes + 2 * MTU, 2, MTU);
	region_expect_pattern(&relaxed, MTU, MTU, RELAXED_SEED);
	assert_int_equal(counted(COUNTER_out_of_order_placed), 2);
	assert_int_equal(counted(COUNTER_rx_payload_bytes_written), 2 * MTU + 8);
	/* The program sees no completion yet. */
	fixture_no_completion(rig.fixture.cq);
	expect_aeth(NAK_SEQUENCE, 1, 0);
	EXPECT_TAKEN(OPCODE_WRITE_MIDDLE, 1, .len = MTU);
	for (uint32_t psn = 0; psn < 3; psn++)
		expect_payload(relaxed.bytes + psn * MTU, psn, MTU);
	expect_payload(relaxed.bytes + 3 * MTU, 3, 8);
	region_expect_pattern(&relaxed, 3 * MTU + 8, MEMORY - 3 * MTU - 8, RELAXED_SEED);
	assert_int_equal(fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS).byte_len,
			 3 * MTU + 8);
	expect_aeth(ACK, 3, 1);
	/* Each byte was stored once. */
	assert_int_equal(counted(COUNTER_rx_payload_bytes_written), 3 * MTU + 8);
}

/* The key has the same range and rights afterwards, but leads to other memory than that with the
 * out-of-order bytes. */
TEST(responder__out_of_order_bytes_of_memory_that_a_key_leads_to_no_more)
{
	const unsigned int access = REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING |
				    IBV_ACCESS_ZERO_BASED;
	const struct mr_change change = {.flags = IBV_REREG_MR_CHANGE_TRANSLATION,
					 .addr = rig.memory.bytes,
					 .length = MEMORY};
	struct mr *mr;

	assert_int_equal(mr_register(rig.fixture.pd, relaxed.bytes, MEMORY, 0, access, &mr), 0);
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, .rkey = mr->key, .dma_length = 3 * MTU, .len = MTU);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .len = MTU);
	assert_int_equal(counted(COUNTER_out_of_order_placed), 1);
	expect_payload(relaxed.bytes + 2 * MTU, 2, MTU);
	expect_aeth(NAK_SEQUENCE, 1, 0);
	assert_int_equal(mr_apply_change(mr, &change), 0);
	EXPECT_FAULT(FAULT_ACCESS, OPCODE_WRITE_MIDDLE, 1, .len = MTU);
	expect_payload(rig.memory.bytes + MTU, 1, MTU);
	expect_aeth(AETH_NAK | NAK_REMOTE_ACCESS, 2, 0);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(responder__a_strict_region_waits)
{
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = 3 * MTU, .len = MTU);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .len = MTU);
	region_expect_pattern(&rig.memory, MTU, MEMORY - MTU, SEED);
	EXPECT_TAKEN(OPCODE_WRITE_MIDDLE, 1, .len = MTU);
	expect_payload(rig.memory.bytes + 2 * MTU, 2, MTU);
	assert_int_equal(counted(COUNTER_out_of_order_placed), 0);
}

/* The place of a packet, and its right to be there, are known for the message in progress only. */
TEST(responder__out_of_order_bytes_of_a_later_message_wait)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_RELAXED, .dma_length = 4, .len = 4);
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 2, TO_RELAXED, .dma_length = 2 * MTU, .len = MTU);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 3, .len = MTU);
	region_expect_pattern(&relaxed, 0, MEMORY, RELAXED_SEED);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_RELAXED, .dma_length = 8, .len = 8);
	expect_payload(relaxed.bytes, 2, MTU);
	expect_payload(relaxed.bytes + MTU, 3, MTU);
}

TEST(responder__what_does_not_fit_its_message_is_not_placed)
{
	static const struct packet_fields misfits[] = {
		{.opcode = OPCODE_WRITE_LAST, .psn = 3, .len = 9}, /* beyond the end */
		{.opcode = OPCODE_WRITE_LAST, .psn = 3, .len = 7},
		{.opcode = OPCODE_WRITE_LAST, .psn = 2, .len = 8},     /* too soon */
		{.opcode = OPCODE_WRITE_MIDDLE, .psn = 3, .len = MTU}, /* beyond the end */
		{.opcode = OPCODE_WRITE_MIDDLE, .psn = 4, .len = MTU},
		{.opcode = OPCODE_WRITE_MIDDLE, .psn = 4, .len = MTU},
		{.opcode = OPCODE_WRITE_MIDDLE, .psn = 2, .len = MTU - 4},
		{.opcode = OPCODE_SEND_MIDDLE, .psn = 2, .len = MTU},
	};

	for (size_t i = 0; i < sizeof(misfits) / sizeof(misfits[0]); i++) {
		EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_RELAXED, .dma_length = 3 * MTU + 8,
			     .len = MTU);
		assert_int_equal(rig_take(misfits[i]), FAULT_NONE);
		region_expect_pattern(&relaxed, MTU, MEMORY - MTU, RELAXED_SEED);
		responder_ooo_tear_down(state);
		responder_ooo_set_up(state);
	}
	/* The key becomes invalid, or the right is withdrawn. */
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_RELAXED, .dma_length = 3 * MTU, .len = MTU);
	rig.responder.access = 0;
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .len = MTU);
	rig.responder.access = REMOTE;
	region_deregister(&relaxed);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .len = MTU);
	region_expect_pattern(&relaxed, MTU, MEMORY - MTU, RELAXED_SEED);
	EXPECT_FAULT(FAULT_ACCESS, OPCODE_WRITE_MIDDLE, 1, .len = MTU);
	region_expect_pattern(&relaxed, MTU, MEMORY - MTU, RELAXED_SEED);
}
