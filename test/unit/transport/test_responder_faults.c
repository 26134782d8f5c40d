/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder.c: wrong requests, which must not change any byte. */
#include <stddef.h>
#include <stdint.h>

#include "responder_rig.h"
#include "test.h"

TEST_FIXTURE(responder_rig_set_up, responder_rig_tear_down);

struct wrong {
	unsigned int count;
	struct packet_fields packets[3];
	enum fault fault;
	uint8_t nak;
};

static void expect_wrong(const struct wrong *wrong)
{
	for (unsigned int i = 0; i < wrong->count; i++) {
		struct packet_fields packet = wrong->packets[i];

		packet.psn = i;
		if (packet.rkey == 0 && packet.iova == 0) {
			packet.rkey = rig.memory.mr->key;
			packet.iova = region_iova(&rig.memory, 0);
		}
		assert_int_equal(rig_take(packet),
				 i + 1 < wrong->count ? FAULT_NONE : wrong->fault);
	}
	expect_aeth(AETH_NAK | wrong->nak, wrong->count - 1, 0);
}

static void expect_all_wrong(const struct wrong *wrong, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		rig_post(1, region_sge(&rig.inbox, 0, INBOX));
		expect_wrong(&wrong[i]);
		responder_rig_renew();
	}
}
#define EXPECT_ALL_WRONG(wrong) expect_all_wrong(wrong, sizeof(wrong) / sizeof((wrong)[0]))

#define INVALID FAULT_INVALID_REQUEST, NAK_INVALID_REQUEST
#define WRITE_BEGUN                                                                 \
	{                                                                           \
		.opcode = OPCODE_WRITE_FIRST, .dma_length = 2 * MTU + 4, .len = MTU \
	}
#define SEND_BEGUN                                      \
	{                                               \
		.opcode = OPCODE_SEND_FIRST, .len = MTU \
	}

/* Make a packet that is right except for its place in the message. */
static struct packet_fields packet_of(uint8_t opcode)
{
	const uint32_t flags = opcode_info(opcode)->flags;
	const uint32_t len = flags & OPCODE_LAST ? 4 : MTU;

	return (struct packet_fields){.opcode = opcode,
				      .dma_length = flags & OPCODE_LAST ? 4 : 2 * MTU,
				      .len = flags & OPCODE_PAYLOAD ? len : 0};
}

static void expect_out_of_order(bool begun, struct packet_fields first, const uint8_t *opcodes,
				size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct wrong wrong = {1, {packet_of(opcodes[i])}, INVALID};

		if (begun) {
			wrong.count = 2;
			wrong.packets[1] = wrong.packets[0];
			wrong.packets[0] = first;
		}
		expect_all_wrong(&wrong, 1);
	}
}

TEST(responder__a_message_goes_on_as_it_began)
{
	static const struct packet_fields send_begun = SEND_BEGUN, write_begun = WRITE_BEGUN;
	static const uint8_t after_nothing[] = {
		OPCODE_SEND_MIDDLE,  OPCODE_SEND_LAST,	OPCODE_SEND_LAST_IMM,  OPCODE_SEND_LAST_INV,
		OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST, OPCODE_WRITE_LAST_IMM,
	};
	static const uint8_t in_send[] = {
		OPCODE_SEND_FIRST,     OPCODE_SEND_ONLY,    OPCODE_SEND_ONLY_IMM,
		OPCODE_WRITE_FIRST,    OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST,
		OPCODE_WRITE_LAST_IMM, OPCODE_WRITE_ONLY,   OPCODE_WRITE_ONLY_IMM,
		OPCODE_READ_REQUEST,   OPCODE_COMPARE_SWAP, OPCODE_FETCH_ADD,
		OPCODE_FLUSH,	       OPCODE_ATOMIC_WRITE,
	};
	static const uint8_t in_write[] = {
		OPCODE_SEND_FIRST,   OPCODE_SEND_MIDDLE,  OPCODE_SEND_LAST,  OPCODE_SEND_LAST_IMM,
		OPCODE_SEND_ONLY,    OPCODE_WRITE_FIRST,  OPCODE_WRITE_ONLY, OPCODE_WRITE_ONLY_IMM,
		OPCODE_READ_REQUEST, OPCODE_COMPARE_SWAP, OPCODE_FETCH_ADD,  OPCODE_FLUSH,
		OPCODE_ATOMIC_WRITE,
	};

	expect_out_of_order(false, send_begun, after_nothing, sizeof(after_nothing));
	expect_out_of_order(true, send_begun, in_send, sizeof(in_send));
	expect_out_of_order(true, write_begun, in_write, sizeof(in_write));
}

