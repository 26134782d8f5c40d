/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rdma_srq.c. */
#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

static struct ibv_srq_init_attr srq_attr(void)
{
	return (struct ibv_srq_init_attr){.attr = {.max_wr = 4, .max_sge = 1}};
}

/* An id of a type that only rdma_create_ep makes. */
static struct rdma_cm_id *create_xrc(enum ibv_qp_type type)
{
	struct rdma_addrinfo info = {.ai_port_space = RDMA_PS_IB, .ai_qp_type = type};
	struct rdma_cm_id *id;

	info.ai_dst_addr = rig_ipv4(1, RIG_PORT);
	assert_int_equal(rdma_create_ep(&id, &info, NULL, NULL), 0);
	return id;
}

TEST(rdma_create_srq__is_the_queue_pairs)
{
	struct ibv_srq_init_attr attr = srq_attr();
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);

	assert_int_equal(rdma_create_srq(id, NULL, &attr), 0);
	rig_fails(rdma_create_srq(id, NULL, &attr), EINVAL);
	rig_create_qp(id);
	assert_ptr_equal(id->qp->srq, id->srq);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	assert_null(id->srq);
	rdma_destroy_id(id);
}

TEST(rdma_create_srq__wrong_calls)
{
	struct ibv_srq_init_attr attr = srq_attr();
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig_fails(rdma_create_srq(NULL, NULL, &attr), EINVAL);
	rig_fails(rdma_create_srq(id, NULL, NULL), EINVAL);
	rig_fails(rdma_create_srq(id, NULL, &attr), EINVAL);
	rig_fails(rdma_create_srq_ex(NULL, NULL), EINVAL);
	rig_fails(rdma_create_srq_ex(id, NULL), EINVAL);
	rdma_destroy_srq(id);
	rdma_destroy_srq(NULL);
	rdma_destroy_id(id);
}

/* The completion queue is the id's, and is destroyed with the last object that uses it. */
TEST(rdma_create_srq__xrc_outlives_the_queue_pair)
{
	struct ibv_qp_init_attr_ex qp_attr = {.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_srq_init_attr attr = srq_attr();
	struct rdma_cm_id *id = create_xrc(IBV_QPT_XRC_RECV);

	assert_int_equal(rdma_create_srq(id, NULL, &attr), 0);
	assert_non_null(id->recv_cq);
	assert_int_equal(rdma_create_qp_ex(id, &qp_attr), 0);
	rdma_destroy_qp(id);
	assert_non_null(id->recv_cq);
	rdma_destroy_srq(id);
	assert_null(id->recv_cq);
	assert_null(id->recv_cq_channel);
	rdma_destroy_id(id);
}

TEST(rdma_create_srq__refused_xrc_queue_leaves_nothing)
{
	struct ibv_srq_init_attr attr = srq_attr();
	struct rdma_cm_id *id = create_xrc(IBV_QPT_XRC_RECV);

	attr.attr.max_sge = 1000;
	rig_fails(rdma_create_srq(id, NULL, &attr), EINVAL);
	assert_null(id->recv_cq);
	rdma_destroy_id(id);
}
