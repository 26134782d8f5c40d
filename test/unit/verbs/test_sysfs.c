/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of sysfs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "private.h"

#include "fake_provider.h"
#include "test.h"

static char dir[] = "/tmp/uroce-test-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_dir(TEST_STATE)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(TEST_STATE)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/file", dir);
	unlink(path);
	return rmdir(dir);
}

TEST_GROUP(make_dir, remove_dir);

TEST(get_sysfs_path__has_no_slash_at_its_end)
{
	setenv("SYSFS_PATH", "/tmp//", 1);
	assert_string_equal(ibv_get_sysfs_path(), "/tmp");
	setenv("SYSFS_PATH", "/other", 1);
	assert_string_equal(ibv_get_sysfs_path(), "/tmp");
}

TEST(read_sysfs_file__drops_the_newline)
{
	char buf[16];

	write_file("file", "hello\n");
	assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, sizeof(buf)), 5);
	assert_string_equal(buf, "hello");
	assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, 6), 5);
	assert_string_equal(buf, "hello");
}

TEST(read_sysfs_file__without_a_newline)
{
	char buf[16];

	write_file("file", "hello");
	assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, sizeof(buf)), 5);
	assert_string_equal(buf, "hello");
}

TEST(read_sysfs_file__stays_in_its_buffer)
{
	char buf[8];

	memset(buf, 'x', sizeof(buf));
	write_file("file", "hello world\n");
	errno = 0;
	assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, 4), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(buf[4], 'x');
}

TEST(read_sysfs_file__fails_with_errno)
{
	char buf[8];

	errno = 0;
	assert_int_equal(ibv_read_sysfs_file(dir, "none", buf, sizeof(buf)), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ibv_read_ibdev_sysfs_file(buf, sizeof(buf), NULL, "node_guid"), -1);
	assert_int_equal(errno, EOPNOTSUPP);
}
