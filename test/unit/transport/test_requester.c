/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/requester.c: which packets posted work becomes, what holds them back, and
 * what is sent again. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_udp.h>

#include "fixture.h"
#include "queue/sq_build.h"
#include "transport/requester.h"
#include "wire/headers.h"
#include "test.h"
#include "queues.h"

#define MTU	  256u
#define FIRST_PSN 0xfffffdu
#define SEED	  3u
#define MEMORY	  (300 * MTU)
#define RKEY	  0xabcd1234u
#define REMOTE	  UINT64_C(0x1122334455660000)
#define RESPONSES 2u

static struct fixture fixture;
static struct region memory;
static struct sq sq;
static struct scoreboard board;
static struct loss loss;
static struct requester requester;
static bool more;

static int set_up(TEST_STATE)
{
	const struct sq_attr attr = {.max_wr = 64, .max_sge = 32, .max_inline = 600};

	fixture_set_up(&fixture, MTU, 4);
	region_set_up(&memory, fixture.pd, MEMORY, IBV_ACCESS_LOCAL_WRITE, SEED);
	assert_int_equal(sq_init(&sq, &attr), 0);
	scoreboard_init(&board);
	loss = (struct loss){.board = &board, .max_responses = RESPONSES};
	loss_init(&loss, psn_make(FIRST_PSN));
	requester = (struct requester){.sq = &sq,
				       .pd = fixture.pd,
				       .peer = &fixture.peer,
				       .loss = &loss,
				       .pacer = &fixture.pacer,
				       .counters = &fixture.counters,
				       .service = OPCODE_RC};
	requester_reset(&requester, REQUESTER_RUNNING);
	return 0;
}

static int tear_down(TEST_STATE)
{
	sq_fini(&sq);
	region_tear_down(&memory);
	fixture_tear_down(&fixture);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void post_list(struct ibv_send_wr wr, struct ibv_sge *sge, int num_sge)
{
	struct ibv_send_wr *bad;

	wr.sg_list = sge;
	wr.num_sge = num_sge;
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = REMOTE;
		wr.wr.atomic.rkey = RKEY;
	} else if (wr.opcode != IBV_WR_SEND_WITH_INV) {
		wr.wr.rdma.remote_addr = REMOTE;
		wr.wr.rdma.rkey = RKEY;
	}
	assert_int_equal(sq_post(&sq, IBV_QPT_RC, &wr, &bad), 0);
}

/* Of the memory's first `length` bytes. */
static void post(enum ibv_wr_opcode opcode, uint32_t length, unsigned int flags)
{
	struct ibv_sge sge = region_sge(&memory, 0, length);

	post_list((struct ibv_send_wr){.opcode = opcode, .send_flags = flags}, &sge, length > 0);
}

/* A SEND of one byte whose key is not good. */
static void post_bad(void)
{
	struct ibv_sge sge = {.addr = region_iova(&memory, 0), .length = 1, .lkey = FIXTURE_NOBODY};

	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, &sge, 1);
}

/* Send what can be sent; returns how many packets it was. */
static unsigned int send_some(unsigned int budget)
{
	unsigned int sent;

	catcher_clear(&fixture.catcher);
	sent = requester_send(&requester, &fixture.catcher.sink, budget, &more);
	assert_int_equal(sent, fixture.catcher.count);
	return sent;
}

static unsigned int send_all(void)
{
	const unsigned int sent = send_some(10000);

	assert_false(more);
	return sent;
}

/* As the completer does: everything before this PSN is acknowledged, `pops` requests of it
 * complete. */
static void acknowledge(uint32_t psn, unsigned int pops)
{
	loss_on_ack(&loss, psn_make(FIRST_PSN + psn), 0);
	while (pops-- > 0)
		sq_pop(&sq);
}

static const struct packet *packet_at(unsigned int i)
{
	return catcher_at(&fixture.catcher, i);
}

static void expect_packet(unsigned int i, uint8_t operation, uint32_t psn)
{
	catcher_expect(&fixture.catcher, i, operation, FIRST_PSN + psn);
}

/* The payload is the memory's from `offset` on. */
static void expect_payload(unsigned int i, size_t offset, uint32_t len)
{
	assert_int_equal(packet_at(i)->payload_len, len);
	assert_memory_equal(packet_at(i)->payload, memory.bytes + offset, len);
}

