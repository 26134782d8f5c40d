/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of READs to a peer that sends SACKs: lost requests and lost responses are requested again.
 */
#include "completer_sack_rig.h"
#include "test.h"

TEST_FIXTURE(completer_sack_set_up, completer_rig_tear_down);

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
