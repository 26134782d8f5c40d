/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/run.c, between two queue pairs: packets and turns reach their roles, faults both
 * ends, timers fire. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mem/mw.h"
#include "qp_rig.h"
#include "transport/recovery.h"
#include "wire/headers.h"
#include "test.h"
#include "queues.h"

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

static uint64_t counter(enum counter which)
{
	return counters_get(&rig.fixture.counters, which);
}

static void expect_error(struct end *end)
{
	assert_int_equal(qp_state(end->qp), IBV_QPS_ERR);
	assert_int_equal(qp_deadline_ns(end->qp), UINT64_MAX);
}

/* Traffic that goes well. */

TEST(qp_run__carries_each_kind_of_work)
{
	uint64_t *counter_at = (uint64_t *)(void *)(B->memory.bytes + 32 * MTU);

	rig_connect();
	*counter_at = 41;
	assert_int_equal(end_receive(B, 10, 0, 3 * MTU), 0);
	assert_int_equal(end_receive(B, 11, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 8 * MTU, 2 * MTU + 3, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 16 * MTU, 3 * MTU, 4 * MTU), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, MTU, 8 * MTU), 0);
	assert_int_equal(end_send(A, 4, IBV_WR_RDMA_READ, 40 * MTU, 2 * MTU + 1, 50 * MTU), 0);
	assert_int_equal(end_send(A, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, 60 * MTU, 8, 32 * MTU), 0);
	assert_int_equal(end_send(A, 6, IBV_WR_SEND, 0, 0, 0), 0);
	assert_int_equal(end_receive(B, 12, 0, 8), 0);
	rig_run();
	for (uint64_t i = 1; i <= 6; i++)
		end_sent(A, i, IBV_WC_SUCCESS);
	assert_int_equal(end_received(B, 10, IBV_WC_SUCCESS).byte_len, 2 * MTU + 3);
	assert_int_equal(end_received(B, 11, IBV_WC_SUCCESS).byte_len, MTU);
	assert_int_equal(end_received(B, 12, IBV_WC_SUCCESS).byte_len, 0);
	end_idle(A);
	end_idle(B);
	assert_memory_equal(B->memory.bytes, A->memory.bytes + 8 * MTU, 2 * MTU + 3);
	assert_memory_equal(B->memory.bytes + 4 * MTU, A->memory.bytes + 16 * MTU, 3 * MTU);
	assert_memory_equal(B->memory.bytes + 8 * MTU, A->memory.bytes, MTU);
	assert_memory_equal(A->memory.bytes + 40 * MTU, B->memory.bytes + 50 * MTU, 2 * MTU + 1);
	assert_int_equal(*counter_at, 42);
	assert_int_equal(*(uint64_t *)(void *)(A->memory.bytes + 60 * MTU), 41);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	assert_int_equal(A->events + B->events, 0);
}

TEST(qp_run__answers_before_it_asks_and_keeps_to_the_budget)
{
	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 3 * MTU, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_true(end_run(A, 1));
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	assert_true(end_run(A, 1));
	assert_true(end_run(A, 1));
	catcher_clear(&A->catcher);
	assert_true(end_run(A, 1));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_WRITE_FIRST);
	assert_false(end_run(A, 1));
	assert_int_equal(A->catcher.count, 2);
	assert_false(end_run(A, 1));
	assert_int_equal(A->catcher.count, 2);
}

TEST(qp_run__a_reply_comes_behind_the_acknowledgement)
{
	rig_connect();
	assert_int_equal(end_receive(A, 10, 0, MTU), 0);
	assert_int_equal(end_send(B, 1, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, 0, 8, 0), 0);
	assert_false(end_run(A, 9));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_ACKNOWLEDGE);
	assert_int_equal(catcher_at(&A->catcher, 1)->opcode, OPCODE_SEND_ONLY);
}

TEST(qp_run__what_the_peer_looks_for_in_memory_comes_first)
{
	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_false(end_run(A, 9));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_WRITE_ONLY);
	assert_int_equal(catcher_at(&A->catcher, 1)->opcode, OPCODE_ACKNOWLEDGE);
}

TEST(qp_run__a_peer_that_reads_on_leaves_requests_their_share)
{
	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 32 * MTU, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 40 * MTU), 0);
	assert_true(end_run(A, 4));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_READ_RESPONSE_FIRST);
	catcher_clear(&A->catcher);
	assert_true(end_run(A, 4));
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_WRITE_FIRST);
	assert_int_equal(catcher_at(&A->catcher, 2)->opcode, OPCODE_READ_RESPONSE_MIDDLE);
}

