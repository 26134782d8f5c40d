/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rdma_device.c. */
#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(rdma_get_devices__are_those_of_bound_ids)
{
	int count = -1;
	struct ibv_context **list = rdma_get_devices(&count), **again;
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(count, RIG_DEVICES);
	assert_null(list[RIG_DEVICES]);
	assert_int_equal(rdma_bind_addr(id, rig_ipv4(1, 0)), 0);
	assert_ptr_equal(id->verbs, list[1]);
	again = rdma_get_devices(NULL);
	assert_ptr_equal(again[0], list[0]);
	rdma_free_devices(again);
	rdma_free_devices(list);
	rdma_free_devices(NULL);
	rdma_destroy_id(id);
}

/* Ids without a domain of the program's share one. It stays, since programs register memory in it.
 */
TEST(rdma_bind_addr__ids_share_a_domain)
{
	struct rdma_cm_id *one = rig_create(RDMA_PS_TCP), *two = rig_create(RDMA_PS_TCP);
	char buffer[64];
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	assert_int_equal(rdma_bind_addr(one, rig_ipv4(0, 0)), 0);
	assert_int_equal(rdma_bind_addr(two, rig_ipv4(0, 0)), 0);
	pd = one->pd;
	assert_non_null(pd);
	assert_ptr_equal(two->pd, pd);
	mr = rdma_reg_msgs(one, buffer, sizeof(buffer));
	assert_non_null(mr);
	rig_create_qp(one);
	assert_ptr_equal(one->qp->pd, pd);
	rdma_destroy_qp(one);
	rdma_destroy_id(one);
	rdma_destroy_id(two);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	one = rig_create(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(one, rig_ipv4(0, 0)), 0);
	assert_ptr_equal(one->pd, pd);
	rdma_destroy_id(one);
}
