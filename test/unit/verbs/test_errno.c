/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that return a value of errno: errno has it too, as after the failed system calls of Linux's
 * drivers ("the value of errno on failure", ibv_post_send(3) and most others).
 */
#include <string.h>

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

/* Start from a value that no call sets, so that each call has to set its own. */
#define EXPECT(call, value)                     \
	do {                                    \
		errno = EXFULL;                 \
		assert_int_equal(call, value);  \
		assert_int_equal(errno, value); \
	} while (0)

TEST(errno__of_what_is_in_use)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_cq *cq = ibv_create_cq(*state, 8, NULL, channel, 0);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4}};
	struct ibv_srq *srq = ibv_create_srq(pair.pd, &srq_init);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(pair.pd, &init);

	assert_non_null(qp);
	EXPECT(ibv_dealloc_pd(pair.pd), EBUSY);
	EXPECT(ibv_destroy_cq(cq), EBUSY);
	EXPECT(ibv_destroy_srq(srq), EBUSY);
	EXPECT(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	fake_pair_destroy(&pair);
}

TEST(errno__of_wrong_arguments)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4}};
	struct ibv_srq *srq = ibv_create_srq(pair.pd, &srq_init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_srq_attr srq_attr = {.srq_limit = 100};
	struct ibv_modify_cq_attr cq_attr = {.attr_mask = 1u << 31};
	struct ibv_qp_rate_limit_attr rate = {.rate_limit = 1};
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(*state, &dm_attr);
	struct ibv_ece ece = {0};
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	union ibv_gid gid = {.raw = {0xff}};
	uint32_t number;

	EXPECT(ibv_modify_qp(pair.qp, &attr, IBV_QP_STATE), EINVAL);
	EXPECT(ibv_modify_qp_rate_limit(pair.qp, &rate), EINVAL);
	EXPECT(ibv_attach_mcast(pair.qp, &gid, 0), EINVAL);
	EXPECT(ibv_detach_mcast(pair.qp, &gid, 0), EINVAL);
	EXPECT(ibv_set_ece(pair.qp, &ece), EOPNOTSUPP);
	EXPECT(ibv_resize_cq(pair.cq, -1), EINVAL);
	EXPECT(ibv_modify_cq(pair.cq, &cq_attr), EINVAL);
	EXPECT(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT), EINVAL);
	EXPECT(ibv_get_srq_num(srq, &number), EINVAL);
	EXPECT(ibv_query_port(*state, 2, &port), EINVAL);
	EXPECT(ibv_query_gid_ex(*state, 1, 100, &entry, 0), ENODATA);
	EXPECT(ibv_advise_mr(pair.pd, (enum ibv_advise_mr_advice)99, 0, NULL, 0), EOPNOTSUPP);
	EXPECT(ibv_memcpy_to_dm(dm, 64, &number, 4), EINVAL);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fake_pair_destroy(&pair);
}

TEST(errno__of_posting)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4}};
	struct ibv_srq *srq = ibv_create_srq(pair.pd, &srq_init);
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {.num_sge = -1}, *bad_recv;
	struct ibv_mw *mw = ibv_alloc_mw(pair.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_INLINE};

	EXPECT(ibv_post_send(pair.qp, &send, &bad_send), EINVAL);
	EXPECT(ibv_post_recv(pair.qp, &recv, &bad_recv), EINVAL);
	EXPECT(ibv_post_srq_recv(srq, &recv, &bad_recv), EINVAL);
	EXPECT(ibv_bind_mw(pair.qp, mw, &bind), EINVAL);
	recv.num_sge = 0;
	for (uint32_t i = 0; i < srq_init.attr.max_wr; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad_recv), 0);
	EXPECT(ibv_post_srq_recv(srq, &recv, &bad_recv), ENOMEM);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fake_pair_destroy(&pair);
}

/* A call that succeeds leaves errno alone; so does a poll that finds nothing, which is no error. */
TEST(errno__stays_where_nothing_failed)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(*state, &attr);
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_poll_cq_attr nothing = {.comp_mask = 0};
	struct ibv_recv_wr recv = {.num_sge = 0}, *bad;

	assert_int_equal(fake_connect(pair.qp, pair.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	errno = EXFULL;
	assert_int_equal(ibv_post_recv(pair.qp, &recv, &bad), 0);
	assert_int_equal(ibv_start_poll(ex, &nothing), ENOENT);
	assert_int_equal(errno, EXFULL);
	fake_pair_destroy(&pair);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

/* Whatever a room below returns, a program gets a positive value. */
TEST(errno__is_never_negative)
{
	EXPECT(face_errno(-ENOMEM), ENOMEM);
	EXPECT(face_errno(ENOMEM), ENOMEM);
	errno = EXFULL;
	assert_int_equal(face_errno(0), 0);
	assert_int_equal(errno, EXFULL);
	assert_int_equal(face_minus_one(ENOSPC), -1);
	assert_int_equal(errno, ENOSPC);
	assert_null(face_null(EBUSY));
	assert_int_equal(errno, EBUSY);
}