TEST(qp_run__a_read_that_no_answer_may_be_awaited_for_fails)
{
	A->attr.max_rd_atomic = 0;
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_LOC_QP_OP_ERR);
	expect_error(A);
}

TEST(qp_run__owes_no_answers_after_its_own_fault)
{
	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_READ, 0, 32 * MTU, 0), 0);
	end_run(B, 9);
	end_deliver(B);
	end_run(A, 2);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	end_run(A, 4);
	end_run(A, 4);
	catcher_clear(&A->catcher);
	for (int i = 0; i <= RETRIES; i++)
		end_time_out(A);
	end_sent(A, 2, IBV_WC_RETRY_EXC_ERR);
	assert_false(end_run(A, 9));
	assert_int_equal(A->catcher.count, 0);
}

TEST(qp_run__waits_for_a_port_that_takes_nothing)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	A->catcher.room = 1;
	assert_true(end_run(A, 9));
	assert_int_equal(A->catcher.count, 1);
	end_deliver(A);
	assert_false(end_run(A, 9));
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_run__gives_up_on_a_port_that_never_takes_anything)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	for (int i = 0; i <= RETRIES; i++) {
		A->catcher.room = 0;
		assert_true(end_run(A, 9));
		end_time_out(A);
	}
	end_sent(A, 1, IBV_WC_RETRY_EXC_ERR);
	expect_error(A);
}

TEST(qp_run__a_port_that_was_stuck_before_local_work_is_no_silent_peer)
{
	struct ibv_mw window = {.type = IBV_MW_TYPE_1};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW, .bind_mw.mw = &window}, *bad;
	struct mw *mw;

	rig_connect();
	assert_int_equal(mw_create(rig.fixture.pd, IBV_MW_TYPE_1, &mw), 0);
	window.rkey = mw->view.key;
	wr.bind_mw.rkey = ibv_inc_rkey(window.rkey);
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_true(end_run(A, 0));
	assert_false(end_run(A, 9));
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	mw_destroy(mw);
}

/* Who is heard. */

static void expect_unheard(const struct packet *packet)
{
	const uint64_t dropped = counter(COUNTER_rx_wrong_qpn);

	qp_receive(A->qp, packet, rig.now_ns);
	fixture_no_completion(A->recv_cq);
	assert_int_equal(counter(COUNTER_rx_wrong_qpn), dropped + 1);
}

