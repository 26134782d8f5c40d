/* SPDX-License-Identifier: BSD-3-Clause */
/* A program's view: two queue pairs of one device talk through nothing but verbs. */
#include <string.h>

#include "fake.h"

static uint8_t source[8192] __attribute__((aligned(4096)));
static uint8_t target[8192] __attribute__((aligned(4096)));

struct talk {
	struct fake_pair a;
	struct fake_pair b;
	struct ibv_mr *source;
	struct ibv_mr *target;
};

static struct talk talk_start(struct ibv_context *context, uint8_t gid_index)
{
	const int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct talk talk = {.a = fake_pair_create(context), .b = fake_pair_create(context)};

	fake.carries = true;
	talk.source = ibv_reg_mr(talk.a.pd, source, sizeof(source), access);
	talk.target = ibv_reg_mr(talk.b.pd, target, sizeof(target), access);
	assert_non_null(talk.source);
	assert_non_null(talk.target);
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(i * 31 + 7);
	memset(target, 0, sizeof(target));
	assert_int_equal(fake_connect(talk.a.qp, talk.b.qp->qp_num, gid_index, IBV_QPS_RTS), 0);
	assert_int_equal(fake_connect(talk.b.qp, talk.a.qp->qp_num, gid_index, IBV_QPS_RTS), 0);
	return talk;
}

static void talk_end(struct talk *talk)
{
	assert_int_equal(ibv_dereg_mr(talk->source), 0);
	assert_int_equal(ibv_dereg_mr(talk->target), 0);
	fake_pair_destroy(&talk->a);
	fake_pair_destroy(&talk->b);
}

static struct ibv_wc wait_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (int i = 0; i < 100; i++) {
		if (ibv_poll_cq(cq, 1, &wc) == 1)
			return wc;
	}
	fail_msg("no completion");
	return wc;
}

static void post_send(struct talk *talk, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)source, .length = length, .lkey = talk->source->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)target, .rkey = talk->target->rkey},
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(talk->a.qp, &wr, &bad), 0);
}

static void send__arrives(void **state)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_sge sge = {
		.addr = (uintptr_t)target, .length = sizeof(target), .lkey = talk.target->lkey};
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_recv(talk.b.qp, &wr, &bad), 0);
	post_send(&talk, IBV_WR_SEND, 5000);
	wc = wait_completion(talk.a.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 1);
	wc = wait_completion(talk.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.byte_len, 5000);
	assert_int_equal(wc.qp_num, talk.b.qp->qp_num);
	assert_memory_equal(source, target, 5000);
	assert_int_equal(target[5000], 0);
	talk_end(&talk);
}

static void write__arrives_over_ipv6(void **state)
{
	struct talk talk = talk_start(*state, FAKE_GID_V6);
	struct ibv_wc wc;

	post_send(&talk, IBV_WR_RDMA_WRITE, sizeof(source));
	wc = wait_completion(talk.a.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(source, target, sizeof(source));
	talk_end(&talk);
}

static void write__to_a_region_that_is_gone_fails(void **state)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	const uint32_t rkey = talk.target->rkey;
	struct ibv_async_event event;
	struct ibv_wc wc;

	assert_int_equal(ibv_dereg_mr(talk.target), 0);
	talk.target = &(struct ibv_mr){.rkey = rkey};
	post_send(&talk, IBV_WR_RDMA_WRITE, 64);
	wc = wait_completion(talk.a.cq);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(target[0], 0);
	/* The responder's queue pair tells of it. */
	do {
		assert_int_equal(ibv_get_async_event(*state, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, talk.b.qp);
	talk.target = ibv_reg_mr(talk.b.pd, target, sizeof(target), IBV_ACCESS_LOCAL_WRITE);
	talk_end(&talk);
}

static void event__wakes_who_waits_for_a_completion(void **state)
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
	assert_int_equal(wait_completion(cq).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	talk_end(&talk);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(send__arrives),
		UNIT(write__arrives_over_ipv6),
		UNIT(write__to_a_region_that_is_gone_fails),
		UNIT(event__wakes_who_waits_for_a_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