static void expect_reth(unsigned int i, uint64_t offset, uint32_t length)
{
	assert_int_equal(packet_at(i)->iova, REMOTE + offset);
	assert_int_equal(packet_at(i)->rkey, RKEY);
	assert_int_equal(packet_at(i)->dma_length, length);
}

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

/* A message of `length` bytes; PSNs go on at `psn`. */
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

TEST(requester_send__immediate_and_key_stand_in_the_last_packet)
{
	struct ibv_sge sge = region_sge(&memory, 0, MTU + 1);

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
	assert_int_equal(loss.next.v, psn_make(FIRST_PSN + 5).v);
	assert_int_equal(loss.responses, 2);
}

TEST(requester_send__atomics_carry_their_operands)
{
	struct ibv_sge sge = region_sge(&memory, 0, 8);
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
	assert_int_equal(loss.responses, 2);
}

TEST(requester_send__an_atomic_write_carries_its_word)
{
	uint64_t word = 0x0807060504030201;
	struct ibv_sge local = {.addr = (uintptr_t)&word, .length = 8};
	struct ibv_sge sge = region_sge(&memory, 8, 8);

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
	/* Each waits for an answer of its own. */
	assert_int_equal(loss.responses, 2);
	post(IBV_WR_RDMA_READ, 8, 0);
	assert_int_equal(send_all(), 0);
}

static void build_flush(uint64_t length, uint8_t place, uint8_t select)
{
	const struct sq_flush flush = {REMOTE, length, RKEY, place, select};

	sq_build_start(&sq, sq_opcodes(IBV_QPT_RC));
	assert_non_null(sq_build_next(&sq, (enum ibv_wr_opcode)LATER_WR_FLUSH, 1, 0));
	sq_build_flush(&sq, &flush);
	assert_int_equal(sq_build_complete(&sq), 0);
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
	/* One PSN, however long the range. */
	expect_packet(1, OPCODE_FLUSH, 1);
	packet = packet_at(1);
	/* The FETH stands before the RETH. */
	assert_memory_equal(packet->l3 + packet->headers_len - 20, headers, sizeof(headers));
	assert_int_equal(loss.responses, 2);
}

/* The last four bytes of packet `i`, which has no payload. */
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
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_all(), 2);
	assert_int_not_equal(icrc_of(0), first);
	assert_int_not_equal(icrc_of(1), second);
	/* Nor was it that: the specification's form again. */
	loss_on_nak_ahead(&loss, 0);
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
		bytes[i] = memory.bytes[i];
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
		sge[i] = region_sge(&memory, at, i == 7 ? 0 : 3 + i);
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

	loss.max_responses = 9;
	post(IBV_WR_RDMA_READ, (2 * segment + 1) * MTU + 5, 0);
	assert_int_equal(send_all(), 3);
	expect_packet(0, OPCODE_READ_REQUEST, 0);
	expect_reth(0, 0, segment * MTU);
	expect_packet(1, OPCODE_READ_REQUEST, segment);
	expect_reth(1, segment * MTU, segment * MTU);
	expect_packet(2, OPCODE_READ_REQUEST, 2 * segment);
	expect_reth(2, 2 * segment * MTU, MTU + 5);
	assert_int_equal(loss.responses, 3);
	assert_int_equal(loss.next.v, psn_make(FIRST_PSN + 2 * segment + 2).v);
}

TEST(requester_send__a_read_is_asked_for_again_from_its_middle)
{
	const uint32_t segment = REQUESTER_READ_SEGMENT_PKTS;

	loss.max_responses = 9;
	post(IBV_WR_RDMA_READ, 2 * segment * MTU, 0);
	assert_int_equal(send_all(), 2);
	acknowledge(10, 0);
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_all(), 2);
	/* The segment ends where it did, so that its end is known by its place. */
	expect_packet(0, OPCODE_READ_REQUEST, 10);
	expect_reth(0, 10 * MTU, (segment - 10) * MTU);
	expect_packet(1, OPCODE_READ_REQUEST, segment);
	expect_reth(1, segment * MTU, segment * MTU);
	assert_int_equal(loss.responses, 2);
}

/* When an acknowledgement is asked for. */

