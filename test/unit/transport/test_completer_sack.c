/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/completer_sack.c, behind a requester that sends: what SACKs report is sent
 * again, at once, and nothing else. */
#include "completer_rig.h"
#include "transport/check.h"
#include "transport/sack.h"
#include "test.h"

#define CAPABILITY (BTH_SACK_RESPONSE | 4)

static uint32_t serial;

static int set_up(void **state)
{
	completer_rig_set_up(state);
	rig.loss.sack_use = SACK_ALWAYS;
	loss_init(&rig.loss, rig.loss.una);
	serial = 0;
	/* The first message shows who the peer is. */
	post(100, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->capability, BTH_SACK_REQUEST);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = ACK, .capability = CAPABILITY);
	expect_success(100);
	assert_int_equal(rig.loss.peer, LOSS_PEER_SACK);
	return 0;
}

TEST_FIXTURE(set_up, completer_rig_tear_down);

/* Receive a selective acknowledgement: everything before `expected` is executed, and those in
 * `kept` are kept, a bit each from the expected one on. */
static void tell_at(uint64_t now_ns, uint32_t number, uint32_t expected, uint64_t kept)
{
	uint8_t bytes[8];
	struct packet_fields fields = {.opcode = OPCODE_SACK,
				       .psn = expected + FIRST_PSN,
				       .capability = CAPABILITY,
				       .serial = number,
				       .payload = bytes,
				       .len = sizeof(bytes)};

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(kept >> 1 >> 8 * i);
	assert_int_equal(
		completer_sack(&rig.completer, fixture_packet(&rig.fixture, &fields), now_ns),
		FAULT_NONE);
}

static void tell_as(uint32_t number, uint32_t expected, uint64_t kept)
{
	tell_at(NOW_NS, number, expected, kept);
}

static void tell(uint32_t expected, uint64_t kept)
{
	tell_as(++serial, expected, kept);
}

/* Post a WRITE of so many packets, and send them all. */
static void send_write(uint64_t wr_id, unsigned int packets)
{
	post(wr_id, IBV_WR_RDMA_WRITE, packets * MTU);
	assert_int_equal(send_all(), packets);
}

/* Send, and check the PSNs of the packets. */
static void expect_sent(const uint32_t *psns, unsigned int count)
{
	assert_int_equal(send_all(), count);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(catcher_at(&rig.fixture.catcher, i)->psn.v,
				 psn_make(FIRST_PSN + psns[i]).v);
}
#define EXPECT_SENT(...)                             \
	expect_sent((const uint32_t[]){__VA_ARGS__}, \
		    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Check the byte with AckReq and the reserved bits of a packet that was sent. */
static void expect_ack_byte(unsigned int i, uint8_t byte)
{
	assert_int_equal(catcher_at(&rig.fixture.catcher, i)->ack_byte, byte);
}

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
	tell_at(NOW_NS + 1000, ++serial, 1, 0x6);
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

/* Begin a new connection, whose peer keeps packets. */
static void begin_anew(void)
{
	completer_reset(&rig.completer);
	loss_init(&rig.loss, rig.loss.una);
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 30;
	let_keep();
}

/* The first answer of a connection comes to a probe, and a response of that is lost. */
TEST(completer_receive__what_an_older_retransmission_has_lost_is_found)
{
	begin_anew();
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	post(2, IBV_WR_RDMA_READ, MTU);
	assert_int_equal(send_all(), 2);
	completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
	assert_int_equal(rig.loss.state, LOSS_PROBE);
	EXPECT_SENT(1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 1, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 5, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	assert_int_equal(send_all(), 0);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU, .capability = CAPABILITY);
	EXPECT_SENT(2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 4, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	expect_success(1);
	expect_success(2);
}

/* The same, and the timer finds the loss first. */
TEST(completer_timeout__what_an_older_retransmission_has_lost_is_found)
{
	begin_anew();
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	assert_int_equal(send_all(), 1);
	completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
	assert_int_equal(rig.loss.state, LOSS_PROBE);
	EXPECT_SENT(1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 1, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
	assert_int_equal(rig.loss.state, LOSS_SACKED);
	send_all();
	post(2, IBV_WR_RDMA_READ, MTU);
	send_all();
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 5, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU, .capability = CAPABILITY);
	EXPECT_SENT(3);
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
	tell_at(NOW_NS + RECOVERY_SACK_PROBE_MIN_NS - 1, ++serial, 1, 0x8000000000);
	assert_int_equal(send_all(), 0);
	tell_at(NOW_NS + RECOVERY_SACK_PROBE_MIN_NS, ++serial, 1, 0x8000000000);
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

/* Receive an RNR NAK for this PSN, and let the RNR timer run out. */
static void refuse(uint32_t psn)
{
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = AETH_RNR_NAK | RNR_CODE,
		     .capability = CAPABILITY);
	assert_true(loss_waits_for_peer(&rig.loss));
	assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + RNR_NS), FAULT_NONE);
}

