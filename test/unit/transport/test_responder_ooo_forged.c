/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder_ooo.c: forged packets, and packets that the network has delayed.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "responder_ooo_rig.h"

TEST_FIXTURE(responder_ooo_set_up, responder_ooo_tear_down);

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
		responder_ooo_tear_down(state);
		responder_ooo_set_up(state);
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
	responder_ooo_tear_down(NULL);
	responder_ooo_set_up(NULL);
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

/* The same packet may come twice. Another one of the same PSN makes both untrusted. */
static void expect_dropped(const struct packet_fields *one, const struct packet_fields *other)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_take(*one), FAULT_NONE);
		assert_int_equal(rig.responder.ooo.count, 1);
	}
	assert_int_equal(rig_take(*other), FAULT_NONE);
	assert_int_equal(rig.responder.ooo.count, 0);
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
	for (size_t i = 0; i < 3; i++)
		expect_dropped(&one, &others[i]);
}

TEST(responder__flushes_that_differ_are_dropped)
{
	const struct packet_fields one = {.opcode = OPCODE_FLUSH,
					  .psn = 1,
					  .iova = region_iova(&rig.memory, 0),
					  .rkey = rig.memory.mr->key,
					  .dma_length = 4,
					  .feth = FETH_PLACE_GLOBAL};
	struct packet_fields others[2] = {one, one};

	others[0].feth |= FETH_PLACE_PERSISTENT;
	others[1].feth |= FETH_SELECT_REGION << FETH_SELECT_SHIFT;
	for (size_t i = 0; i < 2; i++)
		expect_dropped(&one, &others[i]);
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
