/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/mr_resolve.c. */
#include <stdio.h>

#include "away.h"
#include "base/reason.h"
#include "base/verbs_later.h"
#include "env.h"
#include "mem/mw.h"
#include "test.h"

TEST_FIXTURE(env_set_up, env_tear_down);

TEST(mr_resolve__bounds_are_exact_and_do_not_wrap)
{
	const uint64_t iova = 0x7000;
	static const struct {
		uint64_t offset;
		uint64_t length;
		enum mr_status status;
	} cases[] = {
		{0, 1, MR_OK},
		{0, 100, MR_OK},
		{99, 1, MR_OK},
		{50, 50, MR_OK},
		{0, 101, MR_OUT_OF_RANGE},
		{50, 51, MR_OUT_OF_RANGE},
		{100, 1, MR_OUT_OF_RANGE},
		{101, 1, MR_OUT_OF_RANGE},
		{UINT64_MAX, 1, MR_OUT_OF_RANGE}, /* one byte below the region */
		{UINT64_MAX, 2, MR_OUT_OF_RANGE},
		{1, UINT64_MAX, MR_OUT_OF_RANGE},
		{0, UINT64_MAX, MR_OUT_OF_RANGE},
		{UINT64_MAX - 0x6fff, 1, MR_OUT_OF_RANGE},	/* iova 0 */
		{UINT64_MAX - 0x7000, 1, MR_OUT_OF_RANGE},	/* the largest iova */
		{UINT64_MAX - 0x7000, 0x7002, MR_OUT_OF_RANGE}, /* the end wraps into the region */
		{1ull << 63, 1ull << 63, MR_OUT_OF_RANGE},
	};
	struct mr *mr;

	assert_int_equal(mr_register(env.pd, env.memory, 100, iova, RW, &mr), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t *addr = (uint8_t *)1;

		assert_int_equal(mr_resolve(env.pd, mr->key, iova + cases[i].offset,
					    cases[i].length, IBV_ACCESS_REMOTE_WRITE, &addr),
				 cases[i].status);
		assert_ptr_equal(addr,
				 cases[i].status == MR_OK ? env.memory + cases[i].offset : NULL);
	}
	mr_deregister(mr);
}

TEST(mr_resolve__a_region_at_the_top_of_iova_space_ends_there)
{
	const uint64_t iova = -(uint64_t)env.page;
	uint8_t *addr;
	struct mr *mr;

	/* The region ends at the last byte of the address space. */
	assert_int_equal(mr_register(env.pd, env.memory, env.page, iova, RW, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, env.page, 0, &addr), MR_OK);
	assert_int_equal(mr_resolve(env.pd, mr->key, UINT64_MAX, 1, 0, &addr), MR_OK);
	assert_ptr_equal(addr, env.memory + env.page - 1);
	assert_int_equal(mr_resolve(env.pd, mr->key, UINT64_MAX, 2, 0, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 1, 0, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova - 1, 1, 0, &addr), MR_OUT_OF_RANGE);
	mr_deregister(mr);
}

TEST(mr_resolve__all_needed_access_must_be_granted)
{
	const uintptr_t iova = (uintptr_t)env.memory;
	uint8_t *addr;
	struct mr *mr;

	assert_int_equal(env_register(env.memory, 100, IBV_ACCESS_REMOTE_READ, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 1, 0, &addr), MR_OK);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 1, IBV_ACCESS_REMOTE_READ, &addr),
			 MR_OK);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 1, IBV_ACCESS_LOCAL_WRITE, &addr),
			 MR_NO_ACCESS);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 1,
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC, &addr),
			 MR_NO_ACCESS);
	/* The order of the checks: access before range. */
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 101, IBV_ACCESS_REMOTE_WRITE, &addr),
			 MR_NO_ACCESS);
	mr_deregister(mr);
}

TEST(mr_resolve__a_key_of_another_domain_is_refused)
{
	struct pd *other;
	uint8_t *addr;
	struct mr *mr;

	assert_int_equal(pd_create(env.keys, &other), 0);
	assert_int_equal(env_register(env.memory, 100, RW, &mr), 0);
	assert_int_equal(mr_resolve(other, mr->key, (uintptr_t)env.memory, 1, 0, &addr),
			 MR_WRONG_PD);
	mr_deregister(mr);
	assert_int_equal(pd_destroy(other), 0);
}

TEST(mr_check_remote__key_domain_and_access_whatever_the_range)
{
	struct pd *other;
	struct mr *mr;

	assert_int_equal(pd_create(env.keys, &other), 0);
	assert_int_equal(env_register(env.memory, 100, IBV_ACCESS_REMOTE_READ, &mr), 0);
	assert_int_equal(mr_check_remote(env.pd, 1, mr->key, 0), MR_OK);
	assert_int_equal(mr_check_remote(env.pd, 1, mr->key, IBV_ACCESS_REMOTE_READ), MR_OK);
	assert_int_equal(mr_check_remote(env.pd, 1, mr->key, IBV_ACCESS_REMOTE_WRITE),
			 MR_NO_ACCESS);
	assert_int_equal(mr_check_remote(other, 1, mr->key, 0), MR_WRONG_PD);
	assert_int_equal(mr_check_remote(env.pd, 1, mr->key ^ 1, 0), MR_BAD_KEY);
	mr_deregister(mr);
	assert_int_equal(pd_destroy(other), 0);
}

