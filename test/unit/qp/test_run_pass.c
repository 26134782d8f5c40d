/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/pass.c and lib/qp/run.c: an XRC target passes requests for a shared
 * receive queue of another process to a queue pair there. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "away.h"
#include "test.h"
#include "wire/build.h"
#include "wire/headers.h"
#include "wire/qpn_block.h"
#include "xrc_rig.h"

#define LONG_NS UINT64_C(200000000)

TEST_FIXTURE(xrc_set_up, xrc_tear_down);

TEST(pass__a_message_for_the_other_process_arrives_there)
{
	struct ibv_wc wc;

	xrc_post(xrc_near, 1, 0, 16 * MTU);
	xrc_post(xrc_far.srq, 2, 0, 16 * MTU);
	xrc_send_to(FAR, 3, IBV_WR_SEND_WITH_IMM, 0, 5 * MTU + 3, 0);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	wc = xrc_arrived(2, IBV_WC_SUCCESS);
	assert_int_equal(wc.qp_num, FIXTURE_QPN);
	assert_int_equal(wc.byte_len, 5 * MTU + 3);
	assert_int_equal(wc.imm_data, 0x1234);
	region_expect_pattern(&A->memory, 5 * MTU + 3, MTU, SEED);
	assert_memory_equal(A->memory.bytes, B->memory.bytes, 5 * MTU + 3);
	end_idle(A);
	assert_int_equal(xrc_passed, 6);
	assert_int_equal(rig_counter(COUNTER_xrc_passed), 6);
}

/* Its state does not need an engine poll, and no answer is owed yet. */
TEST(qp_receive__what_is_to_be_passed_on_needs_an_engine_poll)
{
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	assert_true(qp_receive(A->qp, catcher_at(&B->catcher, 0), rig.now_ns));
}

TEST(qp_owes_ack_only__when_nothing_is_to_be_passed_on_any_more)
{
	xrc_post(xrc_far.srq, 1, 0, 8);
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	xrc_post(xrc_near, 2, 0, 8);
	xrc_send_to(NEAR, 4, IBV_WR_SEND, 0, 8, 0);
	xrc_poll(B->qp, &B->catcher);
	assert_true(qp_owes_ack_only(A->qp));
}

/* A target takes the longest lists of any queue of its domain. */
TEST(pass__a_message_for_us_is_scattered)
{
	struct ibv_sge list[PACKET_FRAGS_MAX];
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = list, .num_sge = PACKET_FRAGS_MAX}, *bad;
	const uint32_t part = MTU / PACKET_FRAGS_MAX;

	/* In the reverse order. */
	for (uint32_t i = 0; i < PACKET_FRAGS_MAX; i++)
		list[i] = region_sge(&A->memory, (PACKET_FRAGS_MAX - 1 - i) * part, part);
	assert_int_equal(rq_post(&xrc_near->rq, &wr, &bad), 0);
	xrc_send_to(NEAR, 3, IBV_WR_SEND, 0, MTU, 0);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_received(A, 1, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < PACKET_FRAGS_MAX; i++)
		assert_memory_equal(A->memory.bytes + (PACKET_FRAGS_MAX - 1 - i) * part,
				    B->memory.bytes + i * part, part);
}

TEST(pass__messages_of_one_queue_pair_go_where_each_says)
{
	for (uint64_t i = 0; i < 8; i++)
		xrc_post(i % 2 ? xrc_near : xrc_far.srq, i, i * MTU, MTU);
	for (uint64_t i = 0; i < 8; i++)
		xrc_send_to(i % 2 ? NEAR : FAR, 10 + i, IBV_WR_SEND, i * MTU, 100, 0);
	xrc_run();
	for (uint64_t i = 0; i < 8; i++) {
		end_sent(B, 10 + i, IBV_WC_SUCCESS);
		if (i % 2)
			end_received(A, i, IBV_WC_SUCCESS);
		else
			xrc_arrived(i, IBV_WC_SUCCESS);
		assert_memory_equal(A->memory.bytes + i * MTU, B->memory.bytes + i * MTU, 100);
	}
}

