/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/completer.c, behind a requester that sends: responses that complete or
 * fail requests, and timers. test_loss.c tests losses. */
#include "completer_rig.h"
#include "queue/comp_cntr.h"
#include "queue/sq_build.h"
#include "test.h"

TEST_FIXTURE(completer_rig_set_up, completer_rig_tear_down);

/* Acknowledgements. */

TEST(completer_receive__one_acknowledgement_completes_all_before_it)
{
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_WRITE, 2 * MTU);
	post(3, IBV_WR_SEND_WITH_IMM, 0);
	post(4, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 5);
	acknowledge(3);
	for (uint64_t i = 1; i <= 3; i++) {
		const struct ibv_wc wc = expect_success(i);

		assert_int_equal(wc.qp_num, FIXTURE_QPN);
		assert_int_equal(wc.wc_flags, 0);
	}
	expect_none();
	expect_flight(4, 5);
	acknowledge(4);
	expect_success(4);
	assert_int_equal(rig.loss.recovery.deadline_ns, RECOVERY_NEVER);
}

TEST(completer_receive__in_the_middle_of_a_message_nothing_completes)
{
	post(1, IBV_WR_SEND, 4 * MTU);
	assert_int_equal(send_all(), 4);
	acknowledge(2);
	expect_none();
	expect_flight(3, 4);
	acknowledge(3);
	expect_success(1);
}

TEST(completer_receive__what_is_not_signaled_completes_silently)
{
	struct ibv_sge sge = region_sge(&rig.memory, 0, 8);

	post_list(1, IBV_WR_SEND, 0, &sge, 1);
	post_list(2, IBV_WR_RDMA_READ, 0, &sge, 1);
	post_list(3, IBV_WR_SEND, SIGNALED, &sge, 1);
	assert_int_equal(send_all(), 3);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 1, .syndrome = ACK, .len = 8);
	expect_none();
	expect_stored(0, 1, 8);
	assert_int_equal(rig.sq.cons, 2);
	acknowledge(2);
	expect_success(3);
	expect_none();
}

TEST(completer_receive__answers_to_nothing_in_the_air_are_ignored)
{
	static const uint8_t operations[] = {OPCODE_ACKNOWLEDGE, OPCODE_READ_RESPONSE_ONLY,
					     OPCODE_ATOMIC_ACKNOWLEDGE};

	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_SEND, 8);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 3);
	acknowledge(0);
	expect_success(1);
	for (size_t i = 0; i < sizeof(operations); i++) {
		EXPECT_TAKEN(operations[i], 0, .syndrome = ACK);
		EXPECT_TAKEN(operations[i], 3, .syndrome = ACK);
		EXPECT_TAKEN(operations[i], 100, .syndrome = ACK);
		EXPECT_TAKEN(operations[i], 0x800000, .syndrome = ACK);
	}
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_NAK | NAK_REMOTE_ACCESS);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 4, .syndrome = AETH_NAK | NAK_PSN_SEQUENCE);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 3, .syndrome = AETH_RNR_NAK);
	expect_none();
	expect_flight(1, 3);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_SMOOTH);
}

/* The peer has received a packet that was not ours. Its NAK comes in place of the acknowledgement
 * that it owed. */
TEST(completer_receive__a_nak_for_what_was_never_sent_acknowledges_the_rest)
{
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 2, .syndrome = AETH_NAK | NAK_PSN_SEQUENCE);
	expect_success(1);
	expect_success(2);
	expect_none();
	expect_flight(2, 2);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_SMOOTH);
	/* Nothing is in flight, so the NAK has no effect. */
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 2, .syndrome = AETH_NAK | NAK_PSN_SEQUENCE);
	expect_flight(2, 2);
}

TEST(completer_receive__answers_before_anything_was_sent_are_ignored)
{
	acknowledge(0);
	acknowledge(0u - 1);
	post(1, IBV_WR_SEND, 8);
	acknowledge(0);
	expect_none();
	expect_flight(0, 0);
}

