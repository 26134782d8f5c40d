/* SPDX-License-Identifier: BSD-3-Clause */
/* What a message looks like on stderr, and which ones are printed. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

static int saved_stderr;
static int pipe_end;
static char printed[2048];

/* Point stderr at a pipe whose other end take_printed reads. */
static int catch_stderr(void **state)
{
	int fds[2];

	(void)state;
	if (pipe2(fds, O_NONBLOCK) != 0)
		return -1;
	saved_stderr = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	pipe_end = fds[0];
	return 0;
}

static int release_stderr(void **state)
{
	(void)state;
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(pipe_end);
	log_set_level(LOG_LEVEL_WARN);
	return 0;
}

static const char *take_printed(void)
{
	ssize_t len = read(pipe_end, printed, sizeof(printed) - 1);

	printed[len < 0 ? 0 : len] = '\0';
	return printed;
}

static void log_set_level__warnings_are_printed_at_start(void **state)
{
	(void)state;
	log_warn("w");
	log_info("i");
	assert_string_equal(take_printed(), "uroce: w\n");
}

static void log_set_level__chooses_the_least_level(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	log_error("e");
	log_warn("w");
	assert_string_equal(take_printed(), "uroce: e\n");
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("d");
	assert_string_equal(take_printed(), "uroce: d\n");
}

static void log_print__formats_one_line(void **state)
{
	(void)state;
	log_error("port %s has no address %d", "veth0", 7);
	assert_string_equal(take_printed(), "uroce: port veth0 has no address 7\n");
}

static void log_print__cuts_a_long_line_and_ends_it(void **state)
{
	char text[1000];
	const char *line;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_error("%s", text);
	line = take_printed();
	assert_true(strlen(line) > 400 && strlen(line) < sizeof(text));
	assert_int_equal(line[strlen(line) - 1], '\n');
	assert_int_equal(line[strlen(line) - 2], 'x');
}

static void log_print__keeps_errno(void **state)
{
	(void)state;
	errno = ENOSPC;
	log_error("e");
	assert_int_equal(errno, ENOSPC);
	close(STDERR_FILENO);
	log_error("e");
	assert_int_equal(errno, ENOSPC);
}

#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, catch_stderr, release_stderr)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOG_TEST(log_set_level__warnings_are_printed_at_start),
		LOG_TEST(log_set_level__chooses_the_least_level),
		LOG_TEST(log_print__formats_one_line),
		LOG_TEST(log_print__cuts_a_long_line_and_ends_it),
		LOG_TEST(log_print__keeps_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
