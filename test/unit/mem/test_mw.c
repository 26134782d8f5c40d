/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/mw.c. */
#include "env.h"

#include <pthread.h>
#include <stdlib.h>

#include "mem/mw.h"
#include "test.h"

TEST_FIXTURE(env_set_up, env_tear_down);

#define QPN	  17u
#define BINDABLE  (RW | IBV_ACCESS_MW_BIND)
#define REGION_AT ((uintptr_t)env.memory)

#define REMOTE_READ   IBV_ACCESS_REMOTE_READ
#define REMOTE_WRITE  IBV_ACCESS_REMOTE_WRITE
#define REMOTE_ATOMIC IBV_ACCESS_REMOTE_ATOMIC

static struct mw_list bound; /* by QPN */

static struct mw *window(enum ibv_mw_type type)
{
	struct mw *mw;

	assert_int_equal(mw_create(env.pd, type, &mw), 0);
	return mw;
}

/* Return a binding of the second 100 bytes of a region, for reading and writing, with the next
 * key. */
static struct mw_binding binding_of(const struct mw *mw, const struct mr *mr)
{
	return (struct mw_binding){.window = mw->view.key,
				   .rkey = ibv_inc_rkey(mw->view.key),
				   .lkey = mr->key,
				   .addr = mr->iova + 100,
				   .length = 100,
				   .access = REMOTE_READ | REMOTE_WRITE};
}

static int bind(const struct mw_binding *binding)
{
	return mw_bind(env.pd, QPN, &bound, binding);
}

static enum mr_status reach(uint32_t qpn, uint32_t rkey, uint64_t iova, uint64_t length,
			    unsigned int need)
{
	uint8_t *addr;

	return mr_resolve_remote(env.pd, qpn, rkey, iova, length, need, &addr);
}

TEST(mw_create__types_are_checked_and_keys_open_nothing)
{
	struct mw *one = window(IBV_MW_TYPE_1), *two = window(IBV_MW_TYPE_2), *other;
	uint8_t *addr;

	assert_int_equal(mw_create(env.pd, (enum ibv_mw_type)0, &other), -EINVAL);
	assert_int_equal(mw_create(env.pd, (enum ibv_mw_type)3, &other), -EINVAL);
	assert_int_not_equal(one->view.key, two->view.key);
	assert_int_equal(reach(QPN, one->view.key, 0, 1, REMOTE_READ), MR_NO_ACCESS);
	assert_int_equal(reach(QPN, two->view.key, 0, 1, REMOTE_READ), MR_BAD_KEY);
	assert_int_equal(mr_resolve(env.pd, one->view.key, 0, 1, 0, &addr), MR_BAD_KEY);
	assert_int_equal(env.pd->users, 2);
	mw_destroy(one);
	mw_destroy(two);
	assert_int_equal(env.pd->users, 0);
}

TEST(mw_create__counts_in_the_table)
{
	struct mw *mws[ENV_REGIONS], *mw;

	for (size_t i = 0; i < ENV_REGIONS; i++)
		mws[i] = window(IBV_MW_TYPE_2);
	assert_int_equal(mw_create(env.pd, IBV_MW_TYPE_2, &mw), -ENOMEM);
	for (size_t i = 0; i < ENV_REGIONS; i++)
		mw_destroy(mws[i]);
}

TEST(mw_bind__shows_its_part_and_no_more)
{
	static const enum ibv_mw_type types[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};

	for (size_t i = 0; i < 2; i++) {
		struct mr *mr = env_region(1000, BINDABLE);
		struct mw *mw = window(types[i]);
		struct mw_binding binding = binding_of(mw, mr);
		const uint32_t before = mw->view.key;
		uint8_t *addr;

		assert_int_equal(bind(&binding), 0);
		assert_int_equal(mr_resolve_remote(env.pd, QPN, binding.rkey, binding.addr, 100,
						   REMOTE_WRITE, &addr),
				 MR_OK);
		assert_ptr_equal(addr, env.memory + 100);
		assert_int_equal(reach(QPN, before, binding.addr, 1, REMOTE_READ), MR_BAD_KEY);
		assert_int_equal(reach(QPN, binding.rkey, binding.addr - 1, 1, REMOTE_READ),
				 MR_OUT_OF_RANGE);
		assert_int_equal(reach(QPN, binding.rkey, binding.addr, 101, REMOTE_READ),
				 MR_OUT_OF_RANGE);
		assert_int_equal(reach(QPN, binding.rkey, binding.addr + 100, 1, REMOTE_READ),
				 MR_OUT_OF_RANGE);
		assert_int_equal(reach(QPN, binding.rkey, binding.addr, 8, REMOTE_ATOMIC),
				 MR_NO_ACCESS);
		/* The key of a window is for peers only. */
		assert_int_equal(mr_resolve(env.pd, binding.rkey, binding.addr, 1, 0, &addr),
				 MR_BAD_KEY);
		assert_int_equal(mr_resolve_remote(env.other_pd, QPN, binding.rkey, binding.addr, 1,
						   REMOTE_READ, &addr),
				 MR_WRONG_PD);
		mw_destroy(mw);
		assert_int_equal(mr_deregister(mr), 0);
	}
}

