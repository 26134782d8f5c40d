/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/pd.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mem/key_table.h"
#include "mem/pd.h"

static void pd_create__keeps_the_devices_keys(void **state)
{
	struct key_table *keys;
	struct pd *pd;

	(void)state;
	assert_int_equal(key_table_create(4, &keys), 0);
	assert_int_equal(pd_create(keys, &pd), 0);
	assert_ptr_equal(pd->keys, keys);
	assert_int_equal(pd_destroy(pd), 0);
	key_table_destroy(keys);
}

static void pd_destroy__is_busy_while_there_are_users(void **state)
{
	struct pd *pd;

	(void)state;
	assert_int_equal(pd_create(NULL, &pd), 0);
	assert_int_equal(pd_get(pd), 0);
	assert_int_equal(pd_get(pd), 0);
	assert_int_equal(pd_destroy(pd), -EBUSY);
	pd_put(pd);
	assert_int_equal(pd_destroy(pd), -EBUSY);
	pd_put(pd);
	assert_int_equal(pd_destroy(pd), 0);
}

/* Who holds one that is destroyed finds that out, and nothing is made in it. */
static void pd_destroy__once_and_its_handles_stay(void **state)
{
	struct pd *pd;

	(void)state;
	assert_int_equal(pd_create(NULL, &pd), 0);
	pd_hold(pd);
	assert_int_equal(pd_destroy(pd), 0);
	assert_int_equal(pd_get(pd), -EINVAL);
	assert_int_equal(pd_destroy(pd), -EINVAL);
	pd_release_hold(pd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pd_create__keeps_the_devices_keys),
		cmocka_unit_test(pd_destroy__is_busy_while_there_are_users),
		cmocka_unit_test(pd_destroy__once_and_its_handles_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
