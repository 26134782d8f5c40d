/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/loss.c, behind a requester that sends: what is sent again after a
 * loss, what is kept meanwhile, and what is learnt of the peer. */
#include "completer_rig.h"
#include "test.h"

TEST_FIXTURE(completer_rig_set_up, completer_rig_tear_down);

TEST(completer_receive__a_missing_response_alone_is_asked_for_again)
{
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_READ, 8);
	post(3, IBV_WR_SEND, 8);
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	/* The READ's response is lost; what is said of those behind it does not complete them. */
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
	/* It was remembered that they are executed. */
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 1, .syndrome = ACK, .len = 8);
	for (uint64_t i = 2; i <= 4; i++)
		expect_success(i);
	assert_int_equal(rig.loss.recovery.retries_left, RETRIES);
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
	assert_int_equal(rig.loss.recovery.deadline_ns, RECOVERY_NEVER);
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
	/* The order of the bytes is that of their addresses. */
	region_expect_pattern(&rig.memory, MTU, 4 * MTU, SEED);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_out_of_order_kept), 2);
	/* What is missing, and no more: 3 came before the request left. */
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
	/* This may be late, of the first sending: it tells nothing. */
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
	/* The same news again, before anything was sent: not another loss. */
	nak(2);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX / 2);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 2);
	assert_true(catcher_at(&rig.fixture.catcher, 0)->ack_req);
	nak(2);
	assert_int_equal(send_all(), 0);
}

/* Whether the peer keeps what came out of order shows in its first answer. */
TEST(completer_receive__a_peer_that_keeps_is_remembered)
{
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	assert_int_equal(send_all(), 1);
	/* Until it is known, nothing new is sent. */
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 0);
	acknowledge(3);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_ONLY, FIRST_PSN + 6);
	nak(4);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 4);
	catcher_expect(&rig.fixture.catcher, 1, OPCODE_SEND_ONLY, FIRST_PSN + 7);
	acknowledge(7);
	for (uint64_t i = 1; i <= 3; i++)
		expect_success(i);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_retransmitted_packets), 2);
}

TEST(completer_receive__a_peer_that_drops_gets_everything_again)
{
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	assert_int_equal(send_all(), 1);
	acknowledge(1);
	assert_int_equal(rig.loss.peer, LOSS_PEER_DROPS);
	assert_int_equal(send_all(), 4);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 2);
	/* From here on at once. */
	nak(3);
	assert_int_equal(send_all(), 3);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 3);
	acknowledge(5);
	expect_success(1);
	assert_int_equal(rig.loss.peer, LOSS_PEER_DROPS);
}

TEST(completer_receive__a_peer_that_was_misjudged_shows_it)
{
	rig.loss.peer = LOSS_PEER_DROPS;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	catcher_clear(&rig.fixture.catcher);
	assert_int_equal(send_some(1), 1);
	/* More than was sent again. */
	acknowledge(4);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	expect_flight(5, 5);
	assert_int_equal(send_all(), 1);
}

/* A packet that is only late comes before it is sent again: go-back-N peers take it as well. */
TEST(completer_receive__a_late_packet_does_not_tell_what_peer_it_is)
{
	static const enum loss_peer before[] = {LOSS_PEER_UNKNOWN, LOSS_PEER_DROPS};

	for (size_t i = 0; i < RTE_DIM(before); i++) {
		rig.loss.peer = before[i];
		post(i, IBV_WR_RDMA_WRITE, 10 * MTU);
		assert_int_equal(send_all(), 10);
		nak(10 * (uint32_t)i + 5);
		/* Two of them: more than would be sent again alone. */
		acknowledge(10 * (uint32_t)i + 6);
		assert_int_equal(rig.loss.peer, before[i]);
		nak(10 * (uint32_t)i + 8);
		assert_int_equal(rig.loss.peer, before[i]);
		acknowledge(10 * (uint32_t)i + 9);
		expect_success(i);
		assert_false(loss_is_selective(&rig.loss));
	}
}

