/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/dm.c. */
#include "env.h"

#include <pthread.h>

#include "base/verbs_later.h"
#include "mem/dm.h"
#include "test.h"

#define POOL_BYTES 4096
#define LENGTH	   200

#define ZERO_BASED IBV_ACCESS_ZERO_BASED

static struct dm_pool pool;
static struct dm *dm;

static int set_up(void **state)
{
	pool = (struct dm_pool){.total_bytes = POOL_BYTES};
	return env_set_up(state) | dm_create(&pool, LENGTH, 0, &dm);
}

/* Fail if the test has left device memory allocated. */
static int tear_down(void **state)
{
	return env_tear_down(state) | dm_destroy(dm) | (pool.used_bytes != 0);
}

TEST_FIXTURE(set_up, tear_down);

static struct mr *region(uint64_t offset, size_t length, unsigned int access)
{
	struct mr *mr;

	assert_int_equal(dm_register(env.pd, dm, offset, length, access, &mr), 0);
	return mr;
}

TEST(dm_create__memory_of_zeros)
{
	static const uint8_t zeros[LENGTH];
	uint8_t bytes[LENGTH];

	memset(bytes, 0xee, sizeof(bytes));
	assert_int_equal(dm_read(dm, 0, bytes, LENGTH), 0);
	assert_memory_equal(bytes, zeros, LENGTH);
	/* New memory is zero even where another user's data was. */
	for (int i = 0; i < 10; i++) {
		struct dm *next;

		assert_int_equal(dm_create(&pool, LENGTH, 0, &next), 0);
		assert_int_equal(dm_read(next, 0, bytes, LENGTH), 0);
		assert_memory_equal(bytes, zeros, LENGTH);
		memset(bytes, 0xee, sizeof(bytes));
		assert_int_equal(dm_write(next, 0, bytes, LENGTH), 0);
		assert_int_equal(dm_destroy(next), 0);
	}
}

#define ROUNDS 50000

static void *create_many(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct dm *next;

		if (dm_create(&pool, 4, 0, &next) != 0)
			return arg;
		dm_destroy(next);
	}
	return NULL;
}

/* What one thread takes and gives back does not change what another one has. */
TEST(dm_create__in_two_threads_takes_from_one_pool)
{
	const uint64_t before = pool.used_bytes;
	pthread_t thread;
	void *failed;

	assert_int_equal(pthread_create(&thread, NULL, create_many, &pool), 0);
	assert_null(create_many(&pool));
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_int_equal(pool.used_bytes, before);
}

TEST(dm_create__arguments_are_checked)
{
	struct dm *other;

	assert_int_equal(dm_create(&pool, 0, 0, &other), -EINVAL);
	assert_int_equal(dm_create(&pool, POOL_BYTES + 1, 0, &other), -EINVAL);
	assert_int_equal(dm_create(&pool, UINT64_MAX, 0, &other), -EINVAL);
	assert_int_equal(dm_create(&pool, 1, 13, &other), -EINVAL); /* 2^13 > the pool */
	assert_int_equal(dm_create(&pool, 1, 64, &other), -EINVAL);
	assert_int_equal(dm_create(&pool, 1, UINT32_MAX, &other), -EINVAL);
}

TEST(dm_create__is_aligned_as_asked)
{
	for (uint32_t log_align = 0; log_align <= 12; log_align++) {
		struct dm *aligned;

		assert_int_equal(dm_create(&pool, 3, log_align, &aligned), 0);
		assert_int_equal((uintptr_t)aligned->bytes % ((uintptr_t)1 << log_align), 0);
		assert_int_equal((uintptr_t)aligned->bytes % DM_BLOCK_BYTES, 0);
		assert_int_equal(dm_destroy(aligned), 0);
	}
}

TEST(dm_create__takes_no_more_than_the_pool_has)
{
	struct dm *rest, *more;

	/* 200 bytes take four blocks of 64. */
	assert_int_equal(pool.used_bytes, 256);
	assert_int_equal(dm_create(&pool, POOL_BYTES, 0, &more), -ENOMEM);
	assert_int_equal(dm_create(&pool, POOL_BYTES - 256, 0, &rest), 0);
	assert_int_equal(dm_create(&pool, 1, 0, &more), -ENOMEM);
	assert_int_equal(dm_destroy(rest), 0);
	assert_int_equal(pool.used_bytes, 256);
	assert_int_equal(dm_create(&pool, 1, 0, &more), 0);
	assert_int_equal(pool.used_bytes, 320);
	assert_int_equal(dm_destroy(more), 0);
}

TEST(dm_write__and_dm_read_stay_inside)
{
	static const struct {
		uint64_t offset;
		size_t length;
		int rc;
	} cases[] = {
		{0, LENGTH, 0},
		{0, LENGTH + 1, -EINVAL},
		{LENGTH, 0, 0},
		{LENGTH, 4, -EINVAL},
		{LENGTH - 4, 4, 0},
		{LENGTH + 4, 0, -EINVAL},
		{UINT64_MAX - 3, 4, -EINVAL},
		{UINT64_MAX - 3, 8, -EINVAL},
		{4, SIZE_MAX - 3, -EINVAL},
		/* not whole words */
		{1, 4, -EINVAL},
		{2, 4, -EINVAL},
		{0, 3, -EINVAL},
	};
	uint8_t bytes[LENGTH] = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(dm_write(dm, cases[i].offset, bytes, cases[i].length),
				 cases[i].rc);
		assert_int_equal(dm_read(dm, cases[i].offset, bytes, cases[i].length), cases[i].rc);
	}
	assert_int_equal(dm_write(dm, 100, "abcd", 4), 0);
	assert_int_equal(dm_read(dm, 96, bytes, 12), 0);
	assert_memory_equal(bytes, "\0\0\0\0abcd\0\0\0\0", 12);
	/* A copy of no bytes needs no memory. */
	assert_int_equal(dm_write(dm, 0, NULL, 0), 0);
	assert_int_equal(dm_read(dm, 0, NULL, 0), 0);
}

