/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/terminal.c. */
#include <string.h>

#include "stdout_text.h"
#include "terminal.h"
#include "test.h"

static const char *wrapped(const struct terminal *terminal, const char *text)
{
	stdout_begin();
	terminal_wrap(terminal, TINT_WARN, 4, 4, text);
	return stdout_end();
}

TEST(terminal_wrap__between_words)
{
	const struct terminal narrow = {.columns = 12};

	assert_string_equal(wrapped(&narrow, "one two three"), "one two\n    three");
	assert_string_equal(wrapped(&narrow, "12345678 9"), "12345678\n    9");
	assert_string_equal(wrapped(&narrow, "much-too-long-word x"), "much-too-long-word\n    x");
	assert_string_equal(wrapped(&narrow, ""), "");
}

TEST(terminal_wrap__any_length_elsewhere)
{
	const struct terminal file = {.columns = 0};

	assert_string_equal(wrapped(&file, "one two three four five"), "one two three four five");
}

TEST(terminal_put__no_command_to_the_terminal)
{
	const struct terminal colour = {.colour = true};

	stdout_begin();
	terminal_put(&colour, TINT_GOOD, "a\033[2Jb\n");
	assert_string_equal(stdout_end(), "\033[32ma?[2Jb?\033[0m");
	assert_string_equal(wrapped(&colour, "x\033y"), "\033[33mx?y\033[0m");
}

TEST(terminal_look__colours)
{
	struct terminal terminal;

	terminal_look(&terminal, COLOUR_NEVER);
	assert_false(terminal.colour);
	terminal_look(&terminal, COLOUR_ALWAYS);
	assert_true(terminal.colour);
	stdout_begin(); /* a file: no terminal */
	terminal_look(&terminal, COLOUR_AUTO);
	stdout_end();
	assert_false(terminal.is_terminal);
	assert_false(terminal.colour);
	assert_int_equal(terminal.columns, 0);
	assert_string_equal(terminal_tint(&terminal, TINT_BAD), "");
	assert_string_equal(terminal_plain(&terminal, TINT_BAD), "");
}
