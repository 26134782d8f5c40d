/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/mr.c: the null region. */
#include "env.h"
#include "test.h"

TEST_FIXTURE(env_set_up, env_tear_down);

static struct mr *null_region(void)
{
	struct mr *mr;

	assert_int_equal(mr_create_null(env.pd, &mr), 0);
	return mr;
}

TEST(mr_create_null__every_address_is_in_it)
{
	static const struct {
		uint64_t iova, length;
	} cases[] = {
		{0, 1}, {0, UINT64_MAX}, {1, 1ull << 31}, {1ull << 63, 1}, {UINT64_MAX - 1, 1},
	};
	struct mr *mr = null_region();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t *addr = env.memory;

		assert_int_equal(mr_resolve(env.pd, mr->key, cases[i].iova, cases[i].length,
					    IBV_ACCESS_LOCAL_WRITE, &addr),
				 MR_OK);
		assert_null(addr);
		addr = env.memory;
		assert_int_equal(mr_reach(env.pd, mr->key, cases[i].iova, cases[i].length,
					  IBV_ACCESS_LOCAL_WRITE, (struct mr_touch){0}, &addr),
				 MR_OK);
		assert_null(addr);
	}
	mr_deregister(mr);
}

TEST(mr_create_null__nobody_reaches_it_from_afar)
{
	struct mr *mr = null_region();
	uint8_t *addr;

	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 1, IBV_ACCESS_REMOTE_READ, &addr),
			 MR_NO_ACCESS);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 1, IBV_ACCESS_REMOTE_WRITE, &addr),
			 MR_NO_ACCESS);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 8, IBV_ACCESS_REMOTE_ATOMIC, &addr),
			 MR_NO_ACCESS);
	assert_int_equal(mr_resolve(env.other_pd, mr->key, 0, 1, 0, &addr), MR_WRONG_PD);
	mr_deregister(mr);
}

TEST(mr_create_null__cannot_be_changed)
{
	const struct mr_change change = {.flags = IBV_REREG_MR_CHANGE_PD, .pd = env.other_pd};
	struct mr *mr = null_region();

	assert_int_equal(mr_check_change(mr, &change), -EINVAL);
	mr_deregister(mr);
}

TEST(mr_create_null__counts_in_the_table_only)
{
	struct mr *mrs[ENV_REGIONS], *mr;

	for (size_t i = 0; i < ENV_REGIONS; i++)
		mrs[i] = null_region();
	assert_int_equal(env.pd->users, 0);
	assert_int_equal(mr_create_null(env.pd, &mr), -ENOMEM);
	for (size_t i = 0; i < ENV_REGIONS; i++)
		mr_deregister(mrs[i]);
	assert_int_equal(env.pd->users, 0);
	assert_int_equal(env.pd->holders, 1);
}

/* It has no memory that the domain would protect. */
TEST(mr_create_null__lets_its_domain_go)
{
	struct mr *mr, *late;
	struct pd *pd;
	uint8_t *addr;

	assert_int_equal(pd_create(env.keys, &pd), 0);
	assert_int_equal(mr_create_null(pd, &mr), 0);
	pd_hold(pd);
	assert_int_equal(pd_destroy(pd), 0);
	assert_int_equal(mr_create_null(pd, &late), -EINVAL);
	pd_release_hold(pd);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 1, 0, &addr), MR_WRONG_PD);
	assert_int_equal(mr_deregister(mr), 0);
}
