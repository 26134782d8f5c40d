/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains. */
#include <stdlib.h>

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(alloc_pd__belongs_to_its_context)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	assert_non_null(pd);
	assert_ptr_equal(pd->context, *state);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(alloc_pd__gives_different_handles)
{
	struct ibv_pd *a = ibv_alloc_pd(*state), *b = ibv_alloc_pd(*state);

	assert_int_not_equal(a->handle, b->handle);
	assert_int_equal(ibv_dealloc_pd(a), 0);
	assert_int_equal(ibv_dealloc_pd(b), 0);
}

/* Allocate as many domains as the device reports. */
TEST(alloc_pd__no_more_than_there_are)
{
	struct ibv_device_attr attr;
	struct ibv_pd **pds;

	assert_int_equal(ibv_query_device(*state, &attr), 0);
	pds = calloc((size_t)attr.max_pd, sizeof(pds[0]));
	assert_non_null(pds);
	for (int i = 0; i < attr.max_pd; i++) {
		pds[i] = ibv_alloc_pd(*state);
		assert_non_null(pds[i]);
	}
	errno = 0;
	assert_null(ibv_alloc_pd(*state));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_dealloc_pd(pds[0]), 0);
	pds[0] = ibv_alloc_pd(*state);
	assert_non_null(pds[0]);
	for (int i = 0; i < attr.max_pd; i++)
		assert_int_equal(ibv_dealloc_pd(pds[i]), 0);
	free(pds);
}

/* As with adapters, whose null region is no object of the domain. Its handle stays the program's.
 */
TEST(dealloc_pd__a_null_region_holds_nothing)
{
	struct ibv_parent_domain_init_attr init = {.comp_mask = 0};
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent;
	struct ibv_mr *null = ibv_alloc_null_mr(pd), *other;

	init.pd = pd;
	parent = ibv_alloc_parent_domain(*state, &init);
	assert_non_null(parent);
	other = ibv_alloc_null_mr(parent);
	assert_non_null(null);
	assert_non_null(other);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	pd = ibv_alloc_pd(*state);
	assert_int_equal(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(null), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	/* The other one ends with its device. */
	assert_int_equal(ibv_close_device(*state), 0);
	*state = fake_open();
	assert_int_equal(ibv_dereg_mr(other), ENODEV);
}

TEST(dealloc_pd__is_busy_while_used)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
