/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/loss.c after RNR NAKs: which packets are sent again, and what they show of
 * the peer. */
#include "loss_rig.h"

TEST_FIXTURE(completer_rig_set_up, completer_rig_tear_down);

/* Send four messages of one packet. */
static void send_four(void)
{
	for (uint64_t i = 0; i < 4; i++)
		post(i, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
}

/* Receive an acknowledgement of this packet, and expect that these messages complete. */
static void complete(uint32_t psn, uint64_t first, uint64_t last)
{
	acknowledge(psn);
	for (uint64_t i = first; i <= last; i++)
		expect_success(i);
}

/* Expect that each of the first two packets is sent alone, and is acknowledged. */
static void take_two_alone(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(send_all(), 1);
		complete(i, i, i);
	}
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
	/* The peer had one receive request: it acknowledges that message and refuses the next. */
	complete(3, 0, 0);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	refuse(4);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_FIRST, FIRST_PSN + 4);
	/* The same, but the acknowledgement is lost. */
	rig.loss.peer = LOSS_PEER_UNKNOWN;
	refuse(8);
	expect_success(1);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(send_all(), 1);
	complete(15, 2, 3);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_retransmitted_packets), 5);
}

/* Each message is one packet. The peer acknowledges the refused message alone, and then refuses the
 * next one, which was not sent again: so the peer had kept it. */
TEST(completer_receive__a_refusal_of_what_was_not_sent_again_shows_a_peer_that_keeps)
{
	send_four();
	refuse(0);
	assert_int_equal(send_all(), 1);
	complete(0, 0, 0);
	refuse(1);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(send_all(), 1);
	/* The peer may refuse the next message only later. Nothing new is sent meanwhile. */
	complete(1, 1, 1);
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_ONLY, FIRST_PSN + 2);
	complete(3, 2, 3);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(send_all(), 1);
	complete(4, 4, 4);
}

/* The peer keeps packets behind a loss, and drops packets behind a refusal. */
TEST(completer_receive__a_peer_may_drop_what_is_behind_a_refusal_only)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	send_four();
	refuse(0);
	take_two_alone();
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
	assert_int_equal(send_all(), 2);
	complete(3, 2, 3);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
}

TEST(completer_receive__a_peer_that_drops_gets_everything_after_a_refusal)
{
	rig.loss.peer = LOSS_PEER_DROPS;
	send_four();
	refuse(0);
	assert_int_equal(send_all(), 4);
	/* After a second refusal, packets behind it are sent when the peer takes this one. */
	refuse(0);
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	complete(0, 0, 0);
	assert_int_equal(send_all(), 4);
	assert_int_equal(rig.loss.peer, LOSS_PEER_DROPS);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
	complete(4, 1, 4);
}

/* Two packets are enough to find that an unknown peer drops. */
TEST(completer_receive__a_refusal_finds_a_peer_that_drops)
{
	send_four();
	refuse(0);
	take_two_alone();
	assert_int_equal(rig.loss.peer, LOSS_PEER_DROPS);
	assert_int_equal(send_all(), 2);
	complete(3, 2, 3);
}

/* The network duplicated the refused packet, and the peer took the copy. When the RNR timer runs
 * out, the oldest unacknowledged packet is sent first. */
TEST(completer_receive__what_is_taken_during_the_wait_is_not_sent_again)
{
	rig.loss.peer = LOSS_PEER_KEEPS;
	send_four();
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
	complete(1, 0, 1);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.deadline_ns),
			 FAULT_NONE);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_ONLY, FIRST_PSN + 2);
	complete(3, 2, 3);
	/* If the peer takes all packets during the wait, nothing is sent again. */
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 4, .syndrome = AETH_RNR_NAK | RNR_CODE);
	complete(4, 4, 4);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.deadline_ns),
			 FAULT_NONE);
	assert_false(loss_is_selective(&rig.loss));
	assert_int_equal(send_all(), 0);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_rnr_nak_retry_err), 2);
}
