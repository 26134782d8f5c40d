/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/completer_ooo.c, behind a requester that sends: which responses are kept,
 * and what becomes of them. */
#include "completer_rig.h"
#include "test.h"

TEST_FIXTURE(completer_rig_set_up, completer_rig_tear_down);

TEST(completer_receive__an_out_of_order_response_of_another_length_is_not_kept)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 2 * MTU + 8);
	post(2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU - 4);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 2, .syndrome = ACK);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 3, .syndrome = ACK, .len = 8);
	assert_int_equal(rig.completer.ooo.count, 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	/* When its turn comes, it is found to be a bad response. */
	EXPECT_FAULT(FAULT_BAD_RESPONSE, OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU - 4);
}

TEST(completer_receive__an_out_of_order_result_of_no_atomic_is_not_kept)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_ATOMIC_WRITE, 8);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 1, .syndrome = ACK, .original = 5);
	assert_int_equal(rig.completer.ooo.count, 0);
}

TEST(completer_receive__relaxed_memory_takes_out_of_order_responses_at_once)
{
	struct ibv_sge sge[2];
	struct region relaxed;

	let_keep();
	region_set_up(&relaxed, rig.fixture.pd, 8 * MTU,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, SEED + 2);
	sge[0] = region_sge(&relaxed, 0, 3 * MTU + 10);
	sge[1] = region_sge(&rig.memory, 0, MTU);
	post_list(1, IBV_WR_RDMA_READ, SIGNALED, sge, 2);
	post_list(2, IBV_WR_RDMA_READ, SIGNALED, sge, 1);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU);
	for (uint32_t i = 0; i < MTU; i++)
		assert_int_equal(relaxed.bytes[2 * MTU + i], pattern_byte(FIRST_PSN + 2, i));
	/* These two wait: one belongs partly into memory without relaxed ordering, the other is of
	 * a later READ. */
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 3, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 5, .syndrome = ACK, .len = MTU);
	region_expect_pattern(&relaxed, 0, 2 * MTU, SEED + 2);
	region_expect_pattern(&relaxed, 3 * MTU, 10, SEED + 2);
	region_expect_pattern(&rig.memory, 0, MTU, SEED);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_out_of_order_placed), 1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_rx_payload_bytes_written),
			 MTU);
	expect_none();
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 4, .syndrome = ACK, .len = 10);
	expect_success(1);
	for (uint32_t i = 0; i < MTU - 10; i++)
		assert_int_equal(rig.memory.bytes[i], pattern_byte(FIRST_PSN + 3, 10 + i));
	completer_flush(&rig.completer);
	region_tear_down(&relaxed);
}

/* If two responses with one PSN differ, neither is trusted: both are dropped, and the response is
 * requested again. */
TEST(completer_receive__two_out_of_order_responses_that_differ_are_dropped)
{
	static const uint8_t lie[MTU] = {1};

	let_keep();
	post(1, IBV_WR_RDMA_READ, 4 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .payload = lie, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 3, .syndrome = ACK, .len = MTU);
	assert_int_equal(rig.completer.ooo.count, 2);
	/* The response to a request that was repeated from this PSN on has another opcode, and may
	 * have another MSN. */
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 3, .syndrome = ACK, .msn = 7, .len = MTU);
	assert_int_equal(rig.completer.ooo.count, 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 2, .len = MTU);
	assert_int_equal(rig.completer.ooo.count, 1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_out_of_order_differed), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	region_expect_pattern(&rig.memory, 2 * MTU, 2 * MTU, SEED);
	assert_int_equal(send_all(), 1);
	catcher_expect(&rig.fixture.catcher, 0, OPCODE_READ_REQUEST, FIRST_PSN + 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	for (uint32_t i = 0; i < 4; i++)
		expect_stored(i * MTU, i, MTU);
}

TEST(completer_receive__two_out_of_order_results_that_differ_are_dropped)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 8);
	post(2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	assert_int_equal(send_all(), 2);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 1, .syndrome = ACK, .original = 5);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 1, .syndrome = ACK, .original = 5);
	assert_int_equal(rig.completer.ooo.count, 1);
	EXPECT_TAKEN(OPCODE_ATOMIC_ACKNOWLEDGE, 1, .syndrome = ACK, .original = 6);
	assert_int_equal(rig.completer.ooo.count, 0);
}

/* Bytes that were placed are compared in the memory where they were placed. */
TEST(completer_receive__a_placed_response_that_differs_is_dropped)
{
	static const uint8_t lie[MTU] = {1};
	struct region relaxed;
	struct ibv_sge sge;

	let_keep();
	region_set_up(&relaxed, rig.fixture.pd, 3 * MTU,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, SEED + 2);
	sge = region_sge(&relaxed, 0, 3 * MTU);
	post_list(1, IBV_WR_RDMA_READ, SIGNALED, &sge, 1);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .payload = lie, .len = MTU);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_out_of_order_placed), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .payload = lie, .len = MTU);
	assert_int_equal(rig.completer.ooo.count, 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 2, .syndrome = ACK, .len = MTU);
	assert_int_equal(rig.completer.ooo.count, 0);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_MIDDLE, 1, .len = MTU);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_ONLY, 2, .syndrome = ACK, .len = MTU);
	expect_success(1);
	for (uint32_t i = 0; i < MTU; i++)
		assert_int_equal(relaxed.bytes[2 * MTU + i], pattern_byte(FIRST_PSN + 2, i));
	region_tear_down(&relaxed);
}

