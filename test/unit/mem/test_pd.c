/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/pd.c. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "mem/key_table.h"
#include "mem/pd.h"
#include "test.h"

static bool is_full; /* there is no memory */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return TEST_FILE_RUNS() && is_full ? NULL : __real_calloc(count, size);
}

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

TEST(pd_create__without_memory_is_an_error)
{
	struct pd *pd;
	int rc;

	is_full = true;
	rc = pd_create(NULL, &pd);
	is_full = false;
	assert_int_equal(rc, -ENOMEM);
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