TEST(qp_receive__a_connected_queue_pair_hears_its_peer_only)
{
	struct packet packet;

	rig_connect();
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	packet = *catcher_at(&B->catcher, 0);
	packet.sgid[15] ^= 1;
	expect_unheard(&packet);
	packet.sgid[15] ^= 1;
	packet.dgid[15] ^= 1;
	expect_unheard(&packet);
	packet.dgid[15] ^= 1;
	packet.vlan_tci = 0x6005;
	expect_unheard(&packet);
	/* Of no VLAN, with a priority. */
	packet.vlan_tci = 0x6000;
	qp_receive(A->qp, &packet, rig.now_ns);
	end_received(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_receive__a_queue_pair_of_a_vlan_hears_that_only)
{
	struct path_attr path = {.vlan_tci = 0x2005, .hop_limit = 64, .udp_sport = 0xc000};
	struct packet packet;

	memcpy(path.sgid, A->gid, sizeof(path.sgid));
	memcpy(path.dgid, B->gid, sizeof(path.dgid));
	assert_int_equal(path_init(&A->path, &path), 0);
	rig_connect();
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	packet = *catcher_at(&B->catcher, 0);
	expect_unheard(&packet);
	packet.vlan_tci = 6;
	expect_unheard(&packet);
	packet.vlan_tci = 5;
	qp_receive(A->qp, &packet, rig.now_ns);
	end_received(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_receive__another_service_is_not_heard)
{
	static const uint8_t services[] = {OPCODE_UC, OPCODE_UD, OPCODE_XRC};
	struct packet packet;

	rig_connect();
	assert_int_equal(end_receive(A, 1, 0, 8), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	for (size_t i = 0; i < sizeof(services); i++) {
		packet = *catcher_at(&B->catcher, 0);
		packet.opcode |= services[i];
		packet.op = opcode_info(packet.opcode);
		qp_receive(A->qp, &packet, rig.now_ns);
	}
	packet.opcode = OPCODE_CNP;
	packet.op = opcode_info(packet.opcode);
	qp_receive(A->qp, &packet, rig.now_ns);
	fixture_no_completion(A->recv_cq);
	assert_int_equal(counter(COUNTER_rx_wrong_opcode), 4);
}

TEST(qp_receive__requests_are_taken_from_rtr_on)
{
	end_raise(B, IBV_QPS_RTS);
	assert_int_equal(end_send(B, 2, IBV_WR_SEND, 0, 8, 0), 0);
	end_run(B, 9);
	for (int s = IBV_QPS_RESET; s <= IBV_QPS_INIT; s++) {
		if (s == IBV_QPS_INIT) {
			end_raise(A, IBV_QPS_INIT);
			assert_int_equal(end_receive(A, 1, 0, 8), 0);
		}
		qp_receive(A->qp, catcher_at(&B->catcher, 0), rig.now_ns);
		fixture_no_completion(A->recv_cq);
	}
	assert_int_equal(counter(COUNTER_rx_qp_state), 2);
	assert_int_equal(end_modify(A, IBV_QPS_RTR), 0);
	end_deliver(B);
	end_received(A, 1, IBV_WC_SUCCESS);
	/* And answered, before it may send. */
	rig_run();
	end_sent(B, 2, IBV_WC_SUCCESS);
}

TEST(qp_receive__the_first_packet_in_rtr_is_told_once)
{
	end_raise(A, IBV_QPS_RTR);
	end_raise(B, IBV_QPS_RTS);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(end_send(B, i, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	assert_int_equal(A->events, 1);
	end_expect_event(A, 0, IBV_EVENT_COMM_EST);
	assert_int_equal(B->events, 0);
}

TEST(qp_receive__answers_are_taken_from_rts_on)
{
	const struct packet_fields ack = {
		.opcode = OPCODE_ACKNOWLEDGE, .psn = 100, .syndrome = AETH_ACK | AETH_CREDIT_NONE};
	struct packet packet = *fixture_packet(&rig.fixture, &ack);

	end_raise(A, IBV_QPS_RTR);
	memcpy(packet.sgid, B->gid, 16);
	qp_receive(A->qp, &packet, rig.now_ns);
	assert_int_equal(counter(COUNTER_rx_qp_state), 1);
	/* It is not the peer's first request. */
	assert_int_equal(A->events, 0);
}

/* Faults: what each end learns. */

static void expect_refused(enum ibv_wr_opcode opcode, uint32_t length, enum ibv_wc_status status,
			   enum ibv_event_type event)
{
	rig_connect();
	assert_int_equal(end_receive(B, 20, 0, MTU), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, opcode, 0, length, MEMORY - length + 8), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(B, 4, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, status);
	end_sent(A, 3, IBV_WC_WR_FLUSH_ERR);
	expect_error(A);
	expect_error(B);
	assert_int_equal(B->events, 1);
	end_expect_event(B, 0, event);
	assert_int_equal(A->events, 0);
	end_received(B, 20, IBV_WC_WR_FLUSH_ERR);
}

/* The READ's memory goes after the WRITE behind it has ended the queue pair. */
TEST(qp_run__a_second_fault_raises_no_second_event)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 4 * MTU, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	end_run(A, 9);
	end_deliver(A);
	expect_error(B);
	region_deregister(&B->memory);
	while (end_run(B, 9))
		;
	assert_int_equal(B->events, 1);
	end_expect_event(B, 0, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(qp_run__memory_beyond_the_peers_region)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (size_t i = 0; i < 3; i++) {
		expect_refused(opcodes[i], i == 2 ? 8 : 4 * MTU, IBV_WC_REM_ACCESS_ERR,
			       IBV_EVENT_QP_ACCESS_ERR);
		assert_int_equal(counter(COUNTER_resp_remote_access_errors), 1);
		assert_int_equal(counter(COUNTER_req_remote_access_errors), 1);
		qp_rig_tear_down(state);
		qp_rig_set_up(state);
	}
}

TEST(qp_run__an_operation_that_the_peer_does_not_allow)
{
	B->attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	expect_refused(IBV_WR_RDMA_READ, 8, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

TEST(qp_run__a_message_longer_than_its_receive)
{
	rig_connect();
	assert_int_equal(end_receive(B, 10, 0, 8), 0);
	assert_int_equal(end_receive(B, 11, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 9, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_REM_INV_REQ_ERR);
	end_received(B, 10, IBV_WC_LOC_LEN_ERR);
	end_received(B, 11, IBV_WC_WR_FLUSH_ERR);
	expect_error(A);
	expect_error(B);
	/* The completions tell. */
	assert_int_equal(B->events, 0);
}

TEST(qp_run__a_receive_whose_memory_may_not_be_written)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_recv_wr wr = {.wr_id = 10, .sg_list = &sge, .num_sge = 1}, *bad;

	rig_connect();
	assert_int_equal(qp_post_recv(B->qp, &wr, &bad), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 9, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_REM_OP_ERR);
	end_received(B, 10, IBV_WC_LOC_PROT_ERR);
	expect_error(A);
	expect_error(B);
}

TEST(qp_run__our_own_memory_may_not_be_read)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_send_wr wr = {.wr_id = 2, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1},
			   *bad;

	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	/* What stands before it is lost once, and completes all the same. */
	rig.lose[0] = 2;
	end_run(A, 9);
	end_deliver(A);
	rig_run();
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTS);
	end_time_out(A);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_LOC_PROT_ERR);
	end_sent(A, 3, IBV_WC_WR_FLUSH_ERR);
	expect_error(A);
	assert_int_equal(qp_state(B->qp), IBV_QPS_RTS);
}

TEST(qp_run__memory_deregistered_while_it_is_read)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 4 * MTU, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	end_run(B, 2);
	end_deliver(B);
	region_deregister(&B->memory);
	rig_run();
	end_sent(A, 1, IBV_WC_REM_ACCESS_ERR);
	expect_error(A);
	expect_error(B);
	assert_int_equal(B->events, 1);
	end_expect_event(B, 0, IBV_EVENT_QP_ACCESS_ERR);
	region_expect_pattern(&A->memory, 2 * MTU, 8 * MTU, SEED);
}

TEST(qp_run__in_error_says_why_and_nothing_more)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, MEMORY), 0);
	end_run(A, 9);
	end_deliver(A);
	assert_int_equal(end_send(B, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	expect_error(B);
	assert_false(end_run(B, 9));
	assert_int_equal(B->catcher.count, 1);
	assert_int_equal(catcher_at(&B->catcher, 0)->syndrome, AETH_NAK | NAK_REMOTE_ACCESS);
	end_sent(B, 2, IBV_WC_WR_FLUSH_ERR);
}

TEST(qp_run__a_completion_queue_that_overruns)
{
	struct cq *small;

	assert_int_equal(cq_create(1, NULL, NULL, NULL, &small), 0);
	qp_destroy(A->qp);
	A->qp = NULL;
	assert_int_equal(cq_destroy(A->send_cq), 0);
	A->send_cq = small;
	end_recreate(A, IBV_QPT_RC, NULL);
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	expect_error(A);
	assert_int_equal(A->events, 1);
	end_expect_event(A, 0, IBV_EVENT_QP_FATAL);
	assert_int_equal(counter(COUNTER_cq_overrun), 1);
}

/* Losses and timers. */

TEST(qp_timeout__what_was_lost_is_sent_again)
{
	for (unsigned int lost = 1; lost <= 6; lost++) {
		for (unsigned int e = 0; e < 2; e++) {
			rig_connect();
			assert_int_equal(end_receive(B, 10, 0, 2 * MTU), 0);
			assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 2 * MTU, 0), 0);
			assert_int_equal(
				end_send(A, 2, IBV_WR_RDMA_READ, 20 * MTU, 3 * MTU, 40 * MTU), 0);
			assert_int_equal(
				end_send(A, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 60 * MTU, 8, 63 * MTU),
				0);
			rig.lose[e] = lost;
			rig_run();
			while (qp_deadline_ns(A->qp) != UINT64_MAX) {
				end_time_out(A);
				rig_run();
			}
			for (uint64_t i = 1; i <= 3; i++)
				end_sent(A, i, IBV_WC_SUCCESS);
			end_received(B, 10, IBV_WC_SUCCESS);
			assert_memory_equal(B->memory.bytes, A->memory.bytes, 2 * MTU);
			assert_memory_equal(A->memory.bytes + 20 * MTU, B->memory.bytes + 40 * MTU,
					    3 * MTU);
			/* Exactly once. */
			assert_int_equal(*(uint64_t *)(void *)(B->memory.bytes + 63 * MTU),
					 *(uint64_t *)(void *)(A->memory.bytes + 60 * MTU) + 1);
			qp_rig_tear_down(state);
			qp_rig_set_up(state);
		}
	}
}