TEST(responder__payload_lengths_are_checked)
{
	static const struct wrong wrong[] = {
		{1, {{.opcode = OPCODE_SEND_FIRST, .len = MTU - 1}}, INVALID},
		{1, {{.opcode = OPCODE_SEND_FIRST, .len = MTU + 1}}, INVALID},
		{1, {{.opcode = OPCODE_SEND_FIRST}}, INVALID},
		{2,
		 {{.opcode = OPCODE_SEND_FIRST, .len = MTU},
		  {.opcode = OPCODE_SEND_MIDDLE, .len = MTU - 4}},
		 INVALID},
		{2,
		 {{.opcode = OPCODE_SEND_FIRST, .len = MTU},
		  {.opcode = OPCODE_SEND_MIDDLE, .len = MTU + 4}},
		 INVALID},
		{2,
		 {{.opcode = OPCODE_SEND_FIRST, .len = MTU}, {.opcode = OPCODE_SEND_LAST}},
		 INVALID},
		{2,
		 {{.opcode = OPCODE_SEND_FIRST, .len = MTU},
		  {.opcode = OPCODE_SEND_LAST, .len = MTU + 1}},
		 INVALID},
		{2,
		 {{.opcode = OPCODE_SEND_FIRST, .len = MTU}, {.opcode = OPCODE_SEND_LAST_IMM}},
		 INVALID},
		{1, {{.opcode = OPCODE_SEND_ONLY, .len = MTU + 1}}, INVALID},
		{1, {{.opcode = OPCODE_SEND_ONLY_IMM, .len = MTU + 4}}, INVALID},
		{1,
		 {{.opcode = OPCODE_WRITE_ONLY, .dma_length = MTU + 1, .len = MTU + 1}},
		 INVALID},
		{2, {WRITE_BEGUN, {.opcode = OPCODE_WRITE_MIDDLE, .len = MTU - 1}}, INVALID},
		{2, {WRITE_BEGUN, {.opcode = OPCODE_WRITE_LAST}}, INVALID},
	};

	EXPECT_ALL_WRONG(wrong);
}

TEST(responder__a_write_is_as_long_as_announced)
{
	static const struct wrong wrong[] = {
		{1, {{.opcode = OPCODE_WRITE_ONLY, .dma_length = 9, .len = 8}}, INVALID},
		{1, {{.opcode = OPCODE_WRITE_ONLY, .dma_length = 7, .len = 8}}, INVALID},
		{1, {{.opcode = OPCODE_WRITE_ONLY, .dma_length = 0, .len = 8}}, INVALID},
		{1, {{.opcode = OPCODE_WRITE_ONLY_IMM, .dma_length = 8, .len = 0}}, INVALID},
		{1, {{.opcode = OPCODE_WRITE_FIRST, .dma_length = MTU - 1, .len = MTU}}, INVALID},
		{2,
		 {{.opcode = OPCODE_WRITE_FIRST, .dma_length = MTU, .len = MTU},
		  {.opcode = OPCODE_WRITE_LAST, .len = 1}},
		 INVALID},
		{2, {WRITE_BEGUN, {.opcode = OPCODE_WRITE_LAST, .len = 4}}, INVALID},
		{3,
		 {WRITE_BEGUN,
		  {.opcode = OPCODE_WRITE_MIDDLE, .len = MTU},
		  {.opcode = OPCODE_WRITE_MIDDLE, .len = MTU}},
		 INVALID},
		{3,
		 {WRITE_BEGUN,
		  {.opcode = OPCODE_WRITE_MIDDLE, .len = MTU},
		  {.opcode = OPCODE_WRITE_LAST, .len = 3}},
		 INVALID},
		{3,
		 {WRITE_BEGUN,
		  {.opcode = OPCODE_WRITE_MIDDLE, .len = MTU},
		  {.opcode = OPCODE_WRITE_LAST_IMM, .len = 5}},
		 INVALID},
		/* 9.7.1: a message has at most 2^31 bytes. */
		{1,
		 {{.opcode = OPCODE_WRITE_FIRST, .dma_length = WIRE_MESSAGE_MAX + 1, .len = MTU}},
		 INVALID},
		{1, {{.opcode = OPCODE_READ_REQUEST, .dma_length = WIRE_MESSAGE_MAX + 1}}, INVALID},
		{1, {{.opcode = OPCODE_READ_REQUEST, .dma_length = UINT32_MAX}}, INVALID},
	};

	EXPECT_ALL_WRONG(wrong);
}

