/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/requester.c: the form of the packets that it makes of posted work. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_udp.h>

#include "requester_rig.h"
#include "queue/sq_build.h"
#include "wire/headers.h"

TEST_FIXTURE(requester_rig_set_up, requester_rig_tear_down);

/* The expected form of packets. */

struct message {
	enum ibv_wr_opcode opcode;
	uint8_t first, middle, last, only;
};

static const struct message messages[] = {
	{IBV_WR_SEND, OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST, OPCODE_SEND_ONLY},
	{IBV_WR_SEND_WITH_IMM, OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_IMM,
	 OPCODE_SEND_ONLY_IMM},
	{IBV_WR_SEND_WITH_INV, OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_INV,
	 OPCODE_SEND_ONLY_INV},
	{IBV_WR_RDMA_WRITE, OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST,
	 OPCODE_WRITE_ONLY},
	{IBV_WR_RDMA_WRITE_WITH_IMM, OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST_IMM,
	 OPCODE_WRITE_ONLY_IMM},
};

/* Check the packets of a message of `length` bytes. Their PSNs begin at `psn`. */
static void expect_message(const struct message *message, uint32_t length, uint32_t psn)
{
	const uint32_t packets = length == 0 ? 1 : (length + MTU - 1) / MTU;

	post(message->opcode, length, 0);
	assert_int_equal(send_all(), packets);
	for (uint32_t i = 0; i < packets; i++) {
		const uint8_t inner = i == 0 ? message->first : message->middle;
		const bool last = i + 1 == packets;

		if (last)
			expect_packet(i, packets == 1 ? message->only : message->last, psn + i);
		else
			expect_packet(i, inner, psn + i);
		expect_payload(i, i * MTU, last ? length - i * MTU : MTU);
		assert_int_equal(packet_at(i)->ack_req, last);
		assert_int_equal(packet_at(i)->migrated, true);
		assert_int_equal(packet_at(i)->becn, false);
		/* A WRITE's first packet names the whole message. */
		if (packet_at(i)->op->flags & OPCODE_HAS_RETH)
			expect_reth(i, 0, length);
	}
	acknowledge(psn + packets, 1);
}

TEST(requester_send__first_middle_last_only_by_position)
{
	static const uint32_t lengths[] = {0,	    1,	     MTU - 1,	  MTU,
					   MTU + 1, 2 * MTU, 2 * MTU + 1, 4 * MTU};
	uint32_t psn = 0;

	for (size_t m = 0; m < sizeof(messages) / sizeof(messages[0]); m++)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			expect_message(&messages[m], lengths[i], psn);
			psn += lengths[i] == 0 ? 1 : (lengths[i] + MTU - 1) / MTU;
		}
}

TEST(requester_send__counts_the_bytes_that_it_reads)
{
	post(IBV_WR_RDMA_WRITE, 2 * MTU + 1, 0);
	assert_int_equal(send_all(), 3);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_tx_payload_bytes_read),
			 2 * MTU + 1);
}

TEST(requester_send__immediate_and_key_stand_in_the_last_packet)
{
	struct ibv_sge sge = region_sge(&rig.memory, 0, MTU + 1);

	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 0x01020304},
		  &sge, 1);
	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = 0x77},
		  &sge, 1);
	post_list((struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = 5}, &sge,
		  1);
	assert_int_equal(send_all(), 6);
	assert_int_equal(packet_at(1)->imm_be, 0x01020304);
	assert_int_equal(packet_at(3)->rkey, 0x77);
	assert_int_equal(packet_at(5)->imm_be, 5);
}

TEST(requester_send__solicited_stands_where_a_receive_is_taken)
{
	post(IBV_WR_SEND, MTU + 1, IBV_SEND_SOLICITED);
	post(IBV_WR_RDMA_WRITE_WITH_IMM, MTU + 1, IBV_SEND_SOLICITED);
	post(IBV_WR_RDMA_WRITE, 1, IBV_SEND_SOLICITED);
	post(IBV_WR_RDMA_READ, 1, IBV_SEND_SOLICITED);
	post(IBV_WR_SEND, 1, 0);
	assert_int_equal(send_all(), 7);
	for (unsigned int i = 0; i < 7; i++)
		assert_int_equal(packet_at(i)->solicited, i == 1 || i == 3);
}

