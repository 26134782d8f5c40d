/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/device.c. */
#include "rig.h"

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

/* Ids without a domain of the program's share one, which goes with the last. */
TEST(device_get_pd__is_shared)
{
	struct rdma_cm_id *one = rig_create(RDMA_PS_TCP), *two = rig_create(RDMA_PS_TCP);
	struct cm_device *device;

	assert_int_equal(rdma_bind_addr(one, rig_ipv4(0, 0)), 0);
	assert_int_equal(rdma_bind_addr(two, rig_ipv4(0, 0)), 0);
	device = cm_id_of(one)->device;
	assert_null(device->pd);
	rig_create_qp(one);
	rig_create_qp(two);
	assert_ptr_equal(one->pd, two->pd);
	rdma_destroy_qp(one);
	rdma_destroy_id(one);
	assert_ptr_equal(device->pd, two->pd);
	rdma_destroy_qp(two);
	rdma_destroy_id(two);
	assert_null(device->pd);
}

/* What the program still has in it keeps the domain. */
TEST(device_put_pd__stays_while_it_is_used)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct cm_device *device;
	char buffer[64];
	struct ibv_mr *mr;

	assert_int_equal(rdma_bind_addr(id, rig_ipv4(0, 0)), 0);
	device = cm_id_of(id)->device;
	rig_create_qp(id);
	mr = rdma_reg_msgs(id, buffer, sizeof(buffer));
	assert_non_null(mr);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	assert_non_null(device->pd);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	id = rig_create(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(id, rig_ipv4(0, 0)), 0);
	rig_create_qp(id);
	assert_ptr_equal(id->pd, device->pd);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	assert_null(device->pd);
}
