/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/gap.c: packets that arrive out of order, and are kept. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "responder_rig.h"
#include "test.h"

#define RELAXED_SEED 21u
#define NAK_SEQUENCE (AETH_NAK | NAK_PSN_SEQUENCE)

static struct ooo_pool *pool;
static struct region relaxed;

static int set_up(void **state)
{
	responder_rig_set_up(state);
	assert_int_equal(ooo_pool_create(64, &pool), 0);
	rig.responder.ooo.pool = pool;
	region_set_up(&relaxed, rig.fixture.pd, MEMORY,
		      REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, RELAXED_SEED);
	return 0;
}

static int tear_down(void **state)
{
	ooo_clear(&rig.responder.ooo);
	ooo_pool_destroy(pool);
	region_tear_down(&relaxed);
	return responder_rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

#define TO_RELAXED .iova = region_iova(&relaxed, 0), .rkey = relaxed.mr->key

static uint64_t counted(enum counter counter)
{
	return counters_get(&rig.fixture.counters, counter);
}

#define SIGN (BTH_SIGN_REQUEST | 1)

/* Let the peer show that it understands selective acknowledgements, in PSN 0. */
static void let_tell(void)
{
	rig.replies.kept = &rig.responder.ooo;
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true,
		     .sign = SIGN);
	expect_aeth(ACK, 0, 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->sign & BTH_SIGN_KIND,
			 BTH_SIGN_RESPONSE);
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
	/* One that follows says nothing new; one behind another hole does. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 5, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_sack(1, 0x0b);
	/* One that came before shows that its requester has heard nothing. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 5, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true);
	expect_sack(1, 0x0b);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true);
	expect_sack(1, 0x0b);
	/* The first hole closes, and the second is left. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_sack(4, 0x01);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_aeth(ACK, 5, 6);
	assert_int_equal(rig.responder.gap, GAP_NONE);
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
					      .sign = SIGN};
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
	replies_set_sign(&rig.replies, 0);
	assert_int_equal(rig_take(request), FAULT_NONE);
	assert_int_equal(rig_answers(), 4);
}

TEST(responder__tells_of_each_marked_read_once)
{
	let_tell();
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 2, TO_MEMORY, .dma_length = MTU, .sign = SIGN);
	expect_sack(1, 0x01);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 3, TO_MEMORY, .dma_length = MTU, .sign = SIGN);
	expect_sack(1, 0x03);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 3, TO_MEMORY, .dma_length = MTU, .sign = SIGN);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 3, TO_MEMORY, .dma_length = MTU, .sign = SIGN,
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
	/* A sign in a packet that is not executed may be forged. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true,
		     .sign = SIGN);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->sign, 0);
	/* Other reserved bits are ignored (9.2), as is the sign of a response. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 4, .len = 4, .ack_req = true,
		     .sign = BTH_SIGN_RESPONSE | 1);
	expect_aeth(ACK, 0, 1);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_aeth(NAK_SEQUENCE, 1, 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->sign, 0);
}

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
		tear_down(state);
		set_up(state);
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

/* The refused packet arrives again, and finds a receive request, before its RNR NAK has left. */
TEST(responder__an_rnr_nak_is_withdrawn)
{
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4);
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 4, .ack_req = true);
	expect_aeth(ACK, 0, 1);
}

/* Forged packets, and packets that the network has delayed for a long time. */

static void post_three(void)
{
	for (uint64_t i = 0; i < 3; i++)
		rig_post(i, region_sge(&rig.inbox, i * 8, 8));
}

static const uint8_t forged[8] = "FORGED!", genuine[8] = "genuine";

#define SEND_8(number, bytes) \
	EXPECT_TAKEN(OPCODE_SEND_ONLY, number, .payload = bytes, .len = 8, .ack_req = true)

static void expect_three_genuine(void)
{
	for (uint64_t i = 0; i < 3; i++) {
		fixture_completion(rig.fixture.cq, i, IBV_WC_SUCCESS);
		assert_memory_equal(rig.inbox.bytes + i * 8, genuine, 8);
	}
}

TEST(responder__a_packet_from_ahead_is_not_executed_in_place_of_the_next)
{
	post_three();
	SEND_8(2, forged);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	SEND_8(0, genuine);
	expect_aeth(ACK, 0, 1);
	SEND_8(1, genuine);
	/* The packet is requested, because it may be lost. */
	expect_aeth(NAK_SEQUENCE, 2, 2);
	SEND_8(2, genuine);
	expect_aeth(ACK, 2, 3);
	expect_three_genuine();
	assert_int_equal(counted(COUNTER_out_of_order_differed), 1);
	assert_int_equal(rig.responder.ooo.count, 0);
}

