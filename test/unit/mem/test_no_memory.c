/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem without memory: each object that cannot be created says so, and leaves nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "env.h"
#include "mem/advise.h"
#include "mem/dm.h"
#include "mem/mw.h"
#include "mem/pager.h"
#include "test.h"

#define NO_LIMIT UINT32_MAX

static uint32_t allowed = NO_LIMIT; /* allocations that succeed from now on */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
int __real_posix_memalign(void **memory, size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __wrap_posix_memalign(void **memory, size_t align, size_t size);

static bool may_allocate(void)
{
	if (allowed == NO_LIMIT)
		return true;
	if (allowed == 0)
		return false;
	allowed--;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return may_allocate() ? __real_calloc(count, size) : NULL;
}

int __wrap_posix_memalign(void **memory, size_t align, size_t size)
{
	return may_allocate() ? __real_posix_memalign(memory, align, size) : ENOMEM;
}

TEST_FIXTURE(env_set_up, env_tear_down);

/* Call it with more and more allocations that succeed, until it succeeds. */
static void create(int (*once)(void))
{
	int rc = -ENOMEM;

	for (uint32_t allocations = 0; rc != 0; allocations++) {
		allowed = allocations;
		rc = once();
		allowed = NO_LIMIT;
		if (rc != 0)
			assert_int_equal(rc, -ENOMEM);
		assert_true(allocations < 10);
	}
}

static struct pd *pd;
static struct key_table *keys;
static struct mr *mr;
static struct mw *mw;
static struct dm *dm;
static struct dm_pool pool;
static struct pager *pager;

static int create_pd(void)
{
	return pd_create(env.keys, &pd);
}

TEST(pd_create__without_memory)
{
	create(create_pd);
	assert_int_equal(pd_destroy(pd), 0);
}

static int create_keys(void)
{
	return key_table_create(4, &keys);
}

TEST(key_table_create__without_memory)
{
	keys = NULL;
	create(create_keys);
	assert_non_null(keys);
	key_table_destroy(keys);
}

/* The first key of a table needs memory for its place. */
static int create_mr(void)
{
	return env_register(env.memory, 8, RW, &mr);
}

TEST(mr_register__without_memory)
{
	create(create_mr);
	assert_int_equal(env.pd->users, 1);
	assert_int_equal(mr_deregister(mr), 0);
}

static int create_mw(void)
{
	return mw_create(env.pd, IBV_MW_TYPE_2, &mw);
}

TEST(mw_create__without_memory)
{
	create(create_mw);
	assert_int_equal(env.pd->users, 1);
	mw_destroy(mw);
}

static int create_dm(void)
{
	const int rc = dm_create(&pool, 64, 0, &dm);

	assert_int_equal(pool.used_bytes != 0, rc == 0);
	return rc;
}

TEST(dm_create__without_memory)
{
	pool = (struct dm_pool){.total_bytes = 4096};
	create(create_dm);
	assert_int_equal(dm_destroy(dm), 0);
}

static int create_pager(void)
{
	static uint64_t now_ns;
	const struct pager_config config = {.now_ns = &now_ns};

	return pager_create(&config, &pager);
}

TEST(pager_create__without_memory)
{
	pager = NULL;
	create(create_pager);
	assert_non_null(pager);
	pager_destroy(pager);
}

TEST(advise_follow_later__without_memory)
{
	struct ibv_sge sge = {.addr = (uintptr_t)env.memory, .length = 8};
	struct advise_range range;
	int rc;

	mr = env_region(8, RW | IBV_ACCESS_ON_DEMAND);
	sge.lkey = mr->key;
	assert_int_equal(advise_check(env.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1, &range),
			 0);
	allowed = 0;
	rc = advise_follow_later(IBV_ADVISE_MR_ADVICE_PREFETCH, &range, 1);
	allowed = NO_LIMIT;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(mr_deregister(mr), 0);
}