TEST(responder__an_operation_must_be_enabled)
{
	static const struct {
		uint8_t opcode;
		unsigned int need;
	} operations[] = {
		{OPCODE_WRITE_FIRST, IBV_ACCESS_REMOTE_WRITE},
		{OPCODE_WRITE_ONLY, IBV_ACCESS_REMOTE_WRITE},
		{OPCODE_WRITE_ONLY_IMM, IBV_ACCESS_REMOTE_WRITE},
		{OPCODE_READ_REQUEST, IBV_ACCESS_REMOTE_READ},
		{OPCODE_COMPARE_SWAP, IBV_ACCESS_REMOTE_ATOMIC},
		{OPCODE_FETCH_ADD, IBV_ACCESS_REMOTE_ATOMIC},
		{OPCODE_ATOMIC_WRITE, IBV_ACCESS_REMOTE_WRITE},
	};

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		rig.responder.access = REMOTE & ~operations[i].need;
		EXPECT_FAULT(FAULT_INVALID_REQUEST, operations[i].opcode, 0, TO_MEMORY);
		expect_aeth(AETH_NAK | NAK_INVALID_REQUEST, 0, 0);
		expect_memory_untouched();
		responder_rig_renew();
	}
	/* A SEND needs no remote access right. */
	rig.responder.access = 0;
	rig_post(1, region_sge(&rig.inbox, 0, 8));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 8);
}

/* Only the key of a window can be invalidated. */
TEST(responder__send_with_invalidate_of_a_region_fails)
{
	rig_post(1, region_sge(&rig.inbox, 0, 8));
	EXPECT_FAULT(FAULT_INVALIDATE, OPCODE_SEND_ONLY_INV, 0, .rkey = rig.memory.mr->key,
		     .len = 8);
	/* 9.9.3, class J: the requester gets no answer. */
	expect_no_answer();
	fixture_completion(rig.fixture.cq, 1, IBV_WC_REM_INV_REQ_ERR);
}

static void expect_no_access(uint8_t opcode, uint64_t iova, uint32_t rkey, uint32_t length)
{
	const struct packet_fields fields = {.opcode = opcode,
					     .iova = iova,
					     .rkey = rkey,
					     .dma_length = length,
					     .swap_add = 1,
					     .len = opcode == OPCODE_WRITE_ONLY ? length : 0};

	assert_int_equal(rig_take(fields), FAULT_ACCESS);
	expect_aeth(AETH_NAK | NAK_REMOTE_ACCESS, 0, 0);
	expect_memory_untouched();
}

TEST(responder__keys_and_ranges_are_checked_before_a_byte_moves)
{
	static const struct {
		uint8_t opcode;
		unsigned int need;
	} operations[] = {{OPCODE_WRITE_ONLY, IBV_ACCESS_REMOTE_WRITE},
			  {OPCODE_READ_REQUEST, IBV_ACCESS_REMOTE_READ},
			  {OPCODE_FETCH_ADD, IBV_ACCESS_REMOTE_ATOMIC},
			  {OPCODE_COMPARE_SWAP, IBV_ACCESS_REMOTE_ATOMIC}};
	struct region other;

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		const uint8_t opcode = operations[i].opcode;
		const uint64_t iova = region_iova(&rig.memory, 0);
		const uint32_t rkey = rig.memory.mr->key;

		expect_no_access(opcode, iova, FIXTURE_NOBODY, 8);
		expect_no_access(opcode, iova, rkey ^ 0x80000000, 8);
		expect_no_access(opcode, iova - 8, rkey, 8);
		expect_no_access(opcode, iova + MEMORY, rkey, 8);
		expect_no_access(opcode, iova - (iova & 7) + UINT64_MAX - 7, rkey, 8);
		expect_no_access(opcode, 0, rkey, 8);
		region_set_up(&other, rig.fixture.pd, 64,
			      (REMOTE & ~operations[i].need) | IBV_ACCESS_LOCAL_WRITE, 1);
		expect_no_access(opcode, region_iova(&other, 0), other.mr->key, 8);
		region_expect_pattern(&other, 0, 64, 1);
		region_tear_down(&other);
		region_set_up(&other, rig.fixture.other_pd, 64, REMOTE | IBV_ACCESS_LOCAL_WRITE, 1);
		expect_no_access(opcode, region_iova(&other, 0), other.mr->key, 8);
		region_expect_pattern(&other, 0, 64, 1);
		region_tear_down(&other);
	}
	/* The last byte is one too many. */
	expect_no_access(OPCODE_WRITE_ONLY, region_iova(&rig.memory, MEMORY - 7),
			 rig.memory.mr->key, 8);
	expect_no_access(OPCODE_READ_REQUEST, region_iova(&rig.memory, 1), rig.memory.mr->key,
			 MEMORY);
	expect_no_access(OPCODE_READ_REQUEST, region_iova(&rig.memory, 0), rig.memory.mr->key,
			 WIRE_MESSAGE_MAX);
	assert_int_equal(rig.responder.epsn.v, FIRST_PSN);
}