TEST(dm_register__access_is_checked)
{
	static const struct {
		unsigned int access;
		int rc;
	} cases[] = {
		{0, -EINVAL},
		{IBV_ACCESS_LOCAL_WRITE, -EINVAL}, /* zero-based addresses were not asked for */
		{ZERO_BASED, 0},
		{ZERO_BASED | RW | IBV_ACCESS_REMOTE_ATOMIC, 0},
		{ZERO_BASED | RW | IBV_ACCESS_RELAXED_ORDERING, 0},
		{ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE, 0},
		{ZERO_BASED | IBV_ACCESS_REMOTE_WRITE, -EINVAL},
		{ZERO_BASED | IBV_ACCESS_REMOTE_ATOMIC, -EINVAL},
		{ZERO_BASED | IBV_ACCESS_MW_BIND, -EINVAL},
		{ZERO_BASED | IBV_ACCESS_ON_DEMAND, -EINVAL},
		{ZERO_BASED | IBV_ACCESS_HUGETLB, -EINVAL},
		{ZERO_BASED | LATER_ACCESS_FLUSH_GLOBAL, -EINVAL},
		{ZERO_BASED | 1u << 31, -EINVAL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr *mr;

		assert_int_equal(dm_register(env.pd, dm, 0, LENGTH, cases[i].access, &mr),
				 cases[i].rc);
		if (cases[i].rc == 0)
			mr_deregister(mr);
	}
	assert_int_equal(env.pd->users, 0);
}

TEST(dm_register__refuses_what_is_outside)
{
	struct mr *mr;

	assert_int_equal(dm_register(env.pd, dm, 0, LENGTH + 1, ZERO_BASED, &mr), -EINVAL);
	assert_int_equal(dm_register(env.pd, dm, 1, LENGTH, ZERO_BASED, &mr), -EINVAL);
	assert_int_equal(dm_register(env.pd, dm, LENGTH + 1, 0, ZERO_BASED, &mr), -EINVAL);
	assert_int_equal(dm_register(env.pd, dm, UINT64_MAX, 2, ZERO_BASED, &mr), -EINVAL);
	assert_int_equal(dm_register(env.pd, dm, 1, SIZE_MAX, ZERO_BASED, &mr), -EINVAL);
	assert_int_equal(dm->users, 0);
	/* A region of length zero is allowed too. */
	assert_int_equal(dm_register(env.pd, dm, LENGTH, 0, ZERO_BASED, &mr), 0);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(dm_register__is_zero_based)
{
	struct mr *mr = region(64, 100, RW | ZERO_BASED);
	uint8_t *addr;

	assert_int_equal(mr->iova, 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 100, RW, &addr), MR_OK);
	assert_ptr_equal(addr, dm->bytes + 64);
	assert_int_equal(mr_resolve(env.pd, mr->key, 1, 100, 0, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.other_pd, mr->key, 0, 1, 0, &addr), MR_WRONG_PD);
	mr_deregister(mr);
}

TEST(dm_register__cannot_be_changed)
{
	struct mr *mr = region(0, LENGTH, RW | ZERO_BASED);
	const struct mr_change changes[] = {
		{.flags = IBV_REREG_MR_CHANGE_PD, .pd = env.other_pd},
		{.flags = IBV_REREG_MR_CHANGE_ACCESS, .access = ZERO_BASED},
		{.flags = IBV_REREG_MR_CHANGE_TRANSLATION, .addr = env.memory, .length = 1},
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		assert_int_equal(mr_check_change(mr, &changes[i]), -EINVAL);
	mr_deregister(mr);
}

TEST(dm_destroy__not_while_a_region_is_on_it)
{
	struct mr *first = region(0, LENGTH, ZERO_BASED), *second = region(0, 1, ZERO_BASED);
	struct mr *mrs[ENV_REGIONS - 1];

	assert_int_equal(dm_destroy(dm), -EBUSY);
	assert_int_equal(mr_deregister(first), 0);
	assert_int_equal(dm_destroy(dm), -EBUSY);
	/* A registration that fails leaves no trace. */
	for (size_t i = 0; i < ENV_REGIONS - 1; i++)
		mrs[i] = region(0, 1, ZERO_BASED);
	assert_int_equal(dm->users, ENV_REGIONS);
	assert_int_equal(dm_register(env.pd, dm, 0, 1, ZERO_BASED, &first), -ENOMEM);
	assert_int_equal(dm->users, ENV_REGIONS);
	for (size_t i = 0; i < ENV_REGIONS - 1; i++)
		mr_deregister(mrs[i]);
	mr_deregister(second);
	assert_int_equal(dm->users, 0);
	assert_int_equal(env.pd->users, 0);
}

/* A handle of it in another process or object may still be used. */
TEST(dm_hold__keeps_the_memory_after_its_end)
{
	struct dm *held;
	uint64_t word = 1;

	assert_int_equal(dm_create(&pool, LENGTH, 0, &held), 0);
	dm_hold(held);
	assert_int_equal(dm_destroy(held), 0);
	assert_int_equal(dm_read(held, 0, &word, sizeof(word)), 0);
	assert_int_equal(word, 0);
	dm_release_hold(held);
}