/* Whether an answer is to the first sending or to the second, nobody knows. */
TEST(qp_run__times_nothing_that_is_sent_again)
{
	A->attr.timeout = 14;
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, MTU, 8, MTU), 0);
	rig.lose[0] = 1;
	end_run(A, 9);
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	/* All of it again. */
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 2);
	rig.now_ns += RECOVERY_RETRANSMIT_NS;
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
	/* A probe waits as before. */
	assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns + RECOVERY_RETRANSMIT_NS);
	/* What is sent once is timed. */
	rig.now_ns += RECOVERY_RETRANSMIT_NS;
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	end_sent(A, 3, IBV_WC_SUCCESS);
	assert_int_equal(end_send(A, 4, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(qp_deadline_ns(A->qp),
			 rig.now_ns + RECOVERY_RETRANSMIT_FACTOR * RECOVERY_RETRANSMIT_NS);
}

TEST(qp_timeout__a_silent_peer_is_given_up)
{
	unsigned int sent = 0;

	rig_connect();
	assert_int_equal(end_receive(A, 9, 0, 8), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	for (int i = 0; i <= RETRIES; i++) {
		end_run(A, 9);
		sent += A->catcher.count;
		catcher_clear(&A->catcher);
		assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns + TIMEOUT_NS);
		end_time_out(A);
	}
	assert_int_equal(sent, 2 * (1 + RETRIES));
	end_sent(A, 1, IBV_WC_RETRY_EXC_ERR);
	end_sent(A, 2, IBV_WC_WR_FLUSH_ERR);
	end_received(A, 9, IBV_WC_WR_FLUSH_ERR);
	expect_error(A);
}

TEST(qp_timeout__an_early_call_does_nothing)
{
	rig_connect();
	qp_timeout(A->qp, rig.now_ns);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	qp_timeout(A->qp, rig.now_ns + TIMEOUT_NS - 1);
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 1);
	assert_int_equal(counter(COUNTER_local_ack_timeout_err), 0);
}