TEST(responder__a_long_write_is_checked_as_a_whole)
{
	EXPECT_FAULT(FAULT_ACCESS, OPCODE_WRITE_FIRST, 0,
		     .iova = region_iova(&rig.memory, MEMORY - 2 * MTU), .rkey = rig.memory.mr->key,
		     .dma_length = 2 * MTU + 1, .len = MTU);
	expect_aeth(AETH_NAK | NAK_REMOTE_ACCESS, 0, 0);
	expect_memory_untouched();
}

TEST(responder__memory_deregistered_in_a_message_is_not_written_any_more)
{
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = 2 * MTU, .len = MTU);
	region_deregister(&rig.memory);
	EXPECT_FAULT(FAULT_ACCESS, OPCODE_WRITE_LAST, 1, .len = MTU);
	expect_aeth(AETH_NAK | NAK_REMOTE_ACCESS, 1, 0);
	region_expect_pattern(&rig.memory, MTU, MEMORY - MTU, SEED);
}

TEST(responder__without_bytes_no_key_is_checked)
{
	const struct ibv_sge nobody = {.addr = 1, .length = 8, .lkey = FIXTURE_NOBODY};

	rig_post(1, nobody);
	rig_post(2, nobody);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, .rkey = FIXTURE_NOBODY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY_IMM, 1, .rkey = FIXTURE_NOBODY);
	assert_int_equal(fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS).byte_len, 0);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 2);
	assert_int_equal(fixture_completion(rig.fixture.cq, 2, IBV_WC_SUCCESS).byte_len, 0);
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 3, .rkey = FIXTURE_NOBODY);
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_READ_RESPONSE_ONLY, 3);
	assert_int_equal(rig.responder.msn, 4);
}

TEST(responder__more_reads_and_atomics_than_resources)
{
	static const uint8_t operations[] = {OPCODE_READ_REQUEST, OPCODE_FETCH_ADD};

	for (size_t i = 0; i < sizeof(operations); i++) {
		EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 8);
		EXPECT_TAKEN(OPCODE_FETCH_ADD, 1, TO_MEMORY);
		EXPECT_FAULT(FAULT_INVALID_REQUEST, operations[i], 2, TO_MEMORY, .dma_length = 8,
			     .swap_add = 1);
		assert_int_equal(rig_answers(), 3);
		expect_answer(2, OPCODE_ACKNOWLEDGE, 2);
		assert_int_equal(catcher_at(&rig.fixture.catcher, 2)->syndrome,
				 AETH_NAK | NAK_INVALID_REQUEST);
		expect_memory_untouched();
		responder_rig_renew();
	}
}

TEST(responder__atomics_stand_at_multiples_of_eight)
{
	for (uint32_t offset = 1; offset < 8; offset++) {
		EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_FETCH_ADD, 0,
			     .iova = region_iova(&rig.memory, offset), .rkey = rig.memory.mr->key,
			     .swap_add = 1);
		expect_aeth(AETH_NAK | NAK_INVALID_REQUEST, 0, 0);
		expect_memory_untouched();
		responder_rig_renew();
	}
}

TEST(responder__atomics_need_aligned_memory_under_an_aligned_address)
{
	struct mr *mr;

	assert_int_equal(mr_register(rig.fixture.pd, rig.memory.bytes + 4, 64, 0,
				     REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED, &mr),
			 0);
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_FETCH_ADD, 0, .iova = 8, .rkey = mr->key,
		     .swap_add = 1);
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_FETCH_ADD, 0, .iova = 4, .rkey = mr->key,
		     .swap_add = 1);
	expect_aeth(AETH_NAK | NAK_INVALID_REQUEST, 0, 0);
	expect_memory_untouched();
	mr_deregister(mr);
}

TEST(responder__a_message_longer_than_its_receive)
{
	rig_post(1, region_sge(&rig.inbox, 0, MTU + 3));
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 0, .len = MTU);
	EXPECT_FAULT(FAULT_MESSAGE_TOO_LONG, OPCODE_SEND_LAST, 1, .len = 4);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_LOC_LEN_ERR);
	expect_aeth(AETH_NAK | NAK_INVALID_REQUEST, 1, 0);
	region_expect_pattern(&rig.inbox, MTU, INBOX - MTU, SEED + 1);
}

