/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/loss.c: losses long after the last one, when kept PSNs may be too old to
 * compare. */
#include "loss_rig.h"

TEST_FIXTURE(completer_rig_set_up, completer_rig_tear_down);

/* Lose a WRITE packet, then READ responses, then a packet that a probe finds, and then refuse a
 * SEND. `at` is the PSN of the first packet, counted from FIRST_PSN. Return how many PSNs were
 * used. */
static uint32_t lose_and_refuse(uint32_t at)
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
	run_retransmit_timer();
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

/* The losses before the pause set every PSN that is kept. After the pause such a PSN may be too old
 * to compare with new ones, so it must have been moved along, or must not be used. */
TEST(completer_receive__losses_after_a_long_pause_are_retransmitted)
{
	static const uint32_t pause[] = {0, (1u << 23) - 18, (1u << 23) - 1, 1u << 23,
					 (1u << 24) - 10};

	let_keep();
	for (size_t i = 0; i < RTE_DIM(pause); i++) {
		uint32_t at;

		completer_rig_tear_down(state);
		completer_rig_set_up(state);
		let_keep();
		rig.loss.peer = LOSS_PEER_KEEPS;
		at = lose_and_refuse(0);
		for (uint32_t left = pause[i]; left > 0;) {
			const uint32_t n = left < LOSS_WINDOW_MAX ? left : LOSS_WINDOW_MAX;

			loss_sent(&rig.loss, n);
			loss_on_ack(&rig.loss, rig.loss.next, NOW_NS);
			left -= n;
		}
		lose_and_refuse(at + pause[i]);
	}
}
