/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/loss.c, behind a requester that sends: which packets and responses are
 * requested again after a loss, and which ones are kept meanwhile. */
#include "loss_rig.h"

TEST_FIXTURE(completer_rig_set_up, completer_rig_tear_down);

TEST(completer_receive__a_missing_response_alone_is_asked_for_again)
{
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_READ, 8);
	post(3, IBV_WR_SEND, 8);
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	/* The READ's response is lost. Acknowledgements behind it complete no request yet. */
	acknowledge(2);
	expect_success(1);
	expect_none();
	expect_flight(1, 4);
	acknowledge(3);
	assert_int_equal(rig.loss.recovery.retries_left, RETRIES);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_implied_nak_seq_err), 1);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 1);
	assert_int_equal(send_all(), 0);
	/* The requester remembered that the peer has executed the SENDs. */
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 1, .syndrome = ACK, .len = 8);
	for (uint64_t i = 2; i <= 4; i++)
		expect_success(i);
	assert_int_equal(rig.loss.recovery.retries_left, RETRIES);
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
	assert_int_equal(rig.loss.recovery.deadline_ns, RECOVERY_NEVER);
}

TEST(completer_receive__a_nak_behind_a_missing_response_sends_all_again)
{
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_SEND, 8);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 3);
	nak(1);
	expect_none();
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_implied_nak_seq_err), 1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_packet_seq_err), 0);
	assert_int_equal(send_all(), 3);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
}

TEST(completer_receive__an_acknowledgement_does_not_complete_a_read)
{
	static const enum ibv_wr_opcode requests[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP};

	for (size_t i = 0; i < 2; i++) {
		post(1, requests[i], 8);
		assert_int_equal(send_all(), 1);
		acknowledge(0);
		expect_none();
		expect_flight(0, 1);
		assert_int_equal(send_all(), 1);
		completer_rig_tear_down(state);
		completer_rig_set_up(state);
	}
}

TEST(completer_receive__a_lost_response_is_asked_for_again)
{
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	region_expect_pattern(&rig.memory, MTU, 3 * MTU, SEED);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 1, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	expect_success(1);
	for (uint32_t i = 0; i < 4; i++)
		expect_stored(i * MTU, i, MTU);
	assert_int_equal(rig.loss.responses, 0);
}

TEST(completer_receive__out_of_order_responses_are_kept)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 5 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 4, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU);
	/* The kept payloads stand in memory in the order of their addresses. */
	region_expect_pattern(&rig.memory, MTU, 4 * MTU, SEED);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_out_of_order_kept), 2);
	/* The new request asks for responses 1 and 2 only: 3 arrived before the request left. */
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->iova, MTU);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 2 * MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 1, .syndrome = ACK, .len = MTU);
	expect_none();
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	for (uint32_t i = 0; i < 5; i++)
		expect_stored(i * MTU, i, MTU);
	assert_int_equal(rig.loss.responses, 0);
	assert_int_equal(rig.completer.ooo.count, 0);
	assert_int_equal(recovery_deadline_ns(&rig.loss.recovery), RECOVERY_NEVER);
}

TEST(completer_receive__a_second_gap_is_asked_for_at_once)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	post(2, IBV_WR_RDMA_WRITE, 8);
	post(3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	post(4, IBV_WR_RDMA_READ, 8);
	post(5, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 5);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 6, .syndrome = ACK, .len = 8);
	acknowledge(7);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = MTU);
	expect_none();
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	expect_success(2);
	expect_none();
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_FETCH_ADD, FIRST_PSN + 5);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 5, .syndrome = ACK);
	for (uint64_t i = 3; i <= 5; i++)
		expect_success(i);
	assert_int_equal(send_all(), 0);
	assert_int_equal(rig.loss.responses, 0);
	assert_false(loss_awaits_responses(&rig.loss));
}