TEST(requester_send__asks_for_acknowledgements_within_long_messages)
{
	post(IBV_WR_RDMA_WRITE, 3 * REQUESTER_ACK_INTERVAL_PKTS * MTU + 1, 0);
	assert_int_equal(send_all(), 3 * REQUESTER_ACK_INTERVAL_PKTS + 1);
	for (unsigned int i = 0; i < fixture.catcher.count; i++)
		assert_int_equal(packet_at(i)->ack_req,
				 (i + 1) % REQUESTER_ACK_INTERVAL_PKTS == 0 ||
					 i + 1 == fixture.catcher.count);
}

TEST(requester_send__the_packet_that_fills_the_window_asks_for_an_acknowledgement)
{
	loss.window = 5;
	post(IBV_WR_RDMA_WRITE, 20 * MTU, 0);
	assert_int_equal(send_all(), 5);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(packet_at(i)->ack_req, i == 4);
	acknowledge(2, 0);
	loss.window = 5;
	assert_int_equal(send_all(), 2);
	assert_true(packet_at(1)->ack_req);
}

TEST(requester_send__unreliable_asks_for_none)
{
	requester.service = OPCODE_UC;
	post(IBV_WR_RDMA_WRITE, 40 * MTU, 0);
	assert_int_equal(send_all(), 40);
	for (unsigned int i = 0; i < 40; i++) {
		assert_false(packet_at(i)->ack_req);
		assert_int_equal(packet_at(i)->opcode & OPCODE_SERVICE_MASK, OPCODE_UC);
	}
}

/* What holds packets back. */

TEST(requester_send__stops_at_the_window)
{
	post(IBV_WR_RDMA_WRITE, 300 * MTU, 0);
	assert_int_equal(send_all(), LOSS_WINDOW_MAX);
	assert_int_equal(send_all(), 0);
	acknowledge(10, 0);
	assert_int_equal(send_all(), 10);
	expect_packet(0, OPCODE_WRITE_MIDDLE, LOSS_WINDOW_MAX);
	expect_payload(0, LOSS_WINDOW_MAX * MTU, MTU);
}

/* A READ segment is longer than such a window: it goes out whole, and nothing behind it. */
TEST(requester_send__a_window_of_1_is_a_packet_at_a_time)
{
	loss.window_max = 1;
	loss_init(&loss, psn_make(FIRST_PSN));
	post(IBV_WR_RDMA_WRITE, 2 * MTU, 0);
	post(IBV_WR_RDMA_READ, 100 * MTU, 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(send_all(), 1);
		assert_true(packet_at(0)->ack_req);
		assert_int_equal(send_all(), 0);
		acknowledge(i + 1, i);
	}
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_READ_REQUEST, 2);
	assert_int_equal(send_all(), 0);
	loss.responses = 0;
	acknowledge(2 + REQUESTER_READ_SEGMENT_PKTS, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_READ_REQUEST, 2 + REQUESTER_READ_SEGMENT_PKTS);
	/* Lost: the same again. */
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_READ_REQUEST, 2 + REQUESTER_READ_SEGMENT_PKTS);
}

TEST(requester_send__unreliable_has_no_window)
{
	requester.service = OPCODE_UC;
	loss.window = 1;
	post(IBV_WR_RDMA_WRITE, 40 * MTU, 0);
	assert_int_equal(send_all(), 40);
}

TEST(requester_send__a_fence_waits_for_reads_and_atomics)
{
	static const enum ibv_wr_opcode before[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (size_t i = 0; i < 2; i++) {
		post(before[i], 8, 0);
		post(IBV_WR_SEND, 8, 0);
		post(IBV_WR_SEND, 2 * MTU, IBV_SEND_FENCE);
		post(IBV_WR_SEND, 8, 0);
		assert_int_equal(send_all(), 2);
		/* Sent again, it is fenced again. */
		loss_on_nak_ahead(&loss, 0);
		assert_int_equal(send_all(), 2);
		loss.responses = 0;
		acknowledge(1, 1);
		assert_int_equal(send_all(), 3);
		expect_packet(0, OPCODE_SEND_FIRST, 2);
		tear_down(state);
		set_up(state);
	}
}

TEST(requester_send__a_fence_does_not_wait_for_sends_and_writes)
{
	post(IBV_WR_SEND, 8, 0);
	post(IBV_WR_RDMA_WRITE, 8, 0);
	post(IBV_WR_RDMA_READ, 8, IBV_SEND_FENCE);
	assert_int_equal(send_all(), 3);
}

TEST(requester_send__a_fenced_message_that_is_begun_goes_on)
{
	post(IBV_WR_SEND, 4 * MTU, IBV_SEND_FENCE);
	assert_int_equal(send_some(2), 2);
	loss.responses = 1;
	assert_int_equal(send_all(), 2);
}

TEST(requester_send__as_many_reads_and_atomics_as_the_peer_has_resources)
{
	post(IBV_WR_RDMA_READ, 8, 0);
	post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0);
	post(IBV_WR_RDMA_READ, 8, 0);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 2);
	acknowledge(1, 1);
	loss.responses--;
	/* In order: what needs no resource waits behind what does. */
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_READ_REQUEST, 2);
	expect_packet(1, OPCODE_SEND_ONLY, 3);
}

