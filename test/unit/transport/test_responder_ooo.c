/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder_ooo.c: packets that arrive out of order, and are kept. */
#include <stddef.h>
#include <stdint.h>

#include "responder_ooo_rig.h"

TEST_FIXTURE(responder_ooo_set_up, responder_ooo_tear_down);

TEST(responder__out_of_order_packets_are_executed_when_the_gap_closes)
{
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	rig_post(2, region_sge(&rig.inbox, MTU, 2 * MTU));
	/* The packets behind the gap arrive in any order. */
	EXPECT_TAKEN(OPCODE_SEND_LAST_IMM, 4, .len = 5, .imm_be = 9, .ack_req = true);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 2, .len = 8);
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 3, .len = MTU);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 1, .len = 4);
	expect_no_answer();
	expect_memory_untouched();
	fixture_no_completion(rig.fixture.cq);
	assert_int_equal(rig_posted(), 2);
	assert_int_equal(counted(COUNTER_out_of_order_kept), 4);
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = MTU + 4, .len = MTU);
	expect_payload(rig.memory.bytes, 0, MTU);
	expect_payload(rig.memory.bytes + MTU, 1, 4);
	assert_int_equal(fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS).byte_len, 8);
	assert_int_equal(fixture_completion(rig.fixture.cq, 2, IBV_WC_SUCCESS).imm_data, 9);
	expect_payload(rig.inbox.bytes, 2, 8);
	expect_payload(rig.inbox.bytes + MTU, 3, MTU);
	expect_payload(rig.inbox.bytes + 2 * MTU, 4, 5);
	/* One acknowledgement answers all of them. */
	expect_aeth(ACK, 4, 3);
	assert_int_equal(rig.responder.ooo.count, 0);
}

/* A requester that goes back learns at once which packets it need not send again. */
TEST(responder__what_was_kept_is_acknowledged_unasked)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	expect_aeth(ACK, 2, 3);
}

TEST(responder__the_next_gap_gets_its_nak_at_once)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 6, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 2, 2);
	/* One NAK for each gap (C9-112): the packets behind it get none. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 7, TO_MEMORY);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 4, 4);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 5, TO_MEMORY);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY);
	expect_aeth(ACK, 7, 8);
}

/* What waits for a packet that is missing gets old; what waits for a receive request does not. */
TEST(responder_forget_old__drops_what_was_kept_for_long)
{
	for (unsigned int refused = 0; refused < 2; refused++) {
		if (refused)
			EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4);
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
		ooo_stamp(&rig.responder.ooo, psn_make(FIRST_PSN + 1), 1);
		responder_forget_old(&rig.responder, 1 + RESPONDER_KEEP_NS);
		assert_int_equal(rig.responder.ooo.count, 1);
		responder_forget_old(&rig.responder, 2 + RESPONDER_KEEP_NS);
		assert_int_equal(rig.responder.ooo.count, refused);
		assert_int_equal(counted(COUNTER_out_of_order_late), !refused);
		responder_ooo_tear_down(state);
		responder_ooo_set_up(state);
	}
}

/* The requester goes back, and the expected packet is lost again. */
TEST(responder__a_kept_packet_that_comes_again_asks_again)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	expect_no_answer();
	assert_int_equal(rig.responder.ooo.count, 2);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	expect_aeth(ACK, 2, 3);
	/* The packets that the requester sent again behind the gap are duplicates by then. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	expect_aeth(ACK, 2, 3);
	assert_int_equal(rig.responder.msn, 3);
}

/* Two packets arrive in the wrong order, in one burst. */
TEST(responder__a_nak_that_was_not_sent_yet_is_withdrawn)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	expect_aeth(ACK, 1, 2);
}

TEST(responder__a_withdrawn_nak_leaves_an_acknowledgement)
{
	rig.responder.ooo.pool = NULL;
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .ack_req = true);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	expect_aeth(ACK, 0, 1);
}

