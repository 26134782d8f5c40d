/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains. */
#include "fake.h"

static void alloc_pd__belongs_to_its_context(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	assert_non_null(pd);
	assert_ptr_equal(pd->context, *state);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void alloc_pd__gives_different_handles(void **state)
{
	struct ibv_pd *a = ibv_alloc_pd(*state), *b = ibv_alloc_pd(*state);

	assert_int_not_equal(a->handle, b->handle);
	assert_int_equal(ibv_dealloc_pd(a), 0);
	assert_int_equal(ibv_dealloc_pd(b), 0);
}

static void dealloc_pd__is_busy_while_used(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(alloc_pd__belongs_to_its_context),
		UNIT(alloc_pd__gives_different_handles),
		UNIT(dealloc_pd__is_busy_while_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
