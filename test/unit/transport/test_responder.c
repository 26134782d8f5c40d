/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/responder.c: correct requests and their answers, also out of order and
 * without a receive request. */
#include <stddef.h>
#include <stdint.h>

#include "mem/mw.h"
#include "queue/comp_cntr.h"
#include "responder_rig.h"
#include "test.h"
#include "queues.h"

TEST_FIXTURE(responder_rig_set_up, responder_rig_tear_down);

TEST(responder__a_send_of_several_packets_fills_the_list)
{
	struct ibv_sge sge[] = {region_sge(&rig.inbox, 0, 10), region_sge(&rig.inbox, 100, 400)};
	struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = sge, .num_sge = 2}, *bad;
	struct ibv_wc wc;

	assert_int_equal(rq_post(&rig.rq, &wr, &bad), 0);
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 0, .len = MTU);
	assert_int_equal(rig_posted(), 0);
	expect_no_answer();
	fixture_no_completion(rig.fixture.cq);
	EXPECT_TAKEN(OPCODE_SEND_LAST_IMM, 1, .ack_req = true, .imm_be = 0x44332211, .len = 3);
	wc = fixture_completion(rig.fixture.cq, 7, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, MTU + 3);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x44332211);
	assert_int_equal(wc.qp_num, FIXTURE_QPN);
	assert_int_equal(wc.src_qp, FIXTURE_PEER_QPN);
	expect_payload(rig.inbox.bytes, 0, 10);
	expect_payload(rig.inbox.bytes + 100 + MTU - 10, 1, 3);
	region_expect_pattern(&rig.inbox, 10, 90, SEED + 1);
	region_expect_pattern(&rig.inbox, 100 + MTU - 10 + 3, 50, SEED + 1);
	expect_aeth(ACK, 1, 1);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_rx_payload_bytes_written),
			 MTU + 3);
}

TEST(responder__psns_and_msns_wrap)
{
	rig.responder.msn = 0xffffff;
	for (uint32_t psn = 0; psn < 8; psn += 4) {
		EXPECT_TAKEN(OPCODE_WRITE_FIRST, psn, TO_MEMORY, .dma_length = 3 * MTU + 1,
			     .len = MTU);
		EXPECT_TAKEN(OPCODE_WRITE_MIDDLE, psn + 1, .len = MTU);
		EXPECT_TAKEN(OPCODE_WRITE_MIDDLE, psn + 2, .len = MTU);
		EXPECT_TAKEN(OPCODE_WRITE_LAST, psn + 3, .ack_req = true, .len = 1);
		expect_aeth(ACK, psn + 3, psn / 4);
		expect_payload(rig.memory.bytes + MTU, psn + 1, MTU);
		expect_payload(rig.memory.bytes + 3 * MTU, psn + 3, 1);
	}
	region_expect_pattern(&rig.memory, 3 * MTU + 1, MEMORY - 3 * MTU - 1, SEED);
	fixture_no_completion(rig.fixture.cq);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_rx_payload_bytes_written),
			 2 * (3 * MTU + 1));
}

TEST(responder__acknowledges_where_it_is_asked_to)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 1, TO_MEMORY, .dma_length = MTU + 4, .len = MTU,
		     .ack_req = true);
	/* The packet is in the middle of a message; one message before it is complete. */
	expect_aeth(ACK, 1, 1);
}

TEST(responder__introduces_itself_to_a_peer_that_asks_once)
{
	rig.replies.introductions = SACK_INTRODUCTIONS_MAX;
	for (uint32_t psn = 0; psn < 2; psn++) {
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, psn, TO_MEMORY, .ack_req = true);
		assert_int_equal(rig_answers(), 2 - psn);
	}
}

TEST(responder__send_with_invalidate_invalidates_the_window)
{
	struct mw_list bound = LIST_HEAD_INITIALIZER(bound);
	struct mw_binding binding = {.lkey = 0, .length = 8, .access = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_wc wc;
	struct mr *region;
	struct mw *mw;

	assert_int_equal(mw_create(rig.fixture.pd, IBV_MW_TYPE_2, &mw), 0);
	assert_int_equal(mr_register(rig.fixture.pd, rig.memory.bytes, 8, 0,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, &region),
			 0);
	binding.window = mw->view.key;
	binding.rkey = ibv_inc_rkey(mw->view.key);
	binding.lkey = region->key;
	assert_int_equal(mw_bind(rig.fixture.pd, rig.responder.qpn, &bound, &binding), 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, .rkey = binding.rkey, .dma_length = 8, .len = 8,
		     .payload = rig.memory.bytes);
	rig_post(1, region_sge(&rig.inbox, 0, 2 * MTU));
	/* The key is invalidated with the last packet. */
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 1, .len = MTU);
	EXPECT_TAKEN(OPCODE_SEND_LAST_INV, 2, .rkey = binding.rkey, .len = 8, .ack_req = true);
	wc = fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, binding.rkey);
	assert_int_equal(wc.byte_len, MTU + 8);
	expect_aeth(ACK, 2, 2);
	EXPECT_FAULT(FAULT_ACCESS, OPCODE_WRITE_ONLY, 3, .rkey = binding.rkey, .dma_length = 8,
		     .len = 8);
	mw_destroy(mw);
	assert_int_equal(mr_deregister(region), 0);
}