TEST(completer_receive__what_is_lost_of_a_retransmission_is_asked_for_again)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 6 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 5, .syndrome = ACK, .len = MTU);
	assert_int_equal(send_all(), 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 5 * MTU);
	/* This response may be a late one to the first request, so it tells nothing. */
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	assert_int_equal(send_all(), 0);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 2);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 4, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	assert_int_equal(send_all(), 0);
}

TEST(completer_receive__a_late_answer_overtakes_a_rewind)
{
	post(1, IBV_WR_SEND, 2 * MTU);
	post(2, IBV_WR_RDMA_READ, 8);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + TIMEOUT_NS), FAULT_NONE);
	expect_flight(0, 0);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = 8);
	acknowledge(3);
	for (uint64_t i = 1; i <= 3; i++)
		expect_success(i);
	expect_flight(4, 4);
	assert_int_equal(rig.loss.responses, 0);
	assert_int_equal(send_all(), 0);
	assert_int_equal(rig.loss.recovery.deadline_ns, RECOVERY_NEVER);
}

TEST(completer_receive__a_sequence_nak_sends_the_missing_packet_alone)
{
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 4);
	nak(2);
	expect_success(1);
	expect_flight(2, 4);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX / 2);
	/* The same NAK again, before anything was sent, is not another loss. */
	nak(2);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX / 2);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 2);
	assert_true(catcher_at(&rig.fixture.catcher, 0)->ack_req);
	nak(2);
	assert_int_equal(send_all(), 0);
}

/* Consecutive packets were lost. Each retransmission sends twice as many as the one before. */
TEST(completer_receive__a_gap_that_grows_doubles_the_retransmission)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 20 * MTU);
	assert_int_equal(send_all(), 20);
	nak(1);
	assert_int_equal(send_all(), 1);
	nak(2);
	assert_int_equal(send_all(), 2);
	catcher_expect(&rig.fixture.catcher, 1, OPCODE_WRITE_MIDDLE, FIRST_PSN + 3);
	/* The NAK names a packet of the newest retransmission, which is still in flight. */
	nak(3);
	assert_int_equal(send_all(), 0);
	nak(4);
	assert_int_equal(send_all(), 4);
	/* A gap elsewhere begins with one packet again. */
	nak(12);
	assert_int_equal(send_all(), 1);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX / 2);
}

TEST(completer_receive__a_read_is_retransmitted_by_its_request)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	rig.loss.peer = LOSS_PEER_KEEPS;
	post(1, IBV_WR_RDMA_READ, 2 * MTU);
	post(2, IBV_WR_SEND, 8);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 3);
	nak(0);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 2 * MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 1, .syndrome = ACK, .len = MTU);
	expect_success(1);
	assert_int_equal(rig.loss.responses, 0);
	/* No answer says if the peer kept the SEND behind it, so the retransmission timer runs. */
	assert_int_equal(send_all(), 0);
	assert_int_not_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
	run_retransmit_timer();
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_ONLY, FIRST_PSN + 2);
	acknowledge(3);
	expect_success(2);
	expect_success(3);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
}

/* A network that reorders and duplicates packets may report one loss many times. */
TEST(completer_receive__sequence_naks_use_up_no_retries)
{
	rig.loss.peer = LOSS_PEER_DROPS;
	post(1, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	for (int i = 0; i < 3 * RETRIES; i++) {
		nak(0);
		assert_int_equal(send_all(), 1);
	}
	assert_int_equal(rig.loss.recovery.retries_left, RETRIES);
	acknowledge(0);
	expect_success(1);
}

/* A response shows that the peer has the request. So only the missing responses are requested
 * again, for whatever reason the retransmission began. */
TEST(completer_receive__a_request_that_has_come_is_not_repeated_whole)
{
	let_keep();
	rig.loss.peer = LOSS_PEER_KEEPS;
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	nak(0);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU);
	assert_int_equal(rig.loss.state, LOSS_REQUEST);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 2 * MTU);
}