TEST(requester_send__each_segment_of_a_read_takes_a_resource)
{
	post(IBV_WR_RDMA_READ, 3 * REQUESTER_READ_SEGMENT_PKTS * MTU, 0);
	assert_int_equal(send_all(), 2);
	acknowledge(REQUESTER_READ_SEGMENT_PKTS, 0);
	loss.responses--;
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_READ_REQUEST, 2 * REQUESTER_READ_SEGMENT_PKTS);
}

TEST(requester_send__stops_at_the_budget_and_goes_on)
{
	post(IBV_WR_SEND, 3 * MTU, 0);
	assert_int_equal(send_some(0), 0);
	assert_true(more);
	assert_int_equal(send_some(2), 2);
	assert_true(more);
	assert_int_equal(send_some(2), 1);
	assert_false(more);
	expect_packet(0, OPCODE_SEND_LAST, 2);
	expect_payload(0, 2 * MTU, MTU);
	assert_int_equal(send_some(0), 0);
	assert_false(more);
}

TEST(requester_send__stops_at_a_full_sink_and_goes_on)
{
	struct ibv_sge sge[] = {region_sge(&memory, 0, 100),
				region_sge(&memory, 100, 3 * MTU - 100)};

	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, sge, 2);
	for (uint32_t i = 0; i < 3; i++) {
		catcher_clear(&fixture.catcher);
		fixture.catcher.room = 0;
		assert_int_equal(requester_send(&requester, &fixture.catcher.sink, 9, &more), 0);
		assert_true(more);
		fixture.catcher.room = 1;
		assert_int_equal(requester_send(&requester, &fixture.catcher.sink, 9, &more), 1);
		assert_int_equal(more, i < 2);
		assert_int_equal(packet_at(0)->psn.v, psn_make(FIRST_PSN + i).v);
		expect_payload(0, i * MTU, MTU);
	}
}

TEST(requester_send__a_full_sink_does_not_hide_a_rewind)
{
	for (uint32_t left = 1; left <= 3; left++) {
		post(IBV_WR_SEND, 3 * MTU, 0);
		post(IBV_WR_SEND, 8, 0);
		assert_int_equal(send_some(3), 3);
		fixture.catcher.room = 0;
		assert_int_equal(requester_send(&requester, &fixture.catcher.sink, 9, &more), 0);
		/* All but the last so many packets have arrived. */
		loss_on_ack(&loss, psn_add(loss.next, -(int32_t)left), 0);
		loss_on_nak_ahead(&loss, 0);
		assert_int_equal(send_all(), left + 1);
		for (uint32_t i = 0; i < left; i++)
			expect_payload(i, (3 - left + i) * MTU, MTU);
		expect_payload(left, 0, 8);
		acknowledge(4 * left, 2);
	}
}

TEST(requester_send__stopped_sends_nothing)
{
	post(IBV_WR_SEND, 8, 0);
	requester_reset(&requester, REQUESTER_STOPPED);
	assert_int_equal(send_all(), 0);
	requester_reset(&requester, REQUESTER_RUNNING);
	assert_int_equal(send_all(), 1);
}

TEST(requester_send__draining_finishes_what_is_begun)
{
	post(IBV_WR_SEND, 3 * MTU, 0);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_some(1), 1);
	requester.state = REQUESTER_DRAINING;
	assert_false(requester_drained(&requester));
	assert_int_equal(send_all(), 2);
	assert_false(requester_drained(&requester));
	/* Also again, if it was lost. */
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_all(), 3);
	acknowledge(3, 1);
	assert_true(requester_drained(&requester));
	assert_int_equal(send_all(), 0);
	requester.state = REQUESTER_RUNNING;
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_SEND_ONLY, 3);
}

