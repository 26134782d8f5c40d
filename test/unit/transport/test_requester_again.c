/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/requester.c: which packets it sends again. */
#include <stdint.h>

#include "requester_rig.h"

TEST_FIXTURE(requester_rig_set_up, requester_rig_tear_down);

TEST(requester_send__sends_the_same_packets_again)
{
	post(IBV_WR_SEND, 2 * MTU, 0);
	post(IBV_WR_RDMA_READ, 3 * MTU, 0);
	post(IBV_WR_RDMA_WRITE, MTU + 9, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send_all(), 5);
		expect_packet(0, OPCODE_SEND_FIRST, 0);
		expect_payload(0, 0, MTU);
		expect_packet(1, OPCODE_SEND_LAST, 1);
		expect_payload(1, MTU, MTU);
		expect_packet(2, OPCODE_READ_REQUEST, 2);
		expect_packet(3, OPCODE_WRITE_FIRST, 5);
		expect_reth(3, 0, MTU + 9);
		expect_packet(4, OPCODE_WRITE_LAST, 6);
		expect_payload(4, MTU, 9);
		assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_retransmitted_packets),
				 5 * i);
		assert_int_equal(rig.fixture.catcher.out.again, i > 0);
		loss_on_nak_ahead(&rig.loss, 0);
	}
}

TEST(requester_send__sends_again_from_the_middle_of_a_message)
{
	struct ibv_sge sge[] = {region_sge(&rig.memory, 0, 300),
				region_sge(&rig.memory, 300, 4 * MTU - 300)};

	post_list((struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE}, sge, 2);
	assert_int_equal(send_all(), 4);
	acknowledge(1, 0);
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 3);
	expect_packet(0, OPCODE_WRITE_MIDDLE, 1);
	expect_payload(0, MTU, MTU);
	expect_packet(2, OPCODE_WRITE_LAST, 3);
	expect_payload(2, 3 * MTU, MTU);
}

TEST(requester_send__does_not_send_again_what_an_acknowledgement_overtook)
{
	post(IBV_WR_SEND, 4 * MTU, 0);
	post(IBV_WR_SEND, 2 * MTU, 0);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 7);
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_some(1), 1);
	/* Then the answer to the first transmission comes. It covers half of the second message. */
	acknowledge(5, 1);
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_SEND_LAST, 5);
	expect_payload(0, MTU, MTU);
	expect_packet(1, OPCODE_SEND_ONLY, 6);
}

TEST(requester_send__goes_on_with_work_that_is_posted_meanwhile)
{
	post(IBV_WR_SEND, 2 * MTU, 0);
	assert_int_equal(send_all(), 2);
	loss_on_nak_ahead(&rig.loss, 0);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 3);
	expect_packet(2, OPCODE_SEND_ONLY, 2);
	acknowledge(3, 2);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_SEND_ONLY, 3);
}

/* Selective retransmissions. */

static void begin(enum loss_state state, struct psn to)
{
	rig.loss.state = state;
	rig.loss.executed = rig.loss.una;
	rig.loss.recovery_point = rig.loss.una;
	rig.loss.from = rig.loss.una;
	rig.loss.to = to;
	rig.loss.resent = 0;
	scoreboard_begin(&rig.board, rig.loss.una);
	assert_true(scoreboard_mark(&rig.board, rig.loss.una, to, RANGE_MISSING));
}

TEST(requester_send__a_retransmission_does_not_move_the_place_of_new_packets)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	post(IBV_WR_SEND, 2 * MTU, 0);
	post(IBV_WR_RDMA_WRITE, 6 * MTU, 0);
	assert_int_equal(send_some(5), 5);
	acknowledge(1, 0);
	begin(LOSS_REQUEST, psn_make(FIRST_PSN + 3));
	assert_int_equal(send_all(), 5);
	assert_int_equal(packet_at(0)->opcode, OPCODE_SEND_LAST);
	assert_int_equal(packet_at(0)->psn.v, psn_make(FIRST_PSN + 1).v);
	expect_payload(0, MTU, MTU);
	assert_int_equal(packet_at(1)->opcode, OPCODE_WRITE_FIRST);
	assert_true(packet_at(1)->ack_req);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(packet_at(2 + i)->psn.v, psn_make(FIRST_PSN + 5 + i).v);
		expect_payload(2 + i, (3 + i) * MTU, MTU);
	}
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_retransmitted_packets), 2);
	/* The packet is sent again only once. */
	assert_int_equal(send_all(), 0);
}

TEST(requester_send__a_retransmission_asks_neither_for_window_nor_for_resources)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	for (uint32_t i = 0; i < RESPONSES; i++)
		post(IBV_WR_RDMA_READ, 4 * MTU, 0);
	assert_int_equal(send_all(), RESPONSES);
	acknowledge(1, 0);
	rig.loss.window = 1;
	begin(LOSS_RESPONSE, psn_make(FIRST_PSN + 3));
	assert_int_equal(send_all(), 1);
	assert_int_equal(packet_at(0)->opcode, OPCODE_READ_REQUEST);
	assert_int_equal(packet_at(0)->iova, REMOTE + MTU);
	assert_int_equal(packet_at(0)->dma_length, 2 * MTU);
	assert_int_equal(rig.loss.responses, RESPONSES);
}

/* A peer that has not received the READ would take a shorter request for the whole READ, and
 * execute that. */
TEST(requester_send__a_read_that_may_not_have_come_is_sent_as_it_was)
{
	static const enum loss_state alone[] = {LOSS_PROBE, LOSS_REQUEST};

	post(IBV_WR_RDMA_READ, 4 * MTU, 0);
	assert_int_equal(send_all(), 1);
	for (int i = 0; i < 2; i++) {
		begin(alone[i], psn_make(FIRST_PSN + 1));
		assert_int_equal(send_all(), 1);
		expect_packet(0, OPCODE_READ_REQUEST, 0);
		assert_int_equal(packet_at(0)->dma_length, 4 * MTU);
		/* The retransmission ends with the last response of the READ. */
		assert_int_equal(rig.loss.to.v, psn_make(FIRST_PSN + 4).v);
	}
	/* If responses have come, the peer has received the request. */
	acknowledge(2, 0);
	begin(LOSS_PROBE, psn_make(FIRST_PSN + 3));
	assert_int_equal(send_all(), 1);
	assert_int_equal(packet_at(0)->iova, REMOTE + 2 * MTU);
	assert_int_equal(packet_at(0)->dma_length, MTU);
}

TEST(requester_send__a_retransmission_goes_on_when_there_is_room_again)
{
	post(IBV_WR_SEND, 6 * MTU, 0);
	assert_int_equal(send_all(), 6);
	begin(LOSS_REQUEST, psn_make(FIRST_PSN + 4));
	assert_int_equal(send_some(1), 1);
	assert_true(rig.more);
	catcher_clear(&rig.fixture.catcher);
	rig.fixture.catcher.room = 1;
	assert_int_equal(requester_send(&rig.requester, &rig.fixture.catcher.sink, 9, &rig.more),
			 1);
	assert_true(rig.more);
	assert_int_equal(packet_at(0)->psn.v, psn_make(FIRST_PSN + 1).v);
	/* Packets that were acknowledged meanwhile are not sent. */
	acknowledge(3, 0);
	rig.fixture.catcher.room = 9;
	assert_int_equal(send_all(), 1);
	assert_int_equal(packet_at(0)->psn.v, psn_make(FIRST_PSN + 3).v);
}
