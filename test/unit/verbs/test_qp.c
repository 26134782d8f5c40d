/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs. */
#include "qp/qp.h"

#include "fake.h"

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

/* A mistake is told at once, and the peer is not asked for its address in vain. */
static void modify_qp__checks_before_it_resolves(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .ah_attr = fake_ah_attr(FAKE_GID_V4)};

	fake.resolve_result = -ETIMEDOUT;
	assert_int_equal(ibv_modify_qp(pair.qp, &attr, IBV_QP_STATE | IBV_QP_AV), EINVAL);
	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_INIT), 0);
	assert_int_equal(ibv_modify_qp(pair.qp, &attr, IBV_QP_STATE | IBV_QP_AV), EINVAL);
	assert_int_equal(fake.resolves, 0);
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

static void rate_limit__is_set_in_rts(void **state)
{
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1000000};
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int kicks;

	assert_int_equal(ibv_modify_qp_rate_limit(pair.qp, &limit), EINVAL);
	assert_int_equal(fake_connect(pair.qp, 77, FAKE_GID_V4, IBV_QPS_RTS), 0);
	kicks = fake.kicks;
	assert_int_equal(ibv_modify_qp_rate_limit(pair.qp, &limit), 0);
	/* What the old rate holds back may go sooner now. */
	assert_int_equal(fake.kicks, kicks + 1);
	assert_int_equal(ibv_query_qp(pair.qp, &attr, IBV_QP_RATE_LIMIT, &init), 0);
	assert_int_equal(attr.rate_limit, 1000000);
	fake_pair_destroy(&pair);
}

static void extras__that_no_queue_pair_has(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_ece ece = {.vendor_id = 1, .options = 2};

	assert_int_equal(ibv_set_ece(pair.qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(pair.qp, &ece), EOPNOTSUPP);
	assert_int_equal(ece.options, 0);
	fake_pair_destroy(&pair);
}

static void data_in_order__is_promised_for_what_places_bytes(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);

	assert_int_equal(ibv_query_qp_data_in_order(pair.qp, IBV_WR_SEND, 0), 1);
	assert_int_equal(ibv_query_qp_data_in_order(pair.qp, IBV_WR_RDMA_WRITE, 0), 1);
	assert_int_equal(ibv_query_qp_data_in_order(pair.qp, IBV_WR_RDMA_READ, 0), 1);
	assert_int_equal(ibv_query_qp_data_in_order(pair.qp, IBV_WR_ATOMIC_CMP_AND_SWP, 0), 0);
	assert_int_equal(ibv_query_qp_data_in_order(pair.qp, IBV_WR_RDMA_WRITE, 1), 0);
	fake_pair_destroy(&pair);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(modify_qp__goes_through_the_states),
		UNIT(modify_qp__tells_the_engine),
		UNIT(modify_qp__changes_nothing_on_failure),
		UNIT(modify_qp__passes_on_that_the_peer_does_not_answer),
		UNIT(modify_qp__checks_before_it_resolves),
		UNIT(query_qp__gives_what_was_set),
		UNIT(query_qp__refreshes_the_public_state),
		UNIT(destroy_qp__makes_the_number_find_nothing),
		UNIT(rate_limit__is_set_in_rts),
		UNIT(extras__that_no_queue_pair_has),
		UNIT(data_in_order__is_promised_for_what_places_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
