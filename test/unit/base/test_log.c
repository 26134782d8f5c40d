/* SPDX-License-Identifier: BSD-3-Clause */
/* The form of messages on stderr, and the levels that are printed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "test.h"

static int saved_stderr;
static int pipe_end;
static char printed[2048];

/* Point stderr at a pipe whose other end take_printed reads. */
static int catch_stderr(TEST_STATE)
{
	int fds[2];

	if (pipe2(fds, O_NONBLOCK) != 0)
		return -1;
	saved_stderr = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	pipe_end = fds[0];
	return 0;
}

static int release_stderr(TEST_STATE)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(pipe_end);
	log_set_level(LOG_LEVEL_WARN);
	return 0;
}

TEST_FIXTURE(catch_stderr, release_stderr);

static const char *take_printed(void)
{
	ssize_t len = read(pipe_end, printed, sizeof(printed) - 1);

	printed[len < 0 ? 0 : len] = '\0';
	return printed;
}

TEST(log_set_level__warnings_are_printed_at_start)
{
	log_warn("w");
	log_info("i");
	assert_string_equal(take_printed(), "uroce: w\n");
}

TEST(log_set_level__chooses_the_least_level)
{
	log_set_level(LOG_LEVEL_ERROR);
	log_error("e");
	log_warn("w");
	assert_string_equal(take_printed(), "uroce: e\n");
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("d");
	assert_string_equal(take_printed(), "uroce: d\n");
}

TEST(log_print__formats_one_line)
{
	log_error("port %s has no address %d", "veth0", 7);
	assert_string_equal(take_printed(), "uroce: port veth0 has no address 7\n");
}

TEST(log_print__cuts_a_long_line_and_ends_it)
{
	char text[2000];
	const char *line;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_error("%s", text);
	line = take_printed();
	assert_true(strlen(line) > 900 && strlen(line) < sizeof(text));
	assert_int_equal(line[strlen(line) - 1], '\n');
	assert_int_equal(line[strlen(line) - 2], 'x');
}

/* journalctl -p warning shows what has this priority or a higher one. */
TEST(log_print__tells_the_journal_its_priority)
{
	char stream[64];
	struct stat file;

	assert_int_equal(fstat(STDERR_FILENO, &file), 0);
	snprintf(stream, sizeof(stream), "%lu:%lu", (unsigned long)file.st_dev,
		 (unsigned long)file.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_find_journal();
	log_set_level(LOG_LEVEL_DEBUG);
	log_error("e");
	log_warn("w");
	log_info("i");
	log_debug("d");
	assert_string_equal(take_printed(), "<3>uroce: e\n<4>uroce: w\n<6>uroce: i\n<7>uroce: d\n");
	/* stderr is another file. */
	snprintf(stream, sizeof(stream), "%lu:%lu", (unsigned long)file.st_dev,
		 (unsigned long)file.st_ino + 1);
	setenv("JOURNAL_STREAM", stream, 1);
	log_find_journal();
	log_error("e");
	assert_string_equal(take_printed(), "uroce: e\n");
	unsetenv("JOURNAL_STREAM");
	log_find_journal();
}

TEST(log_print__keeps_errno)
{
	errno = ENOSPC;
	log_error("e");
	assert_int_equal(errno, ENOSPC);
	close(STDERR_FILENO);
	log_error("e");
	assert_int_equal(errno, ENOSPC);
}