TEST(pass__a_write_with_immediate_data_tells_its_whole_length)
{
	xrc_post(xrc_far.srq, 2, 0, 0);
	xrc_send_to(FAR, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 3 * MTU + 1, 7 * MTU);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	assert_int_equal(xrc_arrived(2, IBV_WC_SUCCESS).byte_len, 3 * MTU + 1);
	assert_memory_equal(A->memory.bytes + 7 * MTU, B->memory.bytes, 3 * MTU + 1);
}

TEST(pass__an_atomic_is_executed_once_and_answered_again)
{
	uint64_t value = 40, got;

	memcpy(A->memory.bytes + 64, &value, sizeof(value));
	xrc_lose_answer = 1;
	xrc_send_to(FAR, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, 64);
	xrc_run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	memcpy(&got, B->memory.bytes + 8, sizeof(got));
	assert_int_equal(got, 40);
	memcpy(&value, A->memory.bytes + 64, sizeof(value));
	assert_int_equal(value, 45);
	assert_int_equal(xrc_passed, 2);
}

TEST(pass__a_lost_request_or_answer_is_passed_again)
{
	for (uint64_t i = 1; i < 5; i++) {
		xrc_post(xrc_far.srq, i, 0, 4 * MTU);
		xrc_lose_passed = (unsigned int)i;
		xrc_send_to(FAR, i, IBV_WR_SEND, i * MTU, 4 * MTU, 0);
		xrc_run_with_losses();
		end_sent(B, i, IBV_WC_SUCCESS);
		xrc_arrived(i, IBV_WC_SUCCESS);
		assert_memory_equal(A->memory.bytes, B->memory.bytes + i * MTU, 4 * MTU);
		xrc_post(xrc_far.srq, 10 + i, 0, 4 * MTU);
		xrc_lose_answer = (unsigned int)i;
		xrc_send_to(FAR, 10 + i, IBV_WR_SEND, 2 * i * MTU, 4 * MTU, 0);
		xrc_run_with_losses();
		end_sent(B, 10 + i, IBV_WC_SUCCESS);
		xrc_arrived(10 + i, IBV_WC_SUCCESS);
		fixture_no_completion(xrc_far.cq);
		assert_memory_equal(A->memory.bytes, B->memory.bytes + 2 * i * MTU, 4 * MTU);
	}
}

TEST(pass__an_empty_queue_there_is_an_rnr_nak)
{
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	assert_int_equal(rig_counter(COUNTER_rnr_nak_retry_err), 1);
	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
}

TEST(pass__a_number_that_nobody_has_is_refused)
{
	xrc_post(xrc_far.srq, 1, 0, 8);
	xrc_post(xrc_near, 2, 0, 8);
	xrc_send_to(NOBODYS, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	end_sent(B, 3, IBV_WC_REM_INV_REQ_ERR);
	fixture_no_completion(xrc_far.cq);
	end_idle(A);
}

TEST(pass__a_request_waits_for_its_link)
{
	xrc_find_says = -EAGAIN;
	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	fixture_no_completion(xrc_far.cq);
	end_idle(B);
	xrc_find_says = 0;
	qp_look_again(A->qp);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
}

/* A waits for a link to the other process for so long that B is told to wait for long. Then it
 * loses a link to the process with these numbers. Return for how long B waits after it has asked
 * again. */
static uint64_t wait_after_lost_link(uint32_t block)
{
	xrc_find_says = -EAGAIN;
	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	rig.now_ns += LONG_NS;
	end_time_out(B);
	xrc_run();
	assert_true(qp_deadline_ns(B->qp) - rig.now_ns >= LONG_NS);
	xrc_link.block = block;
	qp_forget_link(A->qp, &xrc_link);
	end_time_out(B);
	xrc_run();
	return qp_deadline_ns(B->qp) - rig.now_ns;
}

/* Its process closes and opens the domain again and again. */
TEST(pass__the_wait_for_another_link_begins_anew)
{
	assert_in_range(wait_after_lost_link(FAR >> WIRE_QPN_BLOCK_SHIFT), 10000000, 40000000);
	xrc_find_says = 0;
	xrc_run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
}

/* Who closes the domain must not use up the retries of those who wait for others. */
TEST(pass__a_link_to_another_process_is_not_what_is_waited_for)
{
	assert_true(wait_after_lost_link((FAR >> WIRE_QPN_BLOCK_SHIFT) + 1) >= LONG_NS);
}

TEST(pass__a_process_that_has_ended_is_an_error)
{
	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_lose_passed = 1;
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	end_idle(B);
	qp_forget_link(A->qp, &xrc_link);
	xrc_run();
	end_sent(B, 3, IBV_WC_REM_INV_REQ_ERR);
	fixture_no_completion(xrc_far.cq);
}

/* Let A receive a packet that it must drop, because somebody else has sent it or is meant. */
static void expect_dropped(const struct packet *packet)
{
	const uint64_t dropped = rig_counter(COUNTER_rx_wrong_qpn);

	qp_receive(A->qp, packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_rx_wrong_qpn), dropped + 1);
}