TEST(completer_receive__a_late_response_does_not_either)
{
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	nak(0);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = 8);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
	/* What follows it is sent again. */
	assert_int_equal(send_all(), 1);
}

/* Nor does it tell how long an answer to a selective retransmission takes. */
TEST(completer_receive__a_late_packet_is_not_measured)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 10 * MTU);
	assert_int_equal(send_all(), 10);
	nak(5);
	acknowledge(9);
	assert_int_equal(rig.loss.recovery.retransmit_wait_ns, 0);
	post(2, IBV_WR_RDMA_WRITE, 10 * MTU);
	assert_int_equal(send_all(), 10);
	nak(15);
	assert_int_equal(send_all(), 1);
	acknowledge(19);
	assert_int_not_equal(rig.loss.recovery.retransmit_wait_ns, 0);
}

/* After a timeout a late answer says nothing of the kind. */
TEST(completer_receive__a_late_answer_does_not_tell_what_peer_it_is)
{
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + TIMEOUT_NS), FAULT_NONE);
	assert_int_equal(send_some(1), 1);
	acknowledge(4);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
}

/* A peer that kept something once, and has no room now. */
TEST(completer_receive__a_peer_that_keeps_no_more_gets_the_rest_again)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	assert_int_equal(send_all(), 1);
	acknowledge(1);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
	assert_int_equal(send_all(), 4);
}

/* Packets next to each other were lost: more each time. */
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
	/* From inside of it: that packet is on its way. */
	nak(3);
	assert_int_equal(send_all(), 0);
	nak(4);
	assert_int_equal(send_all(), 4);
	/* The next one elsewhere begins anew. */
	nak(12);
	assert_int_equal(send_all(), 1);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX / 2);
}

TEST(completer_receive__an_unknown_peer_does_not_ask_for_ever)
{
	post(1, IBV_WR_RDMA_WRITE, 20 * MTU);
	assert_int_equal(send_all(), 20);
	nak(1);
	assert_int_equal(send_all(), 1);
	nak(2);
	assert_int_equal(send_all(), 2);
	nak(4);
	assert_int_equal(rig.loss.peer, LOSS_PEER_DROPS);
	assert_int_equal(send_all(), 16);
}

/* Their answers do not tell that nothing more follows. */
TEST(completer_receive__reads_do_not_judge_an_unknown_peer)
{
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	nak(0);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
	assert_int_equal(send_all(), 2);
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
	/* Nothing says whether the SEND behind it was kept: its timer does. */
	assert_int_equal(send_all(), 0);
	assert_int_not_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.retransmit_ns),
			 FAULT_NONE);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_ONLY, FIRST_PSN + 2);
	acknowledge(3);
	expect_success(2);
	expect_success(3);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
}

TEST(completer_timeout__a_retransmission_that_is_lost_is_sent_again)
{
	uint64_t now_ns = NOW_NS;

	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	rig.loss.peer = LOSS_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 3);
	nak(1);
	assert_int_equal(send_all(), 1);
	for (int i = 0; i < 4; i++) {
		now_ns += RECOVERY_RETRANSMIT_NS << i;
		assert_int_equal(recovery_deadline_ns(&rig.loss.recovery), now_ns);
		assert_int_equal(completer_timeout(&rig.completer, false, now_ns - 1), FAULT_NONE);
		assert_int_equal(send_all(), 0);
		assert_int_equal(completer_timeout(&rig.completer, false, now_ns), FAULT_NONE);
		assert_int_equal(send_all(), 1);
		catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 1);
	}
	/* It is no retry, and the acknowledgement timer runs on beside it. */
	assert_int_equal(rig.loss.recovery.retries_left, RETRIES);
	assert_int_equal(rig.loss.recovery.deadline_ns, NOW_NS + rig.loss.recovery.timeout_ns);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_local_ack_timeout_err), 0);
	acknowledge(2);
	expect_success(1);
	assert_int_equal(recovery_deadline_ns(&rig.loss.recovery), RECOVERY_NEVER);
}