TEST(completer_receive__each_request_completes_under_its_name)
{
	static const struct {
		enum ibv_wr_opcode posted;
		enum ibv_wc_opcode completed;
	} names[] = {{IBV_WR_SEND, IBV_WC_SEND},
		     {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
		     {IBV_WR_SEND_WITH_INV, IBV_WC_SEND},
		     {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
		     {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
		     {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		     {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
		     {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
		     {IBV_WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE}};

	for (uint32_t i = 0; i < 9; i++) {
		struct ibv_wc wc;

		post(i, names[i].posted, 8);
		assert_int_equal(send_all(), 1);
		if (i < 5)
			acknowledge(i);
		else if (i == 5 || i == 8)
			EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, i, .syndrome = ACK,
				     .len = i == 5 ? 8 : 0);
		else
			EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, i, .syndrome = ACK);
		wc = expect_success(i);
		assert_int_equal(wc.opcode, names[i].completed);
		assert_int_equal(wc.byte_len, i < 5 || i == 8 ? 0 : 8);
	}
}

TEST(completer_receive__an_acknowledgement_is_no_word_of_an_atomic_write)
{
	post(1, IBV_WR_ATOMIC_WRITE, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	acknowledge(1);
	expect_none();
	/* The request is sent again, and only then answered. */
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK);
	expect_success(1);
	expect_success(2);
	assert_int_equal(rig.loss.responses, 0);
}

TEST(completer_receive__a_flush_is_answered_by_an_empty_response)
{
	const struct sq_flush flush = {.rkey = 1, .place = FETH_PLACE_GLOBAL, .length = 4 * MTU};
	struct ibv_wc wc;

	post(1, IBV_WR_RDMA_WRITE, 8);
	sq_build_start(&rig.sq, sq_opcodes(IBV_QPT_RC));
	sq_build_next(&rig.sq, (enum ibv_wr_opcode)LATER_WR_FLUSH, 2, SIGNALED);
	sq_build_flush(&rig.sq, &flush);
	assert_int_equal(sq_build_complete(&rig.sq), 0);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 1, .syndrome = ACK);
	expect_success(1);
	wc = expect_success(2);
	assert_int_equal(wc.opcode, LATER_WC_FLUSH);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(rig.loss.responses, 0);
}

TEST(completer_receive__each_kind_of_request_is_counted_with_its_bytes)
{
	struct comp_cntr counts[COMP_CNTR_OPS];
	struct comp_cntrs cntrs;

	for (int op = 0; op < COMP_CNTR_OPS; op++) {
		counts[op] = (struct comp_cntr){.bytes = true};
		cntrs.of[op] = &counts[op];
	}
	rig.completer.cntrs = &cntrs;
	rig.completer.counts = true;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_WRITE, 16);
	post(3, IBV_WR_RDMA_READ, 32);
	post(4, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	post(5, IBV_WR_SEND, 64);
	assert_int_equal(send_all(), 5);
	acknowledge(1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = 32);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 3, .syndrome = ACK);
	EXPECT_FAULT(FAULT_NAKED_ACCESS, OPCODE_ACKNOWLEDGE, 4,
		     .syndrome = AETH_NAK | NAK_REMOTE_ACCESS);
	completer_fail(&rig.completer, FAULT_NAKED_ACCESS);
	for (int op = 0; op < COMP_CNTR_OPS; op++) {
		const uint64_t bytes[COMP_CNTR_OPS] = {[COMP_CNTR_SEND] = 8,
						       [COMP_CNTR_RDMA_WRITE] = 16,
						       [COMP_CNTR_RDMA_READ] = 32};

		assert_int_equal(counts[op].done, bytes[op]);
		assert_int_equal(counts[op].failed, op == COMP_CNTR_SEND);
	}
}

/* READs and atomics. */

TEST(completer_receive__a_read_is_stored_in_its_list)
{
	struct ibv_sge sge[] = {region_sge(&rig.memory, 10 * MTU, 100),
				region_sge(&rig.memory, 0, 2 * MTU)};
	uint8_t first[MTU];

	post_list(1, IBV_WR_RDMA_READ, SIGNALED, sge, 2);
	assert_int_equal(send_all(), 1);
	for (uint32_t i = 0; i < MTU; i++)
		first[i] = pattern_byte(FIRST_PSN, i);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	expect_none();
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .len = 100);
	assert_int_equal(expect_success(1).byte_len, 2 * MTU + 100);
	assert_memory_equal(rig.memory.bytes + 10 * MTU, first, 100);
	assert_memory_equal(rig.memory.bytes, first + 100, MTU - 100);
	expect_stored(MTU - 100, 1, MTU);
	expect_stored(2 * MTU - 100, 2, 100);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_rx_payload_bytes_written),
			 2 * MTU + 100);
	region_expect_pattern(&rig.memory, 2 * MTU, 8 * MTU, SEED);
	assert_int_equal(rig.loss.responses, 0);
}