/* The same if the network has moved one packet in front of two others. */
TEST(responder__a_packet_that_overtook_two_is_executed_when_another_follows)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	expect_memory_untouched();
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY);
	expect_payload(rig.memory.bytes, 2, 4);
	/* The pending NAK is not needed any more. */
	expect_aeth(ACK, 3, 4);
}

/* The same if the packet arrives again because it was requested, and others are kept behind it. */
TEST(responder__a_packet_that_was_held_back_and_comes_again_closes_the_gap)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY, .dma_length = 4, .len = 4);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	for (uint32_t psn = 0; psn < 3; psn++)
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, psn, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 3, 3);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_aeth(ACK, 4, 5);
}

/* Several forged packets in a row have no more effect than one. */
TEST(responder__forged_packets_do_not_vouch_for_each_other)
{
	for (uint64_t i = 0; i < 6; i++)
		rig_post(i, region_sge(&rig.inbox, i * 8, 8));
	SEND_8(4, forged);
	SEND_8(5, forged);
	for (uint32_t psn = 0; psn < 6; psn++)
		SEND_8(psn, genuine);
	for (uint64_t i = 0; i < 6; i++) {
		fixture_completion(rig.fixture.cq, i, IBV_WC_SUCCESS);
		assert_memory_equal(rig.inbox.bytes + i * 8, genuine, 8);
	}
	expect_aeth(ACK, 5, 6);
}

TEST(responder__packets_out_of_reach_are_not_kept)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, OOO_REACH, TO_MEMORY);
	assert_int_equal(rig.responder.ooo.count, 0);
	/* A peer with a longer window gets a NAK for its gap, too. */
	expect_aeth(NAK_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, OOO_REACH - 1, TO_MEMORY);
	assert_int_equal(rig.responder.ooo.count, 1);
}

/* A packet that no peer has sent is kept ahead. Requests that arrive in order are acknowledged. */
TEST(responder__requests_in_order_draw_no_nak_before_one_from_ahead)
{
	static const uint32_t aheads[] = {OOO_REACH - 1, 16383};

	for (size_t i = 0; i < sizeof(aheads) / sizeof(aheads[0]); i++) {
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, aheads[i], TO_MEMORY);
		expect_aeth(NAK_SEQUENCE, 0, 0);
		for (uint32_t psn = 0; psn < 1000; psn++) {
			EXPECT_TAKEN(OPCODE_WRITE_ONLY, psn, TO_MEMORY, .dma_length = 4, .len = 4,
				     .ack_req = true);
			if (psn == aheads[i] - 1)
				expect_aeth(NAK_SEQUENCE, psn + 1, psn + 1);
			else
				expect_aeth(ACK, psn, psn + 1);
		}
		tear_down(state);
		set_up(state);
	}
}

/* Many such packets cause at most as many NAKs. */
TEST(responder__each_packet_draws_one_nak_at_most)
{
	const unsigned int ghosts = 60;
	unsigned int naks = 0;

	for (uint32_t i = 0; i < ghosts; i++) {
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, 150 + 2 * i, TO_MEMORY);
		rig_answers();
	}
	for (uint32_t psn = 0; psn < 150; psn++) {
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, psn, TO_MEMORY, .ack_req = true);
		assert_int_equal(rig_answers(), 1);
		naks += catcher_at(&rig.fixture.catcher, 0)->syndrome == NAK_SEQUENCE;
	}
	assert_in_range(naks, 1, ghosts);
}

/* If two packets with one PSN differ in anything, neither is executed, and the PSN is requested
 * again. */
static void expect_distrust(void (*change)(struct packet_fields *fields), bool differs)
{
	static const uint8_t data[4] = "data";
	const struct packet_fields one = {.opcode = OPCODE_WRITE_ONLY_IMM,
					  .psn = 1,
					  .iova = region_iova(&rig.memory, 0),
					  .rkey = rig.memory.mr->key,
					  .dma_length = 4,
					  .payload = data,
					  .len = 4};
	struct packet_fields other = one;

	change(&other);
	rig_post(1, (struct ibv_sge){0});
	assert_int_equal(rig_take(one), FAULT_NONE);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	expect_aeth(NAK_SEQUENCE, 0, 0);
	assert_int_equal(rig_take(other), FAULT_NONE);
	rig_answers();
	assert_int_equal(counted(COUNTER_out_of_order_differed), differs);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	if (differs) {
		expect_aeth(NAK_SEQUENCE, 1, 1);
		expect_memory_untouched();
		assert_int_equal(rig_take(one), FAULT_NONE);
	}
	expect_aeth(ACK, 2, 3);
	assert_memory_equal(rig.memory.bytes, data, 4);
	tear_down(NULL);
	set_up(NULL);
}