/* Post a READ into a zero-based region of relaxed ordering, and receive its second response out of
 * order. Return the region. */
static struct mr *read_ooo(const struct region *relaxed)
{
	const unsigned int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_ZERO_BASED;
	struct ibv_sge sge[2] = {region_sge(&rig.memory, 0, MTU), {.length = MTU}};
	struct mr *mr;

	let_keep();
	assert_int_equal(mr_register(rig.fixture.pd, relaxed->bytes, MTU, 0, access, &mr), 0);
	sge[1].lkey = mr->key;
	post_list(1, IBV_WR_RDMA_READ, SIGNALED, sge, 2);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 1, .syndrome = ACK, .len = MTU);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_out_of_order_placed), 1);
	assert_int_equal(relaxed->bytes[0], pattern_byte(FIRST_PSN + 1, 0));
	return mr;
}

/* The key has the same range and rights afterwards, but leads to other memory than that with the
 * out-of-order bytes. */
TEST(completer_receive__out_of_order_bytes_of_memory_that_a_key_leads_to_no_more)
{
	const struct mr_change change = {.flags = IBV_REREG_MR_CHANGE_TRANSLATION,
					 .addr = rig.memory.bytes + 2 * MTU,
					 .length = MTU};
	struct region relaxed;
	struct mr *mr;

	region_set_up(&relaxed, rig.fixture.pd, MTU, 0, SEED + 2);
	mr = read_ooo(&relaxed);
	assert_int_equal(mr_apply_change(mr, &change), 0);
	memset(relaxed.bytes, 0, MTU);
	EXPECT_FAULT(FAULT_SEND_PROTECTION, OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK,
		     .len = MTU);
	for (uint32_t i = 0; i < MTU; i++)
		assert_int_equal(relaxed.bytes[i], 0);
	region_expect_pattern(&rig.memory, 2 * MTU, MTU, SEED);
	completer_flush(&rig.completer);
	assert_int_equal(mr_deregister(mr), 0);
	region_tear_down(&relaxed);
}

TEST(completer_receive__out_of_order_bytes_of_a_region_that_is_gone)
{
	struct region relaxed;

	region_set_up(&relaxed, rig.fixture.pd, MTU, 0, SEED + 2);
	assert_int_equal(mr_deregister(read_ooo(&relaxed)), 0);
	memset(relaxed.bytes, 0, MTU);
	EXPECT_FAULT(FAULT_SEND_PROTECTION, OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK,
		     .len = MTU);
	for (uint32_t i = 0; i < MTU; i++)
		assert_int_equal(relaxed.bytes[i], 0);
	completer_flush(&rig.completer);
	region_tear_down(&relaxed);
}

/* Bytes of a packet that belongs into two entries of the list are not placed: each entry would have
 * to be remembered. */
TEST(completer_receive__out_of_order_bytes_of_two_entries_wait)
{
	struct ibv_sge sge[2];
	struct region relaxed;

	let_keep();
	region_set_up(&relaxed, rig.fixture.pd, 3 * MTU,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, SEED + 2);
	sge[0] = region_sge(&relaxed, 0, MTU + 1);
	sge[1] = region_sge(&relaxed, MTU + 1, MTU - 1);
	post_list(1, IBV_WR_RDMA_READ, SIGNALED, sge, 2);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 1, .syndrome = ACK, .len = MTU);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_out_of_order_kept), 1);
	region_expect_pattern(&relaxed, 0, 3 * MTU, SEED + 2);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_FIRST, 0, .syndrome = ACK, .len = MTU);
	expect_success(1);
	for (uint32_t i = 0; i < MTU; i++)
		assert_int_equal(relaxed.bytes[MTU + i], pattern_byte(FIRST_PSN + 1, i));
	region_tear_down(&relaxed);
}

TEST(completer_reset__drops_what_is_kept)
{
	let_keep();
	post(1, IBV_WR_RDMA_READ, 2 * MTU);
	assert_int_equal(send_all(), 1);
	EXPECT_TAKEN(OPCODE_READ_RESPONSE_LAST, 1, .syndrome = ACK, .len = MTU);
	assert_int_equal(rig.completer.ooo.count, 1);
	rig.completer.page_absent = true;
	completer_reset(&rig.completer);
	assert_int_equal(rig.completer.ooo.count, 0);
	assert_false(rig.completer.page_absent);
}