/* Sending again. */

TEST(requester_send__sends_the_same_packets_again)
{
	post(IBV_WR_SEND, 2 * MTU, 0);
	post(IBV_WR_RDMA_READ, 3 * MTU, 0);
	post(IBV_WR_RDMA_WRITE, MTU + 9, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send_all(), 5);
		expect_packet(0, OPCODE_SEND_FIRST, 0);
		expect_payload(0, 0, MTU);
		expect_packet(1, OPCODE_SEND_LAST, 1);
		expect_payload(1, MTU, MTU);
		expect_packet(2, OPCODE_READ_REQUEST, 2);
		expect_packet(3, OPCODE_WRITE_FIRST, 5);
		expect_reth(3, 0, MTU + 9);
		expect_packet(4, OPCODE_WRITE_LAST, 6);
		expect_payload(4, MTU, 9);
		assert_int_equal(counters_get(&fixture.counters, COUNTER_retransmitted_packets),
				 5 * i);
		assert_int_equal(fixture.catcher.out.again, i > 0);
		loss_on_nak_ahead(&loss, 0);
	}
}

TEST(requester_send__sends_again_from_the_middle_of_a_message)
{
	struct ibv_sge sge[] = {region_sge(&memory, 0, 300),
				region_sge(&memory, 300, 4 * MTU - 300)};

	post_list((struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE}, sge, 2);
	assert_int_equal(send_all(), 4);
	acknowledge(1, 0);
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_all(), 3);
	expect_packet(0, OPCODE_WRITE_MIDDLE, 1);
	expect_payload(0, MTU, MTU);
	expect_packet(2, OPCODE_WRITE_LAST, 3);
	expect_payload(2, 3 * MTU, MTU);
}

TEST(requester_send__does_not_send_again_what_an_acknowledgement_overtook)
{
	post(IBV_WR_SEND, 4 * MTU, 0);
	post(IBV_WR_SEND, 2 * MTU, 0);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 7);
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_some(1), 1);
	/* Then the answer to the first sending comes, up to the middle of the second message. */
	acknowledge(5, 1);
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_SEND_LAST, 5);
	expect_payload(0, MTU, MTU);
	expect_packet(1, OPCODE_SEND_ONLY, 6);
}

TEST(requester_send__goes_on_with_work_that_is_posted_meanwhile)
{
	post(IBV_WR_SEND, 2 * MTU, 0);
	assert_int_equal(send_all(), 2);
	loss_on_nak_ahead(&loss, 0);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 3);
	expect_packet(2, OPCODE_SEND_ONLY, 2);
	acknowledge(3, 2);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_SEND_ONLY, 3);
}

/* Requests that cannot be sent. */

TEST(requester_send__a_bad_key_fails_at_its_turn)
{
	post(IBV_WR_SEND, 8, 0);
	post_bad();
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 1);
	assert_false(requester_fault_due(&requester));
	/* What stands before it is still sent again, and nothing behind it. */
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_SEND_ONLY, 0);
	assert_false(requester_fault_due(&requester));
	acknowledge(1, 1);
	assert_int_equal(send_all(), 0);
	assert_true(requester_fault_due(&requester));
	assert_int_equal(requester.fault, FAULT_SEND_PROTECTION);
}

TEST(requester_send__a_bad_key_in_the_second_packet)
{
	struct ibv_sge sge[] = {region_sge(&memory, 0, MTU + 8), region_sge(&memory, 8, 8)};

	sge[1].lkey = FIXTURE_NOBODY;
	post(IBV_WR_SEND, 2 * MTU, 0);
	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, sge, 2);
	assert_int_equal(send_all(), 3);
	expect_packet(2, OPCODE_SEND_FIRST, 2);
	assert_false(requester_fault_due(&requester));
	acknowledge(1, 0);
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_all(), 2);
	expect_packet(0, OPCODE_SEND_LAST, 1);
	expect_packet(1, OPCODE_SEND_FIRST, 2);
	assert_false(requester_fault_due(&requester));
	acknowledge(2, 1);
	send_all();
	assert_true(requester_fault_due(&requester));
}