TEST(completer_timeout__a_lost_retransmission_is_sent_again_without_other_timers)
{
	uint64_t now_ns = NOW_NS;

	rig.loss.recovery.timeout_ns = 0;
	rig.loss.peer = LOSS_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 3);
	nak(1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(send_all(), 1);
		now_ns += RECOVERY_RETRANSMIT_NS << i;
		assert_int_equal(recovery_deadline_ns(&rig.loss.recovery), now_ns);
		assert_int_equal(completer_timeout(&rig.completer, false, now_ns), FAULT_NONE);
	}
	acknowledge(2);
	expect_success(1);
	assert_int_equal(recovery_deadline_ns(&rig.loss.recovery), RECOVERY_NEVER);
}

/* The last packet of all is lost, or the answer to it: nothing comes behind that would show it. */
TEST(completer_timeout__a_probe_finds_a_loss_at_the_end)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_WRITE, 4 * MTU);
	assert_int_equal(send_all(), 4);
	acknowledge(0);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.retransmit_ns),
			 FAULT_NONE);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 1);
	assert_true(catcher_at(&rig.fixture.catcher, 0)->ack_req);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
	/* That one was there: the one behind it is asked for, and no judgement on the peer. */
	acknowledge(2);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
	assert_int_equal(send_all(), 0);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.retransmit_ns),
			 FAULT_NONE);
	assert_int_equal(send_all(), 1);
	acknowledge(3);
	expect_success(1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_probes), 2);
	assert_int_equal(rig.loss.recovery.retries_left, RETRIES);
	assert_int_equal(recovery_deadline_ns(&rig.loss.recovery), RECOVERY_NEVER);
}

TEST(completer_timeout__what_a_probe_does_not_find_is_sent_again)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_WRITE, 4 * MTU);
	assert_int_equal(send_all(), 4);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.retransmit_ns),
			 FAULT_NONE);
	assert_int_equal(send_all(), 1);
	acknowledge(0);
	assert_int_equal(send_all(), 3);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 1);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX / 2);
	acknowledge(3);
	expect_success(1);
}

/* Of one response alone, a peer that has lost the request would make one of another length: if its
 * response is lost as well, it refuses the longer request that follows. */
TEST(completer_timeout__a_probe_of_a_read_asks_for_all_of_it)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	assert_int_equal(send_all(), 1);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.retransmit_ns),
			 FAULT_NONE);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 4 * MTU);
	assert_int_equal(rig.loss.responses, 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	expect_success(1);
	assert_int_equal(send_all(), 0);
}

TEST(completer_timeout__ends_a_retransmission)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	assert_int_equal(send_all(), 1);
	assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + TIMEOUT_NS), FAULT_NONE);
	assert_false(loss_is_selective(&rig.loss));
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
	assert_int_equal(rig.loss.recovery.retries_left, RETRIES - 1);
	assert_int_equal(send_all(), 5);
}

/* On a network that reorders and repeats, one loss may be reported many times. */
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

/* The peer is not ready for this PSN, and the RNR timer runs out. */
static void refuse(uint32_t psn)
{
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = AETH_RNR_NAK | RNR_CODE);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.deadline_ns),
			 FAULT_NONE);
	assert_int_not_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
}

TEST(completer_receive__what_a_peer_keeps_behind_an_rnr_nak_is_not_sent_again)
{
	rig.loss.recovery.rnr_retry = rig.loss.recovery.rnr_left = RECOVERY_RNR_FOREVER;
	for (uint64_t i = 0; i < 4; i++)
		post(i, IBV_WR_SEND, 4 * MTU);
	assert_int_equal(send_all(), 16);
	for (int i = 0; i < 3; i++) {
		refuse(0);
		assert_int_equal(send_all(), 1);
		catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_FIRST, FIRST_PSN);
	}
	/* There was one receive request: its message is acknowledged, the next is refused. */
	acknowledge(3);
	expect_success(0);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	refuse(4);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_FIRST, FIRST_PSN + 4);
	/* Without the acknowledgement. */
	rig.loss.peer = LOSS_PEER_UNKNOWN;
	refuse(8);
	expect_success(1);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(send_all(), 1);
	acknowledge(15);
	expect_success(2);
	expect_success(3);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_retransmitted_packets), 5);
}