/* B's request is passed on to the other process. Return the answer on its way back. */
static struct packet take_answer(void)
{
	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_poll(B->qp, &B->catcher);
	xrc_poll(A->qp, &A->catcher);
	while (qp_run(xrc_far.qp, rig.now_ns, &xrc_far.catcher.sink, 64))
		;
	return *catcher_at(&xrc_far.catcher, 0);
}

/* Somebody else must not answer for the stand-in, nor use the number to which it answers. */
TEST(pass__only_the_stand_in_answers)
{
	uint8_t marked[6];
	struct packet packet;

	packet = take_answer();
	packet.sgid[15] ^= 1;
	expect_dropped(&packet);
	packet.sgid[15] ^= 1;
	packet.vlan_id = 5;
	expect_dropped(&packet);
	packet.vlan_id = -1;
	/* Another program of the same host, as the port's owner says. */
	packet.src_mac = marked;
	wire_mark_sender(marked, STAND_IN ^ 1u << WIRE_QPN_BLOCK_SHIFT);
	expect_dropped(&packet);
	wire_mark_sender(marked, STAND_IN);
	packet.dest_qpn = ALIAS;
	packet.psn = psn_add(packet.psn, 1);
	qp_receive(A->qp, &packet, rig.now_ns);
	xrc_poll(A->qp, &A->catcher);
	end_idle(B);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	xrc_send_to(NEAR, 4, IBV_WR_SEND, 0, 8, 0);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	packet = *catcher_at(&B->catcher, 0);
	packet.dest_qpn = ALIAS;
	xrc_post(xrc_near, 1, 0, 8);
	expect_dropped(&packet);
	end_idle(A);
}

TEST(pass__an_answer_to_nothing_is_dropped)
{
	struct packet packet;

	packet = take_answer();
	qp_forget_link(A->qp, &xrc_link);
	expect_dropped(&packet);
}

TEST(pass__a_message_to_two_processes_is_refused)
{
	struct packet packet;

	xrc_post(xrc_near, 1, 0, 4 * MTU);
	xrc_post(xrc_far.srq, 2, 0, 4 * MTU);
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 2 * MTU, 0);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	qp_receive(A->qp, catcher_at(&B->catcher, 0), rig.now_ns);
	packet = *catcher_at(&B->catcher, 1);
	packet.xrc_srqn = NEAR;
	qp_receive(A->qp, &packet, rig.now_ns);
	catcher_clear(&B->catcher);
	xrc_run();
	end_sent(B, 3, IBV_WC_REM_INV_REQ_ERR);
	end_idle(A);
}

/* The requester retries RNR NAKs for ever, but not a request without an answer. */
TEST(pass__a_queue_there_that_stays_empty_is_an_rnr_nak_each_time)
{
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	for (uint64_t i = 1; i <= RETRIES; i++) {
		xrc_run();
		assert_int_equal(rig_counter(COUNTER_rnr_nak_retry_err), i);
		end_time_out(B);
	}
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 0);
	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_run_with_losses();
	end_sent(B, 3, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
}

/* While the link was made, the requester asked again and was told to wait. What it sends then is
 * kept again until the answer comes. */
TEST(pass__a_long_wait_for_a_link_does_not_delay_the_answer)
{
	xrc_find_says = -EAGAIN;
	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	for (int i = 0; i < 3; i++) {
		end_time_out(B);
		xrc_run();
	}
	assert_true(rig_counter(COUNTER_rnr_nak_sent) > 0);
	xrc_find_says = 0;
	qp_look_again(A->qp);
	xrc_run();
	end_time_out(B);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
}