/* Windows of type 2 are of type 2B: a packet's queue pair is checked, and its domain. */
TEST(mw_bind__type_2_serves_the_queue_pair_that_bound_it)
{
	struct mr *mr = env_region(1000, BINDABLE);
	struct mw *one = window(IBV_MW_TYPE_1), *two = window(IBV_MW_TYPE_2);
	struct mw_binding first = binding_of(one, mr), second = binding_of(two, mr);

	assert_int_equal(bind(&first), 0);
	assert_int_equal(bind(&second), 0);
	assert_int_equal(reach(QPN + 1, first.rkey, first.addr, 1, REMOTE_READ), MR_OK);
	assert_int_equal(reach(QPN + 1, second.rkey, second.addr, 1, REMOTE_READ), MR_BAD_KEY);
	assert_int_equal(reach(QPN, second.rkey, second.addr, 1, REMOTE_READ), MR_OK);
	mw_destroy(one);
	mw_destroy(two);
	assert_int_equal(mr_deregister(mr), 0);
}

/* Another holder of its handle has destroyed it. */
TEST(mw_create__not_in_a_domain_that_has_ended)
{
	struct pd *pd;
	struct mw *mw;

	assert_int_equal(pd_create(env.keys, &pd), 0);
	pd_hold(pd);
	assert_int_equal(pd_destroy(pd), 0);
	assert_int_equal(mw_create(pd, IBV_MW_TYPE_1, &mw), -EINVAL);
	pd_release_hold(pd);
}

