/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of what is told of findings, and of the status with which a program ends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check/finding.h"
#include "printed.h"
#include "test.h"

static char error[256];

static int set_up(TEST_STATE)
{
	printed_begin();
	return 0;
}

/* The next test is a program of its own. */
static int tear_down(TEST_STATE)
{
	printed_end();
	check_forget();
	check_wanted = false;
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static int start(bool fails, const char *suppressions)
{
	char path[] = "/tmp/uroce-check-XXXXXX";
	const int fd = mkstemp(path);
	const ssize_t written = write(fd, suppressions, strlen(suppressions));
	int rc;

	assert_int_equal(written, strlen(suppressions));
	close(fd);
	rc = check_start(fails, path, error, sizeof(error));
	unlink(path);
	return rc;
}

TEST(check_finding__each_cause_is_told_once)
{
	check_finding(CHECK_LEAK, "a", "%d regions", 1);
	check_finding(CHECK_LEAK, "a", "%d regions", 2);
	check_finding(CHECK_LEAK, "b", "%d regions", 3);
	check_finding(CHECK_CHANGED, "a", "a buffer");
	assert_string_equal(printed_take(), "uroce: check: leak: 1 regions\n"
					    "uroce: check: leak: 3 regions\n"
					    "uroce: check: changed-buffer: a buffer\n");
}

TEST(check_finding__keeps_errno)
{
	errno = EXDEV;
	check_finding(CHECK_LEAK, "errno", "one");
	assert_int_equal(errno, EXDEV);
}

TEST(check_start__a_missing_file_and_a_wrong_rule_are_errors)
{
	assert_int_equal(check_start(false, "/nowhere/at/all", error, sizeof(error)), -ENOENT);
	assert_string_equal(error, "check-suppress: /nowhere/at/all: No such file or directory");
	assert_false(check_wanted);
	assert_int_equal(start(false, "# one\nleek at exit\n"), -EINVAL);
	assert_contains(error, ":2: 'leek' is no rule of --check");
	assert_false(check_wanted);
}

/* A child ends as a program does: return its status. */
static int status_of(bool fails, bool finds, int ends_with)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		/* A destructor calls it in a program, behind all other handlers. */
		if (atexit(check_end) != 0 || check_start(fails, "", error, sizeof(error)) != 0)
			_exit(99);
		if (finds)
			check_finding(CHECK_LEAK, "status", "one");
		exit(ends_with);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

TEST(check_end__a_finding_fails_a_program_that_would_succeed)
{
	assert_int_equal(status_of(true, true, 0), CHECK_STATUS);
	assert_int_equal(status_of(true, true, 7), 7);
	assert_int_equal(status_of(true, false, 0), 0);
	assert_int_equal(status_of(false, true, 0), 0);
}

/* The suppressions stay for the whole process, so this is the last test. */
TEST(check_finding__suppressions_name_a_rule_and_a_text)
{
	assert_int_equal(
		start(false, "# a comment\n\n  leak  made by old \r\nsmall-completion-queue\n"), 0);
	assert_true(check_wanted);
	check_finding(CHECK_LEAK, "1", "made by old code");
	check_finding(CHECK_LEAK, "2", "made by new code");
	check_finding(CHECK_CHANGED, "3", "made by old code");
	check_finding(CHECK_SMALL_CQ, "4", "any");
	assert_string_equal(printed_take(), "uroce: check: leak: made by new code\n"
					    "uroce: check: changed-buffer: made by old code\n");
}
