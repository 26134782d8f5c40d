/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/ece.c. */
#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

static void assert_remote(struct rdma_cm_id *id, uint32_t vendor_id, uint32_t options)
{
	struct ibv_ece ece = {.comp_mask = 1};

	assert_int_equal(rdma_get_remote_ece(id, &ece), 0);
	assert_int_equal(ece.vendor_id, vendor_id);
	assert_int_equal(ece.options, options);
	assert_int_equal(ece.comp_mask, 0);
}

/* Programs with queue pairs of their own: each side learns what the other one has. */
TEST(rdma_set_local_ece__reaches_the_peer)
{
	struct ibv_ece asked = {.vendor_id = 0xa1b2c3, .options = 0x11223344};
	struct ibv_ece answered = {.vendor_id = 0x15b3, .options = 0x80000001};
	struct rdma_conn_param param = {.qp_num = 5};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP),
				.active = rig_resolve(RDMA_PS_TCP)};

	assert_int_equal(rdma_set_local_ece(pair.active, &asked), 0);
	assert_int_equal(rdma_connect(pair.active, &param), 0);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_remote(pair.passive, 0xa1b2c3, 0x11223344);
	assert_remote(pair.active, 0, 0);
	assert_int_equal(rdma_set_local_ece(pair.passive, &answered), 0);
	assert_int_equal(rdma_accept(pair.passive, &param), 0);
	rig_expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_remote(pair.active, 0x15b3, 0x80000001);
	rig_end(&pair);
}

TEST(rdma_set_local_ece__wrong_calls)
{
	struct ibv_ece ece = {.vendor_id = 0};
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);

	rig_fails(rdma_set_local_ece(id, &ece), EINVAL);
	ece.vendor_id = 1;
	ece.comp_mask = 1;
	rig_fails(rdma_set_local_ece(id, &ece), EINVAL);
	ece.comp_mask = 0;
	rig_fails(rdma_set_local_ece(NULL, &ece), EINVAL);
	rig_fails(rdma_set_local_ece(id, NULL), EINVAL);
	rig_fails(rdma_get_remote_ece(NULL, &ece), EINVAL);
	rig_fails(rdma_get_remote_ece(id, NULL), EINVAL);
	rig_create_qp(id);
	rig_fails(rdma_set_local_ece(id, &ece), EINVAL);
	rig_fails(rdma_get_remote_ece(id, &ece), EINVAL);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}
