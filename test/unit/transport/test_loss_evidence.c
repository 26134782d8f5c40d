/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/loss.c: how answers show if the peer keeps packets that arrive out of
 * order, and what is sent again to a peer of either kind. */
#include "loss_rig.h"

TEST_FIXTURE(completer_rig_set_up, completer_rig_tear_down);

/* The peer's first answer shows if it keeps packets that arrive out of order. */
TEST(completer_receive__a_peer_that_keeps_is_remembered)
{
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	nak(1);
	assert_int_equal(send_all(), 1);
	/* The requester sends nothing new until it knows what the peer does. */
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
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_packet_seq_err), 2);
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
	/* From now on the requester goes back at once. */
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
	/* The answer acknowledges more than was sent again. */
	acknowledge(4);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	expect_flight(5, 5);
	assert_int_equal(send_all(), 1);
}

/* A packet that is only late arrives before it is sent again. A go-back-N peer takes it as well. */
TEST(completer_receive__a_late_packet_does_not_tell_what_peer_it_is)
{
	static const enum loss_peer before[] = {LOSS_PEER_UNKNOWN, LOSS_PEER_DROPS};

	for (size_t i = 0; i < RTE_DIM(before); i++) {
		rig.loss.peer = before[i];
		post(i, IBV_WR_RDMA_WRITE, 10 * MTU);
		assert_int_equal(send_all(), 10);
		nak(10 * (uint32_t)i + 5);
		/* The peer takes two packets: more than would be sent again alone. */
		acknowledge(10 * (uint32_t)i + 6);
		assert_int_equal(rig.loss.peer, before[i]);
		nak(10 * (uint32_t)i + 8);
		assert_int_equal(rig.loss.peer, before[i]);
		acknowledge(10 * (uint32_t)i + 9);
		expect_success(i);
		assert_false(loss_is_selective(&rig.loss));
	}
}

TEST(completer_receive__a_late_response_does_not_tell_what_peer_it_is)
{
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	nak(0);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = 8);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
	/* The packets behind it are sent again. */
	assert_int_equal(send_all(), 1);
}

/* A late packet does not tell how long an answer to a selective retransmission takes. */
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

/* After a timeout, an answer may be a late one, so it does not tell what the peer does. */
TEST(completer_receive__a_late_answer_does_not_tell_what_peer_it_is)
{
	post(1, IBV_WR_RDMA_WRITE, 6 * MTU);
	assert_int_equal(send_all(), 6);
	assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + TIMEOUT_NS), FAULT_NONE);
	assert_int_equal(send_some(1), 1);
	acknowledge(4);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
}

/* The peer kept packets before, but has no room now. */
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

/* The answer to a READ does not tell if the peer kept the packets behind it. */
TEST(completer_receive__reads_do_not_judge_an_unknown_peer)
{
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	nak(0);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
	assert_int_equal(send_all(), 2);
}
