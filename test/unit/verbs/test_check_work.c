/* SPDX-License-Identifier: BSD-3-Clause */
/* What --check keeps of posted work, and when it looks away. */
#include <limits.h>
#include <string.h>

#include "check/finding.h"
#include "printed.h"

#include "talk.h"
#include "test.h"

static struct talk talk;

static int set_up(void **state)
{
	check_wanted = true;
	printed_begin();
	return talk_set_up(&talk, state);
}

static int tear_down(void **state)
{
	const int rc = talk_tear_down(&talk, state);

	printed_end();
	check_forget();
	check_wanted = false;
	return rc;
}

TEST_FIXTURE(set_up, tear_down);

/* The completions that are due to be polled from the queue. */
static uint32_t due(struct ibv_cq *cq)
{
	return face_cq(cq)->due;
}

static void write_silent(struct ibv_qp *qp)
{
	struct ibv_sge sge = talk_source(&talk, 0, 8);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)talk.target;
	wr.wr.rdma.rkey = talk.target_mr->rkey;
	/* The queue is empty again when the device has done it. */
	while (ibv_post_send(qp, &wr, &bad) == ENOMEM)
		assert_int_equal(ibv_poll_cq(qp->send_cq, 0, NULL), 0);
	device_engine_poll(face_home(face_cq(qp->send_cq)));
}

/* Nothing of the program's sends is kept after it was told, so nothing grows. */
TEST(nothing_signaled__ends_the_watch_of_the_send_queue)
{
	struct ibv_sge sge = talk_source(&talk, 0, 8);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(talk.a.qp, &attr, IBV_QP_CAP, &init), 0);
	talk_post(&talk, IBV_WR_RDMA_WRITE, &sge, 1);
	for (uint32_t i = 0; i < init.cap.max_send_wr; i++)
		write_silent(talk.a.qp);
	assert_int_equal(due(talk.a.cq), 1);
	assert_string_equal(printed_take(), "");
	write_silent(talk.a.qp);
	assert_contains(printed_take(), "nothing-signaled");
	assert_int_equal(due(talk.a.cq), 0);
	talk_post(&talk, IBV_WR_RDMA_WRITE, &sge, 1);
	assert_int_equal(due(talk.a.cq), 0);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(due(talk.a.cq), 0);
}

/* The program need not poll it, so requests would be kept for ever. */
TEST(overrun_ignored__nothing_is_kept)
{
	struct ibv_cq_init_attr_ex with = {.cqe = 4,
					   .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					   .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(*state, &with));
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 4, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(talk.a.pd, &init);
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;

	assert_non_null(qp);
	assert_int_equal(fake_connect(qp, talk.b.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(due(cq), 0);
	write_silent(qp);
	assert_int_equal(due(cq), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(post_recv__a_queue_pair_that_only_sends)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = talk.a.cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = talk.a.pd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(*state, &init);
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad = NULL;

	assert_non_null(qp);
	assert_int_not_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Behind an entry that is refused nothing is read. */
TEST(post_srq_recv__stops_where_the_queue_does)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(talk.a.pd, &init);
	struct ibv_sge sge = talk_source(&talk, 0, 8);
	struct ibv_recv_wr never = {.sg_list = (struct ibv_sge *)8, .num_sge = 1};
	struct ibv_recv_wr wrong[] = {
		{.next = &never, .sg_list = &sge, .num_sge = INT_MAX},
		{.next = &never, .sg_list = &sge, .num_sge = -1},
		{.next = &never, .sg_list = NULL, .num_sge = 1},
	};
	struct ibv_recv_wr endless = {.next = &endless, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_non_null(srq);
	for (size_t i = 0; i < RTE_DIM(wrong); i++) {
		assert_int_equal(ibv_post_srq_recv(srq, &wrong[i], &bad), EINVAL);
		assert_ptr_equal(bad, &wrong[i]);
	}
	assert_int_equal(ibv_post_srq_recv(srq, &endless, &bad), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* Let two messages come before the first completion is polled. */
static void send_two(struct ibv_sge first, struct ibv_sge second)
{
	struct ibv_sge sge = talk_source(&talk, 0, 8);

	talk_recv(&talk, &first, 1);
	talk_recv(&talk, &second, 1);
	talk_post(&talk, IBV_WR_SEND, &sge, 1);
	talk_post(&talk, IBV_WR_SEND, &sge, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
}

/* Equal addresses of two parts of device memory are not the same memory. */
TEST(overwritten_message__only_of_memory_of_the_process)
{
	struct ibv_alloc_dm_attr attr = {.length = 128};
	struct ibv_dm *dm = ibv_alloc_dm(*state, &attr);
	const unsigned int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED;
	struct ibv_mr *one, *other;

	assert_non_null(dm);
	one = ibv_reg_dm_mr(talk.b.pd, dm, 0, 64, access);
	other = ibv_reg_dm_mr(talk.b.pd, dm, 64, 64, access);
	assert_true(one && other);
	send_two((struct ibv_sge){.length = 8, .lkey = one->lkey},
		 (struct ibv_sge){.length = 8, .lkey = other->lkey});
	assert_string_equal(printed_take(), "");
	send_two(talk_target(&talk, 0, 8), talk_target(&talk, 8, 8));
	assert_string_equal(printed_take(), "");
	send_two(talk_target(&talk, 0, 8), talk_target(&talk, 4, 8));
	assert_contains(printed_take(), "overwritten-message");
	assert_int_equal(ibv_dereg_mr(one), 0);
	assert_int_equal(ibv_dereg_mr(other), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* The device uses no receive request before RTR. */
TEST(deregistered_in_use__not_in_init)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_sge sge = talk_target(&talk, 0, 8);

	assert_int_equal(ibv_modify_qp(talk.b.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(fake_connect(talk.b.qp, talk.a.qp->qp_num, FAKE_GID_V4, IBV_QPS_INIT), 0);
	talk_recv(&talk, &sge, 1);
	assert_int_equal(ibv_dereg_mr(talk.target_mr), 0);
	talk.target_mr = NULL;
	assert_string_equal(printed_take(), "");
}
