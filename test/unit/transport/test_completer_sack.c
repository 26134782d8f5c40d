/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/completer_sack.c, behind a requester that sends: what SACKs report is sent
 * again, at once, and nothing else. */
#include "completer_sack_rig.h"
#include "transport/check.h"
#include "transport/sack.h"
#include "test.h"

TEST_FIXTURE(completer_sack_set_up, completer_rig_tear_down);

TEST(completer_sack__all_holes_are_sent_again_at_once)
{
	send_write(1, 20);
	/* PSNs 1 to 20. */
	tell(3, 0x9e4);
	EXPECT_SENT(3, 4, 6, 7, 12, 13);
	/* The window is no limit of speed. */
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
	assert_int_equal(send_all(), 0);
	acknowledge(20);
	expect_success(1);
	assert_int_equal(rig.loss.state, LOSS_NONE);
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
}

TEST(completer_sack__is_an_answer_that_no_probe_must_ask_for)
{
	uint64_t probe_ns;

	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	send_write(1, 4);
	tell(1, 0x2);
	probe_ns = rig.loss.recovery.retransmit_ns;
	tell_at(NOW_NS + 1000, 1, 0x6);
	assert_int_equal(rig.loss.recovery.retransmit_ns, probe_ns + 1000);
}

/* Congestion control slows down once for all of them. */
TEST(completer_sack__losses_of_one_flight_count_once)
{
	const uint32_t before = rig.loss.losses;

	send_write(1, 20);
	tell(1, 0x2);
	assert_int_equal(rig.loss.losses, before + 1);
	EXPECT_SENT(1);
	tell(1, 0xa);
	assert_int_equal(rig.loss.losses, before + 1);
	EXPECT_SENT(3);
	acknowledge(20);
	expect_success(1);
	send_write(2, 5);
	tell(21, 0x2);
	assert_int_equal(rig.loss.losses, before + 2);
}

TEST(completer_sack__it_may_be_the_first_answer)
{
	/* A new connection. The acknowledgement of its first packet is lost, and so is the second
	 * packet. */
	completer_reset(&rig.completer);
	loss_init(&rig.loss, rig.loss.una);
	assert_int_equal(rig.loss.peer, LOSS_PEER_UNKNOWN);
	send_write(1, 4);
	tell(2, 0x2);
	assert_int_equal(rig.loss.peer, LOSS_PEER_SACK);
	EXPECT_SENT(2);
	acknowledge(4);
	expect_success(1);
}

TEST(completer_sack__what_is_sent_again_is_not_sent_once_more_in_vain)
{
	send_write(1, 20);
	tell(1, 0x2);
	EXPECT_SENT(1);
	/* The packets behind it come, sent before it. */
	tell(1, 0x6);
	tell(1, 0x1e);
	assert_int_equal(send_all(), 0);
	/* A new hole. */
	tell(1, 0x5e);
	EXPECT_SENT(6);
	tell(6, 0x2);
	assert_int_equal(send_all(), 0);
}

TEST(completer_sack__a_packet_that_is_lost_again_is_found_by_a_new_one)
{
	send_write(1, 10);
	tell(2, 0x6);
	EXPECT_SENT(2);
	send_write(2, 4);
	tell(2, 0x1fe);
	assert_int_equal(send_all(), 0);
	/* 11 was sent after 2 was sent again. */
	tell(2, 0x3fe);
	EXPECT_SENT(2);
	tell(2, 0x7fe);
	assert_int_equal(send_all(), 0);
	acknowledge(14);
	expect_success(1);
	expect_success(2);
}

TEST(completer_sack__a_packet_that_is_lost_again_is_found_by_another_retransmission)
{
	send_write(1, 10);
	/* 2, 4 and 6 are lost. */
	tell(2, 0x3ea & ~1u);
	tell(2, 0x1ea & ~1u);
	EXPECT_SENT(2, 4, 6);
	/* 4 comes, and 2 does not. */
	tell(2, 0x1ee & ~1u);
	EXPECT_SENT(2);
	/* 6 is not known to be lost again. */
	tell(2, 0x1ee & ~1u);
	assert_int_equal(send_all(), 0);
}

TEST(completer_sack__a_late_one_changes_nothing)
{
	send_write(1, 10);
	tell_as(2, 1, 0x1c);
	EXPECT_SENT(1, 2);
	tell_as(1, 1, 0x100);
	assert_int_equal(send_all(), 0);
	/* But what it acknowledges is acknowledged. */
	tell_as(1, 4, 0);
	expect_flight(4, 11);
}