/* Messages of a packet: the one that was refused is acknowledged by itself, the next is refused,
 * which was not sent again. */
TEST(completer_receive__a_refusal_of_what_was_not_sent_again_shows_a_peer_that_keeps)
{
	for (uint64_t i = 0; i < 4; i++)
		post(i, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	refuse(0);
	assert_int_equal(send_all(), 1);
	acknowledge(0);
	expect_success(0);
	refuse(1);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(send_all(), 1);
	/* It may wait for the next one before it refuses that. Nothing new goes out meanwhile. */
	acknowledge(1);
	expect_success(1);
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_ONLY, FIRST_PSN + 2);
	acknowledge(3);
	expect_success(2);
	expect_success(3);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(send_all(), 1);
	acknowledge(4);
	expect_success(4);
}

/* It keeps what is behind a loss, but not what is behind a refusal. */
TEST(completer_receive__a_peer_may_drop_what_is_behind_a_refusal_only)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	for (uint64_t i = 0; i < 4; i++)
		post(i, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	refuse(0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(send_all(), 1);
		acknowledge(i);
		expect_success(i);
	}
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(send_all(), 2);
	acknowledge(3);
	expect_success(2);
	expect_success(3);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
}

TEST(completer_receive__a_peer_that_drops_gets_everything_after_a_refusal)
{
	rig.loss.peer = LOSS_PEER_DROPS;
	for (uint64_t i = 0; i < 4; i++)
		post(i, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	refuse(0);
	assert_int_equal(send_all(), 4);
	/* Once more: it is not worth to send what is behind, until this one is taken. */
	refuse(0);
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	acknowledge(0);
	expect_success(0);
	assert_int_equal(send_all(), 4);
	assert_int_equal(rig.loss.peer, LOSS_PEER_DROPS);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
	acknowledge(4);
	for (uint64_t i = 1; i < 5; i++)
		expect_success(i);
}

/* An unknown peer that drops is found out by two packets. */
TEST(completer_receive__a_refusal_finds_a_peer_that_drops)
{
	for (uint64_t i = 0; i < 4; i++)
		post(i, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	refuse(0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(send_all(), 1);
		acknowledge(i);
		expect_success(i);
	}
	assert_int_equal(rig.loss.peer, LOSS_PEER_DROPS);
	assert_int_equal(send_all(), 2);
	acknowledge(3);
	expect_success(2);
	expect_success(3);
}

/* The network brought the refused packet twice: what is the oldest when the timer runs out goes
 * first. */
TEST(completer_receive__what_is_taken_during_the_wait_is_not_sent_again)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	for (uint64_t i = 0; i < 4; i++)
		post(i, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
	acknowledge(1);
	expect_success(0);
	expect_success(1);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.deadline_ns),
			 FAULT_NONE);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_ONLY, FIRST_PSN + 2);
	acknowledge(3);
	expect_success(2);
	expect_success(3);
	/* All of it: nothing is left to be sent. */
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 4, .syndrome = AETH_RNR_NAK | RNR_CODE);
	acknowledge(4);
	expect_success(4);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.deadline_ns),
			 FAULT_NONE);
	assert_false(loss_is_selective(&rig.loss));
	assert_int_equal(send_all(), 0);
}

/* One of each: a lost WRITE packet, lost responses, a loss that a probe finds, a refusal. `at` is
 * the PSN of the first packet, from FIRST_PSN on. Returns how many PSNs it took. */
