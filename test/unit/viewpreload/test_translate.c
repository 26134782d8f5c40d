/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/viewpreload/translate.c. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "translate.h"

#define ROOT "/dev/shm/uroce-view-test"

/* Start again with a view, which the constructor reads. */
static int set_up(TEST_STATE)
{
	const char *variable = "UROCE_VIEW";
	char *const argv[] = {(char *)"test_translate", NULL};

	if (getenv(variable))
		return 0;
	setenv(variable, ROOT, 1);
	execv("/proc/self/exe", argv);
	return -1;
}

TEST_GROUP(set_up, NULL);

static void expect(int dir, const char *path, const char *expected)
{
	char buffer[PATH_MAX];

	errno = 77;
	assert_string_equal(translate(dir, path, buffer), expected);
	assert_int_equal(errno, 77);
}

TEST(translate__paths_of_the_view)
{
	expect(AT_FDCWD, "/sys/class/infiniband", ROOT "/sys/class/infiniband");
	expect(AT_FDCWD, "/sys/class/infiniband/", ROOT "/sys/class/infiniband");
	expect(AT_FDCWD, "//sys/./class//infiniband/x", ROOT "/sys/class/infiniband/x");
	expect(AT_FDCWD, "/sys/class/infiniband_verbs/uverbs0/dev",
	       ROOT "/sys/class/infiniband_verbs/uverbs0/dev");
	expect(AT_FDCWD, "/sys/class/misc/rdma_cm/dev", ROOT "/sys/class/misc/rdma_cm/dev");
	expect(AT_FDCWD, "/dev/infiniband/rdma_cm", ROOT "/dev/infiniband/rdma_cm");
	expect(AT_FDCWD, "/sys/class/infiniband/a/../b", ROOT "/sys/class/infiniband/b");
}

TEST(translate__other_paths_stay)
{
	static const char *const paths[] = {"/sys/class/infiniband2",
					    "/sys/class",
					    "/sys/class/net/eth0",
					    "/sys/class/misc/rdma_cm2",
					    "/dev/null",
					    "/etc/passwd",
					    "/",
					    "",
					    "..",
					    "/../sys/class/infiniband",
					    "/sys/class/net/../infiniband",
					    "/sys/class/infiniband/../net",
					    ROOT "/sys/class/infiniband"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		expect(AT_FDCWD, paths[i], paths[i]);
}

TEST(translate__a_path_that_is_too_long_stays)
{
	char path[PATH_MAX];

	memset(path, 'a', sizeof(path));
	memcpy(path, "/sys/class/infiniband/", 22);
	path[PATH_MAX - 1] = '\0';
	expect(AT_FDCWD, path, path);
}

TEST(translate__relative_paths)
{
	const int dir = open("/sys/class", O_RDONLY | O_DIRECTORY);

	assert_true(dir >= 0);
	expect(dir, "infiniband/x", ROOT "/sys/class/infiniband/x");
	expect(dir, "net", "net");
	expect(dir, "misc/rdma_cm", ROOT "/sys/class/misc/rdma_cm");
	expect(-1, "infiniband", "infiniband");
	close(dir);
	assert_int_equal(chdir("/"), 0);
	expect(AT_FDCWD, "dev/infiniband", ROOT "/dev/infiniband");
	assert_int_equal(chdir("/dev"), 0);
	expect(AT_FDCWD, "./infiniband/uverbs0", ROOT "/dev/infiniband/uverbs0");
	expect(AT_FDCWD, "null", "null");
}

TEST(translate_back__names_that_programs_know)
{
	char path[PATH_MAX] = ROOT "/sys/class/infiniband/x";

	assert_true(translate_back(path));
	assert_string_equal(path, "/sys/class/infiniband/x");
	assert_false(translate_back(path));
	strcpy(path, ROOT "2/x");
	assert_false(translate_back(path));
}
