/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the terminal of app/uroce-ctl/ctl_output.c. */
#include <string.h>

#include "stdout_text.h"
#include "ctl_output.h"
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

static const struct table_column columns[] = {
	{"PID", 5, 3},
	{"NAME", -6, 2},
	{"RATE", 4, 1},
};

static const char *print(unsigned int width, const char *rate)
{
	const struct terminal terminal = {.columns = width};
	struct table table;

	stdout_begin();
	table_begin(&table, &terminal, columns, 3);
	table_head(&table);
	table_cell(&table, 0, "%d", 7);
	table_cell(&table, 1, "%s", "longer-than-six");
	table_cell(&table, 2, "%s", rate);
	table_row(&table, TINT_PLAIN);
	return stdout_end();
}

TEST(table_row__cuts_names_and_not_numbers)
{
	assert_string_equal(print(0, "9"), "  PID NAME   RATE\n    7 longer    9\n");
	assert_string_equal(print(0, "123456"), "  PID NAME   RATE\n    7 longer 123456\n");
}

TEST(table_begin__leaves_out_what_matters_least)
{
	assert_string_equal(print(17, "9"), "  PID NAME   RATE\n    7 longer    9\n");
	assert_string_equal(print(16, "9"), "  PID NAME  \n    7 longer\n");
	assert_string_equal(print(11, "9"), "  PID\n    7\n");
	assert_string_equal(print(1, "9"), "  PID\n    7\n");
}
