/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles. */
#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(create_ah__holds_its_domain)
{
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	assert_non_null(ah);
	assert_ptr_equal(ah->context, *state);
	assert_ptr_equal(ah->pd, pd);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(create_ah__fails_where_there_is_no_path)
{
	struct ibv_ah_attr attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	fake.resolve_result = -ENETUNREACH;
	errno = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, ENETUNREACH);
	attr.is_global = 0;
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