/* IBTA C9-88. */
TEST(mr_resolve__no_key_is_checked_for_length_0)
{
	uint8_t *addr = env.memory;

	assert_int_equal(mr_resolve(env.pd, 0xdeadbeef, 1, 0, IBV_ACCESS_REMOTE_WRITE, &addr),
			 MR_OK);
	assert_null(addr);
}

/* A region, with the pager of away.h, of which no page is absent. */
static struct mr *paged_region(size_t length, unsigned int access)
{
	away_begin(env.pd);
	return env_region(length, access | IBV_ACCESS_ON_DEMAND);
}

static enum mr_status reach_remote(const struct pd *pd, uint32_t key, uint64_t offset,
				   uint64_t length, unsigned int need, uint8_t **addr)
{
	*addr = (uint8_t *)1;
	return mr_reach_remote(pd, 1, key, (uintptr_t)env.memory + offset, length, need,
			       (struct mr_touch){.now = (uint32_t)length}, addr);
}

TEST(mr_reach_remote__checks_before_it_looks_for_pages)
{
	struct mr *mr = paged_region(100, IBV_ACCESS_REMOTE_READ);
	uint8_t *addr;

	assert_int_equal(reach_remote(env.pd, mr->key ^ 1, 0, 1, 0, &addr), MR_BAD_KEY);
	assert_null(addr);
	env.other_pd->pager = &away.pager;
	assert_int_equal(reach_remote(env.other_pd, mr->key, 0, 1, 0, &addr), MR_WRONG_PD);
	assert_null(addr);
	assert_int_equal(reach_remote(env.pd, mr->key, 0, 1, IBV_ACCESS_REMOTE_WRITE, &addr),
			 MR_NO_ACCESS);
	assert_null(addr);
	assert_int_equal(reach_remote(env.pd, mr->key, 100, 1, IBV_ACCESS_REMOTE_READ, &addr),
			 MR_OUT_OF_RANGE);
	assert_null(addr);
	assert_int_equal(reach_remote(env.pd, 0xdeadbeef, 0, 0, IBV_ACCESS_REMOTE_READ, &addr),
			 MR_OK);
	assert_null(addr);
	assert_int_equal(away.looks, 0);
	assert_int_equal(reach_remote(env.pd, mr->key, 40, 60, IBV_ACCESS_REMOTE_READ, &addr),
			 MR_OK);
	assert_ptr_equal(addr, env.memory + 40);
	assert_int_equal(away.looks, 1);
	away_go(env.memory + 40, 1);
	assert_int_equal(reach_remote(env.pd, mr->key, 40, 60, IBV_ACCESS_REMOTE_READ, &addr),
			 MR_ABSENT);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(mr_reach__checks_before_it_looks_for_pages)
{
	const struct mr_touch touch = {.now = 8};
	struct mr *mr = paged_region(100, IBV_ACCESS_REMOTE_READ);
	uint8_t *addr = (uint8_t *)1;

	assert_int_equal(mr_reach(env.pd, mr->key ^ 1, mr->iova, 8, 0, touch, &addr), MR_BAD_KEY);
	assert_null(addr);
	assert_int_equal(
		mr_reach(env.pd, mr->key, mr->iova, 8, IBV_ACCESS_LOCAL_WRITE, touch, &addr),
		MR_NO_ACCESS);
	assert_int_equal(mr_reach(env.pd, mr->key, mr->iova + 93, 8, 0, touch, &addr),
			 MR_OUT_OF_RANGE);
	assert_null(addr);
	assert_int_equal(mr_reach(env.pd, mr->key ^ 1, 0, 0, 0, touch, &addr), MR_OK);
	assert_null(addr);
	/* A list's entry of which no byte is needed yet. */
	assert_int_equal(
		mr_reach(env.pd, mr->key, mr->iova + 92, 8, 0, (struct mr_touch){.now = 0}, &addr),
		MR_OK);
	assert_ptr_equal(addr, env.memory + 92);
	assert_int_equal(away.looks, 0);
	assert_int_equal(mr_reach(env.pd, mr->key, mr->iova + 92, 8, 0, touch, &addr), MR_OK);
	assert_int_equal(away.looks, 1);
	assert_int_equal(away.touch.ahead, 0);
	env.pd->pager = NULL;
	assert_int_equal(mr_reach(env.pd, mr->key, mr->iova + 92, 8, 0, touch, &addr), MR_OK);
	assert_int_equal(mr_deregister(mr), 0);
}

/* A page that can be read need not be one that can be written. */
TEST(mr_reach__looks_for_pages_that_can_be_written_where_the_access_writes)
{
	static const struct {
		unsigned int need;
		bool write;
	} cases[] = {
		{0, false},
		{IBV_ACCESS_REMOTE_READ, false},
		{IBV_ACCESS_LOCAL_WRITE, true},
		{IBV_ACCESS_REMOTE_WRITE, true},
		{IBV_ACCESS_REMOTE_ATOMIC, true},
		{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, true},
	};
	struct mr *mr = paged_region(100, RW | IBV_ACCESS_REMOTE_ATOMIC);
	uint8_t *addr;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(mr_reach(env.pd, mr->key, mr->iova, 8, cases[i].need,
					  (struct mr_touch){.now = 8}, &addr),
				 MR_OK);
		assert_int_equal(away.write, cases[i].write);
		assert_int_equal(reach_remote(env.pd, mr->key, 0, 8, cases[i].need, &addr), MR_OK);
		assert_int_equal(away.write, cases[i].write);
	}
	assert_int_equal(away.looks, 2 * sizeof(cases) / sizeof(cases[0]));
	assert_int_equal(mr_deregister(mr), 0);
}