static void expect_bad_receive(struct ibv_sge sge)
{
	rig_post(3, sge);
	EXPECT_FAULT(FAULT_RECEIVE_PROTECTION, OPCODE_SEND_ONLY, 0, .len = 8);
	fixture_completion(rig.fixture.cq, 3, IBV_WC_LOC_PROT_ERR);
	expect_aeth(AETH_NAK | NAK_REMOTE_OPERATIONAL, 0, 0);
	expect_memory_untouched();
}

TEST(responder__a_receive_whose_memory_may_not_be_written)
{
	struct region other;

	expect_bad_receive((struct ibv_sge){
		.addr = region_iova(&rig.inbox, 0), .length = 8, .lkey = FIXTURE_NOBODY});
	expect_bad_receive(region_sge(&rig.inbox, INBOX - 7, 8));
	region_set_up(&other, rig.fixture.other_pd, 64, IBV_ACCESS_LOCAL_WRITE, 1);
	expect_bad_receive(region_sge(&other, 0, 64));
	region_expect_pattern(&other, 0, 64, 1);
	region_tear_down(&other);
	region_set_up(&other, rig.fixture.pd, 64, 0, 1);
	expect_bad_receive(region_sge(&other, 0, 64));
	region_expect_pattern(&other, 0, 64, 1);
	region_tear_down(&other);
}

TEST(responder__a_refused_write_with_immediate_fails_the_receive_it_took)
{
	rig_post(1, region_sge(&rig.inbox, 0, 8));
	EXPECT_FAULT(FAULT_ACCESS, OPCODE_WRITE_ONLY_IMM, 0, .rkey = FIXTURE_NOBODY,
		     .dma_length = 4, .len = 4);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_LOC_ACCESS_ERR);
	expect_aeth(AETH_NAK | NAK_REMOTE_ACCESS, 0, 0);
}

TEST(responder__a_bad_packet_in_a_send_fails_its_receive)
{
	rig_post(1, region_sge(&rig.inbox, 0, INBOX));
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 0, .len = MTU);
	EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_SEND_MIDDLE, 1, .len = 1);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	fixture_no_completion(rig.fixture.cq);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_resp_cqe_error), 1);
}

/* 9.7.1: a message has at most 2^31 bytes, however long the list is that it is received in. Most of
 * the packets are left out. */
TEST(responder__a_send_is_no_longer_than_2_31_bytes)
{
	static const uint8_t zeros[WIRE_MTU_MAX];
	struct ibv_sge sge[2] = {{.length = UINT32_MAX}, {.length = UINT32_MAX}};
	struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = sge, .num_sge = 2}, *bad;
	uint32_t psn = 0;
	struct mr *null;

	assert_int_equal(mr_create_null(rig.fixture.pd, &null), 0);
	sge[0].lkey = null->key;
	sge[1].lkey = null->key;
	rig.responder.mtu = WIRE_MTU_MAX;
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(rq_post(&rig.rq, &wr, &bad), 0);
		EXPECT_TAKEN(OPCODE_SEND_FIRST, psn++, .payload = zeros, .len = WIRE_MTU_MAX);
		assert_int_equal(rig.responder.receive->filled, WIRE_MTU_MAX);
		rig.responder.receive->filled = WIRE_MESSAGE_MAX - 2 * WIRE_MTU_MAX;
		EXPECT_TAKEN(OPCODE_SEND_MIDDLE, psn++, .payload = zeros, .len = WIRE_MTU_MAX);
		if (i == 0) {
			EXPECT_TAKEN(OPCODE_SEND_LAST, psn++, .payload = zeros,
				     .len = WIRE_MTU_MAX);
			assert_int_equal(
				fixture_completion(rig.fixture.cq, 7, IBV_WC_SUCCESS).byte_len,
				WIRE_MESSAGE_MAX);
			continue;
		}
		EXPECT_TAKEN(OPCODE_SEND_MIDDLE, psn++, .payload = zeros, .len = WIRE_MTU_MAX);
		EXPECT_FAULT(FAULT_INVALID_REQUEST, OPCODE_SEND_LAST, psn, .payload = zeros,
			     .len = 1);
		fixture_completion(rig.fixture.cq, 7, IBV_WC_REM_INV_REQ_ERR);
	}
	mr_deregister(null);
}