TEST(requester_send__a_read_stands_for_the_psns_of_its_responses)
{
	post(IBV_WR_RDMA_READ, 3 * MTU + 1, 0);
	post(IBV_WR_RDMA_READ, 0, 0);
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_READ_REQUEST, 0);
	expect_reth(0, 0, 3 * MTU + 1);
	expect_payload(0, 0, 0);
	expect_packet(1, OPCODE_READ_REQUEST, 4);
	expect_reth(1, 0, 0);
	assert_int_equal(rig.loss.next.v, psn_make(FIRST_PSN + 5).v);
	assert_int_equal(rig.loss.responses, 2);
}

TEST(requester_send__atomics_carry_their_operands)
{
	struct ibv_sge sge = region_sge(&rig.memory, 0, 8);
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP};

	wr.wr.atomic.compare_add = 11;
	wr.wr.atomic.swap = 22;
	post_list(wr, &sge, 1);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	post_list(wr, &sge, 1);
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_COMPARE_SWAP, 0);
	assert_int_equal(packet_at(0)->iova, REMOTE);
	assert_int_equal(packet_at(0)->rkey, RKEY);
	assert_int_equal(packet_at(0)->compare, 11);
	assert_int_equal(packet_at(0)->swap_add, 22);
	expect_packet(1, OPCODE_FETCH_ADD, 1);
	assert_int_equal(packet_at(1)->compare, 0);
	assert_int_equal(packet_at(1)->swap_add, 11);
	assert_int_equal(rig.loss.responses, 2);
}

TEST(requester_send__an_atomic_write_carries_its_word)
{
	uint64_t word = 0x0807060504030201;
	struct ibv_sge local = {.addr = (uintptr_t)&word, .length = 8};
	struct ibv_sge sge = region_sge(&rig.memory, 8, 8);

	post_list((struct ibv_send_wr){.opcode = IBV_WR_ATOMIC_WRITE}, &sge, 1);
	post_list(
		(struct ibv_send_wr){.opcode = IBV_WR_ATOMIC_WRITE, .send_flags = IBV_SEND_INLINE},
		&local, 1);
	word = 0;
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_ATOMIC_WRITE, 0);
	expect_reth(0, 0, 8);
	expect_payload(0, 8, 8);
	expect_packet(1, OPCODE_ATOMIC_WRITE, 1);
	assert_memory_equal(packet_at(1)->payload, "\1\2\3\4\5\6\7\10", 8);
	/* Each of them waits for an answer of its own. */
	assert_int_equal(rig.loss.responses, 2);
	post(IBV_WR_RDMA_READ, 8, 0);
	assert_int_equal(send_all(), 0);
}

static void build_flush(uint64_t length, uint8_t place, uint8_t select)
{
	const struct sq_flush flush = {REMOTE, length, RKEY, place, select};

	sq_build_start(&rig.sq, sq_opcodes(IBV_QPT_RC));
	assert_non_null(sq_build_next(&rig.sq, (enum ibv_wr_opcode)LATER_WR_FLUSH, 1, 0));
	sq_build_flush(&rig.sq, &flush);
	assert_int_equal(sq_build_complete(&rig.sq), 0);
}