/* Return what a user is told of the access that was refused last. */
static const char *why(void)
{
	const char *reason = reason_take(REASON_FAULT);

	assert_non_null(reason);
	return reason;
}

static const char *why_not(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
			   unsigned int need)
{
	uint8_t *addr;

	assert_int_not_equal(mr_resolve_remote(pd, 1, key, iova, length, need, &addr), MR_OK);
	return why();
}

static int want_reasons(void **state)
{
	reason_wanted = true;
	return env_set_up(state);
}

static int want_no_reasons(void **state)
{
	reason_wanted = false;
	return env_tear_down(state);
}

TEST(mr_resolve_remote__says_why, .setup = want_reasons, .teardown = want_no_reasons)
{
	char text[256];
	struct mr *mr;

	assert_int_equal(mr_register(env.pd, env.memory, 100, 0x7000, IBV_ACCESS_REMOTE_READ, &mr),
			 0);
	assert_non_null(strstr(why_not(env.pd, mr->key ^ 1, 0x7000, 1, 0), "has the rkey"));
	assert_non_null(strstr(why_not(env.other_pd, mr->key, 0x7000, 1, 0), "another protection"));
	snprintf(text, sizeof(text),
		 "the region 0x%x (100 bytes at 0x7000) lacks IBV_ACCESS_REMOTE_ATOMIC", mr->key);
	assert_string_equal(why_not(env.pd, mr->key, 0x7000, 1, IBV_ACCESS_REMOTE_ATOMIC), text);
	snprintf(text, sizeof(text),
		 "the access to 8 bytes at 0x6ffe begins 2 bytes before the region 0x%x at 0x7000",
		 mr->key);
	assert_string_equal(why_not(env.pd, mr->key, 0x6ffe, 8, 0), text);
	snprintf(text, sizeof(text),
		 "the access to 8 bytes at 0x705f ends 3 bytes behind the end of the region 0x%x "
		 "(100 bytes at 0x7000)",
		 mr->key);
	assert_string_equal(why_not(env.pd, mr->key, 0x705f, 8, 0), text);
	assert_contains(why_not(env.pd, mr->key, 0x7000, 101, 0), "ends 1 bytes behind the end");
	mr_deregister(mr);
}

TEST(mr_resolve__says_why, .setup = want_reasons, .teardown = want_no_reasons)
{
	uint8_t *addr;

	assert_int_equal(mr_resolve(env.pd, 7, 0, 1, 0, &addr), MR_BAD_KEY);
	assert_string_equal(why(), "no region has the lkey 0x7, or none any more");
}

TEST(mr_resolve_remote__calls_a_window_a_window, .setup = want_reasons, .teardown = want_no_reasons)
{
	struct mw *mw;

	assert_int_equal(mw_create(env.pd, IBV_MW_TYPE_1, &mw), 0);
	assert_non_null(strstr(why_not(env.pd, mw->view.key, 0, 1, IBV_ACCESS_REMOTE_READ),
			       "the window 0x"));
	mw_destroy(mw);
}

TEST(mr_right_name__of_the_rights_of_an_access)
{
	assert_string_equal(mr_right_name(IBV_ACCESS_LOCAL_WRITE), "IBV_ACCESS_LOCAL_WRITE");
	assert_string_equal(mr_right_name(IBV_ACCESS_REMOTE_WRITE), "IBV_ACCESS_REMOTE_WRITE");
	assert_string_equal(mr_right_name(IBV_ACCESS_REMOTE_READ), "IBV_ACCESS_REMOTE_READ");
	assert_string_equal(mr_right_name(IBV_ACCESS_REMOTE_ATOMIC), "IBV_ACCESS_REMOTE_ATOMIC");
	assert_string_equal(mr_right_name(LATER_ACCESS_FLUSH_GLOBAL), "IBV_ACCESS_FLUSH_GLOBAL");
	assert_string_equal(mr_right_name(LATER_ACCESS_FLUSH_PERSISTENT),
			    "IBV_ACCESS_FLUSH_PERSISTENT");
}