TEST(responder__one_nak_for_one_gap)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .len = 0);
	expect_aeth(AETH_NAK | NAK_PSN_SEQUENCE, 0, 0);
	for (uint32_t psn = 2; psn < 6; psn++) {
		EXPECT_TAKEN(OPCODE_WRITE_ONLY, psn, TO_MEMORY);
		expect_no_answer();
	}
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_out_of_sequence), 5);
	/* The requester goes back, and the expected packet is lost again. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	expect_aeth(AETH_NAK | NAK_PSN_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	expect_no_answer();
	/* The expected packet arrives at last. The next gap is another one. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .ack_req = true);
	expect_aeth(ACK, 0, 1);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	expect_aeth(AETH_NAK | NAK_PSN_SEQUENCE, 1, 1);
}

/* A packet that the network delays or duplicates behind a gap is older than the newest packet. It
 * is no sign that the requester went back. */
TEST(responder__a_late_packet_behind_a_gap_gets_no_nak_of_its_own)
{
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	expect_aeth(AETH_NAK | NAK_PSN_SEQUENCE, 0, 0);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 3, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 2, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY);
	expect_no_answer();
	/* Now the requester did go back. */
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY);
	expect_aeth(AETH_NAK | NAK_PSN_SEQUENCE, 0, 0);
}

TEST(responder__a_packet_that_came_out_of_order_is_not_executed)
{
	rig_post(1, region_sge(&rig.inbox, 0, MTU));
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 8, .len = 8);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 2, .len = 8);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 3, TO_MEMORY, .swap_add = 1);
	/* Half the number space ahead: the last PSN that is not a duplicate's. */
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0x7fffff, .len = 8);
	assert_int_equal(rig_posted(), 1);
	expect_memory_untouched();
}

TEST(responder__a_receiver_that_is_not_ready_says_so_and_waits)
{
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 0, .len = MTU);
	expect_aeth(AETH_RNR_NAK | RNR_TIMER, 0, 0);
	/* C9-112: the packets behind it get no NAK of their own. */
	EXPECT_TAKEN(OPCODE_SEND_LAST, 1, .len = 1, .ack_req = true);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 2, .len = 1, .ack_req = true);
	expect_no_answer();
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 0, .len = MTU);
	expect_aeth(AETH_RNR_NAK | RNR_TIMER, 0, 0);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_rnr_nak_sent), 2);
	expect_memory_untouched();
	rig_post(1, region_sge(&rig.inbox, 0, 2 * MTU));
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 0, .len = MTU);
	EXPECT_TAKEN(OPCODE_SEND_LAST, 1, .len = 1, .ack_req = true);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	expect_aeth(ACK, 1, 1);
}

/* C9-112: the same if the network duplicates the packets behind it. */
TEST(responder__nothing_behind_an_rnr_nak_is_answered)
{
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 1);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 1, .len = 1);
	expect_aeth(AETH_RNR_NAK | RNR_TIMER, 0, 0);
	for (uint32_t psn = 1; psn < 3; psn++) {
		EXPECT_TAKEN(OPCODE_SEND_ONLY, psn, .len = 1);
		EXPECT_TAKEN(OPCODE_SEND_ONLY, psn, .len = 1);
		expect_no_answer();
	}
}

TEST(responder__not_ready_for_the_immediate_of_a_write)
{
	struct ibv_wc wc;

	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = MTU + 4, .len = MTU);
	for (int i = 0; i < 2; i++) {
		EXPECT_TAKEN(OPCODE_WRITE_LAST_IMM, 1, .len = 4);
		expect_aeth(AETH_RNR_NAK | RNR_TIMER, 1, 0);
		region_expect_pattern(&rig.memory, MTU, MEMORY - MTU, SEED);
	}
	rig_post(1, (struct ibv_sge){0});
	rig_post(2, (struct ibv_sge){0});
	EXPECT_TAKEN(OPCODE_WRITE_LAST_IMM, 1, .len = 4, .imm_be = 77);
	wc = fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, MTU + 4);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 77);
	assert_int_equal(rig_posted(), 1);
	expect_payload(rig.memory.bytes + MTU, 1, 4);
}

