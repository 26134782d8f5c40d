/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/eal/runtime_dir.c. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

TEST(runtime_dir_check__tells_why_it_cannot_be_made)
{
	char below[80];

	snprintf(below, sizeof(below), "%s/dpdk", path);
	assert_int_equal(runtime_dir_check_at(below), -ENOENT);
}

/* Make a socket as a DPDK process does, with the name in parent/dpdk/test. */
static int make_socket(const char *name, int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, type, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/test/%s", path, name);
	unlink(address.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(type == SOCK_DGRAM || listen(fd, 1) == 0);
	return fd;
}

/* Look for a primary, and expect this reason why none can be joined. NULL: it can. */
static void expect_primary(const char *reason)
{
	char error[512] = "";

	assert_int_equal(runtime_dir_check_primary("test", error, sizeof(error)) != 0,
			 reason != NULL);
	if (reason)
		assert_non_null(strstr(error, reason));
}

TEST(runtime_dir_check_primary__tells_why_none_can_be_joined)
{
	char name[sizeof(path) + 32];
	int fd;

	snprintf(name, sizeof(name), "%s/test", path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(mkdir(name, 0700), 0);
	setenv("RUNTIME_DIRECTORY", parent, 1);
	expect_primary("no DPDK primary");
	fd = make_socket("dpdk_telemetry.v2", SOCK_SEQPACKET);
	expect_primary("--in-memory");
	close(fd);
	fd = make_socket("mp_socket", SOCK_DGRAM);
	expect_primary(NULL);
	setenv("RUNTIME_DIRECTORY", "/nonexistent", 1);
	expect_primary("another user's");
	close(fd);
	/* The files remain. */
	setenv("RUNTIME_DIRECTORY", parent, 1);
	expect_primary("no DPDK primary");
	unsetenv("RUNTIME_DIRECTORY");
	snprintf(name, sizeof(name), "%s/test/mp_socket", path);
	unlink(name);
	snprintf(name, sizeof(name), "%s/test/dpdk_telemetry.v2", path);
	unlink(name);
	snprintf(name, sizeof(name), "%s/test", path);
	assert_int_equal(rmdir(name), 0);
}