TEST(requester_send__a_fault_that_an_acknowledgement_overtook_is_none)
{
	struct region other;
	struct ibv_sge sge;

	region_set_up(&other, fixture.pd, MTU, 0, 8);
	sge = region_sge(&other, 0, 8);
	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, &sge, 1);
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 2);
	/* The application deregisters too early, and the loss of an acknowledgement would tell. */
	region_deregister(&other);
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_all(), 0);
	acknowledge(2, 2);
	assert_int_equal(send_all(), 0);
	assert_false(requester_fault_due(&requester));
	post(IBV_WR_SEND, 8, 0);
	assert_int_equal(send_all(), 1);
	expect_packet(0, OPCODE_SEND_ONLY, 2);
	region_tear_down(&other);
}

TEST(requester_send__a_fault_is_judged_anew_each_turn)
{
	struct region other;
	struct ibv_sge sge[3];

	region_set_up(&other, fixture.pd, MTU, 0, 8);
	sge[0] = region_sge(&memory, 0, MTU);
	sge[1] = region_sge(&other, 0, MTU);
	sge[2] = region_sge(&memory, 2 * MTU, MTU);
	post_list((struct ibv_send_wr){.opcode = IBV_WR_SEND}, sge, 3);
	assert_int_equal(send_all(), 3);
	region_deregister(&other);
	loss_on_nak_ahead(&loss, 0);
	assert_int_equal(send_all(), 1);
	/* The packet that cannot be sent again had arrived. */
	acknowledge(2, 0);
	assert_int_equal(send_all(), 1);
	expect_payload(0, 2 * MTU, MTU);
	assert_false(requester_fault_due(&requester));
	region_tear_down(&other);
}

TEST(requester_send__a_faulty_requester_still_drains)
{
	post(IBV_WR_SEND, 8, 0);
	post_bad();
	assert_int_equal(send_all(), 1);
	requester.state = REQUESTER_DRAINING;
	acknowledge(1, 1);
	send_all();
	assert_true(requester_fault_due(&requester));
}

TEST(requester_send__paced)
{
	/* A byte a microsecond; two packets at once. */
	pacer_set(&fixture.pacer, 8000, 2 * (MTU + 74), MTU + 74);
	pacer_turn(&fixture.pacer, 0);
	post(IBV_WR_RDMA_WRITE, 4 * MTU, 0);
	assert_int_equal(send_some(9), 2);
	assert_false(more);
	/* The answer to each may be long in coming, for others: no timer waits for the last one. */
	assert_true(packet_at(0)->ack_req);
	assert_in_range(fixture.pacer.deadline_ns, MTU * 1000, (MTU + 200) * 1000);
	assert_int_equal(send_some(9), 0);
	pacer_turn(&fixture.pacer, fixture.pacer.deadline_ns);
	assert_int_equal(send_some(9), 1);
	catcher_expect(&fixture.catcher, 0, OPCODE_WRITE_MIDDLE, FIRST_PSN + 2);
	/* What takes no bytes on the wire is not held back. */
	pacer_turn(&fixture.pacer, UINT64_C(1000000000));
	assert_int_equal(send_some(9), 1);
}

/* Selective retransmissions: what is missing alone. */

static void begin(enum loss_state state, struct psn to)
{
	loss.state = state;
	loss.executed = loss.una;
	loss.slowed_to = loss.una;
	loss.from = loss.una;
	loss.to = to;
	loss.resent = 0;
	assert_true(scoreboard_mark(&board, loss.una, to, RANGE_MISSING));
}

TEST(requester_send__a_retransmission_does_not_move_the_place_of_new_packets)
{
	loss.peer = LOSS_PEER_KEEPS;
	post(IBV_WR_SEND, 2 * MTU, 0);
	post(IBV_WR_RDMA_WRITE, 6 * MTU, 0);
	assert_int_equal(send_some(5), 5);
	acknowledge(1, 0);
	begin(LOSS_REQUEST, psn_make(FIRST_PSN + 3));
	assert_int_equal(send_all(), 5);
	assert_int_equal(packet_at(0)->opcode, OPCODE_SEND_LAST);
	assert_int_equal(packet_at(0)->psn.v, psn_make(FIRST_PSN + 1).v);
	expect_payload(0, MTU, MTU);
	assert_int_equal(packet_at(1)->opcode, OPCODE_WRITE_FIRST);
	assert_true(packet_at(1)->ack_req);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(packet_at(2 + i)->psn.v, psn_make(FIRST_PSN + 5 + i).v);
		expect_payload(2 + i, (3 + i) * MTU, MTU);
	}
	assert_int_equal(counters_get(&fixture.counters, COUNTER_retransmitted_packets), 2);
	/* Once. */
	assert_int_equal(send_all(), 0);
}