TEST(responder__out_of_order_reads_and_atomics_take_their_turn)
{
	uint64_t *word = (uint64_t *)(void *)rig.memory.bytes;

	*word = 7;
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 2, TO_MEMORY, .dma_length = 3 * MTU);
	/* This PSN is behind those of the READ's responses, which no request has. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 5, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 1, TO_MEMORY, .swap_add = 1);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	assert_int_equal(*word, 7);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	assert_int_equal(rig_answers(), 5);
	expect_answer(0, OPCODE_ATOMIC_ACKNOWLEDGE, 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->atomic_original, 7);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(catcher_at(&rig.fixture.catcher, 1 + i)->psn.v,
				 psn_make(FIRST_PSN + 2 + i).v);
	expect_answer(4, OPCODE_ACKNOWLEDGE, 5);
	expect_payload(rig.memory.bytes, 5, 4);
}

/* No request has such a PSN. The peer breaks the protocol, and gets an answer to its READ only. */
TEST(responder__what_was_kept_inside_of_a_read_vanishes)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 4 * MTU);
	assert_int_equal(rig_answers(), 4);
	assert_int_equal(rig.responder.ooo.count, 0);
	region_expect_pattern(&rig.memory, 0, MEMORY, SEED);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY, .ack_req = true);
	expect_aeth(ACK, 4, 2);
}

/* Each check is made when the packet's turn comes, against the rights that are valid then. */
TEST(responder__a_kept_packet_fails_at_its_turn)
{
	static const struct {
		struct packet_fields ooo;
		enum fault fault;
		uint8_t syndrome;
	} cases[] = {
		{{.opcode = OPCODE_WRITE_ONLY, .rkey = FIXTURE_NOBODY, .dma_length = 4, .len = 4},
		 FAULT_ACCESS,
		 AETH_NAK | NAK_REMOTE_ACCESS},
		{{.opcode = OPCODE_WRITE_MIDDLE, .len = MTU},
		 FAULT_INVALID_REQUEST,
		 AETH_NAK | NAK_INVALID_REQUEST},
		{{.opcode = OPCODE_SEND_FIRST, .len = MTU - 1},
		 FAULT_INVALID_REQUEST,
		 AETH_NAK | NAK_INVALID_REQUEST},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packet_fields fields = cases[i].ooo;

		fields.psn = 1;
		assert_int_equal(rig_take(fields), FAULT_NONE);
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 4, .len = 4);
		expect_aeth(NAK_SEQUENCE, 0, 0);
		EXPECT_FAULT(cases[i].fault, OPCODE_WRITE_ONLY, 0, TO_MEMORY);
		expect_aeth(cases[i].syndrome, 1, 1);
		/* The packet behind it is not executed. */
		expect_memory_untouched();
		responder_ooo_tear_down(state);
		responder_ooo_set_up(state);
	}
}

TEST(responder__a_key_that_goes_meanwhile_does_not_open_memory)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	region_deregister(&rig.memory);
	EXPECT_FAULT(FAULT_ACCESS, OPCODE_WRITE_ONLY, 0);
	region_expect_pattern(&rig.memory, 0, MEMORY, SEED);
}

TEST(responder__not_ready_for_a_kept_packet)
{
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 1, .len = 4);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .ack_req = true);
	assert_int_equal(rig_answers(), 2);
	expect_answer(0, OPCODE_ACKNOWLEDGE, 0);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->syndrome, ACK);
	expect_answer(1, OPCODE_ACKNOWLEDGE, 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 1)->syndrome, AETH_RNR_NAK | RNR_TIMER);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_no_answer();
	expect_memory_untouched();
	assert_int_equal(rig.responder.ooo.count, 3);
	/* The refused packet arrives again; the packet behind it was kept. */
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 1, .len = 4);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	expect_payload(rig.memory.bytes, 3, 4);
	expect_aeth(ACK, 3, 4);
	assert_int_equal(rig.responder.ooo.count, 0);
}

/* The requester sends all packets again, and counts each RNR NAK as a retry. */
TEST(responder__one_rnr_nak_for_one_packet)
{
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4, .ack_req = true);
	expect_aeth(AETH_RNR_NAK | RNR_TIMER, 0, 0);
	for (uint32_t psn = 1; psn < 4; psn++)
		EXPECT_TAKEN(OPCODE_SEND_ONLY, psn, .len = 4, .ack_req = true);
	expect_no_answer();
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4, .ack_req = true);
	expect_aeth(ACK, 0, 1);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 1, .len = 4, .ack_req = true);
	expect_aeth(AETH_RNR_NAK | RNR_TIMER, 1, 1);
	for (uint32_t psn = 2; psn < 4; psn++)
		EXPECT_TAKEN(OPCODE_SEND_ONLY, psn, .len = 4, .ack_req = true);
	expect_no_answer();
}