static void other_opcode(struct packet_fields *fields)
{
	fields->opcode = OPCODE_WRITE_ONLY;
}

static void other_address(struct packet_fields *fields)
{
	fields->iova++;
}

static void other_key(struct packet_fields *fields)
{
	fields->rkey++;
}

static void other_length(struct packet_fields *fields)
{
	fields->dma_length++;
}

static void other_payload(struct packet_fields *fields)
{
	static const uint8_t other[4] = "dats";

	fields->payload = other;
}

static void shorter_payload(struct packet_fields *fields)
{
	fields->len--;
}

static void other_immediate(struct packet_fields *fields)
{
	fields->imm_be++;
}

static void solicited(struct packet_fields *fields)
{
	fields->solicited = true;
}

static void asks_for_ack(struct packet_fields *fields)
{
	fields->ack_req = true;
}

TEST(responder__two_packets_of_one_psn_that_differ_are_dropped)
{
	expect_distrust(other_opcode, true);
	expect_distrust(other_address, true);
	expect_distrust(other_key, true);
	expect_distrust(other_length, true);
	expect_distrust(other_payload, true);
	expect_distrust(shorter_payload, true);
	expect_distrust(other_immediate, true);
	expect_distrust(solicited, true);
	/* A requester may set the AckReq bit when it sends a packet again. */
	expect_distrust(asks_for_ack, false);
}

TEST(responder__atomics_that_differ_are_dropped)
{
	const struct packet_fields one = {.opcode = OPCODE_COMPARE_SWAP,
					  .psn = 1,
					  .iova = region_iova(&rig.memory, 0),
					  .rkey = rig.memory.mr->key,
					  .swap_add = 5,
					  .compare = 6};
	struct packet_fields others[3] = {one, one, one};

	others[0].swap_add++;
	others[1].compare++;
	others[2].iova += 8;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(rig_take(one), FAULT_NONE);
		assert_int_equal(rig.responder.ooo.count, 1);
		assert_int_equal(rig_take(others[i]), FAULT_NONE);
		assert_int_equal(rig.responder.ooo.count, 0);
	}
}

/* In relaxed memory the genuine packet overwrites the bytes that a forged one has placed. */
TEST(responder__what_was_placed_is_compared_where_it_is)
{
	static const uint8_t lie[MTU] = {1}, truth[MTU] = {2};

	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_RELAXED, .dma_length = 3 * MTU, .len = MTU);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .payload = lie, .len = MTU);
	assert_int_equal(counted(COUNTER_out_of_order_placed), 1);
	expect_aeth(NAK_SEQUENCE, 1, 0);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .payload = lie, .len = MTU);
	assert_int_equal(counted(COUNTER_out_of_order_differed), 0);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .payload = truth, .len = MTU);
	assert_int_equal(counted(COUNTER_out_of_order_differed), 1);
	assert_int_equal(rig.responder.ooo.count, 0);
	EXPECT_TAKEN(OPCODE_WRITE_MIDDLE, 1, .len = MTU);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .payload = truth, .len = MTU, .ack_req = true);
	assert_memory_equal(relaxed.bytes + 2 * MTU, truth, MTU);
	expect_aeth(ACK, 2, 1);
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
		tear_down(state);
		set_up(state);
	}
}

/* The same if the program READs a little at a time. */
TEST(responder__nor_after_many_short_reads)
{
	const uint32_t step = 1u << 19;

	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	for (uint32_t psns = 0; psns < 1u << 24; psns += step) {
		rig_read_on(1 + psns, step);
		/* The network duplicates the WRITE. */
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, psns, TO_MEMORY);
		assert_int_equal(rig_answers(), psns + step < RESPONDER_ACK_REACH);
	}
}

/* Relaxed ordering. */

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
		{.opcode = OPCODE_WRITE_LAST, .psn = 2, .len = 8}, /* too soon */
		{.opcode = OPCODE_WRITE_MIDDLE, .psn = 4, .len = MTU},
		{.opcode = OPCODE_WRITE_MIDDLE, .psn = 2, .len = MTU - 4},
		{.opcode = OPCODE_SEND_MIDDLE, .psn = 2, .len = MTU},
	};

	for (size_t i = 0; i < sizeof(misfits) / sizeof(misfits[0]); i++) {
		EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_RELAXED, .dma_length = 3 * MTU + 8,
			     .len = MTU);
		assert_int_equal(rig_take(misfits[i]), FAULT_NONE);
		region_expect_pattern(&relaxed, MTU, MEMORY - MTU, RELAXED_SEED);
		tear_down(state);
		set_up(state);
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