TEST(completer_sack__what_was_kept_and_is_dropped_is_sent_again)
{
	send_write(1, 10);
	tell(1, 0xfe);
	EXPECT_SENT(1);
	tell(1, 0x8e);
	EXPECT_SENT(5, 6, 7);
	/* The last ones are dropped, too: that is found when later ones come, a round trip later.
	 */
	rig.board.dropped_ns -= RECOVERY_RETRANSMIT_NS;
	tell(1, 0x0e);
	assert_int_equal(send_all(), 0);
	tell(1, 0x20e);
	EXPECT_SENT(8, 9);
}

TEST(completer_sack__that_cannot_be_true_is_dropped)
{
	send_write(1, 10);
	tell(0, 0x1e); /* acknowledged before */
	tell(12, 0);   /* never sent */
	tell(0x800000, 0x2);
	assert_int_equal(send_all(), 0);
	expect_flight(1, 11);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_sacks_received), 0);
	/* The last that was sent. */
	tell(5, 0x20);
	EXPECT_SENT(5, 6, 7, 8, 9);
}

/* The peer keeps a forged packet that is behind all that was sent, and reports it each time. */
TEST(completer_sack__what_was_never_sent_says_nothing)
{
	send_write(1, 10);
	tell(5, 0x40);
	expect_flight(5, 11);
	assert_int_equal(send_all(), 0);
	/* What it says about others counts. */
	tell(5, 0x8000000000000004);
	EXPECT_SENT(5, 6);
	tell(11, 0x2);
	expect_flight(11, 11);
}

TEST(completer_sack__with_a_bitmap_that_is_too_long_is_dropped)
{
	static const uint8_t bytes[SACK_BYTES_MAX + 4] = {0x1e};
	const struct packet_fields fields = {.opcode = OPCODE_SACK,
					     .psn = 1 + FIRST_PSN,
					     .capability = CAPABILITY,
					     .serial = 1,
					     .payload = bytes,
					     .len = sizeof(bytes)};

	send_write(1, 10);
	completer_sack(&rig.completer, fixture_packet(&rig.fixture, &fields), NOW_NS);
	assert_int_equal(send_all(), 0);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_sacks_received), 0);
}

/* Each costs as many steps as the bitmap has words, and each packet that is sent again a few more.
 */
TEST(completer_sack__work_does_not_depend_on_the_bits)
{
	const uint32_t packets = LOSS_WINDOW_LIMIT, words = packets / 64 + 1;
	/* What it does with the bitmaps of the scoreboard: tell, look for the end, end. */
	const unsigned int passes = 6;
	uint8_t bytes[SACK_BYTES_MAX];
	struct packet_fields fields = {.opcode = OPCODE_SACK,
				       .psn = 1 + FIRST_PSN,
				       .capability = CAPABILITY,
				       .payload = bytes,
				       .len = sizeof(bytes)};

	rig.loss.window_max = rig.loss.window = rig.board.advertised_window = packets;
	for (uint64_t wr_id = 0; wr_id < packets / 100 + 1; wr_id++)
		post(wr_id, IBV_WR_RDMA_WRITE, MEMORY);
	while (send_all() > 0)
		continue;
	assert_int_equal(loss_outstanding(&rig.loss), packets);
	for (uint32_t i = 0; i < 64; i++) {
		uint64_t before, again;

		memset(bytes, i % 2 == 0 ? 0x55 : 0xaa, sizeof(bytes));
		/* The last bit would be behind the last packet. */
		bytes[sizeof(bytes) - 1] &= 0x7f;
		fields.serial = i + 1;
		again = counters_get(&rig.fixture.counters, COUNTER_retransmitted_packets);
		before = rig.board.steps;
		assert_int_equal(completer_sack(&rig.completer,
						fixture_packet(&rig.fixture, &fields), NOW_NS),
				 FAULT_NONE);
		/* Each retransmission before is looked at twice at most. */
		assert_true(rig.board.steps - before <=
			    passes * words + 2 * (i == 0 ? 0 : (uint64_t)packets));
		while (send_all() > 0)
			continue;
		assert_true(counters_get(&rig.fixture.counters, COUNTER_retransmitted_packets) -
				    again <=
			    packets);
	}
	loss_check(&rig.loss);
}

/* Only READs and atomics limit how many requests one report is compared with. */
TEST(completer_sack__of_many_messages)
{
	const uint32_t packets = 300;
	uint8_t bytes[40] = {0};
	const struct packet_fields fields = {.opcode = OPCODE_SACK,
					     .psn = 1 + FIRST_PSN,
					     .capability = CAPABILITY,
					     .serial = 1,
					     .payload = bytes,
					     .len = sizeof(bytes)};

	rig.loss.window_max = rig.loss.window = rig.board.advertised_window = packets;
	for (uint64_t i = 0; i < packets; i++)
		post(i, IBV_WR_RDMA_WRITE, 8);
	assert_int_equal(send_all(), packets);
	/* The newest one has come. */
	bytes[(packets - 2) / 8] = 1u << (packets - 2) % 8;
	assert_int_equal(
		completer_sack(&rig.completer, fixture_packet(&rig.fixture, &fields), NOW_NS),
		FAULT_NONE);
	assert_int_equal(send_all(), packets - 1);
}

