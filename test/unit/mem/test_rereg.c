/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/rereg.c. */
#include "env.h"
#include "test.h"

TEST_FIXTURE(env_set_up, env_tear_down);

#define TRANSLATION IBV_REREG_MR_CHANGE_TRANSLATION
#define PD	    IBV_REREG_MR_CHANGE_PD
#define ACCESS	    IBV_REREG_MR_CHANGE_ACCESS

/* Do both halves of a reregistration, as the facade does. */
static int rereg(struct mr *mr, struct mr_change change)
{
	const int rc = mr_check_change(mr, &change);

	if (rc == 0)
		mr_apply_change(mr, &change);
	return rc;
}

static enum mr_status resolve(const struct pd *pd, const struct mr *mr, const void *at,
			      unsigned int need)
{
	uint8_t *addr;

	return mr_resolve(pd, mr->key, (uintptr_t)at, 1, need, &addr);
}

TEST(mr_check_change__arguments_are_checked)
{
	struct mr *mr = env_region(env.page, RW);
	const struct mr before = *mr;
	struct key_table *keys;
	struct pd *foreign;

	assert_int_equal(key_table_create(1, &keys), 0);
	assert_int_equal(pd_create(keys, &foreign), 0);
	const struct mr_change cases[] = {
		{.flags = 0},
		{.flags = IBV_REREG_MR_FLAGS_SUPPORTED + 1},
		{.flags = ACCESS | 1u << 31, .access = RW},
		{.flags = TRANSLATION, .addr = NULL, .length = 1},
		{.flags = TRANSLATION, .addr = env.memory, .length = 0},
		{.flags = TRANSLATION, .addr = env.memory, .length = SIZE_MAX},
		{.flags = PD, .pd = NULL},
		{.flags = PD, .pd = foreign}, /* of another device */
		{.flags = PD, .pd = env.other_pd, .access = RW},
		{.flags = ACCESS, .access = IBV_ACCESS_REMOTE_WRITE},
		{.flags = ACCESS, .access = IBV_ACCESS_REMOTE_ATOMIC},
		{.flags = ACCESS, .access = 1u << 30},
		{.flags = ACCESS, .access = IBV_ACCESS_HUGETLB}, /* not huge pages */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(rereg(mr, cases[i]), -EINVAL);
	assert_memory_equal(mr, &before, sizeof(before));
	mr_deregister(mr);
	assert_int_equal(pd_destroy(foreign), 0);
	key_table_destroy(keys);
}

TEST(mr_check_change__a_range_that_is_not_mapped_leaves_the_old)
{
	struct mr *mr = env_region(env.page, RW);
	uint8_t *end = env.memory + (ENV_PAGES - 1) * env.page;

	assert_int_equal(munmap(end, env.page), 0);
	assert_int_equal(
		rereg(mr, (struct mr_change){.flags = TRANSLATION, .addr = end - 1, .length = 2}),
		-EFAULT);
	assert_int_equal(resolve(env.pd, mr, env.memory, RW), MR_OK);
	assert_int_equal(resolve(env.pd, mr, end - 1, 0), MR_OUT_OF_RANGE);
	mr_deregister(mr);
}

/* The old access needed the pages readable, the new one needs them writable. */
TEST(mr_check_change__protection_must_allow_the_new_access)
{
	struct mr *mr;

	assert_int_equal(mprotect(env.memory, env.page, PROT_READ), 0);
	mr = env_region(env.page, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS, .access = RW}), -EFAULT);
	assert_int_equal(mr->access, IBV_ACCESS_REMOTE_READ);
	/* The new range is looked at with the access that stays. */
	mr_deregister(mr);
	assert_int_equal(env_register(env.memory + env.page, 1, RW, &mr), 0);
	assert_int_equal(
		rereg(mr,
		      (struct mr_change){.flags = TRANSLATION, .addr = env.memory, .length = 1}),
		-EFAULT);
	mr_deregister(mr);
}

TEST(mr_check_change__faults_the_new_range_in)
{
	struct mr *mr = env_region(1, RW);
	unsigned char resident[2];

	assert_int_equal(rereg(mr, (struct mr_change){.flags = TRANSLATION,
						      .addr = env.memory + 3 * env.page - 1,
						      .length = 2}),
			 0);
	assert_int_equal(mincore(env.memory + 2 * env.page, 2 * env.page, resident), 0);
	assert_int_equal(resident[0] & resident[1] & 1, 1);
	mr_deregister(mr);
}

TEST(mr_apply_change__translation_moves_the_region_and_keeps_its_key)
{
	struct mr *mr = env_region(env.page, RW);
	const uint32_t key = mr->key;
	uint8_t *to = env.memory + 2 * env.page + 8;
	uint8_t *addr;

	assert_int_equal(
		rereg(mr, (struct mr_change){.flags = TRANSLATION, .addr = to, .length = 16}), 0);
	assert_int_equal(mr->key, key);
	assert_int_equal(mr->access, RW);
	assert_ptr_equal(mr->pd, env.pd);
	assert_int_equal(resolve(env.pd, mr, env.memory, 0), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, key, (uintptr_t)to, 16, RW, &addr), MR_OK);
	assert_ptr_equal(addr, to);
	assert_int_equal(mr_resolve(env.pd, key, (uintptr_t)to, 17, RW, &addr), MR_OUT_OF_RANGE);
	mr_deregister(mr);
}

