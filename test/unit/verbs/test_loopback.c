/* SPDX-License-Identifier: BSD-3-Clause */
/* A program's view: two queue pairs of one device talk through nothing but verbs. */
#include "talk.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(send__arrives)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_sge from = talk_source(&talk, 0, 5000), to = talk_target(&talk, 0, TALK_BYTES);
	struct ibv_wc wc;

	talk_recv(&talk, &to, 1);
	talk_post(&talk, IBV_WR_SEND, &from, 1);
	wc = talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 1);
	wc = talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.byte_len, 5000);
	assert_int_equal(wc.qp_num, talk.b.qp->qp_num);
	assert_memory_equal(talk.source, talk.target, 5000);
	assert_int_equal(talk.target[5000], 0);
	talk_end(&talk);
}

TEST(write__arrives_over_ipv6)
{
	struct talk talk = talk_start(*state, FAKE_GID_V6);
	struct ibv_sge from = talk_source(&talk, 0, TALK_BYTES);

	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk.source, talk.target, TALK_BYTES);
	talk_end(&talk);
}

TEST(write__to_a_region_that_is_gone_fails)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_sge from = talk_source(&talk, 0, 64);
	struct ibv_mr gone = *talk.target_mr;

	assert_int_equal(ibv_dereg_mr(talk.target_mr), 0);
	talk.target_mr = &gone;
	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(talk.target[0], 0);
	/* The responder's queue pair tells of it. */
	talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
	talk.target_mr = NULL;
	talk_end(&talk);
}

/* The specification leaves it to the responder (9.4.5), and ConnectX does: nothing is written. */
TEST(atomic__at_an_odd_address_is_refused_by_the_peer)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_WRITE};

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct talk talk = talk_start(*state, FAKE_GID_V4);
		struct ibv_sge sge = talk_source(&talk, 0, 8);
		uint8_t *target = talk.target;

		talk.target += 4;
		talk_post(&talk, opcodes[i], &sge, 1);
		talk.target = target;
		talk_wait(talk.a.cq, IBV_WC_REM_INV_REQ_ERR);
		talk_event(*state, IBV_EVENT_QP_REQ_ERR);
		for (size_t j = 0; j < 16; j++)
			assert_int_equal(target[j], 0);
		talk_end(&talk);
	}
}

TEST(event__wakes_who_waits_for_a_completion)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_cq *cq = ibv_create_cq(*state, 8, channel, channel, 0), *got = NULL;
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(talk.b.pd, &init);
	struct ibv_recv_wr wr = {.wr_id = 3}, *bad;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	void *context = NULL;

	assert_int_equal(fake_connect(qp, 17, FAKE_GID_V4, IBV_QPS_INIT), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	/* An error completion counts as solicited. */
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
	assert_ptr_equal(got, cq);
	assert_ptr_equal(context, channel);
	ibv_ack_cq_events(cq, 1);
	talk_wait(cq, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	talk_end(&talk);
}
