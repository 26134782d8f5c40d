/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs. */
#include "qp/qp.h"
#include "queue/cq.h"

#include "fake.h"

static struct ibv_qp_init_attr init_attr(struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 3, .max_recv_wr = 5, .max_send_sge = 2, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

static void create_qp__fills_the_public_struct(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr init = init_attr(pair.cq);
	int mine;
	struct ibv_qp *qp;

	init.qp_context = &mine;
	qp = ibv_create_qp(pair.pd, &init);
	assert_non_null(qp);
	assert_ptr_equal(qp->context, *state);
	assert_ptr_equal(qp->qp_context, &mine);
	assert_ptr_equal(qp->pd, pair.pd);
	assert_ptr_equal(qp->send_cq, pair.cq);
	assert_ptr_equal(qp->recv_cq, pair.cq);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(qp->qp_type, IBV_QPT_RC);
	assert_true(qp->qp_num >= 2);
	assert_true(qp->qp_num < 1u << 24);
	assert_ptr_equal(device_find_qp(fake.device, qp->qp_num), face_qp(qp)->qp);
	assert_true(init.cap.max_send_wr >= 3);
	assert_true(init.cap.max_recv_wr >= 5);
	assert_int_equal(ibv_destroy_qp(qp), 0);
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

static void create_qp__refuses_what_is_wrong(void **state)
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
	init.cap.max_inline_data = UINT32_MAX;
	assert_refused(pair.pd, init, EINVAL);
	assert_refused(NULL, good, EINVAL);
	fake_pair_destroy(&pair);
	assert_int_equal(ibv_destroy_cq(foreign), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void create_qp__refuses_what_is_not_built(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	const struct ibv_qp_init_attr good = init_attr(pair.cq);
	struct ibv_qp_init_attr init = good;
	struct ibv_srq srq = {.context = *state};

	init.qp_type = IBV_QPT_RAW_PACKET;
	assert_refused(pair.pd, init, EOPNOTSUPP);
	init = good;
	init.srq = &srq;
	assert_refused(pair.pd, init, EOPNOTSUPP);
	fake_pair_destroy(&pair);
}

static void create_qp_ex__is_create_qp_and_no_more(void **state)
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
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.send_ops_flags = IBV_QP_EX_WITH_SEND;
	assert_null(ibv_create_qp_ex(*state, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
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

static void modify_qp__goes_through_the_states(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);

	assert_int_equal(fake_connect(pair.qp, pair.qp->qp_num, FAKE_GID_V4, IBV_QPS_INIT), 0);
	assert_int_equal(pair.qp->state, IBV_QPS_INIT);
	assert_int_equal(fake.resolves, 0);
	assert_int_equal(ibv_modify_qp(pair.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
				       IBV_QP_STATE),
			 0);
	assert_int_equal(fake_connect(pair.qp, pair.qp->qp_num, FAKE_GID_V6, IBV_QPS_RTS), 0);
	assert_int_equal(pair.qp->state, IBV_QPS_RTS);
	assert_int_equal(fake.resolves, 1);
	fake_pair_destroy(&pair);
}

static void modify_qp__tells_the_engine(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	const unsigned int kicks = fake.kicks;

	assert_int_equal(ibv_modify_qp(pair.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR},
				       IBV_QP_STATE),
			 0);
	assert_int_equal(fake.kicks, kicks + 1);
	fake_pair_destroy(&pair);
}

static void modify_qp__changes_nothing_on_failure(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	assert_int_equal(ibv_modify_qp(pair.qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(pair.qp->state, IBV_QPS_RESET);
	assert_int_equal(qp_state(face_qp(pair.qp)->qp), IBV_QPS_RESET);
	fake_pair_destroy(&pair);
}

static void modify_qp__passes_on_that_the_peer_does_not_answer(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);

	fake.resolve_result = -ETIMEDOUT;
	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_RTR), ETIMEDOUT);
	assert_int_equal(pair.qp->state, IBV_QPS_INIT);
	fake_pair_destroy(&pair);
}

static void query_qp__gives_what_was_set(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(fake_connect(pair.qp, 77, FAKE_GID_V4, IBV_QPS_RTR), 0);
	assert_int_equal(ibv_query_qp(pair.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(attr.dest_qp_num, 77);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_ptr_equal(init.send_cq, pair.cq);
	assert_ptr_equal(init.recv_cq, pair.cq);
	assert_null(init.srq);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_true(init.cap.max_send_wr >= 16);
	fake_pair_destroy(&pair);
}

/* The engine moves a queue pair to ERR by itself; a query shows it. */
static void query_qp__refreshes_the_public_state(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	assert_int_equal(qp_modify(face_qp(pair.qp)->qp, &attr, IBV_QP_STATE, NULL), 0);
	assert_int_equal(pair.qp->state, IBV_QPS_RESET);
	assert_int_equal(ibv_query_qp(pair.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(pair.qp->state, IBV_QPS_ERR);
	fake_pair_destroy(&pair);
}

static void destroy_qp__makes_the_number_find_nothing(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	const uint32_t qpn = pair.qp->qp_num;

	fake_pair_destroy(&pair);
	assert_null(device_find_qp(fake.device, qpn));
	for (int i = 0; i < FAKE_QPS_MAX; i++)
		assert_null(fake.attached[i]);
}

static void extras__that_no_queue_pair_has(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_ece ece = {.vendor_id = 1, .options = 2};

	assert_int_equal(ibv_set_ece(pair.qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(pair.qp, &ece), EOPNOTSUPP);
	assert_int_equal(ece.options, 0);
	assert_int_equal(ibv_query_qp_data_in_order(pair.qp, IBV_WR_SEND, 0), 0);
	fake_pair_destroy(&pair);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(create_qp__fills_the_public_struct),
		UNIT(create_qp__refuses_what_is_wrong),
		UNIT(create_qp__refuses_what_is_not_built),
		UNIT(create_qp_ex__is_create_qp_and_no_more),
		UNIT(modify_qp__goes_through_the_states),
		UNIT(modify_qp__tells_the_engine),
		UNIT(modify_qp__changes_nothing_on_failure),
		UNIT(modify_qp__passes_on_that_the_peer_does_not_answer),
		UNIT(query_qp__gives_what_was_set),
		UNIT(query_qp__refreshes_the_public_state),
		UNIT(destroy_qp__makes_the_number_find_nothing),
		UNIT(extras__that_no_queue_pair_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
