/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles that are ended twice, or never were any: refused, and nothing else has changed. */
#include <fcntl.h>
#include <stdlib.h>

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define HANDLES 10000

static bool memory_is_out;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return memory_is_out ? NULL : __real_calloc(count, size);
}

#define EXPECT_REFUSED(call)                     \
	do {                                     \
		errno = 0;                       \
		assert_int_equal(call, EINVAL);  \
		assert_int_equal(errno, EINVAL); \
	} while (0)

TEST(take__once_and_nothing_else)
{
	static char objects[HANDLES][32];
	uint32_t order = 1;

	for (size_t i = 0; i < HANDLES; i++)
		handles_add(objects[i]);
	/* Each one out of the middle of the others; 7919 is a prime. */
	for (size_t i = 0; i < HANDLES; i++) {
		order = (order + 7919) % HANDLES;
		assert_true(handles_take(objects[order]));
		assert_false(handles_take(objects[order]));
		assert_false(handles_take(objects[order] + 1));
	}
	assert_false(handles_take(NULL));
}

TEST(destroy__twice_is_refused)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_ah_attr ah_attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_ah *ah = ibv_create_ah(pair.pd, &ah_attr);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4}};
	struct ibv_srq *srq = ibv_create_srq(pair.pd, &srq_init);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(*state);
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, &pair, sizeof(pair), 0);
	struct ibv_mw *mw = ibv_alloc_mw(pair.pd, IBV_MW_TYPE_1);

	assert_int_equal(ibv_destroy_qp(pair.qp), 0);
	EXPECT_REFUSED(ibv_destroy_qp(pair.qp));
	assert_int_equal(ibv_destroy_ah(ah), 0);
	EXPECT_REFUSED(ibv_destroy_ah(ah));
	assert_int_equal(ibv_destroy_srq(srq), 0);
	EXPECT_REFUSED(ibv_destroy_srq(srq));
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	EXPECT_REFUSED(ibv_destroy_comp_channel(channel));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	EXPECT_REFUSED(ibv_dereg_mr(mr));
	/* verbs.h itself looks at the window. */
	assert_int_equal(dealloc_mw_op(mw), 0);
	EXPECT_REFUSED(dealloc_mw_op(mw));
	assert_int_equal(ibv_destroy_cq(pair.cq), 0);
	EXPECT_REFUSED(ibv_destroy_cq(pair.cq));
	assert_int_equal(ibv_dealloc_pd(pair.pd), 0);
	EXPECT_REFUSED(ibv_dealloc_pd(pair.pd));
	/* Everything can be had as before. */
	assert_int_equal(fake.device->qps, 0);
	for (int kind = 0; kind < DEVICE_QUOTA_KINDS; kind++)
		assert_int_equal(fake.device->quota[kind], 0);
	pair = fake_pair_create(*state);
	fake_pair_destroy(&pair);
}

TEST(destroy__twice_what_verbs_h_looks_at)
{
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(*state, &dm_attr);
	struct ibv_td_init_attr td_attr = {.comp_mask = 0};
	struct ibv_td *td = ibv_alloc_td(*state, &td_attr);
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(*state, &xrcd_attr);
	struct ibv_parent_domain_init_attr parent_attr = {.pd = ibv_alloc_pd(*state)};
	struct ibv_pd *parent = ibv_alloc_parent_domain(*state, &parent_attr);

	assert_int_equal(free_dm_op(dm), 0);
	EXPECT_REFUSED(free_dm_op(dm));
	assert_int_equal(dealloc_td_op(td), 0);
	EXPECT_REFUSED(dealloc_td_op(td));
	assert_int_equal(close_xrcd_op(xrcd), 0);
	EXPECT_REFUSED(close_xrcd_op(xrcd));
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	EXPECT_REFUSED(ibv_dealloc_pd(parent));
	assert_int_equal(ibv_dealloc_pd(parent_attr.pd), 0);
}

TEST(close__twice_is_refused)
{
	struct ibv_context *other = fake_open();

	assert_int_equal(ibv_close_device(other), 0);
	errno = 0;
	assert_int_equal(ibv_close_device(other), -1);
	assert_int_equal(errno, EINVAL);
}

/* A second unimport, or one of an object that never was a handle, does nothing. */
TEST(unimport__twice_does_nothing)
{
	struct ibv_context *context = *state;
	struct ibv_pd *pd = ibv_alloc_pd(context), *second = ibv_import_pd(context, pd->handle);
	struct ibv_mr *mr = ibv_reg_mr(pd, &pd, sizeof(pd), 0);
	struct ibv_mr *same = ibv_import_mr(second, mr->handle);

	assert_non_null(same);
	ibv_unimport_mr(same);
	ibv_unimport_mr(same);
	EXPECT_REFUSED(ibv_dereg_mr(same));
	ibv_unimport_pd(second);
	ibv_unimport_pd(second);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(fake.device->quota[DEVICE_QUOTA_PD], 0);
}

/* An object in use stays a handle and can be destroyed later. */
TEST(destroy__that_fails_leaves_the_handle)
{
	struct fake_pair pair = fake_pair_create(*state);

	for (int i = 0; i < 3; i++) {
		assert_int_equal(ibv_destroy_cq(pair.cq), EBUSY);
		assert_int_equal(ibv_dealloc_pd(pair.pd), EBUSY);
	}
	fake_pair_destroy(&pair);
}

TEST(destroy__what_is_no_handle_is_refused)
{
	struct ibv_pd mine = {.context = *state};

	EXPECT_REFUSED(ibv_dealloc_pd(&mine));
	EXPECT_REFUSED(ibv_destroy_qp(NULL));
}

/* Without memory for the table, no check is possible and nothing is refused. This is the last test,
 * since the table stays unavailable. */
TEST(add__without_memory_refuses_nothing)
{
	static char objects[2 * HANDLES][32];

	memory_is_out = true;
	for (size_t i = 0; i < 2 * HANDLES; i++)
		handles_add(objects[i]);
	memory_is_out = false;
	for (size_t i = 0; i < 2 * HANDLES; i++)
		assert_true(handles_take(objects[i]));
}
