/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/requester.c: the limits that hold packets back. */
#include <stddef.h>
#include <stdint.h>

#include "requester_rig.h"

TEST_FIXTURE(requester_rig_set_up, requester_rig_tear_down);

TEST(requester_send__stops_at_the_window)
{
	post(IBV_WR_RDMA_WRITE, 300 * MTU, 0);
	assert_int_equal(send_all(), LOSS_WINDOW_MAX);
	assert_int_equal(send_all(), 0);
	acknowledge(10, 0);
	assert_int_equal(send_all(), 10);
	expect_packet(0, OPCODE_WRITE_MIDDLE, LOSS_WINDOW_MAX);
	expect_payload(0, LOSS_WINDOW_MAX * MTU, MTU);
}

/* A READ segment is longer than such a window: it is sent whole, and nothing behind it. */
TEST(requester_send__a_window_of_1_is_a_packet_at_a_time)
{
	rig.loss.window_max = 1;
	loss_init(&rig.loss, psn_make(FIRST_PSN));
	post(IBV_WR_RDMA_WRITE, 2 * MTU, 0);
	post(IBV_WR_RDMA_READ, 100 * MTU, 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(send_all(), 1);
		assert_true(packet_at(0)->ack_req);
		assert_int_equal(send_all(), 0);
		acknowledge(i + 1, i);
	}
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_READ_REQUEST, 2);
	assert_int_equal(send_all(), 0);
	rig.loss.responses = 0;
	acknowledge(2 + REQUESTER_READ_SEGMENT_PKTS, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_READ_REQUEST, 2 + REQUESTER_READ_SEGMENT_PKTS);
	/* The packet was lost: the same limit applies again. */
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_READ_REQUEST, 2 + REQUESTER_READ_SEGMENT_PKTS);
}

TEST(requester_send__unreliable_has_no_window)
{
	rig.requester.service = OPCODE_UC;
	rig.loss.window = 1;
	post(IBV_WR_RDMA_WRITE, 40 * MTU, 0);
	assert_int_equal(send_all(), 40);
}

TEST(requester_send__a_fence_waits_for_reads_and_atomics)
{
	static const enum ibv_wr_opcode before[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (size_t i = 0; i < 2; i++) {
		post(before[i], 8, 0);
		post(IBV_WR_SEND, 8, 0);
		post(IBV_WR_SEND, 2 * MTU, IBV_SEND_FENCE);
		post(IBV_WR_SEND, 8, 0);
		assert_int_equal(send_all(), 2);
		/* A request that is sent again is fenced again. */
		loss_on_nak_ahead(&rig.loss, 0);
		assert_int_equal(send_all(), 2);
		rig.loss.responses = 0;
		acknowledge(1, 1);
		assert_int_equal(send_all(), 3);
		expect_packet(0, OPCODE_SEND_FIRST, 2);
		requester_rig_tear_down(state);
		requester_rig_set_up(state);
	}
}

TEST(requester_send__a_fence_does_not_wait_for_sends_and_writes)
{
	post(IBV_WR_SEND, 8, 0);
	post(IBV_WR_RDMA_WRITE, 8, 0);
	post(IBV_WR_RDMA_READ, 8, IBV_SEND_FENCE);
	assert_int_equal(send_all(), 3);
}

TEST(requester_send__a_fenced_message_that_is_begun_goes_on)
{
	post(IBV_WR_SEND, 4 * MTU, IBV_SEND_FENCE);
	assert_int_equal(send_some(2), 2);
	rig.loss.responses = 1;
	assert_int_equal(send_all(), 2);
}

TEST(requester_send__as_many_reads_and_atomics_as_the_peer_has_resources)
{
	post(IBV_WR_RDMA_READ, 8, 0);
	post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0);
	post(IBV_WR_RDMA_READ, 8, 0);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 2);
	acknowledge(1, 1);
	rig.loss.responses--;
	/* Requests keep their order: one that needs no resource waits behind one that does. */
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_READ_REQUEST, 2);
	expect_packet(1, OPCODE_SEND_ONLY, 3);
}

TEST(requester_send__a_read_without_any_resource_is_a_fault)
{
	post(IBV_WR_SEND, 8, 0);
	post(IBV_WR_RDMA_READ, 8, 0);
	for (unsigned int resources = 1; resources < 2; resources--) {
		rig.loss.max_responses = (uint16_t)resources;
		assert_int_equal(send_all(), resources == 1 ? 2 : 0);
		assert_int_equal(rig.requester.fault,
				 resources == 1 ? FAULT_NONE : FAULT_SEND_OPERATION);
		post(IBV_WR_RDMA_READ, 8, 0);
	}
}