TEST(completer_sack__shows_what_is_missing_behind_a_refused_packet)
{
	for (uint64_t wr_id = 1; wr_id <= 4; wr_id++)
		post(wr_id, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	refuse(1);
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

/* It may have no receive request for the next message either. */
TEST(completer_receive__an_acknowledgement_of_a_refused_packet_lets_the_next_one_go_alone)
{
	for (uint64_t wr_id = 1; wr_id <= 4; wr_id++)
		post(wr_id, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	refuse(1);
	EXPECT_SENT(1);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 1, .syndrome = ACK, .capability = CAPABILITY);
	expect_success(1);
	EXPECT_SENT(2);
	assert_int_equal(rig.loss.peer, LOSS_PEER_SACK);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 4, .syndrome = ACK, .capability = CAPABILITY);
	for (uint64_t wr_id = 2; wr_id <= 4; wr_id++)
		expect_success(wr_id);
}

/* Let 600 packets have come in the time from NOW_NS on, while the window held packets back. */
static void rate(uint64_t now_ns)
{
	rig.board.rated_ns = NOW_NS;
	rig.board.rated_psn = psn_add(rig.loss.una, -600);
	rig.board.rated_came = 0;
	loss_limit(&rig.loss);
	loss_widen(&rig.loss, true, now_ns);
}

TEST(completer_receive__a_refusal_returns_to_the_usual_window_for_some_time)
{
	const unsigned int rounds = 64;

	rig.loss.window_max = rig.loss.window = rig.board.advertised_window = 4 * LOSS_WINDOW_MAX;
	post(1, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	refuse(1);
	assert_int_equal(rig.loss.window_max, LOSS_WINDOW_MAX);
	EXPECT_SENT(1);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 1, .syndrome = ACK, .capability = CAPABILITY);
	expect_success(1);
	/* A thousand packets come in each round trip. */
	rig.loss.recovery.min_rtt_ns = rig.loss.recovery.srtt_ns = 1000;
	rig.board.rate = 1000;
	for (unsigned int round = 0; round < rounds; round++) {
		rate(NOW_NS + 1000);
		assert_int_equal(rig.loss.window_max, LOSS_WINDOW_MAX);
	}
	rate(NOW_NS + 1000);
	assert_true(rig.loss.window_max > LOSS_WINDOW_MAX);
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
		tell_at(NOW_NS + 5000, ++serial, 1, 0x4 >> 1);
		assert_int_equal(rig.loss.recovery.srtt_ns, cases[i].took_ns);
		assert_int_equal(rig.loss.recovery.timed, cases[i].then);
	}
}

/* The requester announces twice the window or four times, if the peer may keep so many packets, and
 * the whole window has been used. */
TEST(loss_widen__announces_a_longer_window)
{
	static const struct {
		uint32_t far, srtt_ns, advertised;
		bool widening;
		uint8_t steps;
	} cases[] = {{LOSS_WINDOW_MAX, 1000, LOSS_WINDOW_MAX, false, 0},
		     {2 * LOSS_WINDOW_MAX, 1000, LOSS_WINDOW_MAX, false, 1},
		     {4 * LOSS_WINDOW_MAX, 1000, LOSS_WINDOW_MAX, false, 2},
		     {LOSS_WINDOW_LIMIT, 1000, LOSS_WINDOW_MAX, false, 2},
		     /* Another one is not announced to the end yet. */
		     {LOSS_WINDOW_LIMIT, 1000, LOSS_WINDOW_MAX, true, 0},
		     /* The window is shorter, or there is a queue. */
		     {LOSS_WINDOW_LIMIT, 1000, LOSS_WINDOW_LIMIT, false, 0},
		     {LOSS_WINDOW_LIMIT, 1500, LOSS_WINDOW_MAX, false, 0}};
	const uint8_t asks = rig.loss.asks;

	/* The peer has told so in its first answer. */
	assert_int_equal(rig.board.far, LOSS_WINDOW_MAX << 4);
	rig.loss.recovery.min_rtt_ns = 1000;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		rig.loss.asks = asks;
		rig.loss.recovery.srtt_ns = cases[i].srtt_ns;
		rig.board.far = cases[i].far;
		rig.board.advertised_window = cases[i].advertised;
		rig.board.widening = cases[i].widening;
		rig.board.announced = rig.loss.una;
		rate(NOW_NS + 1000);
		assert_int_equal(rig.loss.asks, asks + cases[i].steps);
		assert_int_equal(rig.board.widening, cases[i].widening || cases[i].steps > 0);
	}
}