TEST(requester_send__a_retransmission_asks_neither_for_window_nor_for_resources)
{
	loss.peer = LOSS_PEER_KEEPS;
	for (uint32_t i = 0; i < RESPONSES; i++)
		post(IBV_WR_RDMA_READ, 4 * MTU, 0);
	assert_int_equal(send_all(), RESPONSES);
	acknowledge(1, 0);
	loss.window = 1;
	begin(LOSS_RESPONSE, psn_make(FIRST_PSN + 3));
	assert_int_equal(send_all(), 1);
	assert_int_equal(packet_at(0)->opcode, OPCODE_READ_REQUEST);
	assert_int_equal(packet_at(0)->iova, REMOTE + MTU);
	assert_int_equal(packet_at(0)->dma_length, 2 * MTU);
	assert_int_equal(loss.responses, RESPONSES);
}

/* A peer that has not seen it would take a shorter one for all of it, and execute that. */
TEST(requester_send__a_read_that_may_not_have_come_is_sent_as_it_was)
{
	static const enum loss_state alone[] = {LOSS_PROBE, LOSS_REQUEST};

	post(IBV_WR_RDMA_READ, 4 * MTU, 0);
	assert_int_equal(send_all(), 1);
	for (int i = 0; i < 2; i++) {
		begin(alone[i], psn_make(FIRST_PSN + 1));
		assert_int_equal(send_all(), 1);
		expect_packet(0, OPCODE_READ_REQUEST, 0);
		assert_int_equal(packet_at(0)->dma_length, 4 * MTU);
		/* It ends with its last response. */
		assert_int_equal(loss.to.v, psn_make(FIRST_PSN + 4).v);
	}
	/* Where responses have come, the peer has it. */
	acknowledge(2, 0);
	begin(LOSS_PROBE, psn_make(FIRST_PSN + 3));
	assert_int_equal(send_all(), 1);
	assert_int_equal(packet_at(0)->iova, REMOTE + 2 * MTU);
	assert_int_equal(packet_at(0)->dma_length, MTU);
}

TEST(requester_send__a_retransmission_goes_on_when_there_is_room_again)
{
	post(IBV_WR_SEND, 6 * MTU, 0);
	assert_int_equal(send_all(), 6);
	begin(LOSS_REQUEST, psn_make(FIRST_PSN + 4));
	assert_int_equal(send_some(1), 1);
	assert_true(more);
	catcher_clear(&fixture.catcher);
	fixture.catcher.room = 1;
	assert_int_equal(requester_send(&requester, &fixture.catcher.sink, 9, &more), 1);
	assert_true(more);
	assert_int_equal(packet_at(0)->psn.v, psn_make(FIRST_PSN + 1).v);
	/* What was acknowledged meanwhile is not sent. */
	acknowledge(3, 0);
	fixture.catcher.room = 9;
	assert_int_equal(send_all(), 1);
	assert_int_equal(packet_at(0)->psn.v, psn_make(FIRST_PSN + 3).v);
}

TEST(requester_send__the_reserved_byte_of_xrceth_is_zero)
{
	struct ibv_sge sge = region_sge(&memory, 0, 8);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .qp_type.xrc.remote_srqn = 0xab000005},
			   *bad;
	static const uint8_t xrceth[] = {0, 0, 0, 5};
	const struct packet *packet;

	requester.service = OPCODE_XRC;
	sq.attr.type = IBV_QPT_XRC_SEND;
	assert_int_equal(sq_post(&sq, IBV_QPT_XRC_SEND, &wr, &bad), 0);
	assert_int_equal(send_all(), 1);
	packet = packet_at(0);
	assert_int_equal(packet->xrc_srqn, 5);
	assert_memory_equal(packet->l3 + packet->l3_len + sizeof(struct rte_udp_hdr) +
				    sizeof(struct bth),
			    xrceth, sizeof(xrceth));
}