TEST(responder__a_read_takes_a_psn_for_each_response)
{
	EXPECT_TAKEN(OPCODE_READ_REQUEST, 0, TO_MEMORY, .dma_length = 4 * MTU);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 4, TO_MEMORY, .ack_req = true);
	assert_int_equal(rig_answers(), 5);
	expect_answer(3, OPCODE_READ_RESPONSE_LAST, 3);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 3)->msn, 1);
	expect_answer(4, OPCODE_ACKNOWLEDGE, 4);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 4)->msn, 2);
}

TEST(responder__atomics_change_memory_once_and_tell_what_it_held)
{
	uint64_t *word = (uint64_t *)(void *)rig.memory.bytes;

	*word = 5;
	EXPECT_TAKEN(OPCODE_COMPARE_SWAP, 0, TO_MEMORY, .compare = 5, .swap_add = 6);
	assert_int_equal(*word, 6);
	EXPECT_TAKEN(OPCODE_COMPARE_SWAP, 1, TO_MEMORY, .compare = 5, .swap_add = 7);
	assert_int_equal(*word, 6);
	assert_int_equal(rig_answers(), 2);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->atomic_original, 5);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 1)->atomic_original, 6);
	EXPECT_TAKEN(OPCODE_FETCH_ADD, 2, TO_MEMORY, .swap_add = UINT64_MAX);
	assert_int_equal(*word, 5);
	assert_int_equal(rig_answers(), 1);
	expect_answer(0, OPCODE_ATOMIC_ACKNOWLEDGE, 2);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->atomic_original, 6);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->msn, 3);
	region_expect_pattern(&rig.memory, 8, MEMORY - 8, SEED);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_rx_payload_bytes_written),
			 3 * sizeof(*word));
}

TEST(responder__a_write_of_several_packets_with_immediate_takes_one_receive)
{
	struct ibv_wc wc;

	rig_post(1, region_sge(&rig.inbox, 0, 8));
	rig_post(2, region_sge(&rig.inbox, 0, 8));
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 0, TO_MEMORY, .dma_length = 3 * MTU, .len = MTU);
	EXPECT_TAKEN(OPCODE_WRITE_MIDDLE, 1, .len = MTU);
	assert_int_equal(rig_posted(), 2);
	EXPECT_TAKEN(OPCODE_WRITE_LAST_IMM, 2, .len = MTU, .imm_be = 1);
	wc = fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 3 * MTU);
	assert_int_equal(rig_posted(), 1);
	fixture_no_completion(rig.fixture.cq);
	region_expect_pattern(&rig.inbox, 0, INBOX, SEED + 1);
}

TEST(responder__a_write_is_counted_with_its_bytes_if_writes_are_counted)
{
	struct comp_cntr count = {.bytes = true};
	const struct comp_cntrs cntrs = {.of[COMP_CNTR_REMOTE_RDMA_WRITE] = &count};

	rig.receive.cntrs = &cntrs;
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 0, TO_MEMORY, .dma_length = 8, .len = 8);
	assert_int_equal(count.done, 0);
	rig.responder.counts = true;
	EXPECT_TAKEN(OPCODE_WRITE_FIRST, 1, TO_MEMORY, .dma_length = 2 * MTU, .len = MTU);
	assert_int_equal(count.done, 0);
	EXPECT_TAKEN(OPCODE_WRITE_LAST, 2, .len = MTU);
	assert_int_equal(count.done, 2 * MTU);
	rig_post(1, region_sge(&rig.inbox, 0, 8));
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 3, .len = 8);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(count.done, 2 * MTU);
}