TEST(completer_receive__an_empty_read)
{
	post(1, IBV_WR_RDMA_READ, 0);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK);
	assert_int_equal(expect_success(1).byte_len, 0);
}

TEST(completer_receive__a_response_acknowledges_what_was_sent_before)
{
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_WRITE, 8);
	post(3, IBV_WR_RDMA_READ, 2 * MTU);
	assert_int_equal(send_all(), 3);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	expect_success(2);
	expect_none();
	expect_stored(0, 2, MTU);
}

TEST(completer_receive__segments_give_their_resource_back)
{
	const uint32_t segment = REQUESTER_READ_SEGMENT_PKTS;

	post(1, IBV_WR_RDMA_READ, (segment + 2) * MTU);
	assert_int_equal(send_all(), 2);
	assert_int_equal(rig.loss.responses, 2);
	for (uint32_t i = 0; i < segment; i++) {
		assert_int_equal(rig.loss.responses, 2);
		EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, i, .len = MTU);
	}
	assert_int_equal(rig.loss.responses, 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, segment, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, segment + 1, .syndrome = ACK, .len = MTU);
	assert_int_equal(rig.loss.responses, 0);
	expect_success(1);
}

TEST(completer_receive__a_read_may_end_with_its_segment)
{
	const uint32_t segment = REQUESTER_READ_SEGMENT_PKTS;

	post(1, IBV_WR_RDMA_READ, segment * MTU);
	post(2, IBV_WR_RDMA_WRITE, MTU);
	assert_int_equal(send_all(), 2);
	assert_int_equal(rig.loss.responses, 1);
	for (uint32_t i = 0; i < segment - 1; i++)
		EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, i, .len = MTU);
	assert_int_equal(rig.loss.responses, 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, segment - 1, .syndrome = ACK, .len = MTU);
	assert_int_equal(rig.loss.responses, 0);
	expect_success(1);
	acknowledge(segment);
	expect_success(2);
}

TEST(completer_receive__the_result_of_an_atomic_is_in_host_order)
{
	const uint64_t *result = (const uint64_t *)(const void *)rig.memory.bytes;

	post(1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 0, .syndrome = ACK, .original = 0x0102030405060708);
	assert_int_equal(expect_success(1).byte_len, 8);
	assert_int_equal(*result, 0x0102030405060708);
	region_expect_pattern(&rig.memory, 8, MTU, SEED);
}

TEST(completer_receive__responses_of_another_length_are_bad)
{
	static const struct {
		uint8_t opcode;
		uint32_t taken; /* responses before it */
		uint32_t len;
	} cases[] = {
		{OPCODE_READ_RESPONSE_FIRST, 0, MTU - 1}, {OPCODE_READ_RESPONSE_FIRST, 0, MTU + 1},
		{OPCODE_READ_RESPONSE_FIRST, 0, 0},	  {OPCODE_READ_RESPONSE_MIDDLE, 1, MTU - 4},
		{OPCODE_READ_RESPONSE_LAST, 2, 7},	  {OPCODE_READ_RESPONSE_LAST, 2, 9},
		{OPCODE_READ_RESPONSE_LAST, 2, MTU},	  {OPCODE_READ_RESPONSE_ONLY, 0, 8},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		post(1, IBV_WR_RDMA_READ, 2 * MTU + 8);
		assert_int_equal(send_all(), 1);
		for (uint32_t psn = 0; psn < cases[i].taken; psn++)
			EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, psn, .len = MTU);
		EXPECT_FAULT(FAULT_BAD_RESPONSE, cases[i].opcode, cases[i].taken, .syndrome = ACK,
			     .len = cases[i].len);
		region_expect_pattern(&rig.memory, cases[i].taken * MTU,
				      MEMORY - cases[i].taken * MTU, SEED);
		expect_none();
		completer_rig_tear_down(state);
		completer_rig_set_up(state);
	}
}