/* Packets that were kept behind a refused one wait until it arrives again. If it is lost then, it
 * is requested when a packet from behind it arrives, as in any gap. */
TEST(responder__a_kept_packet_behind_a_refusal_is_asked_for)
{
	for (uint32_t psn = 0; psn < 3; psn++)
		EXPECT_TAKEN(OPCODE_SEND_ONLY, psn, .len = 4, .ack_req = true);
	expect_aeth(AETH_RNR_NAK | RNR_TIMER, 0, 0);
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4, .ack_req = true);
	expect_aeth(ACK, 0, 1);
	rig_post(2, region_sge(&rig.inbox, 0, MTU));
	rig_post(3, region_sge(&rig.inbox, 0, MTU));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 2, .len = 4, .ack_req = true);
	expect_aeth(NAK_SEQUENCE, 1, 1);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 1, .len = 4, .ack_req = true);
	expect_aeth(ACK, 2, 3);
}

/* What is kept behind a refused packet is evidence of gaps. */
TEST(responder__a_gap_behind_a_refusal_gets_its_nak)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4);
	expect_aeth(AETH_RNR_NAK | RNR_TIMER, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 6, TO_MEMORY);
	expect_no_answer();
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4);
	expect_aeth(NAK_SEQUENCE, 1, 1);
}

/* The refused packet arrives again, and finds a receive request, before its RNR NAK has left. */
TEST(responder__an_rnr_nak_is_withdrawn)
{
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4);
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4, .ack_req = true);
	expect_aeth(ACK, 0, 1);
}

TEST(responder__flush_and_reset_drop_what_is_kept)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	responder_flush(&rig.responder);
	assert_int_equal(rig.responder.ooo.count, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	responder_reset(&rig.responder, psn_make(FIRST_PSN));
	assert_int_equal(rig.responder.ooo.count, 0);
}

/* Let two requests arrive in the wrong order, after so many PSNs of READs without a SEND or WRITE.
 * The packet that closes the gap is answered, and nothing older is acknowledged. */
static void expect_no_old_acknowledgement(uint32_t psns)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	rig_read_on(1, psns);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, psns + 2, TO_MEMORY, .dma_length = 8);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, psns + 1, TO_MEMORY, .dma_length = 8);
	assert_int_equal(rig_answers(), 2);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, psns + 1);
	expect_answer(1, OPCODE_READ_RESPONSE_ONLY, psns + 2);
	/* A duplicate of a request for which no requester waits any more is not acknowledged
	 * either. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, psns, TO_MEMORY);
	expect_no_answer();
	/* The next WRITE is acknowledged as usual. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, psns + 3, TO_MEMORY, .ack_req = true);
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_ACKNOWLEDGE, psns + 3);
}

TEST(responder__an_old_write_is_not_acknowledged_after_many_reads)
{
	static const uint32_t psns[] = {
		RESPONDER_ACK_REACH, (1u << 23) - 1,	     1u << 23, 3u << 22,
		(1u << 24) - 10,     (1u << 24) + (1u << 23)};

	for (size_t i = 0; i < sizeof(psns) / sizeof(psns[0]); i++) {
		expect_no_old_acknowledgement(psns[i]);
		responder_ooo_tear_down(state);
		responder_ooo_set_up(state);
	}
}

/* The same if the program READs a little at a time. */
TEST(responder__nor_after_many_short_reads)
{
	const uint32_t step = 1u << 20;

	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	for (uint32_t psns = 0; psns < 1u << 24; psns += step) {
		rig_read_on(1 + psns, step);
		/* The network duplicates the WRITE. */
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, psns, TO_MEMORY);
		assert_int_equal(rig_answers(), psns + step < RESPONDER_ACK_REACH);
	}
}
