/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/columns.c. */
#include <string.h>

#include "stdout_text.h"
#include "columns.h"
#include "test.h"

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
