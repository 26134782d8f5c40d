/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder_ooo.c: a responder reports which packets it keeps. */
#include <stdint.h>

#include "responder_ooo_rig.h"

TEST_FIXTURE(responder_ooo_set_up, responder_ooo_tear_down);

#define CAPABILITY (BTH_SACK_REQUEST | 1)

/* Let the peer show that it understands selective acknowledgements, in PSN 0. */
static void let_tell(void)
{
	rig.replies.kept = &rig.responder.ooo;
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true,
		     .capability = CAPABILITY);
	expect_aeth(ACK, 0, 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->capability & BTH_SACK_KIND,
			 BTH_SACK_RESPONSE);
}

/* Send the owed answers, and check that they are one selective acknowledgement. */
static void expect_sack(uint32_t expected, uint8_t kept)
{
	const unsigned int count = rig_answers();
	const struct packet *answer = catcher_at(&rig.fixture.catcher, 0);

	assert_int_equal(count, 1);
	assert_int_equal(answer->opcode, OPCODE_SACK);
	assert_int_equal(answer->psn.v, psn_make(FIRST_PSN + expected).v);
	assert_int_equal(answer->payload_len, 1);
	assert_int_equal(answer->payload[0], kept);
}

TEST(responder__tells_a_peer_that_understands_which_packets_it_keeps)
{
	let_tell();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_sack(1, 0x01);
	/* A packet that follows says nothing new; a packet behind another hole does. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 5, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_sack(1, 0x0b);
	/* A packet that came before shows that its requester has heard nothing. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 5, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true);
	expect_sack(1, 0x0b);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true);
	expect_sack(1, 0x0b);
	assert_int_equal(counted(COUNTER_sacks_sent), 4);
	/* The first hole closes, and the second is left. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_sack(4, 0x01);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_aeth(ACK, 5, 6);
	assert_int_equal(rig.responder.gap, GAP_NONE);
}

/* It announces with each AckReq, and may be another one now. */
/* A packet without capability bits was sent before the requester knew us. */
TEST(responder__does_not_forget_what_the_peer_understands)
{
	let_tell();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true);
	expect_aeth(ACK, 1, 2);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->capability & BTH_SACK_KIND,
			 BTH_SACK_RESPONSE);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_sack(2, 0x01);
}

/* The requester shall not wait for the responses before it sends what is missing. Whether it may
 * expect them is in the solicited-event bit. */
TEST(responder__tells_before_it_answers)
{
	let_tell();
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 1, TO_MEMORY, .dma_length = 2 * MTU);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY, .dma_length = 4, .len = 4);
	assert_int_equal(rig_answers(), 3);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->opcode, OPCODE_SACK);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->psn.v, psn_make(FIRST_PSN + 3).v);
	assert_false(catcher_at(&rig.fixture.catcher, 0)->solicited);
	expect_answer(1, OPCODE_READ_RESPONSE_FIRST, 1);
	expect_answer(2, OPCODE_READ_RESPONSE_LAST, 2);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 6, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_sack(3, 0x05);
	assert_true(catcher_at(&rig.fixture.catcher, 0)->solicited);
}

/* Its requester has sent copies of it, or it was late. */
TEST(responder__a_marked_read_is_answered_once)
{
	const struct packet_fields request = {.opcode = OPCODE_READ_REQUEST,
					      .psn = 1,
					      TO_MEMORY,
					      .dma_length = 4 * MTU,
					      .capability = CAPABILITY};
	struct packet_fields repeated = request;

	let_tell();
	assert_int_equal(rig_take(request), FAULT_NONE);
	assert_int_equal(rig_answers(), 4);
	assert_int_equal(rig_take(request), FAULT_NONE);
	expect_no_answer();
	/* Now its requester misses responses. */
	repeated.ack_req = true;
	assert_int_equal(rig_take(repeated), FAULT_NONE);
	assert_int_equal(rig_answers(), 4);
	/* Reserved bits of another requester mean nothing. */
	replies_set_capability(&rig.replies, 0);
	assert_int_equal(rig_take(request), FAULT_NONE);
	assert_int_equal(rig_answers(), 4);
}

TEST(responder__tells_of_each_marked_read_once)
{
	let_tell();
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 2, TO_MEMORY, .dma_length = MTU,
		     .capability = CAPABILITY);
	expect_sack(1, 0x01);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 3, TO_MEMORY, .dma_length = MTU,
		     .capability = CAPABILITY);
	expect_sack(1, 0x03);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 3, TO_MEMORY, .dma_length = MTU,
		     .capability = CAPABILITY);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 3, TO_MEMORY, .dma_length = MTU, .capability = CAPABILITY,
		     .ack_req = true);
	expect_sack(1, 0x03);
}

TEST(responder__keeps_as_far_ahead_as_its_peer_has_announced)
{
	let_tell();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1 + 512 + 64, TO_MEMORY, .dma_length = 4, .len = 4);
	assert_int_equal(rig.responder.ooo.count, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 512 + 64, TO_MEMORY, .dma_length = 4, .len = 4);
	assert_int_equal(rig.responder.ooo.count, 1);
}

TEST(responder__tells_nobody_who_has_not_shown_to_understand)
{
	rig.replies.kept = &rig.responder.ooo;
	/* Capability bits in a packet that is not executed may be forged. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true,
		     .capability = CAPABILITY);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->capability, 0);
	/* Other reserved bits are ignored (9.2), as are the capability bits of a response. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true,
		     .capability = BTH_SACK_RESPONSE | 1);
	expect_aeth(ACK, 0, 1);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_aeth(NAK_SEQUENCE, 1, 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->capability, 0);
}

/* Nothing is missing, and the peer is told so without being asked. */
TEST(responder_tell__what_is_expected)
{
	let_tell();
	responder_tell(&rig.responder);
	assert_int_equal(rig.responder.gap, GAP_NAKED);
	assert_int_equal(rig.responder.gap_psn.v, psn_make(FIRST_PSN + 1).v);
	assert_int_equal(rig_answers(), 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->psn.v, psn_make(FIRST_PSN + 1).v);
}

TEST(responder_tell__where_the_gap_began)
{
	let_tell();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_sack(1, 0x01);
	rig.responder.gap_psn = psn_make(FIRST_PSN);
	responder_tell(&rig.responder);
	assert_int_equal(rig.responder.gap_psn.v, psn_make(FIRST_PSN).v);
	expect_sack(1, 0x01);
}

TEST(responder_tell__nothing_to_a_peer_that_does_not_understand_or_waits)
{
	responder_tell(&rig.responder);
	assert_int_equal(rig.responder.gap, GAP_NONE);
	assert_int_equal(rig_answers(), 0);
	let_tell();
	rig.responder.gap = GAP_PAGE;
	responder_tell(&rig.responder);
	assert_int_equal(rig.responder.gap, GAP_PAGE);
	rig.responder.gap = GAP_NONE;
	assert_int_equal(rig_answers(), 0);
}