/* A peer that says in turn that it keeps packets and that it does not is believed once in a round
 * trip. Else each of its packets would have the whole window sent again. */
TEST(completer_sack__dropping_is_believed_once_in_a_round_trip)
{
	rig.loss.recovery.srtt_ns = 1000;
	send_write(1, 40);
	tell(1, 0x5555555554);
	/* 1, 2, 4, 6, ... are missing. */
	assert_int_equal(send_all(), 20);
	tell(1, 0xaaaaaaaaa8);
	/* 4, 6 ... came, and 3, 5, ... were dropped. 1 and 2 were lost again. */
	assert_int_equal(send_all(), 21);
	tell(1, 0x5555555554);
	assert_int_equal(send_all(), 2);
	tell(1, 0);
	tell(1, 0x8000000000);
	assert_int_equal(send_all(), 0);
	tell_at(NOW_NS + RECOVERY_SACK_PROBE_MIN_NS - 1, 1, 0x8000000000);
	assert_int_equal(send_all(), 0);
	tell_at(NOW_NS + RECOVERY_SACK_PROBE_MIN_NS, 1, 0x8000000000);
	assert_true(send_all() > 0);
}

TEST(completer_sack__what_is_behind_the_bitmap_is_not_kept_any_more)
{
	rig.loss.recovery.srtt_ns = 1000;
	send_write(1, 10);
	tell(1, 0x1fe);
	EXPECT_SENT(1);
	tell(1, 0x4);
	EXPECT_SENT(2);
	/* That the newest one has come shows that those before it are missing. */
	tell(1, 0x204);
	EXPECT_SENT(4, 5, 6, 7, 8, 9);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_sacks_received), 3);
}

/* Whatever a peer reports, in whatever order, only packets in flight are sent again, and the truth
 * ends it. */
TEST(completer_sack__contradictions_do_no_harm)
{
	uint64_t drawn = 1;

	for (uint64_t wr_id = 0; wr_id < 4; wr_id++)
		post(wr_id, wr_id == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 15 * MTU);
	assert_int_equal(send_all(), 46);
	for (unsigned int i = 0; i < 20000; i++) {
		drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		tell_as((uint32_t)(drawn >> 60), 1 + (drawn >> 33) % (i < 19000 ? 2 : 70),
			(drawn ^ drawn >> 32) >> (drawn >> 58));
		loss_check(&rig.loss);
		if (i % 3 == 0)
			assert_true(send_all() <= 60);
	}
	assert_int_equal(rig.loss.top.v, psn_make(61 + FIRST_PSN).v);
	tell_as(100000, 61, 0);
	expect_success(0);
	expect_success(1);
	expect_none();
	for (uint32_t i = 0; i < 15; i++)
		EXPECT_TAKEN(i == 0    ? OPCODE_READ_RESPONSE_FIRST
			     : i == 14 ? OPCODE_READ_RESPONSE_LAST
				       : OPCODE_READ_RESPONSE_MIDDLE,
			     31 + i, .syndrome = ACK, .len = MTU, .capability = CAPABILITY);
	expect_success(2);
	expect_success(3);
	assert_int_equal(send_all(), 0);
}

TEST(completer_sack__shows_what_is_missing_behind_a_refused_packet)
{
	for (uint64_t wr_id = 1; wr_id <= 4; wr_id++)
		post(wr_id, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	refuse_once(1);
	EXPECT_SENT(1);
	/* What comes before the refused packet is accepted says nothing about it. */
	tell(1, 0x10);
	assert_int_equal(send_all(), 0);
	/* 2 and 3 were lost with the first transmission. */
	tell(2, 0x4);
	expect_success(1);
	EXPECT_SENT(2, 3);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 4, .syndrome = ACK, .capability = CAPABILITY);
	for (uint64_t wr_id = 2; wr_id <= 4; wr_id++)
		expect_success(wr_id);
}

