/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rspreload/fds.c. */
#include "fds.h"
#include "test.h"

static int rsocket;

TEST(fds_get__knows_rsockets_alone)
{
	assert_true(fds_get(-1) < 0);
	assert_true(fds_get(10) < 0);
	assert_true(fds_get(FDS_MAX) < 0);
	assert_true(fds_add(10));
	assert_int_equal(fds_get(10), 10);
	assert_false(fds_add(FDS_MAX));
	assert_true(fds_remove(10, &rsocket));
	assert_int_equal(rsocket, 10);
	assert_true(fds_get(10) < 0);
	assert_false(fds_remove(10, &rsocket));
	assert_true(rsocket < 0);
}

/* The rsocket lives as long as a number stands for it. */
TEST(fds_alias__the_last_number_ends_it)
{
	assert_true(fds_add(20));
	assert_true(fds_alias(21, 20));
	assert_int_equal(fds_get(21), 20);
	assert_true(fds_has_aliases(20));
	assert_false(fds_has_aliases(21));
	assert_false(fds_remove(20, &rsocket));
	assert_int_equal(rsocket, 20);
	assert_true(fds_has_aliases(20));
	assert_true(fds_get(20) < 0);
	assert_true(fds_remove(21, &rsocket));
	assert_int_equal(rsocket, 20);
	assert_false(fds_has_aliases(20));
	assert_true(fds_add(20));
	assert_false(fds_has_aliases(20));
	assert_true(fds_remove(20, &rsocket));
}