TEST(mw_bind__zero_based_counts_from_its_first_byte)
{
	struct mr *mr = env_region(1000, BINDABLE);
	struct mw *mw = window(IBV_MW_TYPE_1);
	struct mw_binding binding = binding_of(mw, mr);
	uint8_t *addr;

	binding.access |= IBV_ACCESS_ZERO_BASED;
	assert_int_equal(bind(&binding), 0);
	assert_int_equal(mr_resolve_remote(env.pd, QPN, binding.rkey, 99, 1, REMOTE_READ, &addr),
			 MR_OK);
	assert_ptr_equal(addr, env.memory + 199);
	assert_int_equal(reach(QPN, binding.rkey, 99, 2, REMOTE_READ), MR_OUT_OF_RANGE);
	assert_int_equal(reach(QPN, binding.rkey, binding.addr, 1, REMOTE_READ), MR_OUT_OF_RANGE);
	mw_destroy(mw);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(mw_bind__the_region_must_allow_it)
{
	static const struct {
		unsigned int of_region, of_window;
		int rc;
	} cases[] = {
		{RW, REMOTE_READ, -EINVAL}, /* no windows */
		{IBV_ACCESS_MW_BIND, REMOTE_READ, 0},
		{IBV_ACCESS_MW_BIND, REMOTE_WRITE, -EINVAL},
		{IBV_ACCESS_MW_BIND, REMOTE_ATOMIC, -EINVAL},
		{IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE, REMOTE_WRITE | REMOTE_ATOMIC, 0},
		{BINDABLE, IBV_ACCESS_MW_BIND, -EINVAL},
		{BINDABLE, IBV_ACCESS_LOCAL_WRITE, 0}, /* grants nothing */
		{BINDABLE, IBV_ACCESS_ON_DEMAND, -EINVAL},
		{BINDABLE, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr *mr = env_region(1000, cases[i].of_region);
		struct mw *mw = window(IBV_MW_TYPE_2);
		struct mw_binding binding = binding_of(mw, mr);
		const uint32_t key = mw->view.key;

		binding.access = cases[i].of_window;
		assert_int_equal(bind(&binding), cases[i].rc);
		assert_int_equal(mw->view.key, cases[i].rc == 0 ? binding.rkey : key);
		mw_destroy(mw);
		assert_int_equal(mr_deregister(mr), 0);
	}
}

TEST(mw_bind__keys_parts_and_domains_are_checked)
{
	struct mr *mr = env_region(1000, BINDABLE), *null, *foreign;
	struct mw *mw = window(IBV_MW_TYPE_1);
	const struct mw_binding good = binding_of(mw, mr);
	struct mw_binding binding;

	assert_int_equal(mr_create_null(env.pd, &null), 0);
	assert_int_equal(mr_register(env.other_pd, env.memory, 1000, REGION_AT, BINDABLE, &foreign),
			 0);
#define REFUSED(field, value)                              \
	do {                                               \
		binding = good;                            \
		binding.field = (value);                   \
		assert_int_equal(bind(&binding), -EINVAL); \
	} while (0)
	REFUSED(window, good.window ^ 0x100);
	REFUSED(window, mr->key);
	REFUSED(rkey, good.rkey ^ 0x100);
	REFUSED(rkey, good.rkey ^ 0x80000000);
	REFUSED(lkey, null->key);
	REFUSED(lkey, foreign->key);
	REFUSED(lkey, mw->view.key);
	REFUSED(lkey, mr->key ^ 1);
	REFUSED(addr, mr->iova - 1);
	REFUSED(addr, mr->iova + 901);
	REFUSED(addr, UINT64_MAX);
	REFUSED(length, 901);
	REFUSED(length, UINT64_MAX);
	REFUSED(access, 1u << 31);
	/* A queue pair of another domain. */
	assert_int_equal(mw_bind(env.other_pd, QPN, &bound, &good), -EINVAL);
	assert_int_equal(mw->view.key, good.window);
	assert_int_equal(mr->windows, 0);
	/* Any key of the window names it, whatever its lowest byte. */
	binding = good;
	binding.window ^= 0x77;
	assert_int_equal(bind(&binding), 0);
	mw_destroy(mw);
	mr_deregister(null);
	mr_deregister(foreign);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(mw_bind__type_1_moves_on_and_ends_with_length_0)
{
	struct mr *a = env_region(1000, BINDABLE), *b = env_region(1000, BINDABLE);
	struct mw *mw = window(IBV_MW_TYPE_1);
	struct mw_binding first = binding_of(mw, a), second, none;

	assert_int_equal(bind(&first), 0);
	assert_int_equal(mr_deregister(a), -EBUSY);
	second = binding_of(mw, b);
	assert_int_equal(bind(&second), 0);
	assert_int_equal(mr_deregister(a), 0);
	assert_int_equal(reach(QPN, first.rkey, first.addr, 1, REMOTE_READ), MR_BAD_KEY);
	assert_int_equal(reach(QPN, second.rkey, second.addr, 1, REMOTE_READ), MR_OK);
	/* A failed binding leaves the old one. */
	second = binding_of(mw, b);
	second.length = 1001;
	assert_int_equal(bind(&second), -EINVAL);
	assert_int_equal(reach(QPN, mw->view.key, second.addr, 1, REMOTE_READ), MR_OK);
	none = (struct mw_binding){.window = mw->view.key, .rkey = ibv_inc_rkey(mw->view.key)};
	assert_int_equal(bind(&none), 0);
	assert_int_equal(reach(QPN, none.rkey, second.addr, 1, REMOTE_READ), MR_NO_ACCESS);
	assert_int_equal(mr_deregister(b), 0);
	mw_destroy(mw);
}

/* Not even an access that needs no permission. */
TEST(mw_bind__what_was_bound_is_out_of_reach_afterwards)
{
	struct mr *mr = env_region(1000, BINDABLE);
	struct mw *one = window(IBV_MW_TYPE_1), *two = window(IBV_MW_TYPE_2);
	struct mw_binding first = binding_of(one, mr), second = binding_of(two, mr);

	assert_int_equal(bind(&first), 0);
	assert_int_equal(bind(&second), 0);
	assert_int_equal(reach(QPN, first.rkey, first.addr, 1, 0), MR_OK);
	assert_int_equal(reach(QPN, second.rkey, second.addr, 1, 0), MR_OK);
	first = (struct mw_binding){.window = first.rkey, .rkey = ibv_inc_rkey(first.rkey)};
	assert_int_equal(bind(&first), 0);
	assert_int_equal(mw_invalidate(env.pd, QPN, second.rkey), 0);
	assert_int_equal(reach(QPN, first.rkey, second.addr, 1, 0), MR_OUT_OF_RANGE);
	assert_int_equal(reach(QPN, second.rkey, second.addr, 1, 0), MR_OUT_OF_RANGE);
	assert_int_equal(mr->windows, 0);
	mw_destroy(one);
	mw_destroy(two);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(mw_bind__up_to_the_regions_ends)
{
	struct mr *mr = env_region(1000, BINDABLE);
	struct mw *mw = window(IBV_MW_TYPE_1);
	struct mw_binding binding = binding_of(mw, mr);

	binding.addr = mr->iova;
	binding.length = 1000;
	assert_int_equal(bind(&binding), 0);
	assert_int_equal(reach(QPN, binding.rkey, binding.addr, 1000, REMOTE_READ), MR_OK);
	binding = binding_of(mw, mr);
	binding.addr = mr->iova + 999;
	binding.length = 1;
	assert_int_equal(bind(&binding), 0);
	binding = binding_of(mw, mr);
	binding.addr = mr->iova + 1000;
	binding.length = 1;
	assert_int_equal(bind(&binding), -EINVAL);
	mw_destroy(mw);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(mw_bind__type_2_is_bound_once)
{
	struct mr *mr = env_region(1000, BINDABLE);
	struct mw *mw = window(IBV_MW_TYPE_2);
	struct mw_binding binding = binding_of(mw, mr);

	binding.length = 0;
	assert_int_equal(mw_bind(env.pd, QPN, NULL, &binding),
			 -EINVAL); /* without a queue pair's list */
	assert_int_equal(bind(&binding), -EINVAL);
	binding.length = 100;
	assert_int_equal(bind(&binding), 0);
	binding = binding_of(mw, mr);
	assert_int_equal(bind(&binding), -EINVAL);
	assert_int_equal(mw_invalidate(env.pd, QPN, mw->view.key), 0);
	assert_int_equal(bind(&binding), 0);
	assert_int_equal(reach(QPN, binding.rkey, binding.addr, 1, REMOTE_READ), MR_OK);
	mw_destroy(mw);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(mw_invalidate__only_what_this_queue_pair_has_bound)
{
	struct mr *mr = env_region(1000, BINDABLE);
	struct mw *one = window(IBV_MW_TYPE_1), *two = window(IBV_MW_TYPE_2);
	struct mw_binding first = binding_of(one, mr), second = binding_of(two, mr);

	assert_int_equal(mw_invalidate(env.pd, QPN, two->view.key), -EINVAL); /* not bound */
	assert_int_equal(bind(&first), 0);
	assert_int_equal(bind(&second), 0);
	assert_int_equal(mw_invalidate(env.pd, QPN, first.rkey), -EINVAL);
	assert_int_equal(mw_invalidate(env.pd, QPN, mr->key), -EINVAL);
	assert_int_equal(mw_invalidate(env.pd, QPN, second.window), -EINVAL); /* stale */
	assert_int_equal(mw_invalidate(env.pd, QPN + 1, second.rkey), -EINVAL);
	assert_int_equal(mw_invalidate(env.other_pd, QPN, second.rkey), -EINVAL);
	assert_int_equal(reach(QPN, second.rkey, second.addr, 1, REMOTE_READ), MR_OK);
	assert_int_equal(mw_invalidate(env.pd, QPN, second.rkey), 0);
	assert_int_equal(reach(QPN, second.rkey, second.addr, 1, REMOTE_READ), MR_NO_ACCESS);
	assert_int_equal(mw_invalidate(env.pd, QPN, second.rkey), -EINVAL);
	assert_int_equal(reach(QPN, first.rkey, first.addr, 1, REMOTE_READ), MR_OK);
	mw_destroy(one);
	mw_destroy(two);
	assert_int_equal(mr_deregister(mr), 0);
}

TEST(mw_destroy__unbinds)
{
	const struct mr_change change = {.flags = IBV_REREG_MR_CHANGE_PD, .pd = env.other_pd};
	struct mr *mr = env_region(1000, BINDABLE);
	struct mw *mw = window(IBV_MW_TYPE_2);
	struct mw_binding binding = binding_of(mw, mr);

	assert_int_equal(bind(&binding), 0);
	assert_int_equal(mr_deregister(mr), -EBUSY);
	assert_int_equal(mr_check_change(mr, &change), 0);
	assert_int_equal(mr_apply_change(mr, &change), -EBUSY);
	assert_ptr_equal(mr->pd, env.pd);
	mw_destroy(mw);
	assert_int_equal(reach(QPN, binding.rkey, binding.addr, 1, REMOTE_READ), MR_BAD_KEY);
	assert_int_equal(mr_deregister(mr), 0);
}

/* Windows of other queue pairs, and those of type 1, stay. */
TEST(mw_unbind_all__of_one_queue_pair)
{
	struct mr *mr = env_region(1000, BINDABLE), *other_mr = env_region(1000, BINDABLE);
	struct mw *mws[] = {window(IBV_MW_TYPE_2), window(IBV_MW_TYPE_2), window(IBV_MW_TYPE_2)};
	struct mw *other = window(IBV_MW_TYPE_2), *shared = window(IBV_MW_TYPE_1);
	struct mw_list bound_by_other = LIST_HEAD_INITIALIZER(bound_by_other);
	struct mw_binding binding;

	for (size_t i = 0; i < 3; i++) {
		binding = binding_of(mws[i], mr);
		assert_int_equal(bind(&binding), 0);
	}
	binding = binding_of(other, other_mr);
	assert_int_equal(mw_bind(env.pd, QPN + 1, &bound_by_other, &binding), 0);
	binding = binding_of(shared, other_mr);
	assert_int_equal(bind(&binding), 0);
	/* An invalidated window no longer belongs to the queue pair. */
	assert_int_equal(mw_invalidate(env.pd, QPN, mws[1]->view.key), 0);
	mw_unbind_all(&bound);
	assert_true(LIST_EMPTY(&bound));
	assert_int_equal(mr->windows, 0);
	assert_int_equal(reach(QPN, mws[0]->view.key, mr->iova + 100, 1, REMOTE_READ),
			 MR_NO_ACCESS);
	assert_int_equal(other_mr->windows, 2);
	/* The window may be bound again, by another queue pair. */
	binding = binding_of(mws[2], mr);
	assert_int_equal(mw_bind(env.pd, QPN + 1, &bound_by_other, &binding), 0);
	for (size_t i = 0; i < 3; i++)
		mw_destroy(mws[i]);
	mw_destroy(other);
	mw_destroy(shared);
	assert_true(LIST_EMPTY(&bound_by_other));
	assert_int_equal(mr_deregister(mr), 0);
	assert_int_equal(mr_deregister(other_mr), 0);
}

/* A window may cover all addresses, like a region that has no pages yet. */
TEST(mw_bind__to_on_demand_regions)
{
	struct mw *mw = window(IBV_MW_TYPE_1);
	struct mw_binding binding;
	uint8_t *addr;
	struct mr *mr;

	assert_int_equal(env_register(NULL, SIZE_MAX, BINDABLE | IBV_ACCESS_ON_DEMAND, &mr), 0);
	binding = binding_of(mw, mr);
	binding.addr = REGION_AT;
	assert_int_equal(bind(&binding), 0);
	assert_int_equal(
		mr_resolve_remote(env.pd, QPN, binding.rkey, REGION_AT + 99, 1, REMOTE_READ, &addr),
		MR_OK);
	assert_ptr_equal(addr, env.memory + 99);
	mw_destroy(mw);
	assert_int_equal(mr_deregister(mr), 0);
}

#define REBINDS	 20000
#define PART_LEN 16u

struct race {
	struct mr *mr;
	struct mw *mw;
	uint32_t keys[2];
	bool is_over; /* atomic */
};

/* Bind a part of the region with the first key, and another part, for other access, with the second
 * one. */
static void *rebind(void *arg)
{
	struct race *race = arg;

	for (unsigned int i = 0; i < REBINDS; i++) {
		const struct mw_binding binding = {
			.window = race->keys[0],
			.rkey = race->keys[i % 2],
			.lkey = race->mr->key,
			.addr = race->mr->iova + (i % 2 ? 512 : 0),
			.length = PART_LEN,
			.access = i % 2 ? REMOTE_WRITE : REMOTE_READ,
		};

		if (bind(&binding) != 0)
			abort();
	}
	__atomic_store_n(&race->is_over, true, __ATOMIC_RELAXED);
	return NULL;
}

/* An engine finds the window by its old key, and reads it after another engine has bound it anew:
 * the new binding is not the old key's. */
TEST(mr_resolve_remote__by_a_key_that_was_replaced_after_it_was_found)
{
	struct mr *mr = env_region(1000, BINDABLE);
	struct mw *mw = window(IBV_MW_TYPE_1);
	const struct mw_binding binding = binding_of(mw, mr);

	assert_int_equal(bind(&binding), 0);
	assert_int_equal(reach(QPN, binding.rkey, binding.addr, 1, REMOTE_READ), MR_OK);
	/* The table still has the old key, as the engine found it. */
	mw->view.key = ibv_inc_rkey(binding.rkey);
	assert_int_equal(reach(QPN, binding.rkey, binding.addr, 1, REMOTE_READ), MR_BAD_KEY);
	mw->view.key = binding.rkey;
	assert_int_equal(reach(QPN, binding.rkey, binding.addr, 1, REMOTE_READ), MR_OK);
	mw_destroy(mw);
	assert_int_equal(mr_deregister(mr), 0);
}

/* An engine checks accesses while another one binds the window anew: no mix of two bindings. */
TEST(mr_resolve_remote__while_another_engine_binds)
{
	struct race race = {.mr = env_region(1000, BINDABLE), .mw = window(IBV_MW_TYPE_1)};
	pthread_t thread;
	uint8_t *addr;

	race.keys[0] = race.mw->view.key;
	race.keys[1] = ibv_inc_rkey(race.keys[0]);
	assert_int_equal(pthread_create(&thread, NULL, rebind, &race), 0);
	while (!__atomic_load_n(&race.is_over, __ATOMIC_RELAXED)) {
		for (unsigned int i = 0; i < 2; i++) {
			const uint64_t here = race.mr->iova + (i ? 512 : 0);
			const uint64_t there = race.mr->iova + (i ? 0 : 512);

			if (mr_resolve_remote(env.pd, QPN, race.keys[i], here, PART_LEN,
					      i ? REMOTE_WRITE : REMOTE_READ, &addr) == MR_OK)
				assert_ptr_equal(addr, env.memory + (i ? 512 : 0));
			assert_int_not_equal(
				reach(QPN, race.keys[i], here, 1, i ? REMOTE_READ : REMOTE_WRITE),
				MR_OK);
			assert_int_not_equal(reach(QPN, race.keys[i], there, 1, 0), MR_OK);
		}
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	mw_destroy(race.mw);
	assert_int_equal(mr_deregister(race.mr), 0);
}

/* Bind a window of type 2 for another queue pair, whenever it is not bound. */
static void *bind_for_other(void *arg)
{
	struct race *race = arg;
	struct mw_list others = {0};

	while (!__atomic_load_n(&race->is_over, __ATOMIC_RELAXED)) {
		const struct mw_binding binding = {
			.window = race->keys[0],
			.rkey = race->keys[1],
			.lkey = race->mr->key,
			.addr = race->mr->iova,
			.length = PART_LEN,
			.access = REMOTE_WRITE,
		};

		if (mw_bind(env.pd, QPN + 1, &others, &binding) != 0)
			continue;
		/* Its queue pair has bound it, so nobody else may change it. */
		if (reach(QPN + 1, race->keys[1], race->mr->iova, 1, REMOTE_WRITE) != MR_OK)
			abort();
		mw_unbind_all(&others);
	}
	return NULL;
}

/* The end of a queue pair unbinds its windows, while another engine wants to bind them. */
TEST(mw_unbind_all__while_another_engine_binds)
{
	struct race race = {.mr = env_region(1000, BINDABLE), .mw = window(IBV_MW_TYPE_2)};
	pthread_t thread;

	race.keys[0] = race.mw->view.key;
	race.keys[1] = ibv_inc_rkey(race.keys[0]);
	assert_int_equal(pthread_create(&thread, NULL, bind_for_other, &race), 0);
	for (unsigned int i = 0; i < REBINDS; i++) {
		const struct mw_binding binding = {
			.window = race.keys[0],
			.rkey = race.keys[0],
			.lkey = race.mr->key,
			.addr = race.mr->iova,
			.length = PART_LEN,
			.access = REMOTE_READ,
		};

		(void)bind(&binding);
		mw_unbind_all(&bound);
	}
	__atomic_store_n(&race.is_over, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	mw_destroy(race.mw);
	assert_int_equal(mr_deregister(race.mr), 0);
}
