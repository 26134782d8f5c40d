/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/atomics.c. */
#include "env.h"

#include <pthread.h>

#include "base/guard.h"
#include "mem/atomics.h"
#include "test.h"

TEST_FIXTURE(env_set_up, env_tear_down);

#define ROUNDS 20000

static uint64_t *word(void)
{
	return (uint64_t *)(void *)env.memory;
}

TEST(atomics_fetch_add__adds_and_wraps)
{
	uint64_t original = 0;

	*word() = UINT64_MAX - 1;
	assert_int_equal(atomics_fetch_add(word(), 3, &original), 0);
	assert_int_equal(original, UINT64_MAX - 1);
	assert_int_equal(*word(), 1);
}

TEST(atomics_compare_swap__stores_where_equal)
{
	uint64_t original = 0;

	*word() = 5;
	assert_int_equal(atomics_compare_swap(word(), 4, 9, &original), 0);
	assert_int_equal(original, 5);
	assert_int_equal(*word(), 5);
	assert_int_equal(atomics_compare_swap(word(), 5, 9, &original), 0);
	assert_int_equal(original, 5);
	assert_int_equal(*word(), 9);
}

TEST(atomics_store__stores_the_word)
{
	*word() = 5;
	assert_int_equal(atomics_store(word(), UINT64_MAX - 1), 0);
	assert_int_equal(*word(), UINT64_MAX - 1);
}

TEST(atomics__what_is_not_there_is_a_fault)
{
	uint64_t original;

	assert_int_equal(guard_install(), 0);
	*word() = 5;
	assert_int_equal(mprotect(env.memory, env.page, PROT_READ), 0);
	assert_int_equal(atomics_fetch_add(word(), 3, &original), -EFAULT);
	assert_int_equal(atomics_compare_swap(word(), 5, 3, &original), -EFAULT);
	assert_int_equal(atomics_store(word(), 3), -EFAULT);
	assert_int_equal(*word(), 5);
	assert_int_equal(munmap(env.memory, env.page), 0);
	assert_int_equal(atomics_fetch_add(word(), 3, &original), -EFAULT);
	assert_int_equal(atomics_compare_swap(word(), 5, 3, &original), -EFAULT);
}

static void *add_many(void *arg)
{
	uint64_t original;

	for (int i = 0; i < ROUNDS; i++)
		atomics_fetch_add(arg, 1, &original);
	return NULL;
}

/* Towards what the program itself does with the word. */
TEST(atomics_fetch_add__loses_nothing_to_other_threads)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, add_many, word()), 0);
	for (int i = 0; i < ROUNDS; i++)
		__atomic_fetch_add(word(), 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	assert_int_equal(*word(), 2 * ROUNDS);
}