static uint32_t incidents(uint32_t at)
{
	rig.loss.window = LOSS_WINDOW_MAX;
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(at + 1);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX / 2);
	assert_int_equal(send_all(), 1);
	acknowledge(at + 5);
	expect_success(1);
	at += 6;

	post(2, IBV_WR_RDMA_READ, 5 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, at, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, at + 4, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, at + 3, .len = MTU);
	assert_int_equal(rig.completer.ooo.count, 2);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + at + 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, at + 1, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, at + 2, .syndrome = ACK, .len = MTU);
	expect_success(2);
	assert_int_equal(rig.completer.ooo.count, 0);
	at += 5;

	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(3, IBV_WR_RDMA_WRITE, 4 * MTU);
	assert_int_equal(send_all(), 4);
	acknowledge(at);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.retransmit_ns),
			 FAULT_NONE);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + at + 1);
	assert_int_equal(rig.loss.recovery.timed, RECOVERY_TIMED_PROBE);
	acknowledge(at + 3);
	assert_int_equal(rig.loss.recovery.timed, RECOVERY_TIMED_NOTHING);
	expect_success(3);
	at += 4;

	post(4, IBV_WR_SEND, 2 * MTU);
	assert_int_equal(send_all(), 2);
	refuse(at);
	assert_int_equal(send_all(), 1);
	acknowledge(at + 1);
	expect_success(4);
	assert_int_equal(recovery_deadline_ns(&rig.loss.recovery), RECOVERY_NEVER);
	return 17;
}

/* Each PSN that is kept was set by the incidents before the quiet, and is too old to be told apart
 * from those to come, unless somebody has moved it along, or nobody looks at it. */
TEST(completer_receive__losses_are_mended_after_a_long_quiet)
{
	static const uint32_t quiet[] = {0, (1u << 23) - 18, (1u << 23) - 1, 1u << 23,
					 (1u << 24) - 10};

	let_keep();
	for (size_t i = 0; i < RTE_DIM(quiet); i++) {
		uint32_t at;

		completer_rig_tear_down(state);
		completer_rig_set_up(state);
		let_keep();
		rig.loss.peer = LOSS_PEER_KEEPS;
		at = incidents(0);
		for (uint32_t left = quiet[i]; left > 0;) {
			const uint32_t n = left < LOSS_WINDOW_MAX ? left : LOSS_WINDOW_MAX;

			loss_sent(&rig.loss, n);
			loss_on_ack(&rig.loss, rig.loss.next, NOW_NS);
			left -= n;
		}
		incidents(at + quiet[i]);
	}
}

static void timer(void)
{
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.retransmit_ns),
			 FAULT_NONE);
}

/* The peer has resources for one READ: each gap is asked for when those before it are filled. */
TEST(completer_timeout__one_gap_of_a_read_is_asked_for_at_a_time)
{
	let_keep();
	rig.loss.max_responses = 1;
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_READ, 6 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 5, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, MTU);
	timer();
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = MTU);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 4);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 4, .syndrome = ACK, .len = MTU);
	expect_success(1);
}

/* A response shows that the request has come. So only the missing responses are asked for, whatever
 * the retransmission was made for. */
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

/* Nothing came behind the response of a probe, but nothing shows either that what follows was
 * dropped: the rest of the READ's segment is asked for, and nothing else. */
TEST(completer_timeout__a_probe_that_a_response_answers_asks_for_the_rest)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	post(2, IBV_WR_RDMA_WRITE, 4 * MTU);
	assert_int_equal(send_all(), 5);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	timer();
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 1, .syndrome = ACK, .len = MTU);
	expect_flight(2, 8);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 2);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 2 * MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 2, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	expect_success(1);
	acknowledge(7);
	expect_success(2);
	assert_int_equal(send_all(), 0);
}

/* The peer's NAK made the requester go back. Then an answer covers more than was sent again,
 * although a probe was sent in between. */
TEST(completer_timeout__going_back_is_remembered_over_a_probe)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	rig.loss.peer = LOSS_PEER_DROPS;
	post(1, IBV_WR_RDMA_WRITE, 12 * MTU);
	assert_int_equal(send_all(), 12);
	nak(1);
	assert_int_equal(send_some(4), 4);
	expect_flight(1, 5);
	timer();
	assert_int_equal(rig.loss.state, LOSS_PROBE);
	assert_int_equal(send_some(1), 1);
	acknowledge(2);
	assert_int_equal(send_some(1), 1);
	expect_flight(3, 6);
	acknowledge(9);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
}