TEST(requester_send__a_flush_names_a_range_and_carries_nothing)
{
	static const uint8_t headers[] = {0, 0, 0, 0x13, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66};
	const struct packet *packet;

	build_flush(1 << 20, FETH_PLACE_GLOBAL, FETH_SELECT_RANGE);
	build_flush(0, FETH_PLACE_GLOBAL | FETH_PLACE_PERSISTENT, FETH_SELECT_REGION);
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_FLUSH, 0);
	expect_reth(0, 0, 1 << 20);
	expect_payload(0, 0, 0);
	assert_int_equal(packet_at(0)->flush_place, FETH_PLACE_GLOBAL);
	assert_int_equal(packet_at(0)->flush_select, FETH_SELECT_RANGE);
	/* A FLUSH has one PSN, however long its range is. */
	expect_packet(1, OPCODE_FLUSH, 1);
	packet = packet_at(1);
	/* The FETH is before the RETH. */
	assert_memory_equal(packet->l3 + packet->headers_len - 20, headers, sizeof(headers));
	assert_int_equal(rig.loss.responses, 2);
}

/* Return the last four bytes of packet `i`, which has no payload. */
static uint32_t icrc_of(unsigned int i)
{
	uint32_t icrc;

	assert_int_equal(packet_at(i)->payload_len, 0);
	assert_true(packet_icrc_ok(packet_at(i)));
	memcpy(&icrc, packet_at(i)->payload, sizeof(icrc));
	return icrc;
}

TEST(requester_send__a_flush_without_answer_is_sent_as_rxe_wants_it)
{
	uint32_t first, second;

	build_flush(8, FETH_PLACE_GLOBAL, FETH_SELECT_RANGE);
	build_flush(16, FETH_PLACE_GLOBAL, FETH_SELECT_RANGE);
	assert_int_equal(send_all(), 2);
	first = icrc_of(0);
	second = icrc_of(1);
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 2);
	assert_int_not_equal(icrc_of(0), first);
	assert_int_not_equal(icrc_of(1), second);
	/* The other form was not answered either: use the specification's form again. */
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 2);
	assert_int_equal(icrc_of(0), first);
	assert_int_equal(icrc_of(1), second);
}

TEST(requester_send__inline_data_needs_no_key)
{
	uint8_t bytes[MTU + 44];
	struct ibv_sge sge[] = {{.addr = (uintptr_t)bytes, .length = 100},
				{.addr = (uintptr_t)bytes + 100, .length = MTU + 44 - 100}};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = rig.memory.bytes[i];
	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE}, sge,
		  2);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(send_all(), 2);
	expect_payload(0, 0, MTU);
	expect_payload(1, MTU, 44);
}

TEST(requester_send__gathers_from_as_many_entries_as_are_granted)
{
	struct ibv_sge sge[32];
	uint32_t at = 0;

	/* Odd lengths, so that packets end within entries. */
	for (uint32_t i = 0; i < 32; i++) {
		sge[i] = region_sge(&rig.memory, at, i == 7 ? 0 : 3 + i);
		at += sge[i].length;
	}
	post_list((struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE}, sge, 32);
	assert_int_equal(send_all(), (at + MTU - 1) / MTU);
	expect_payload(0, 0, MTU);
	expect_payload(1, MTU, MTU);
	expect_payload(2, 2 * MTU, at - 2 * MTU);
}

TEST(requester_send__a_read_goes_out_in_segments)
{
	const uint32_t segment = REQUESTER_READ_SEGMENT_PKTS;

	rig.loss.allowed_responses = 9;
	post(IBV_WR_RDMA_READ, (2 * segment + 1) * MTU + 5, 0);
	assert_int_equal(send_all(), 3);
	expect_packet(0, OPCODE_READ_REQUEST, 0);
	expect_reth(0, 0, segment * MTU);
	expect_packet(1, OPCODE_READ_REQUEST, segment);
	expect_reth(1, segment * MTU, segment * MTU);
	expect_packet(2, OPCODE_READ_REQUEST, 2 * segment);
	expect_reth(2, 2 * segment * MTU, MTU + 5);
	assert_int_equal(rig.loss.responses, 3);
	assert_int_equal(rig.loss.next.v, psn_make(FIRST_PSN + 2 * segment + 2).v);
}