TEST(requester_send__each_segment_of_a_read_takes_a_resource)
{
	post(IBV_WR_RDMA_READ, 3 * REQUESTER_READ_SEGMENT_PKTS * MTU, 0);
	assert_int_equal(send_all(), 2);
	acknowledge(REQUESTER_READ_SEGMENT_PKTS, 0);
	rig.loss.responses--;
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_READ_REQUEST, 2 * REQUESTER_READ_SEGMENT_PKTS);
}

TEST(requester_send__stops_at_the_budget_and_goes_on)
{
	post(IBV_WR_SEND, 3 * MTU, 0);
	assert_int_equal(send_some(0), 0);
	assert_true(rig.more);
	assert_int_equal(send_some(2), 2);
	assert_true(rig.more);
	assert_int_equal(send_some(2), 1);
	assert_false(rig.more);
	expect_packet(0, OPCODE_SEND_LAST, 2);
	expect_payload(0, 2 * MTU, MTU);
	assert_int_equal(send_some(0), 0);
	assert_false(rig.more);
}

TEST(requester_send__stops_at_a_full_sink_and_goes_on)
{
	struct ibv_sge sge[] = {region_sge(&rig.memory, 0, 100),
				region_sge(&rig.memory, 100, 3 * MTU - 100)};

	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, sge, 2);
	for (uint32_t i = 0; i < 3; i++) {
		catcher_clear(&rig.fixture.catcher);
		rig.fixture.catcher.room = 0;
		assert_int_equal(
			requester_send(&rig.requester, &rig.fixture.catcher.sink, 9, &rig.more), 0);
		assert_true(rig.more);
		rig.fixture.catcher.room = 1;
		assert_int_equal(
			requester_send(&rig.requester, &rig.fixture.catcher.sink, 9, &rig.more), 1);
		assert_int_equal(rig.more, i < 2);
		assert_int_equal(packet_at(0)->psn.v, psn_make(FIRST_PSN + i).v);
		expect_payload(0, i * MTU, MTU);
	}
}

TEST(requester_send__a_full_sink_does_not_hide_a_rewind)
{
	for (uint32_t left = 1; left <= 3; left++) {
		post(IBV_WR_SEND, 3 * MTU, 0);
		post(IBV_WR_SEND, 8, 0);
		assert_int_equal(send_some(3), 3);
		rig.fixture.catcher.room = 0;
		assert_int_equal(
			requester_send(&rig.requester, &rig.fixture.catcher.sink, 9, &rig.more), 0);
		/* Acknowledge all packets but the last `left`. */
		loss_on_ack(&rig.loss, psn_add(rig.loss.next, -(int32_t)left), 0);
		loss_on_nak_ahead(&rig.loss, 0);
		assert_int_equal(send_all(), left + 1);
		for (uint32_t i = 0; i < left; i++)
			expect_payload(i, (3 - left + i) * MTU, MTU);
		expect_payload(left, 0, 8);
		acknowledge(4 * left, 2);
	}
}

TEST(requester_send__stopped_sends_nothing)
{
	post(IBV_WR_SEND, 8, 0);
	requester_reset(&rig.requester, REQUESTER_STOPPED);
	assert_int_equal(send_all(), 0);
	requester_reset(&rig.requester, REQUESTER_RUNNING);
	assert_int_equal(send_all(), 1);
}

TEST(requester_send__draining_finishes_what_is_begun)
{
	post(IBV_WR_SEND, 3 * MTU, 0);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_some(1), 1);
	rig.requester.state = REQUESTER_DRAINING;
	assert_false(requester_drained(&rig.requester));
	assert_int_equal(send_all(), 2);
	assert_false(requester_drained(&rig.requester));
	/* The same if it was lost, and is sent again. */
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 3);
	acknowledge(3, 1);
	assert_true(requester_drained(&rig.requester));
	assert_int_equal(send_all(), 0);
	rig.requester.state = REQUESTER_RUNNING;
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_SEND_ONLY, 3);
}

TEST(requester_send__paced)
{
	/* One byte takes a microsecond; a burst has two packets. */
	pacer_set(&rig.fixture.pacer, 8000, 2 * (MTU + 74), MTU + 74);
	pacer_poll(&rig.fixture.pacer, 0);
	post(IBV_WR_RDMA_WRITE, 4 * MTU, 0);
	assert_int_equal(send_some(9), 2);
	assert_false(rig.more);
	/* Each packet asks for an acknowledgement, so that a slow rate does not look like a loss.
	 */
	assert_true(packet_at(0)->ack_req);
	assert_in_range(rig.fixture.pacer.deadline_ns, MTU * 1000, (MTU + 200) * 1000);
	assert_int_equal(send_some(9), 0);
	pacer_poll(&rig.fixture.pacer, rig.fixture.pacer.deadline_ns);
	assert_int_equal(send_some(9), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 2);
	/* Work that sends no bytes is not held back. */
	pacer_poll(&rig.fixture.pacer, UINT64_C(1000000000));
	assert_int_equal(send_some(9), 1);
}