TEST(mr_apply_change__pd_moves_the_region_to_the_other_domain)
{
	struct mr *mr = env_region(env.page, RW);

	assert_int_equal(rereg(mr, (struct mr_change){.flags = PD, .pd = env.other_pd}), 0);
	assert_int_equal(resolve(env.pd, mr, env.memory, 0), MR_WRONG_PD);
	assert_int_equal(resolve(env.other_pd, mr, env.memory, RW), MR_OK);
	assert_int_equal(env.pd->users, 0);
	assert_int_equal(env.other_pd->users, 1);
	assert_int_equal(pd_destroy(env.other_pd), -EBUSY);
	/* Reregister to the domain that the region is in already. */
	assert_int_equal(rereg(mr, (struct mr_change){.flags = PD, .pd = env.other_pd}), 0);
	assert_int_equal(env.other_pd->users, 1);
	mr_deregister(mr);
}

TEST(mr_apply_change__access_is_taken_and_given)
{
	struct mr *mr = env_region(env.page, RW);

	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS, .access = 0}), 0);
	assert_int_equal(resolve(env.pd, mr, env.memory, 0), MR_OK);
	assert_int_equal(resolve(env.pd, mr, env.memory, IBV_ACCESS_REMOTE_READ), MR_NO_ACCESS);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS, .access = RW}), 0);
	assert_int_equal(resolve(env.pd, mr, env.memory, RW), MR_OK);
	mr_deregister(mr);
}

TEST(mr_apply_change__all_at_once)
{
	struct mr *mr = env_region(env.page, RW);
	uint8_t *to = env.memory + env.page;

	assert_int_equal(rereg(mr, (struct mr_change){.flags = TRANSLATION | PD | ACCESS,
						      .pd = env.other_pd,
						      .addr = to,
						      .length = 1,
						      .access = IBV_ACCESS_REMOTE_READ}),
			 0);
	assert_int_equal(resolve(env.other_pd, mr, to, IBV_ACCESS_REMOTE_READ), MR_OK);
	assert_int_equal(resolve(env.other_pd, mr, to, IBV_ACCESS_LOCAL_WRITE), MR_NO_ACCESS);
	assert_int_equal(resolve(env.other_pd, mr, to + 1, 0), MR_OUT_OF_RANGE);
	mr_deregister(mr);
}

TEST(mr_apply_change__addresses_follow_the_zero_based_flag)
{
	const unsigned int zero = RW | IBV_ACCESS_ZERO_BASED;
	struct mr *mr;

	assert_int_equal(mr_register(env.pd, env.memory, 64, 0x10000, RW, &mr), 0);
	/* An address of its own outlives a change of other access. */
	assert_int_equal(
		rereg(mr, (struct mr_change){.flags = ACCESS, .access = IBV_ACCESS_LOCAL_WRITE}),
		0);
	assert_int_equal(mr->iova, 0x10000);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS, .access = zero}), 0);
	assert_int_equal(mr->iova, 0);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = TRANSLATION,
						      .addr = env.memory + 8,
						      .length = 8}),
			 0);
	assert_int_equal(mr->iova, 0);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS, .access = RW}), 0);
	assert_int_equal(mr->iova, (uintptr_t)env.memory + 8);
	mr_deregister(mr);
}

TEST(mr_apply_change__from_on_demand_and_back)
{
	struct mr *mr = env_region(env.page, RW | IBV_ACCESS_ON_DEMAND);
	unsigned char resident;

	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS, .access = RW}), 0);
	/* Registration without on-demand paging makes the pages present. */
	assert_int_equal(mincore(env.memory, env.page, &resident), 0);
	assert_int_equal(resident & 1, 1);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS | TRANSLATION,
						      .access = RW | IBV_ACCESS_ON_DEMAND,
						      .addr = (void *)env.page,
						      .length = 1}),
			 0);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS, .access = RW}), -EFAULT);
	mr_deregister(mr);
}

/* Another holder of its handle has destroyed it. */
TEST(mr_apply_change__not_to_a_domain_that_has_ended)
{
	struct mr *mr = env_region(8, RW);
	struct mr_change change = {.flags = PD};
	struct pd *pd;

	assert_int_equal(pd_create(env.keys, &pd), 0);
	pd_hold(pd);
	change.pd = pd;
	assert_int_equal(mr_check_change(mr, &change), 0);
	assert_int_equal(pd_destroy(pd), 0);
	assert_int_equal(mr_apply_change(mr, &change), -EINVAL);
	assert_ptr_equal(mr->pd, env.pd);
	pd_release_hold(pd);
	mr_deregister(mr);
}

TEST(mr_apply_change__an_implicit_region_stays_one)
{
	struct mr *mr;

	assert_int_equal(env_register(NULL, SIZE_MAX, RW | IBV_ACCESS_ON_DEMAND, &mr), 0);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS, .access = RW}), -EINVAL);
	assert_int_equal(
		rereg(mr,
		      (struct mr_change){.flags = TRANSLATION, .addr = env.memory, .length = 1}),
		-EINVAL);
	assert_int_equal(
		rereg(mr, (struct mr_change){.flags = ACCESS,
					     .access = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB}),
		-EINVAL);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS,
						      .access = IBV_ACCESS_ON_DEMAND |
								IBV_ACCESS_ZERO_BASED}),
			 -EINVAL);
	assert_int_equal(rereg(mr, (struct mr_change){.flags = ACCESS | PD,
						      .pd = env.other_pd,
						      .access = IBV_ACCESS_ON_DEMAND}),
			 0);
	assert_int_equal(resolve(env.other_pd, mr, env.memory, 0), MR_OK);
	assert_int_equal(resolve(env.other_pd, mr, env.memory, IBV_ACCESS_LOCAL_WRITE),
			 MR_NO_ACCESS);
	mr_deregister(mr);
}
