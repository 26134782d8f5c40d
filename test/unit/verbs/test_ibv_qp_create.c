/* SPDX-License-Identifier: BSD-3-Clause */
/* Creating queue pairs: what each type needs, and what is refused. */
#include "device/limits.h"
#include "qp/qp.h"

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

static struct ibv_qp_init_attr init_attr(struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 3, .max_recv_wr = 5, .max_send_sge = 2, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

TEST(create_qp__fills_the_public_struct)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct fake_pair pair = fake_pair_create(*state);
	int mine;

	for (size_t i = 0; i < RTE_DIM(types); i++) {
		struct ibv_qp_init_attr init = init_attr(pair.cq);
		struct ibv_qp *qp;

		init.qp_type = types[i];
		init.qp_context = &mine;
		qp = ibv_create_qp(pair.pd, &init);
		assert_non_null(qp);
		assert_ptr_equal(qp->context, *state);
		assert_ptr_equal(qp->qp_context, &mine);
		assert_ptr_equal(qp->pd, pair.pd);
		assert_ptr_equal(qp->send_cq, pair.cq);
		assert_ptr_equal(qp->recv_cq, pair.cq);
		assert_int_equal(qp->state, IBV_QPS_RESET);
		assert_int_equal(qp->qp_type, types[i]);
		assert_true(qp->qp_num >= 2);
		assert_true(qp->qp_num < 1u << 24);
		assert_ptr_equal(device_find_qp(fake.device, qp->qp_num), face_qp(qp)->qp);
		assert_true(init.cap.max_send_wr >= 3);
		assert_true(init.cap.max_recv_wr >= 5);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	fake_pair_destroy(&pair);
}

static void assert_refused(struct ibv_pd *pd, struct ibv_qp_init_attr init, int error)
{
	const uint32_t qps = fake.device->qps;

	errno = 0;
	assert_null(ibv_create_qp(pd, &init));
	assert_int_equal(errno, error);
	assert_int_equal(fake.device->qps, qps);
}

TEST(create_qp__refuses_what_is_wrong)
{
	struct ibv_context *other = fake_open();
	struct ibv_cq *foreign = ibv_create_cq(other, 4, NULL, NULL, 0);
	struct fake_pair pair = fake_pair_create(*state);
	const struct ibv_qp_init_attr good = init_attr(pair.cq);
	struct ibv_qp_init_attr init = good;
	struct ibv_device_attr limits;

	assert_int_equal(ibv_query_device(*state, &limits), 0);
	init.send_cq = NULL;
	assert_refused(pair.pd, init, EINVAL);
	init = good;
	init.recv_cq = NULL;
	assert_refused(pair.pd, init, EINVAL);
	init.recv_cq = foreign;
	assert_refused(pair.pd, init, EINVAL);
	init = good;
	init.cap.max_send_wr = (uint32_t)limits.max_qp_wr + 1;
	assert_refused(pair.pd, init, EINVAL);
	init = good;
	init.cap.max_recv_wr = UINT32_MAX;
	assert_refused(pair.pd, init, EINVAL);
	init = good;
	init.cap.max_recv_sge = (uint32_t)limits.max_sge + 1;
	assert_refused(pair.pd, init, EINVAL);
	init = good;
	init.cap.max_inline_data = DEVICE_MAX_INLINE + 1;
	assert_refused(pair.pd, init, EINVAL);
	assert_refused(NULL, good, EINVAL);
	init = good;
	init.qp_type = IBV_QPT_XRC_RECV;
	assert_refused(pair.pd, init, EINVAL);
	fake_pair_destroy(&pair);
	assert_int_equal(ibv_destroy_cq(foreign), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

TEST(create_qp__grants_the_largest)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_device_attr limits;
	struct ibv_qp_init_attr init = init_attr(pair.cq);
	struct ibv_qp *qp;

	assert_int_equal(ibv_query_device(*state, &limits), 0);
	init.cap = (struct ibv_qp_cap){
		.max_send_wr = (uint32_t)limits.max_qp_wr,
		.max_recv_wr = (uint32_t)limits.max_qp_wr,
		.max_send_sge = (uint32_t)limits.max_sge,
		.max_recv_sge = (uint32_t)limits.max_sge,
		.max_inline_data = DEVICE_MAX_INLINE,
	};
	qp = ibv_create_qp(pair.pd, &init);
	assert_non_null(qp);
	assert_true(init.cap.max_inline_data >= DEVICE_MAX_INLINE);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	fake_pair_destroy(&pair);
}

TEST(create_qp__refuses_what_is_not_built)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr init = init_attr(pair.cq);

	init.qp_type = IBV_QPT_RAW_PACKET;
	assert_refused(pair.pd, init, EOPNOTSUPP);
	init.qp_type = IBV_QPT_DRIVER;
	assert_refused(pair.pd, init, EOPNOTSUPP);
	fake_pair_destroy(&pair);
}

TEST(create_qp_ex__takes_a_protection_domain)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = pair.cq,
		.recv_cq = pair.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.pd = pair.pd,
	};
	struct ibv_qp *qp;

	errno = 0;
	assert_null(ibv_create_qp_ex(*state, &init));
	assert_int_equal(errno, EINVAL);
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
	assert_null(ibv_create_qp_ex(*state, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	errno = 0;
	assert_null(ibv_create_qp_ex(*state, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	init.create_flags = 0;
	qp = ibv_create_qp_ex(*state, &init);
	assert_non_null(qp);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	fake_pair_destroy(&pair);
}

TEST(create_qp_ex__xrc_has_a_half_each)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr_ex send = {
		.send_cq = pair.cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pair.pd,
	};
	struct ibv_qp_init_attr_ex recv = {.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_recv_wr recv_wr = {0}, *bad_recv;
	struct ibv_qp *qp;

	errno = 0;
	assert_null(ibv_create_qp_ex(*state, &recv));
	assert_int_equal(errno, EINVAL);
	qp = ibv_create_qp_ex(*state, &send);
	assert_non_null(qp);
	assert_null(qp->recv_cq);
	assert_null(qp->srq);
	assert_int_equal(fake_connect(qp, 17, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_not_equal(ibv_post_recv(qp, &recv_wr, &bad_recv), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	send.send_cq = NULL;
	errno = 0;
	assert_null(ibv_create_qp_ex(*state, &send));
	assert_int_equal(errno, EINVAL);
	fake_pair_destroy(&pair);
}