TEST(completer_receive__responses_to_requests_of_another_kind_are_bad)
{
	static const struct {
		enum ibv_wr_opcode request;
		uint8_t response;
	} cases[] = {
		{IBV_WR_SEND, OPCODE_READ_RESPONSE_ONLY},
		{IBV_WR_RDMA_WRITE, OPCODE_READ_RESPONSE_ONLY},
		{IBV_WR_SEND, OPCODE_ATOMIC_ACKNOWLEDGE},
		{IBV_WR_RDMA_READ, OPCODE_ATOMIC_ACKNOWLEDGE},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, OPCODE_READ_RESPONSE_ONLY},
		{IBV_WR_ATOMIC_WRITE, OPCODE_READ_RESPONSE_ONLY}, /* with data */
		{IBV_WR_ATOMIC_WRITE, OPCODE_ATOMIC_ACKNOWLEDGE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool read = cases[i].response == OPCODE_READ_RESPONSE_ONLY;

		post(1, cases[i].request, 8);
		assert_int_equal(send_all(), 1);
		EXPECT_FAULT(FAULT_BAD_RESPONSE, cases[i].response, 0, .syndrome = ACK,
			     .len = read ? 8 : 0);
		region_expect_pattern(&rig.memory, 0, MEMORY, SEED);
		expect_none();
		completer_rig_tear_down(state);
		completer_rig_set_up(state);
	}
}

TEST(completer_receive__data_that_may_not_be_stored)
{
	struct ibv_sge sge = region_sge(&rig.readable, 0, 8);

	post_list(1, IBV_WR_RDMA_READ, SIGNALED, &sge, 1);
	assert_int_equal(send_all(), 1);
	EXPECT_FAULT(FAULT_SEND_PROTECTION, OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK,
		     .len = 8);
	completer_flush(&rig.completer);
	loss_init(&rig.loss, psn_make(FIRST_PSN));
	requester_reset(&rig.requester, REQUESTER_RUNNING);
	post_list(2, IBV_WR_ATOMIC_FETCH_AND_ADD, SIGNALED, &sge, 1);
	assert_int_equal(send_all(), 1);
	EXPECT_FAULT(FAULT_SEND_PROTECTION, OPCODE_ATOMIC_ACKNOWLEDGE, 0, .syndrome = ACK);
	region_expect_pattern(&rig.readable, 0, MTU, SEED + 1);
}

TEST(completer_receive__a_second_response_is_not_stored)
{
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = 8);
	expect_success(1);
	for (size_t i = 0; i < 8; i++)
		rig.memory.bytes[i] = pattern_byte(SEED, i);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = 8);
	region_expect_pattern(&rig.memory, 0, MEMORY, SEED);
	expect_none();
}

