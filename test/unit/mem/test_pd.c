/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/pd.c. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "mem/key_table.h"
#include "mem/pd.h"
#include "test.h"

TEST(pd_create__keeps_the_devices_keys)
{
	struct key_table *keys;
	struct pd *pd;

	assert_int_equal(key_table_create(4, &keys), 0);
	assert_int_equal(pd_create(keys, &pd), 0);
	assert_ptr_equal(pd->keys, keys);
	assert_int_equal(pd_destroy(pd), 0);
	key_table_destroy(keys);
}

TEST(pd_destroy__is_busy_while_there_are_users)
{
	struct pd *pd;

	assert_int_equal(pd_create(NULL, &pd), 0);
	assert_int_equal(pd_get(pd), 0);
	assert_int_equal(pd_get(pd), 0);
	assert_int_equal(pd_destroy(pd), -EBUSY);
	pd_put(pd);
	assert_int_equal(pd_destroy(pd), -EBUSY);
	pd_put(pd);
	assert_int_equal(pd_destroy(pd), 0);
}

/* A thread that holds a destroyed domain finds that out, and can create nothing in it. */
TEST(pd_destroy__once_and_its_handles_stay)
{
	struct pd *pd;

	assert_int_equal(pd_create(NULL, &pd), 0);
	pd_hold(pd);
	assert_int_equal(pd_destroy(pd), 0);
	assert_int_equal(pd_get(pd), -EINVAL);
	assert_int_equal(pd_destroy(pd), -EINVAL);
	pd_release_hold(pd);
}

#define ROUNDS 200000

static void *get_many(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		pd_get(arg);
	return NULL;
}

TEST(pd_get__counts_the_users_of_each_thread)
{
	pthread_t thread;
	struct pd *pd;

	assert_int_equal(pd_create(NULL, &pd), 0);
	assert_int_equal(pthread_create(&thread, NULL, get_many, pd), 0);
	get_many(pd);
	pthread_join(thread, NULL);
	assert_int_equal(pd->users, 2 * ROUNDS);
	for (int i = 0; i < 2 * ROUNDS; i++)
		pd_put(pd);
	assert_int_equal(pd_destroy(pd), 0);
}