TEST(responder__a_solicited_message_wakes_who_waits_for_one)
{
	static const uint8_t operations[] = {OPCODE_SEND_ONLY, OPCODE_SEND_ONLY_IMM,
					     OPCODE_WRITE_ONLY_IMM};
	struct channel channel;
	struct ibv_wc wc[2];
	struct cq *cq;
	uint32_t psn = 0;

	assert_int_equal(channel_init(&channel), 0);
	assert_int_equal(cq_create(16, &channel, NULL, NULL, &cq), 0);
	rig.responder.cq = cq;
	for (size_t i = 0; i < sizeof(operations); i++) {
		cq_arm(cq, true);
		rig_post(1, region_sge(&rig.inbox, 0, 8));
		EXPECT_TAKEN(operations[i], psn++);
		assert_int_equal(cq_armed_for(cq), CQ_ARMED_SOLICITED);
		rig_post(2, region_sge(&rig.inbox, 0, 8));
		EXPECT_TAKEN(operations[i], psn++, .solicited = true);
		assert_int_equal(cq_armed_for(cq), CQ_NOT_ARMED);
		assert_int_equal(cq_poll(cq, 2, wc), 2);
	}
	assert_int_equal(cq_destroy(cq), 0);
	channel_fini(&channel);
}

TEST(responder__a_completion_that_finds_no_room_is_not_acknowledged)
{
	for (uint32_t i = 0; i < CQE; i++) {
		rig_post(i, region_sge(&rig.inbox, 0, 8));
		EXPECT_TAKEN(OPCODE_SEND_ONLY, i);
	}
	rig_post(CQE, region_sge(&rig.inbox, 0, 8));
	EXPECT_FAULT(FAULT_CQ_OVERRUN, OPCODE_SEND_ONLY, CQE, .ack_req = true);
	expect_no_answer();
	assert_int_equal(rig.responder.msn, CQE);
}

TEST(responder_reset__forgets_the_connection)
{
	const struct responder fresh = rig.responder;

	rig.responder.epsn = psn_make(9);
	rig.responder.ack_psn = psn_make(9);
	rig.responder.gap_psn = psn_make(9);
	rig.responder.gap_hints = 1;
	rig.responder.gap = GAP_NAKED;
	rig.responder.refused = true;
	rig.responder.gap_dropped = true;
	rig.responder.asks = 0;
	rig.responder.unsacked = 1;
	rig.responder.ooo.reach = 9;
	rig.responder.msn = 9;
	rig.responder.message = MESSAGE_WRITE;
	rig.responder.write_left = 9;
	page_wait_begin(&rig.responder.page_wait);
	rig.receive.taken = true;
	rig.replies.sacks = 9;
	rig.replies.capability = BTH_SACK_RESPONSE;
	responder_reset(&rig.responder, psn_make(FIRST_PSN));
	assert_memory_equal(&rig.responder, &fresh, sizeof(fresh));
	assert_false(rig.receive.taken);
	assert_int_equal(rig.replies.sacks, 0);
	assert_int_equal(rig.replies.capability, 0);
}

TEST(responder_flush__in_the_order_of_posting)
{
	for (uint64_t i = 0; i < 4; i++)
		rig_post(i, region_sge(&rig.inbox, 0, INBOX));
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 0, .len = MTU);
	responder_flush(&rig.responder);
	for (uint64_t i = 0; i < 4; i++)
		fixture_completion(rig.fixture.cq, i, IBV_WC_WR_FLUSH_ERR);
	fixture_no_completion(rig.fixture.cq);
	assert_int_equal(rig_posted(), 0);
	assert_int_equal(counters_get(&rig.fixture.counters, COUNTER_resp_cqe_flush_error), 4);
}

TEST(responder_flush__leaves_a_shared_queue_alone)
{
	rig_post(0, region_sge(&rig.inbox, 0, INBOX));
	rig_post(1, region_sge(&rig.inbox, 0, INBOX));
	EXPECT_TAKEN(OPCODE_SEND_FIRST, 0, .len = MTU);
	rig.responder.srq = &(struct srq){0};
	responder_flush(&rig.responder);
	fixture_completion(rig.fixture.cq, 0, IBV_WC_WR_FLUSH_ERR);
	fixture_no_completion(rig.fixture.cq);
	assert_int_equal(rig_posted(), 1);
}

/* Receive buffers of a shared queue are of the queue's domain; keys that peers use are of the queue
 * pair's domain. */
