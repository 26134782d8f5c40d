/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of objects that another handle has destroyed, and objects whose handles are gone. */
#include "device/quota.h"

#include "domains.h"
#include "talk.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

/* A second handle of a domain, which the first one has destroyed. */
static struct ibv_pd *destroyed(struct ibv_context *context)
{
	struct ibv_pd *pd = ibv_alloc_pd(context), *left = ibv_import_pd(context, pd->handle);

	assert_non_null(left);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	return left;
}

TEST(dealloc_pd__no_region_is_made_by_a_handle_that_is_left)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *left = destroyed(*state);
	struct ibv_dm *dm = ibv_alloc_dm(*state, &(struct ibv_alloc_dm_attr){.length = 64});
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = 1, .lkey = mr->lkey};

	assert_refused(ibv_reg_mr(left, buf, sizeof(buf), 0), EINVAL);
	assert_refused(ibv_alloc_null_mr(left), EINVAL);
	assert_refused(ibv_reg_dm_mr(left, dm, 0, 64, IBV_ACCESS_ZERO_BASED), EINVAL);
	assert_refused(ibv_alloc_mw(left, IBV_MW_TYPE_1), EINVAL);
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, left, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(ibv_advise_mr(left, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), ENOENT);
	assert_int_equal(ibv_dealloc_pd(left), EINVAL);
	ibv_unimport_pd(left);
	/* A refused import holds nothing. */
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(dealloc_pd__no_queue_is_made_by_a_handle_that_is_left)
{
	struct ibv_cq *cq = ibv_create_cq(*state, 16, NULL, NULL, 0);
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_pd *left = destroyed(*state);
	struct ibv_parent_domain_init_attr parent = {.pd = left};

	assert_refused(domains_qp(left, cq), EINVAL);
	assert_refused(domains_srq(left), EINVAL);
	assert_refused(ibv_create_ah(left, &attr), EINVAL);
	assert_refused(ibv_alloc_parent_domain(*state, &parent), EINVAL);
	ibv_unimport_pd(left);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	for (int i = 0; i < DEVICE_QUOTA_KINDS; i++)
		assert_int_equal(fake.device->quota[i], 0);
}

/* Windows and queue pairs know their domain without the handle. */
TEST(unimport_pd__windows_and_queue_pairs_made_by_it_go_on)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_pd *second = ibv_import_pd(*state, talk.b.pd->handle), *other;
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	struct ibv_mw *mw = ibv_alloc_mw(second, IBV_MW_TYPE_1);
	const uint32_t handle = talk.b.pd->handle;

	/* Satisfy rdma-core's own check, which compares handles. */
	talk.target_mr->pd = second;
	bind.bind_info = (struct ibv_mw_bind_info){.mr = talk.target_mr,
						   .addr = (uintptr_t)talk.target,
						   .length = 64,
						   .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	ibv_unimport_pd(second);
	ibv_unimport_pd(talk.b.pd);
	/* The new domain may have the memory of the old handle. */
	other = ibv_alloc_pd(*state);
	assert_int_equal(ibv_bind_mw(talk.b.qp, mw, &bind), 0);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	talk.b.pd = ibv_import_pd(*state, handle);
	talk_end(&talk);
}

TEST(dereg_mr__nothing_is_bound_by_a_handle_that_is_left)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_mr *left = ibv_import_mr(talk.b.pd, talk.target_mr->handle);
	struct ibv_mw *mw = ibv_alloc_mw(talk.b.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};

	bind.bind_info = (struct ibv_mw_bind_info){
		.mr = left, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	assert_int_equal(ibv_dereg_mr(talk.target_mr), 0);
	talk.target_mr = NULL;
	assert_int_equal(ibv_bind_mw(talk.b.qp, mw, &bind), 0);
	talk_wait(talk.b.cq, IBV_WC_MW_BIND_ERR);
	ibv_unimport_mr(left);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	talk_end(&talk);
}

static struct mr *left_over; /* nobody frees it */

TEST(close_device__a_domain_in_use_is_shown_no_more)
{
	static uint8_t memory[64];
	struct ibv_context *context = *state, *other = ibv_open_device(context->device);
	struct ibv_pd *pd = ibv_alloc_pd(other);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	left_over = face_mr(mr)->mr;
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	assert_int_equal(ibv_close_device(other), 0);
	/* The new domain is entered into the list in which the old one was. */
	pd = ibv_alloc_pd(context);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