/* It is the answer to the packet that was sent once more. */
TEST(completer_sack__of_a_refused_packet_measures_the_peer)
{
	const uint64_t took_ns = 30000;

	for (uint64_t wr_id = 1; wr_id <= 4; wr_id++)
		post(wr_id, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	refuse_once(1);
	EXPECT_SENT(1);
	tell_at(NOW_NS + RNR_NS + took_ns, 2, 0x4);
	expect_success(1);
	assert_int_equal(rig.loss.recovery.retransmit_wait_ns,
			 RECOVERY_RETRANSMIT_FACTOR * took_ns);
}

/* It may have no receive request for the next message either. */
TEST(completer_receive__an_acknowledgement_of_a_refused_packet_lets_the_next_one_go_alone)
{
	for (uint64_t wr_id = 1; wr_id <= 4; wr_id++)
		post(wr_id, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	refuse_once(1);
	EXPECT_SENT(1);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 1, .syndrome = ACK, .capability = CAPABILITY);
	expect_success(1);
	EXPECT_SENT(2);
	assert_int_equal(rig.loss.peer, LOSS_PEER_SACK);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 4, .syndrome = ACK, .capability = CAPABILITY);
	for (uint64_t wr_id = 2; wr_id <= 4; wr_id++)
		expect_success(wr_id);
}

/* What a SACK says of the packet that is timed is its answer. */
TEST(completer_sack__measures_the_packet_that_is_timed)
{
	static const struct {
		uint32_t timed;
		uint64_t took_ns; /* 0: unchanged */
		enum recovery_timed then;
	} cases[] = {{1, 0, RECOVERY_TIMED_NOTHING},
		     {2, 5000, RECOVERY_TIMED_NOTHING},
		     {3, 0, RECOVERY_TIMED_PACKET}};

	send_write(1, 4);
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		rig.loss.recovery.srtt_ns = 0;
		rig.loss.recovery.timed = RECOVERY_TIMED_PACKET;
		rig.loss.recovery.timed_psn = psn_make(FIRST_PSN + cases[i].timed);
		rig.loss.recovery.since_ns = NOW_NS;
		tell_at(NOW_NS + 5000, 1, 0x4 >> 1);
		assert_int_equal(rig.loss.recovery.srtt_ns, cases[i].took_ns);
		assert_int_equal(rig.loss.recovery.timed, cases[i].then);
	}
}

TEST(completer_sack__without_a_bitmap_is_about_the_expected_packet)
{
	send_write(1, 10);
	tell(4, 0);
	EXPECT_SENT(4);
	tell(4, 0);
	assert_int_equal(send_all(), 0);
	/* A packet that was not ours came to the peer. */
	tell(11, 0);
	expect_success(1);
	expect_flight(11, 11);
}

TEST(completer_sack__to_one_that_announced_nothing_is_dropped)
{
	rig.loss.sack = false;
	send_write(1, 4);
	tell(2, 0x2);
	assert_int_equal(send_all(), 0);
	expect_flight(1, 5);
}

/* An introduction answers nothing in flight, and says that the peer is SACK-capable. */
TEST(completer_receive__an_introduction_counts_only_with_its_number)
{
	const uint32_t expected = 1;
	const uint32_t msn =
		sack_introduction_msn(psn_make(FIRST_PSN + expected), rig.completer.qpn);

	rig.loss.sack = false;
	/* Too long ago. */
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, expected - LOSS_WINDOW_MAX - 1 - SACK_INTRODUCTION_PSNS,
		     .syndrome = ACK,
		     .msn = sack_introduction_msn(
			     psn_make((FIRST_PSN + expected - LOSS_WINDOW_MAX - 1) & 0xffffff),
			     rig.completer.qpn));
	assert_false(rig.loss.sack);
	/* Of another number, or behind what was sent. */
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, expected + 1 - SACK_INTRODUCTION_PSNS, .syndrome = ACK,
		     .msn = sack_introduction_msn(psn_make(FIRST_PSN + expected + 1),
						  rig.completer.qpn));
	assert_false(rig.loss.sack);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, expected - SACK_INTRODUCTION_PSNS, .syndrome = ACK,
		     .msn = msn ^ 1);
	assert_false(rig.loss.sack);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, expected - SACK_INTRODUCTION_PSNS, .syndrome = ACK,
		     .msn = msn);
	assert_true(rig.loss.sack);
}

TEST(completer_sack__with_the_longest_bitmap_counts)
{
	static const uint8_t bytes[SACK_BYTES_MAX] = {0x01};
	const struct packet_fields fields = {.opcode = OPCODE_SACK,
					     .psn = 1 + FIRST_PSN,
					     .capability = CAPABILITY,
					     .serial = 1,
					     .payload = bytes,
					     .len = sizeof(bytes)};

	send_write(1, 2);
	completer_sack(&rig.completer, fixture_packet(&rig.fixture, &fields), NOW_NS);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_sacks_received), 1);
	EXPECT_SENT(1);
}
