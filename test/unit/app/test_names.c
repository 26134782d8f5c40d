/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the names in app/uroced/tenant_limits.c. */
#include <stddef.h>
#include <sys/types.h>

#include "tenant_limits.h"
#include "test.h"

#define UNSET 77

static const char *const not_numbers[] = {
	"4294967295", "4294967296", "18446744073709551616", "-1", "+5", " 5", "5x", "no.such.name"};

TEST(names_find_user__takes_names_and_numbers)
{
	uid_t uid = UNSET;

	assert_true(names_find_user("", &uid));
	assert_int_equal(uid, UNSET);
	assert_true(names_find_user("root", &uid));
	assert_int_equal(uid, 0);
	assert_true(names_find_user("1234567", &uid));
	assert_int_equal(uid, 1234567);
	assert_true(names_find_user("4294967294", &uid));
	assert_int_equal(uid, 4294967294);
}

/* 2^32 would be the superuser. */
TEST(names_find_user__refuses_what_is_no_number_of_a_user)
{
	uid_t uid = UNSET;

	for (size_t i = 0; i < sizeof(not_numbers) / sizeof(not_numbers[0]); i++) {
		assert_false(names_find_user(not_numbers[i], &uid));
		assert_int_equal(uid, UNSET);
	}
}

TEST(names_find_group__takes_names_and_numbers)
{
	gid_t gid = UNSET;

	assert_true(names_find_group("", &gid));
	assert_int_equal(gid, UNSET);
	assert_true(names_find_group("root", &gid));
	assert_int_equal(gid, 0);
	assert_true(names_find_group("1234567", &gid));
	assert_int_equal(gid, 1234567);
}

TEST(names_find_group__refuses_what_is_no_number_of_a_group)
{
	gid_t gid = UNSET;

	for (size_t i = 0; i < sizeof(not_numbers) / sizeof(not_numbers[0]); i++) {
		assert_false(names_find_group(not_numbers[i], &gid));
		assert_int_equal(gid, UNSET);
	}
}
