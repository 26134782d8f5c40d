/* SPDX-License-Identifier: BSD-3-Clause */
/* Choose the columns of a table, and print its rows. */
#include "columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t table_width(const struct table *table)
{
	size_t width = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (table->shown[i])
			width += (size_t)abs(table->columns[i].width) + (width > 0);
	}
	return width;
}

/* Leave out the shown column that matters least. Returns false if only one is left. */
static bool table_drop(struct table *table)
{
	size_t least = table->count, shown = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (!table->shown[i])
			continue;
		shown++;
		if (least == table->count || table->columns[i].keep < table->columns[least].keep)
			least = i;
	}
	if (shown > 1)
		table->shown[least] = false;
	return shown > 1;
}

void table_begin(struct table *table, const struct terminal *terminal,
		 const struct table_column *columns, size_t count)
{
	*table = (struct table){.terminal = terminal, .columns = columns, .count = count};
	for (size_t i = 0; i < count; i++)
		table->shown[i] = true;
	while (terminal->columns > 0 && table_width(table) > terminal->columns && table_drop(table))
		;
}

static void put_row(const struct table *table, enum tint tint, bool titles)
{
	bool first = true;

	fputs(terminal_tint(table->terminal, tint), stdout);
	for (size_t i = 0; i < table->count; i++) {
		const struct table_column *column = &table->columns[i];

		if (!table->shown[i])
			continue;
		/* Cut names, but not numbers. */
		printf("%s%*.*s", first ? "" : " ", column->width,
		       column->width < 0 ? -column->width : TABLE_CELL,
		       titles ? column->title : table->cells[i]);
		first = false;
	}
	fputs(terminal_plain(table->terminal, tint), stdout);
	putchar('\n');
}

void table_head(const struct table *table)
{
	put_row(table, TINT_HEAD, true);
}

void table_cell(struct table *table, size_t column, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(table->cells[column], TABLE_CELL, format, args);
	va_end(args);
}

void table_row(const struct table *table, enum tint tint)
{
	put_row(table, tint, false);
}