TEST(qp_timeout__a_timeout_of_zero_waits_for_ever)
{
	A->attr.timeout = 0;
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
}

TEST(qp_timeout__waits_for_a_receiver_that_is_not_ready)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 2 * MTU, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, 0, 8, 0), 0);
	for (int i = 0; i < RETRIES; i++) {
		rig_run();
		assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns + RNR_NS);
		end_time_out(A);
	}
	assert_int_equal(end_receive(B, 10, 0, 2 * MTU), 0);
	assert_int_equal(end_receive(B, 11, 0, 2 * MTU), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
	end_received(B, 10, IBV_WC_SUCCESS);
	end_received(B, 11, IBV_WC_SUCCESS);
}

TEST(qp_timeout__gives_up_a_receiver_that_stays_not_ready)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	for (int i = 0; i < RETRIES; i++) {
		rig_run();
		assert_int_equal(qp_state(A->qp), IBV_QPS_RTS);
		end_time_out(A);
	}
	rig_run();
	end_sent(A, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_error(A);
	assert_int_equal(qp_state(B->qp), IBV_QPS_RTS);
}

/* Unreliable connections. */

static void connect_unreliable(void)
{
	end_recreate(A, IBV_QPT_UC, NULL);
	end_recreate(B, IBV_QPT_UC, NULL);
	rig_connect();
}

TEST(qp_run__unreliable_a_loss_is_nobodys_fault)
{
	connect_unreliable();
	assert_int_equal(end_receive(B, 10, 0, 4 * MTU), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 3 * MTU, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, MTU, 2 * MTU, 0), 0);
	rig.lose[0] = 2;
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(end_received(B, 10, IBV_WC_SUCCESS).byte_len, 2 * MTU);
	assert_memory_equal(B->memory.bytes, A->memory.bytes + MTU, 2 * MTU);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
}

