/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/eal/runtime_dir.c. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime_dir.h"
#include "test.h"

static char parent[32], path[64];

static int set_up(TEST_STATE)
{
	strcpy(parent, "/tmp/uroce-test-XXXXXX");
	assert_non_null(mkdtemp(parent));
	snprintf(path, sizeof(path), "%s/dpdk", parent);
	return 0;
}

static int tear_down(TEST_STATE)
{
	(void)rmdir(path);
	(void)unlink(path);
	return rmdir(parent);
}

TEST_FIXTURE(set_up, tear_down);

TEST(runtime_dir_check__makes_a_directory_of_this_user)
{
	struct stat dir;

	assert_int_equal(runtime_dir_check_at(path), 0);
	assert_int_equal(stat(path, &dir), 0);
	assert_int_equal(dir.st_mode & 07777, 0700);
	assert_int_equal(runtime_dir_check_at(path), 0);
}

TEST(runtime_dir_check__refuses_a_directory_that_others_can_write)
{
	static const mode_t modes[] = {0777, 01777, 0770, 0702};

	assert_int_equal(mkdir(path, 0700), 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_int_equal(runtime_dir_check_at(path), -EPERM);
	}
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(runtime_dir_check_at(path), 0);
}

TEST(runtime_dir_check__refuses_another_users)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, 1, 1), 0);
	assert_int_equal(runtime_dir_check_at(path), -EPERM);
}

TEST(runtime_dir_check__refuses_what_is_no_directory)
{
	assert_int_equal(symlink("/", path), 0);
	assert_int_equal(runtime_dir_check_at(path), -EPERM);
}