/* The window follows what comes in a round trip, with as much again while there is no queue. */
TEST(loss_widen__follows_the_rate)
{
	uint32_t ratings_before;

	rig.loss.window_max = rig.loss.window = rig.board.advertised_window = LOSS_WINDOW_LIMIT;
	rig.loss.recovery.min_rtt_ns = rig.loss.recovery.srtt_ns = 1000;
	rate(NOW_NS + 1000);
	assert_int_equal(rig.loss.window_max, 2 * 600 + 150);
	/* What was counted does not count again. */
	ratings_before = rig.board.ratings;
	loss_limit(&rig.loss);
	loss_widen(&rig.loss, true, NOW_NS + 2000);
	assert_int_equal(rig.board.ratings, ratings_before);
	/* There is a queue. */
	rig.loss.recovery.srtt_ns = 1500;
	rate(NOW_NS + 1000);
	assert_int_equal(rig.loss.window_max, 600 + 150);
	/* Slower ones do not count at once: losses hold packets back. */
	rate(NOW_NS + 3000);
	assert_int_equal(rig.loss.window_max, 600 + 150);
	/* The eight ratings of before count as long as the eight that follow. */
	for (unsigned int ratings = 4; ratings < 20; ratings++) {
		rate(NOW_NS + 2000);
		assert_int_equal(rig.loss.window_max, ratings < 16 ? 600 + 150 : 300 + 75);
	}
	/* Not less than the usual window. */
	for (unsigned int i = 0; i < 16; i++)
		rate(NOW_NS + 7000);
	assert_int_equal(rig.loss.window_max, LOSS_WINDOW_MAX);
}

/* A path that has become longer looks like a queue that no window is short enough for. */
TEST(loss_widen__doubts_the_shortest_round_trip_after_many_of_the_shortest_windows)
{
	const unsigned int rounds = 64;

	rig.loss.recovery.min_rtt_ns = 1000;
	for (unsigned int i = 0; i < 2 * rounds; i++) {
		/* Once there is no queue. */
		rig.loss.recovery.srtt_ns = i == rounds - 1 ? 1000 : 20000;
		rate(NOW_NS + 20000);
		assert_int_equal(rig.loss.window_max, LOSS_WINDOW_MAX);
		assert_int_equal(rig.loss.recovery.min_rtt_ns,
				 i == 2 * rounds - 1 ? UINT32_MAX : 1000);
	}
	/* The path is measured anew, and the window follows it. */
	rig.loss.recovery.min_rtt_ns = rig.loss.recovery.srtt_ns = 20000;
	rig.board.advertised_window = LOSS_WINDOW_LIMIT;
	rate(NOW_NS + 20000);
	assert_int_equal(rig.loss.window_max, 2 * 600 + 150);
}

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
	tell_at(now_ns, ++serial, 1, 0);
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

TEST(completer_sack__a_lost_read_request_is_sent_again_whole)
{
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_READ, 70 * MTU);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 4);
	/* The request of the first segment, of PSNs 2 to 65, is lost; that of the second is kept.
	 */
	{
		uint8_t bytes[9] = {[7] = 1u << 7, [8] = 1u << 5};
		struct packet_fields fields = {.opcode = OPCODE_SACK,
					       .psn = 2 + FIRST_PSN,
					       .capability = CAPABILITY,
					       .serial = 9,
					       .payload = bytes,
					       .len = sizeof(bytes)};

		assert_int_equal(completer_sack(&rig.completer,
						fixture_packet(&rig.fixture, &fields), NOW_NS),
				 FAULT_NONE);
	}
	if (fixture_cc() == CC_SWIFT)
		EXPECT_SENT(2);
	else
		EXPECT_SENT(2, 2, 2);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 64 * MTU);
	/* The responder answers it if it was executed, and none of the copies. */
	expect_ack_byte(0, rig.loss.asks);
	for (unsigned int i = 1; i < rig.fixture.catcher.count; i++)
		expect_ack_byte(i, BTH_SACK_REQUEST);
}

/* A request was sent again behind the newest packet. That this packet has come says nothing about
 * the retransmission. */
TEST(completer_sack__a_read_request_that_came_is_no_evidence_of_a_later_one)
{
	for (uint64_t id = 1; id <= 3; id++)
		post(id, IBV_WR_RDMA_READ, MTU);
	assert_int_equal(send_all(), 3);
	tell(1, 0x2);
	assert_true(send_all() > 0);
	tell(1, 0x6);
	assert_int_equal(send_all(), 0);
}

TEST(completer_sack__a_read_request_that_came_again_is_evidence_of_an_earlier_one)
{
	post(1, IBV_WR_RDMA_READ, 2 * MTU);
	post(2, IBV_WR_RDMA_READ, 2 * MTU);
	post(3, IBV_WR_RDMA_WRITE, 8);
	assert_int_equal(send_all(), 3);
	tell(1, 0x10);
	EXPECT_SENT(1, 3);
	tell(1, 0x14);
	assert_int_equal(scoreboard_at(&rig.board, psn_make(FIRST_PSN + 3)), RANGE_SENT);
	EXPECT_SENT(1);
}

