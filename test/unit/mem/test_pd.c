/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/pd.c. */
#include <errno.h>
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
