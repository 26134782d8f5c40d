/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-run/launch.c. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "test.h"

static char root[PATH_MAX];

/* A build tree: root/app and root/lib/verbs/libibverbs.so.1. */
static int make_tree(TEST_STATE)
{
	char path[] = "/tmp/uroce-test-XXXXXX";
	FILE *file;

	assert_non_null(mkdtemp(path));
	assert_non_null(realpath(path, root));
	assert_int_equal(chdir(root), 0);
	assert_int_equal(mkdir("app", 0700), 0);
	assert_int_equal(mkdir("lib", 0700), 0);
	assert_int_equal(mkdir("lib/verbs", 0700), 0);
	file = fopen("lib/verbs/libibverbs.so.1", "w");
	assert_non_null(file);
	fclose(file);
	return 0;
}

static int remove_tree(TEST_STATE)
{
	unlink("script");
	unlink("lib/verbs/libibverbs.so.1");
	rmdir("lib/verbs");
	rmdir("lib");
	rmdir("app");
	assert_int_equal(chdir("/"), 0);
	return rmdir(root);
}

TEST_GROUP(make_tree, remove_tree);

TEST(launch_find_library__in_a_build)
{
	char bin_dir[PATH_MAX + 8], dir[PATH_MAX], expected[PATH_MAX + 16], error[1024] = "";

	snprintf(bin_dir, sizeof(bin_dir), "%s/app", root);
	snprintf(expected, sizeof(expected), "%s/lib/verbs", root);
	assert_int_equal(launch_find_library(bin_dir, dir, sizeof(dir), error, sizeof(error)), 0);
	assert_string_equal(dir, expected);
	assert_int_equal(launch_find_library(bin_dir, dir, strlen(expected), error, sizeof(error)),
			 -ENAMETOOLONG);
}

TEST(launch_find_library__missing)
{
	char dir[PATH_MAX], error[1024] = "";

	assert_int_equal(launch_find_library(root, dir, sizeof(dir), error, sizeof(error)),
			 -ENOENT);
	assert_non_null(strstr(error, root));
	assert_non_null(strstr(error, "libibverbs.so.1"));
}

TEST(launch_reserve_tls__keeps_what_the_user_has_set)
{
	unsetenv("GLIBC_TUNABLES");
	assert_int_equal(launch_reserve_tls(4096), 0);
	assert_string_equal(getenv("GLIBC_TUNABLES"), "glibc.rtld.optional_static_tls=4096");
	setenv("GLIBC_TUNABLES", "glibc.malloc.check=0", 1);
	assert_int_equal(launch_reserve_tls(4096), 0);
	assert_string_equal(getenv("GLIBC_TUNABLES"),
			    "glibc.malloc.check=0:glibc.rtld.optional_static_tls=4096");
	unsetenv("GLIBC_TUNABLES");
}

TEST(launch_reserve_tls__only_if_there_is_less)
{
	static const char enough[] = "glibc.rtld.optional_static_tls=0x1001:glibc.malloc.check=0";
	static const char last[] =
		"glibc.rtld.optional_static_tls=9000:glibc.rtld.optional_static_tls=512";

	setenv("GLIBC_TUNABLES", enough, 1);
	assert_int_equal(launch_reserve_tls(4096), 0);
	assert_string_equal(getenv("GLIBC_TUNABLES"), enough);
	setenv("GLIBC_TUNABLES", last, 1);
	assert_int_equal(launch_reserve_tls(4096), 0);
	assert_string_equal(strrchr(getenv("GLIBC_TUNABLES"), ':'),
			    ":glibc.rtld.optional_static_tls=4096");
	unsetenv("GLIBC_TUNABLES");
}

TEST(launch_find_self__is_a_folder_with_us_in_it)
{
	char dir[PATH_MAX], path[PATH_MAX + 32];

	assert_int_equal(launch_find_self(dir, sizeof(dir)), 0);
	snprintf(path, sizeof(path), "%s/%s", dir, program_invocation_short_name);
	assert_int_equal(access(path, X_OK), 0);
	assert_int_equal(launch_find_self(dir, 2), -ENAMETOOLONG);
}