TEST(requester_send__a_read_that_is_not_sent_again_is_marked)
{
	rig.loss.recovery.timeout_ns = UINT64_C(1) << 30;
	post(1, IBV_WR_RDMA_READ, 10 * MTU);
	EXPECT_SENT(1);
	expect_ack_byte(0, BTH_SACK_REQUEST);
	/* While a larger window is advertised, an executed packet has to say so. */
	rig.board.widening = true;
	post(2, IBV_WR_RDMA_READ, MTU);
	EXPECT_SENT(11);
	expect_ack_byte(0, rig.loss.asks);
	rig.board.widening = false;
	/* It is sent again by a probe. */
	completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
	EXPECT_SENT(1);
	expect_ack_byte(0, rig.loss.asks);
}

TEST(completer_sack__missing_responses_are_all_asked_for_at_once)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 10 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 1, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU, .capability = CAPABILITY);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 6, .len = MTU, .capability = CAPABILITY);
	EXPECT_SENT(2, 4);
	/* Each response behind a gap has shown a new one. */
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_implied_nak_seq_err), 2);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, MTU);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 1)->dma_length, 2 * MTU);
	/* The second answer comes, and not the first. */
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 4, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_SENT(2);
	for (uint32_t psn = 5; psn <= 9; psn++)
		EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, psn, .len = MTU,
			     .capability = CAPABILITY);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 10, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	expect_success(1);
	for (uint32_t i = 0; i < 10; i++)
		expect_stored(i * MTU, 1 + i, MTU);
}

/* Packets of other queue pairs have taken the places of kept responses. */
TEST(completer_receive__asks_for_responses_that_are_no_longer_kept)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 3 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU, .capability = CAPABILITY);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_SENT(1);
	ooo_clear(&rig.completer.ooo);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 1, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_SENT(2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_SENT(3);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 3, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	expect_success(1);
}

/* When everything was sent again, an answer to the READ as it was sent first says no more which
 * responses are missing. */
TEST(completer_receive__waits_for_the_responses_that_a_timeout_has_asked_for)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 5 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 5, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	EXPECT_SENT(1);
	completer_timeout(&rig.completer, false, rig.loss.recovery.deadline_ns);
	EXPECT_SENT(1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length, 5 * MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 1, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	assert_int_equal(send_all(), 0);
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

/* Each probe asks for twice as many responses, as long as nothing else comes. */
TEST(completer_timeout__asks_for_more_and_more_responses_while_no_other_comes)
{
	static const struct {
		uint32_t asked, came;
	} rounds[] = {{1, 1}, {2, 2}, {4, 5}, {1, 1}, {2, 2}};
	uint32_t psn = 2;

	rig.loss.recovery.timeout_ns = UINT64_C(1) << 40;
	post(1, IBV_WR_RDMA_READ, 20 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 1, .syndrome = ACK, .len = MTU,
		     .capability = CAPABILITY);
	for (size_t i = 0; i < RTE_DIM(rounds); i++) {
		completer_timeout(&rig.completer, false, loss_deadline_ns(&rig.loss));
		EXPECT_SENT(psn);
		assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->dma_length,
				 rounds[i].asked * MTU);
		for (uint32_t came = 0; came < rounds[i].came; came++, psn++)
			EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, psn, .len = MTU,
				     .capability = CAPABILITY);
	}
}

/* If it were lost, the responder would be idle for a round trip. */
TEST(requester_send__copies_of_a_long_read_leave_while_packets_get_lost)
{
	post(1, IBV_WR_RDMA_READ, 16 * MTU);
	EXPECT_SENT(1);
	send_write(2, 2);
	/* The second packet of the WRITE is kept, and the first is not. */
	tell(17, 0x2);
	assert_int_equal(rig.loss.state, LOSS_SACKED);
	post(3, IBV_WR_RDMA_READ, 16 * MTU);
	post(4, IBV_WR_RDMA_READ, 15 * MTU);
	/* Not under Swift: copies would use up its window. */
	if (fixture_cc() == CC_SWIFT)
		EXPECT_SENT(17, 19, 35);
	else
		EXPECT_SENT(17, 19, 19, 19, 35);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_retransmitted_packets),
			 rig.fixture.catcher.count - 2);
	for (unsigned int i = 1; i + 1 < rig.fixture.catcher.count; i++)
		assert_int_equal(catcher_at(&rig.fixture.catcher, i)->dma_length, 16 * MTU);
	assert_int_equal(rig.loss.responses, 3);
	assert_int_equal(rig.loss.top.v, psn_make(FIRST_PSN + 50).v);
}