TEST(responder__a_shared_queue_has_a_domain_of_its_own)
{
	struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
	struct region other;
	struct ibv_sge sge;
	struct srq *srq;

	region_set_up(&other, rig.fixture.other_pd, 64, REMOTE | IBV_ACCESS_LOCAL_WRITE, 1);
	assert_int_equal(srq_create(2, 1, rig.fixture.other_pd, &srq), 0);
	rig.responder.srq = srq;
	rig.responder.rq = &srq->rq;
	wr.sg_list = &sge;
	sge = region_sge(&other, 0, 64);
	assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	sge = region_sge(&rig.inbox, 0, 64);
	assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	EXPECT_TAKEN(OPCODE_SEND_ONLY, 0, .len = 8);
	fixture_completion(rig.fixture.cq, 0, IBV_WC_SUCCESS);
	expect_payload(other.bytes, 0, 8);
	EXPECT_TAKEN(OPCODE_WRITE_ONLY, 1, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_payload(rig.memory.bytes, 1, 4);
	EXPECT_FAULT(FAULT_RECEIVE_PROTECTION, OPCODE_SEND_ONLY, 2, .len = 8);
	fixture_completion(rig.fixture.cq, 0, IBV_WC_LOC_PROT_ERR);
	region_expect_pattern(&rig.inbox, 0, INBOX, SEED + 1);
	assert_int_equal(srq_destroy(srq), 0);
	region_tear_down(&other);
}

/* Unreliable connections: the rig's packets under another service. */

static void expect_dropped_or_done(uint8_t operation, uint32_t psn, struct packet_fields fields)
{
	fields.opcode = OPCODE_UC | operation;
	fields.psn = psn;
	assert_int_equal(rig_take(fields), FAULT_NONE);
	expect_no_answer();
}
#define UC_TAKE(operation, psn, ...)           \
	expect_dropped_or_done(operation, psn, \
			       (struct packet_fields){.ack_req = true, ##__VA_ARGS__})

TEST(responder__unreliable_a_gap_drops_its_message_only)
{
	rig.responder.service = OPCODE_UC;
	rig_post(1, region_sge(&rig.inbox, 0, INBOX));
	UC_TAKE(OPCODE_SEND_FIRST, 0, .len = MTU);
	UC_TAKE(OPCODE_SEND_LAST, 2, .len = 8);
	fixture_no_completion(rig.fixture.cq);
	/* The receive request that a bad message had begun to fill takes the next message from its
	 * start. */
	UC_TAKE(OPCODE_SEND_ONLY, 3, .len = 4);
	assert_int_equal(fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS).byte_len, 4);
	expect_payload(rig.inbox.bytes, 3, 4);
	fixture_no_completion(rig.fixture.cq);
}

TEST(responder__unreliable_a_gap_before_a_long_message_drops_none_of_it)
{
	rig.responder.service = OPCODE_UC;
	rig_post(1, region_sge(&rig.inbox, 0, INBOX));
	UC_TAKE(OPCODE_SEND_FIRST, 2, .len = MTU);
	UC_TAKE(OPCODE_SEND_LAST, 3, .len = 8);
	assert_int_equal(fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS).byte_len, MTU + 8);
}

TEST(responder__unreliable_a_write_does_not_complete_a_dropped_send)
{
	rig.responder.service = OPCODE_UC;
	rig_post(1, region_sge(&rig.inbox, 0, INBOX));
	UC_TAKE(OPCODE_SEND_FIRST, 0, .len = MTU);
	UC_TAKE(OPCODE_WRITE_ONLY, 5, TO_MEMORY, .dma_length = 4, .len = 4);
	expect_payload(rig.memory.bytes, 5, 4);
	fixture_no_completion(rig.fixture.cq);
	UC_TAKE(OPCODE_WRITE_ONLY_IMM, 6, TO_MEMORY, .dma_length = 8, .len = 8);
	assert_int_equal(fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS).byte_len, 8);
}

TEST(responder__unreliable_a_bad_packet_is_dropped_without_a_word)
{
	rig.responder.service = OPCODE_UC;
	rig_post(1, region_sge(&rig.inbox, 0, 8));
	UC_TAKE(OPCODE_WRITE_FIRST, 0, .rkey = FIXTURE_NOBODY, .dma_length = 2 * MTU, .len = MTU);
	UC_TAKE(OPCODE_WRITE_LAST, 1, .len = MTU);
	UC_TAKE(OPCODE_WRITE_ONLY, 2, TO_MEMORY, .dma_length = 9, .len = 8);
	UC_TAKE(OPCODE_SEND_MIDDLE, 3, .len = MTU);
	UC_TAKE(OPCODE_SEND_ONLY, 4, .len = 9);
	expect_memory_untouched();
	fixture_no_completion(rig.fixture.cq);
	UC_TAKE(OPCODE_SEND_ONLY, 5, .len = 8);
	fixture_completion(rig.fixture.cq, 1, IBV_WC_SUCCESS);
	/* On UC the peer is not told of a missing receive request either. */
	UC_TAKE(OPCODE_SEND_ONLY, 6, .len = 8);
}
