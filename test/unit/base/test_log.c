/* SPDX-License-Identifier: BSD-3-Clause */
/* The form of messages on stderr, and the levels that are printed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "printed.h"
#include "test.h"

static int set_up(TEST_STATE)
{
	printed_begin();
	return 0;
}

static int tear_down(TEST_STATE)
{
	printed_end();
	log_set_level(LOG_LEVEL_WARN);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

TEST(log_set_level__warnings_are_printed_at_start)
{
	log_warn("w");
	log_info("i");
	assert_string_equal(printed_take(), "uroce: w\n");
}

TEST(log_set_level__chooses_the_least_level)
{
	log_set_level(LOG_LEVEL_ERROR);
	log_error("e");
	log_warn("w");
	assert_string_equal(printed_take(), "uroce: e\n");
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("d");
	assert_string_equal(printed_take(), "uroce: d\n");
}

TEST(log_print__formats_one_line)
{
	log_error("port %s has no address %d", "veth0", 7);
	assert_string_equal(printed_take(), "uroce: port veth0 has no address 7\n");
}

TEST(log_print__cuts_a_long_line_and_ends_it)
{
	char text[2000];
	const char *line;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_error("%s", text);
	line = printed_take();
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
	assert_string_equal(printed_take(), "<3>uroce: e\n<4>uroce: w\n<6>uroce: i\n<7>uroce: d\n");
	/* stderr is another file. */
	snprintf(stream, sizeof(stream), "%lu:%lu", (unsigned long)file.st_dev,
		 (unsigned long)file.st_ino + 1);
	setenv("JOURNAL_STREAM", stream, 1);
	log_find_journal();
	log_error("e");
	assert_string_equal(printed_take(), "uroce: e\n");
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