#define AUTOGROUP "/proc/self/autogroup"

static void set_nice(int value)
{
	FILE *file = fopen(AUTOGROUP, "we");

	if (file) {
		fprintf(file, "%d", value);
		fclose(file);
	}
}

static int nice_of_session(void)
{
	FILE *file = fopen(AUTOGROUP, "re");
	int value = -100;

	if (!file)
		return value;
	if (fscanf(file, "%*s nice %d", &value) != 1)
		value = -100;
	fclose(file);
	return value;
}

/* The child has a session of its own, so that the test's keeps its value. */
TEST(launch_begin_session__keeps_the_nice_value_of_the_session)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		setsid();
		set_nice(5);
		if (access(AUTOGROUP, R_OK) == 0 && nice_of_session() != 5)
			_exit(1);
		/* The leader of a session cannot begin another one. */
		if (launch_begin_session() != -EPERM)
			_exit(2);
		if (fork() != 0) {
			wait(&status);
			_exit(WEXITSTATUS(status));
		}
		if (launch_begin_session() != 0 || getsid(0) != getpid())
			_exit(3);
		_exit(access(AUTOGROUP, R_OK) == 0 && nice_of_session() != 5 ? 4 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

TEST(launch_prepend_library_path__keeps_what_was_there)
{
	char error[256];

	unsetenv("LD_LIBRARY_PATH");
	assert_int_equal(launch_prepend_library_path("/a", error, sizeof(error)), 0);
	assert_string_equal(getenv("LD_LIBRARY_PATH"), "/a");
	assert_int_equal(launch_prepend_library_path("/b", error, sizeof(error)), 0);
	assert_string_equal(getenv("LD_LIBRARY_PATH"), "/b:/a");
	setenv("LD_LIBRARY_PATH", "", 1);
	assert_int_equal(launch_prepend_library_path("/a", error, sizeof(error)), 0);
	assert_string_equal(getenv("LD_LIBRARY_PATH"), "/a");
}

TEST(launch_prepend_library_path__refuses_what_would_be_two)
{
	char error[256] = "";

	assert_int_equal(launch_prepend_library_path("/a:b", error, sizeof(error)), -EINVAL);
	assert_int_equal(launch_prepend_library_path("/a;b", error, sizeof(error)), -EINVAL);
	assert_int_equal(launch_prepend_library_path("/$LIB", error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "/$LIB"));
}

/* The exit code of a child that becomes `program`. */
static int exit_code(char **program)
{
	char error[1024];
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(launch_exec(program, error, sizeof(error)));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void write_script(const char *text, mode_t mode)
{
	FILE *file = fopen("script", "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod("script", mode), 0);
}

TEST(launch_exec__exit_code_is_the_programs)
{
	assert_int_equal(exit_code((char *[]){"sh", "-c", "exit 42", NULL}), 42);
	assert_int_equal(exit_code((char *[]){"true", NULL}), 0);
}

TEST(launch_exec__scripts)
{
	write_script("#!/bin/sh\nexit 43\n", 0700);
	assert_int_equal(exit_code((char *[]){"./script", NULL}), 43);
	write_script("exit 44\n", 0700);
	assert_int_equal(exit_code((char *[]){"./script", NULL}), 44);
}

TEST(launch_exec__not_found)
{
	assert_int_equal(exit_code((char *[]){"no-such-program", NULL}), LAUNCH_NOT_FOUND);
	assert_int_equal(exit_code((char *[]){"./no-such-program", NULL}), LAUNCH_NOT_FOUND);
	write_script("#!/no/such/interpreter\n", 0700);
	assert_int_equal(exit_code((char *[]){"./script", NULL}), LAUNCH_NOT_FOUND);
}

TEST(launch_exec__not_executable)
{
	write_script("#!/bin/sh\n", 0600);
	assert_int_equal(exit_code((char *[]){"./script", NULL}), LAUNCH_NOT_EXECUTABLE);
	assert_int_equal(exit_code((char *[]){"/", NULL}), LAUNCH_NOT_EXECUTABLE);
}