TEST(completer_receive__each_nak_fails_the_request_that_it_names)
{
	static const struct {
		uint8_t syndrome;
		enum fault fault;
		enum ibv_wc_status status;
	} naks[] = {
		{AETH_NAK | 1, FAULT_NAKED_INVALID, IBV_WC_REM_INV_REQ_ERR},
		{AETH_NAK | 2, FAULT_NAKED_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{AETH_NAK | 3, FAULT_NAKED_OPERATIONAL, IBV_WC_REM_OP_ERR},
		{AETH_NAK | 4, FAULT_BAD_RESPONSE, IBV_WC_BAD_RESP_ERR},
		{AETH_NAK | 31, FAULT_BAD_RESPONSE, IBV_WC_BAD_RESP_ERR},
		{0x40 | ACK, FAULT_BAD_RESPONSE, IBV_WC_BAD_RESP_ERR},
	};

	for (size_t i = 0; i < sizeof(naks) / sizeof(naks[0]); i++) {
		post(1, IBV_WR_SEND, 8);
		post(2, IBV_WR_RDMA_WRITE, 2 * MTU);
		post(3, IBV_WR_SEND, 8);
		assert_int_equal(send_all(), 4);
		EXPECT_FAULT(naks[i].fault, OPCODE_ACKNOWLEDGE, 2, .syndrome = naks[i].syndrome);
		expect_success(1);
		assert_int_equal(completer_fail(&rig.completer, naks[i].fault), FAULT_NONE);
		completer_flush(&rig.completer);
		fixture_completion(rig.fixture.cq, 2, naks[i].status);
		fixture_completion(rig.fixture.cq, 3, IBV_WC_WR_FLUSH_ERR);
		completer_rig_tear_down(state);
		completer_rig_set_up(state);
	}
}

/* Receivers that are not ready, and timers. */

TEST(completer_receive__an_rnr_nak_waits_and_sends_again)
{
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_SEND, 2 * MTU);
	assert_int_equal(send_all(), 3);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 1, .syndrome = AETH_RNR_NAK | RNR_CODE);
	expect_success(1);
	expect_flight(1, 3);
	/* Nothing was lost. */
	assert_int_equal(rig.loss.window, LOSS_WINDOW_MAX);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(rig.loss.recovery.deadline_ns, NOW_NS + RNR_NS);
	assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + RNR_NS - 1), FAULT_NONE);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + RNR_NS), FAULT_NONE);
	/* The peer may have kept the second packet. */
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_SEND_FIRST, FIRST_PSN + 1);
	acknowledge(2);
	expect_success(2);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_local_ack_timeout_err), 0);
}

TEST(completer_receive__what_follows_an_rnr_nak_does_not_end_the_wait)
{
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_READ, 8);
	post(3, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 3);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
	/* Linux's Soft-RoCE also sends a sequence NAK for the packets behind the refused one. */
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_NAK | NAK_PSN_SEQUENCE);
	/* The network duplicates the RNR NAK. */
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(rig.loss.recovery.deadline_ns, NOW_NS + RNR_NS);
	assert_int_equal(rig.loss.recovery.retries_left, RETRIES);
	assert_int_equal(rig.loss.recovery.rnr_left, RETRIES - 1);
}

TEST(completer_receive__rnr_naks_use_up_their_own_retries)
{
	post(1, IBV_WR_SEND, 8);
	for (uint64_t i = 0; i < RETRIES; i++) {
		assert_int_equal(send_all(), 1);
		EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = AETH_RNR_NAK | RNR_CODE);
		assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + RNR_NS),
				 FAULT_NONE);
	}
	assert_int_equal(send_all(), 1);
	EXPECT_FAULT(FAULT_RNR_RETRIES_EXHAUSTED, OPCODE_ACKNOWLEDGE, 0,
		     .syndrome = AETH_RNR_NAK | RNR_CODE);
}

TEST(completer_timeout__sends_all_again_until_no_retry_is_left)
{
	uint64_t now_ns = NOW_NS;

	post(1, IBV_WR_SEND, 2 * MTU);
	assert_int_equal(send_all(), 2);
	assert_int_equal(completer_timeout(&rig.completer, false, now_ns + TIMEOUT_NS - 1),
			 FAULT_NONE);
	assert_int_equal(send_all(), 0);
	for (int i = 0; i < RETRIES; i++) {
		now_ns += TIMEOUT_NS;
		assert_int_equal(completer_timeout(&rig.completer, false, now_ns), FAULT_NONE);
		assert_int_equal(send_all(), 2);
	}
	now_ns += TIMEOUT_NS;
	assert_int_equal(completer_timeout(&rig.completer, false, now_ns), FAULT_RETRIES_EXHAUSTED);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_local_ack_timeout_err),
			 RETRIES + 1);
}