TEST(qp_run__unreliable_a_bad_request_stops_the_sending_half)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64, .lkey = FIXTURE_NOBODY};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1},
			   *bad;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	connect_unreliable();
	assert_int_equal(qp_post_send(A->qp, &wr, &bad), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_LOC_PROT_ERR);
	end_sent(A, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(A->qp), IBV_QPS_SQE);
	assert_int_equal(end_receive(A, 10, 0, 8), 0);
	assert_int_equal(end_send(B, 3, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_received(A, 10, IBV_WC_SUCCESS);
	assert_int_equal(end_send(A, 4, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 4, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE, NULL), 0);
	assert_int_equal(end_receive(B, 11, 0, 8), 0);
	assert_int_equal(end_send(A, 5, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 5, IBV_WC_SUCCESS);
	end_received(B, 11, IBV_WC_SUCCESS);
}

/* Neither has a way for answers. */
TEST(qp_run__unreliable_what_wants_an_answer_fails)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (uint64_t i = 0; i < 2; i++) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

		connect_unreliable();
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		assert_int_equal(end_send(A, 2, opcodes[i], 0, 8, 0), 0);
		assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		rig_run();
		end_sent(A, 1, IBV_WC_SUCCESS);
		end_sent(A, 2, IBV_WC_LOC_QP_OP_ERR);
		end_sent(A, 3, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(qp_state(A->qp), IBV_QPS_SQE);
		assert_int_equal(qp_modify(A->qp, &attr, IBV_QP_STATE, NULL), 0);
		assert_int_equal(end_send(A, 4, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		rig_run();
		end_sent(A, 4, IBV_WC_SUCCESS);
	}
}

TEST(qp_run__a_shared_queue_is_not_flushed)
{
	struct ibv_recv_wr wr = {.wr_id = 10}, *bad;
	struct srq *srq;

	assert_int_equal(srq_create(4, 2, rig.fixture.pd, &srq), 0);
	end_recreate(B, IBV_QPT_RC, srq);
	rig_connect();
	for (int i = 0; i < 2; i++)
		assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 0, 0), 0);
	rig_run();
	end_received(B, 10, IBV_WC_SUCCESS);
	assert_int_equal(end_modify(B, IBV_QPS_ERR), 0);
	end_run(B, 9);
	end_idle(B);
	assert_int_equal(srq->rq.prod - srq->rq.cons, 1);
	end_recreate(B, IBV_QPT_RC, NULL);
	assert_int_equal(srq_destroy(srq), 0);
}

/* Pacing. */

TEST(qp_run__paced_to_its_rate)
{
	/* Two packets at once, the others 8 ms apart. */
	const struct ibv_qp_rate_limit_attr limit = {
		.rate_limit = 300, .max_burst_sz = 2 * (MTU + 74), .typical_pkt_sz = MTU + 74};
	const uint64_t start_ns = rig.now_ns;

	A->attr.retry_cnt = 0;
	rig_connect();
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 7 * MTU, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
	rig_run();
	/* Nothing is in the air: no timer but the pacer's. */
	for (int i = 0; i < 6; i++) {
		end_idle(A);
		end_time_out(A);
		rig_run();
		if (i == 4)
			end_sent(A, 1, IBV_WC_SUCCESS);
	}
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	/* Six packets of 256 bytes with their headers at 300 bits a millisecond. */
	assert_in_range(rig.now_ns - start_ns, 6 * MTU * UINT64_C(8000000) / 300,
			6 * (MTU + 74) * UINT64_C(8000000) / 300);
	assert_int_equal(counter(COUNTER_retransmitted_packets), 0);
	assert_memory_equal(B->memory.bytes + MTU, A->memory.bytes + MTU, 6 * MTU);
}

TEST(qp_run__paced_and_in_error_waits_for_nothing)
{
	const struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1};

	rig_connect();
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 4 * MTU, 0), 0);
	rig_run();
	assert_true(qp_deadline_ns(A->qp) != UINT64_MAX);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	end_sent(A, 1, IBV_WC_WR_FLUSH_ERR);
	expect_error(A);
}

/* What need not be run. */

TEST(qp_is_quiet__when_all_is_complete_and_nothing_is_owed)
{
	rig_connect();
	assert_true(qp_is_quiet(A->qp));
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_false(qp_is_quiet(A->qp));
	end_run(A, 9);
	assert_false(qp_is_quiet(A->qp));
	end_deliver(A);
	assert_false(qp_is_quiet(B->qp));
	end_run(B, 9);
	assert_true(qp_is_quiet(B->qp));
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_true(qp_is_quiet(A->qp));
	/* What is posted there is flushed. */
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	assert_false(qp_is_quiet(A->qp));
}

/* The pacer holds what is to be sent again, and then its acknowledgement comes. */
TEST(qp_is_quiet__with_no_timer_left)
{
	const struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1};

	rig_connect();
	assert_int_equal(qp_limit_rate(A->qp, &limit), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
	end_run(A, 9);
	end_time_out(A);
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 1);
	end_deliver(A);
	end_run(B, 9);
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_true(qp_is_quiet(A->qp));
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_idle(A);
	end_time_out(A);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
}
