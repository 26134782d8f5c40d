/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/loss_timer.c: probes, and lost retransmissions. */
#include "loss_rig.h"

TEST_FIXTURE(completer_rig_set_up, completer_rig_tear_down);

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
	/* The retransmission is no retry, and the acknowledgement timer runs on. */
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

/* The last packet or its answer is lost, and no later packet reveals the loss. */
TEST(completer_timeout__a_probe_finds_a_loss_at_the_end)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_WRITE, 4 * MTU);
	assert_int_equal(send_all(), 4);
	acknowledge(0);
	run_retransmit_timer();
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 1);
	assert_true(catcher_at(&rig.fixture.catcher, 0)->ack_req);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
	/* The peer had that packet. The next probe sends the packet behind it, and the peer is not
	 * judged. */
	acknowledge(2);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
	assert_int_equal(send_all(), 0);
	run_retransmit_timer();
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
	run_retransmit_timer();
	assert_int_equal(send_all(), 1);
	acknowledge(0);
	assert_int_equal(send_all(), 3);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 1);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX / 2);
	acknowledge(3);
	expect_success(1);
}

/* A probe asks for the whole READ. If it asked for one response alone, a peer that has not received
 * the request would execute a READ of that length. If its response is lost as well, that peer
 * refuses the longer request that follows. */
TEST(completer_timeout__a_probe_of_a_read_asks_for_all_of_it)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	assert_int_equal(send_all(), 1);
	run_retransmit_timer();
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

/* The peer has resources for one READ, so a gap is requested only after the gaps before it are
 * filled. */
TEST(completer_timeout__one_gap_of_a_read_is_asked_for_at_a_time)
{
	let_keep();
	rig.loss.allowed_responses = 1;
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_READ, 6 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 5, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, MTU);
	run_retransmit_timer();
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

/* The response to a probe arrives, and no packet behind it. That does not show that the peer
 * dropped the packets that follow, so only the rest of the READ's segment is requested. */
TEST(completer_timeout__a_probe_that_a_response_answers_asks_for_the_rest)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	post(2, IBV_WR_RDMA_WRITE, 4 * MTU);
	assert_int_equal(send_all(), 5);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	run_retransmit_timer();
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

/* Let the timer probe, and check how many responses from this PSN on are requested. Then they
 * come. */
static void probe_for(uint32_t psn, uint32_t psns)
{
	const uint8_t capability = BTH_SACK_RESPONSE | 4;

	completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + psn);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, psns * MTU);
	for (uint32_t i = 0; i < psns; i++)
		EXPECT_TAKEN(psns == 1	    ? OPCODE_READ_RESPONSE_ONLY
			     : i == 0	    ? OPCODE_READ_RESPONSE_FIRST
			     : i + 1 < psns ? OPCODE_READ_RESPONSE_MIDDLE
					    : OPCODE_READ_RESPONSE_LAST,
			     psn + i, .syndrome = ACK, .len = MTU, .capability = capability);
}

/* Nothing comes but the answers of a SACK-capable peer to probes. Each asks for twice as many
 * responses as the one before, up to those that the READ lacks. */
TEST(completer_timeout__probes_of_a_read_ask_for_more_and_more)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	rig.loss.sack_use = SACK_ALWAYS;
	loss_init(&rig.loss, rig.loss.una);
	post(1, IBV_WR_RDMA_READ, 10 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU,
		     .capability = BTH_SACK_RESPONSE | 4);
	assert_int_equal(rig.loss.peer, LOSS_PEER_SACK);
	probe_for(1, 1);
	probe_for(2, 2);
	probe_for(4, 4);
	probe_for(8, 2);
	expect_success(1);
}

/* A NAK made the requester go back, and then a probe was sent. An answer that acknowledges more
 * than was sent again still shows that the peer keeps packets. */
TEST(completer_timeout__going_back_is_remembered_over_a_probe)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	rig.loss.peer = LOSS_PEER_DROPS;
	post(1, IBV_WR_RDMA_WRITE, 12 * MTU);
	assert_int_equal(send_all(), 12);
	nak(1);
	assert_int_equal(send_some(4), 4);
	expect_flight(1, 5);
	run_retransmit_timer();
	assert_int_equal(rig.loss.state, LOSS_PROBE);
	assert_int_equal(send_some(1), 1);
	acknowledge(2);
	assert_int_equal(send_some(1), 1);
	expect_flight(3, 6);
	acknowledge(9);
	assert_int_equal(rig.loss.peer, LOSS_PEER_KEEPS);
}

/* End an engine poll in which nothing could leave. */
static void be_held(void)
{
	loss_on_poll(&rig.loss, rig.loss.top, false, NOW_NS + 1);
}

TEST(loss_on_poll__timers_pause_until_a_lost_packet_leaves)
{
	static const enum loss_peer peers[] = {LOSS_PEER_UNKNOWN, LOSS_PEER_KEEPS, LOSS_PEER_DROPS};

	for (size_t i = 0; i < RTE_DIM(peers); i++) {
		completer_rig_tear_down(state);
		completer_rig_set_up(state);
		rig.loss.peer = peers[i];
		post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
		assert_int_equal(send_all(), 3);
		be_held();
		assert_true(rig.loss.recovery.deadline_ns == NOW_NS + TIMEOUT_NS);
		nak(1);
		be_held();
		assert_int_equal(rig.loss.recovery.state, RECOVERY_PAUSED);
		assert_true(send_all() > 0);
		assert_true(rig.loss.recovery.deadline_ns == NOW_NS + TIMEOUT_NS - 1);
		be_held();
		assert_int_equal(rig.loss.recovery.state, RECOVERY_RESENDING);
	}
}

/* The packet of a probe, or of a retransmission that was lost, has left before. */
TEST(loss_on_poll__timers_run_on_for_what_has_left)
{
	for (int naks = 0; naks <= 1; naks++) {
		completer_rig_tear_down(state);
		completer_rig_set_up(state);
		rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
		post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
		assert_int_equal(send_all(), 3);
		if (naks > 0) {
			nak(1);
			assert_int_equal(send_all(), 1);
		}
		run_retransmit_timer();
		assert_int_equal(scoreboard_at(rig.loss.board, rig.loss.una), RANGE_MISSING);
		be_held();
		assert_int_not_equal(rig.loss.recovery.state, RECOVERY_PAUSED);
	}
}

/* A late acknowledgement ends the pause: nothing must be sent again now. */
TEST(loss_on_poll__an_answer_ends_the_pause)
{
	post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 3);
	nak(1);
	be_held();
	scoreboard_mark(rig.loss.board, rig.loss.una, psn_add(rig.loss.una, 1), RANGE_SENT);
	be_held();
	assert_int_equal(rig.loss.recovery.state, RECOVERY_RESENDING);
	assert_true(rig.loss.recovery.deadline_ns == NOW_NS + TIMEOUT_NS);
}

TEST(completer_timeout__an_excused_one_is_no_loss)
{
	post(1, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(send_all(), 3);
	assert_int_equal(completer_timeout(&rig.completer, true, NOW_NS + TIMEOUT_NS), FAULT_NONE);
	expect_flight(0, 0);
	assert_int_equal(rig.loss.losses, 0);
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
	assert_int_equal(rig.loss.recovery.retries_left, RETRIES);
}