TEST(requester_send__a_read_is_asked_for_again_from_its_middle)
{
	const uint32_t segment = REQUESTER_READ_SEGMENT_PKTS;

	rig.loss.allowed_responses = 9;
	post(IBV_WR_RDMA_READ, 2 * segment * MTU, 0);
	assert_int_equal(send_all(), 2);
	acknowledge(10, 0);
	loss_on_nak_ahead(&rig.loss, 0);
	assert_int_equal(send_all(), 2);
	/* The segment ends where it did before, so that its place determines its end. */
	expect_packet(0, OPCODE_READ_REQUEST, 10);
	expect_reth(0, 10 * MTU, (segment - 10) * MTU);
	expect_packet(1, OPCODE_READ_REQUEST, segment);
	expect_reth(1, segment * MTU, segment * MTU);
	assert_int_equal(rig.loss.responses, 2);
}

/* Requests for acknowledgements. */

TEST(requester_send__asks_for_acknowledgements_within_long_messages)
{
	/* Swift times the first packet. */
	const unsigned int first = fixture_cc() == CC_SWIFT ? 0 : REQUESTER_ACK_INTERVAL_PKTS - 1;

	post(IBV_WR_RDMA_WRITE, 3 * REQUESTER_ACK_INTERVAL_PKTS * MTU + 1, 0);
	assert_int_equal(send_all(), 3 * REQUESTER_ACK_INTERVAL_PKTS + 1);
	for (unsigned int i = 0; i < rig.fixture.catcher.count; i++)
		assert_int_equal(packet_at(i)->ack_req, i % REQUESTER_ACK_INTERVAL_PKTS == first ||
								i + 1 == rig.fixture.catcher.count);
}

/* The answer shows whether the peer is SACK-capable. */
TEST(requester_send__the_first_packet_of_a_connection_asks_for_an_acknowledgement)
{
	rig.loss.sack = true;
	requester_reset(&rig.requester, REQUESTER_RUNNING);
	post(IBV_WR_RDMA_WRITE, 4 * MTU, 0);
	assert_int_equal(send_all(), 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(packet_at(i)->ack_req, i == 0 || i == 3);
}

TEST(requester_send__the_packet_that_fills_the_window_asks_for_an_acknowledgement)
{
	rig.loss.window = 5;
	post(IBV_WR_RDMA_WRITE, 20 * MTU, 0);
	assert_int_equal(send_all(), 5);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(packet_at(i)->ack_req,
				 i == 4 || (i == 0 && fixture_cc() == CC_SWIFT));
	acknowledge(2, 0);
	rig.loss.window = 5;
	assert_int_equal(send_all(), 2);
	assert_true(packet_at(1)->ack_req);
}

TEST(requester_send__unreliable_asks_for_none)
{
	rig.requester.service = OPCODE_UC;
	post(IBV_WR_RDMA_WRITE, 40 * MTU, 0);
	assert_int_equal(send_all(), 40);
	for (unsigned int i = 0; i < 40; i++) {
		assert_false(packet_at(i)->ack_req);
		assert_int_equal(packet_at(i)->opcode & OPCODE_SERVICE_MASK, OPCODE_UC);
	}
}

TEST(requester_send__the_reserved_byte_of_xrceth_is_zero)
{
	struct ibv_sge sge = region_sge(&rig.memory, 0, 8);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .qp_type.xrc.remote_srqn = 0xab000005},
			   *bad;
	static const uint8_t xrceth[] = {0, 0, 0, 5};
	const struct packet *packet;

	rig.requester.service = OPCODE_XRC;
	rig.sq.attr.type = IBV_QPT_XRC_SEND;
	assert_int_equal(sq_post(&rig.sq, IBV_QPT_XRC_SEND, &wr, &bad), 0);
	assert_int_equal(send_all(), 1);
	packet = packet_at(0);
	assert_int_equal(packet->xrc_srqn, 5);
	assert_memory_equal(packet->l3 + packet->l3_len + sizeof(struct rte_udp_hdr) +
				    sizeof(struct bth),
			    xrceth, sizeof(xrceth));
}