/* The room for an answer is reserved by the opcode of the request that was passed on. */
TEST(pass__another_request_with_the_same_psn_is_refused)
{
	struct packet packet;

	xrc_post(xrc_far.srq, 2, 0, 8);
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	while (qp_run(B->qp, rig.now_ns, &B->catcher.sink, 64))
		;
	packet = *catcher_at(&B->catcher, 0);
	packet.opcode = OPCODE_XRC | OPCODE_FETCH_ADD;
	packet.op = opcode_info(packet.opcode);
	packet.payload_len = 0;
	packet.iova = region_iova(&A->memory, 0);
	packet.rkey = A->memory.mr->key;
	qp_receive(A->qp, catcher_at(&B->catcher, 0), rig.now_ns);
	qp_receive(A->qp, &packet, rig.now_ns);
	catcher_clear(&B->catcher);
	assert_int_equal(qp_state(A->qp), IBV_QPS_ERR);
	xrc_run();
	end_sent(B, 3, IBV_WC_REM_INV_REQ_ERR);
}

static void note(struct qp *qp, void *arg)
{
	(void)arg;
	assert_ptr_equal(qp, A->qp);
}

/* No timer and no further packet is needed. */
TEST(pass__a_request_behind_one_that_waits_for_its_page_goes_on)
{
	away_begin(rig.fixture.pd);
	A->memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	away_go(A->memory.bytes, MTU);
	xrc_post(xrc_near, 1, 0, 8);
	xrc_post(xrc_far.srq, 2, 2 * MTU, 8);
	xrc_send_to(NEAR, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_send_to(FAR, 4, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	assert_int_equal(xrc_passed, 0);
	away_come();
	qp_wake_waiting(&rig.waiting, note, NULL);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 4, IBV_WC_SUCCESS);
	xrc_arrived(2, IBV_WC_SUCCESS);
}

/* The same the other way round: the answer of the other process lets the next request meet it. */
TEST(pass__a_request_behind_an_answer_waits_for_its_page)
{
	away_begin(rig.fixture.pd);
	A->memory.mr->access |= IBV_ACCESS_ON_DEMAND;
	away_go(A->memory.bytes, MTU);
	xrc_post(xrc_near, 1, 0, 8);
	xrc_post(xrc_far.srq, 2, 2 * MTU, 8);
	xrc_send_to(FAR, 3, IBV_WR_SEND, 0, 8, 0);
	xrc_send_to(NEAR, 4, IBV_WR_SEND, 0, 8, 0);
	xrc_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	fixture_no_completion(B->send_cq);
	away_come();
	qp_wake_waiting(&rig.waiting, note, NULL);
	xrc_run();
	end_sent(B, 4, IBV_WC_SUCCESS);
	end_received(A, 1, IBV_WC_SUCCESS);
}

/* A shared queue may end in the middle of a message, and another one get its number. */
TEST(qp_forget_srq__ends_the_message_in_progress)
{
	xrc_post(xrc_near, 1, 0, 2 * MTU);
	xrc_send_to(NEAR, 3, IBV_WR_SEND, 0, 2 * MTU, 0);
	qp_run(B->qp, rig.now_ns, &B->catcher.sink, 1);
	xrc_deliver(&B->catcher);
	qp_forget_srq(A->qp, xrc_near, false);
	xrc_run();
	end_sent(B, 3, IBV_WC_REM_INV_REQ_ERR);
}

/* Let A lose the response of a READ for a queue that is destroyed then. */
static void read_again_without_queue(bool pd_too)
{
	xrc_lose_response = 1;
	xrc_send_to(NEAR, 3, IBV_WR_RDMA_READ, 20 * MTU, MTU, MTU);
	xrc_run();
	end_idle(B);
	qp_forget_srq(A->qp, xrc_near, pd_too);
	xrc_run_with_losses();
}

TEST(qp_forget_srq__a_read_is_answered_again)
{
	read_again_without_queue(false);
	end_sent(B, 3, IBV_WC_SUCCESS);
}

/* The memory is not of the target's own domain. */
TEST(qp_forget_srq__a_read_of_a_domain_that_goes_too_is_refused)
{
	read_again_without_queue(true);
	end_sent(B, 3, IBV_WC_REM_ACCESS_ERR);
}