/* Failure and flush. */

TEST(completer_fail__without_work_there_is_nothing_to_complete)
{
	assert_int_equal(completer_fail(&rig.completer, FAULT_RETRIES_EXHAUSTED), FAULT_NONE);
	expect_none();
}

TEST(completer_fail__tells_also_what_is_not_signaled)
{
	struct ibv_sge sge = region_sge(&rig.memory, 0, 8);

	post_list(1, IBV_WR_SEND, 0, &sge, 1);
	post_list(2, IBV_WR_SEND, 0, &sge, 1);
	assert_int_equal(completer_fail(&rig.completer, FAULT_RETRIES_EXHAUSTED), FAULT_NONE);
	completer_flush(&rig.completer);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_RETRY_EXC_ERR);
	fixture_completion(rig.fixture.cq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_none();
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_req_cqe_error), 1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_req_cqe_flush_error), 1);
}

TEST(completer_receive__a_completion_that_finds_no_room)
{
	for (uint32_t i = 0; i <= CQE; i++)
		post(i, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), CQE + 1);
	EXPECT_FAULT(FAULT_CQ_OVERRUN, OPCODE_ACKNOWLEDGE, CQE, .syndrome = ACK);
}

TEST(completer_sent__unreliable_what_is_sent_is_done)
{
	bool more;

	rig.requester.service = OPCODE_UC;
	post(1, IBV_WR_SEND, 8);
	post(2, IBV_WR_RDMA_WRITE, 3 * MTU);
	assert_int_equal(requester_send(&rig.requester, &rig.fixture.catcher.sink, 3, &more), 3);
	assert_int_equal(completer_sent(&rig.completer, NOW_NS), FAULT_NONE);
	expect_success(1);
	expect_none();
	assert_int_equal(send_all(), 1);
	assert_int_equal(completer_sent(&rig.completer, NOW_NS), FAULT_NONE);
	expect_success(2);
}

TEST(completer_receive__data_with_a_syndrome_of_failure_is_a_bad_response)
{
	static const uint8_t syndromes[] = {AETH_RNR_NAK | 1, AETH_NAK | NAK_REMOTE_ACCESS,
					    0x40 | ACK};

	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	assert_int_equal(send_all(), 2);
	for (size_t i = 0; i < sizeof(syndromes); i++)
		EXPECT_FAULT(FAULT_BAD_RESPONSE, OPCODE_READ_RESPONSE_ONLY, 0,
			     .syndrome = syndromes[i], .len = 8);
	expect_none();
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 0, .syndrome = ACK, .len = 8);
	expect_success(1);
	for (size_t i = 0; i < sizeof(syndromes); i++)
		EXPECT_FAULT(FAULT_BAD_RESPONSE, OPCODE_ATOMIC_ACKNOWLEDGE, 1,
			     .syndrome = syndromes[i]);
	expect_none();
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 1, .syndrome = ACK);
	expect_success(2);
}

/* The caller is told of a peer without receive requests, if the request takes one. */
TEST(completer_receive__an_rnr_nak_of_what_takes_a_receive)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		bool takes;
	} cases[] = {{IBV_WR_SEND, true},
		     {IBV_WR_SEND_WITH_IMM, true},
		     {IBV_WR_SEND_WITH_INV, true},
		     {IBV_WR_RDMA_WRITE_WITH_IMM, true},
		     {IBV_WR_RDMA_WRITE, false}};

	for (uint32_t i = 0; i < RTE_DIM(cases); i++) {
		post(i, cases[i].opcode, 8);
		assert_int_equal(send_all(), 1);
		rig.completer.refused = !cases[i].takes;
		EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, i, .syndrome = AETH_RNR_NAK | RNR_CODE);
		assert_int_equal(rig.completer.refused, cases[i].takes);
		assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + RNR_NS),
				 FAULT_NONE);
		assert_int_equal(send_all(), 1);
		acknowledge(i);
		expect_success(i);
	}
}
