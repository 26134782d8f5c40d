/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of what is sent to a peer that sends SACKs when no answer comes. */
#include "completer_sack_rig.h"
#include "test.h"

TEST_FIXTURE(completer_sack_set_up, completer_rig_tear_down);

/* The RNR NAK was lost. The responder drops what is behind the refused packet, and has refused it
 * already: only that packet itself shows it. */
TEST(completer_timeout__asks_by_the_oldest_packet_too_if_the_newest_gets_no_answer)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 30;
	for (uint64_t wr_id = 1; wr_id <= 3; wr_id++)
		post(wr_id, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 3);
	completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
	EXPECT_SENT(3);
	completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
	EXPECT_SENT(1, 3);
}

/* The responder has no room to keep packets, so its answers tell no order, and the oldest packet
 * was lost again. */
TEST(completer_timeout__asks_by_the_oldest_packet_too_if_the_answers_show_nothing)
{
	uint64_t now_ns;

	rig.loss.recovery.timeout_ns = UINT64_C(1) << 30;
	send_write(1, 4);
	tell(1, 0);
	EXPECT_SENT(1);
	now_ns = loss_deadline_ns(&rig.loss);
	completer_timeout(&rig.completer, false, now_ns);
	EXPECT_SENT(4);
	tell_at(now_ns, 1, 0);
	assert_int_equal(send_all(), 0);
	completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
	EXPECT_SENT(1, 4);
}

/* Its answers have the capability bits, but it keeps nothing, and sends NAKs as others do. */
TEST(completer_receive__a_peer_that_claims_to_tell_and_drops_gets_everything)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 30;
	send_write(1, 10);
	for (uint32_t psn = 3; psn <= 5; psn++) {
		EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = AETH_NAK | NAK_PSN_SEQUENCE,
			     .capability = CAPABILITY);
		EXPECT_SENT(psn);
		EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = ACK, .capability = CAPABILITY);
		/* Nothing follows. The newest packet makes the peer send the next NAK. */
		completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
		EXPECT_SENT(10);
	}
	/* At the latest the acknowledgement timer sends everything again. */
	completer_timeout(&rig.completer, false, rig.loss.recovery.deadline_ns);
	EXPECT_SENT(6, 7, 8, 9, 10);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 10, .syndrome = ACK, .capability = CAPABILITY);
	expect_success(1);
}

TEST(completer_timeout__a_peer_that_claims_to_keep_and_executes_nothing_uses_up_the_retries)
{
	unsigned int expired = 0;

	send_write(1, 10);
	while (completer_timeout(&rig.completer, false, rig.loss.recovery.deadline_ns) ==
	       FAULT_NONE) {
		expired++;
		assert_true(expired <= RETRIES);
		send_all();
		for (unsigned int i = 0; i < 10; i++)
			tell(1, i % 2 == 0 ? 0x3fe : 0x2aa);
		send_all();
	}
	assert_int_equal(expired, RETRIES);
}

TEST(completer_timeout__sends_the_newest_packet_to_a_sack_capable_peer)
{
	uint64_t at_ns;

	rig.loss.recovery.timeout_ns = UINT64_C(1) << 30;
	send_write(1, 4);
	at_ns = loss_deadline_ns(&rig.loss);
	assert_true(at_ns < NOW_NS + rig.loss.recovery.timeout_ns);
	assert_int_equal(completer_timeout(&rig.completer, false, at_ns), FAULT_NONE);
	EXPECT_SENT(4);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_probes), 1);
	/* It shows that two more are missing. */
	tell(2, 0x4);
	EXPECT_SENT(2, 3);
	acknowledge(4);
	expect_success(1);
}
