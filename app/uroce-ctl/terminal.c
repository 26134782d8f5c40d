/* SPDX-License-Identifier: BSD-3-Clause */
/* Print coloured text, wrap lines, and choose the columns of a table. */
#include "terminal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SIZE_MAX_CELLS 10000

static const char *const tints[] = {
	[TINT_PLAIN] = "",	  [TINT_NAME] = "\033[36m", [TINT_GOOD] = "\033[32m",
	[TINT_WARN] = "\033[33m", [TINT_BAD] = "\033[31m",  [TINT_HEAD] = "\033[1m",
};

static unsigned int from_environment(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);
	const long number = text ? strtol(text, NULL, 10) : 0;

	return number > 0 && number <= SIZE_MAX_CELLS ? (unsigned int)number : otherwise;
}

static bool has_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && no[0] != '\0') && term && strcmp(term, "dumb") != 0;
}

void terminal_resize(struct terminal *terminal)
{
	struct winsize size;

	if (!terminal->is_terminal)
		return;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		memset(&size, 0, sizeof(size));
	terminal->columns = from_environment("COLUMNS", size.ws_col);
	terminal->rows = from_environment("LINES", size.ws_row);
}

void terminal_look(struct terminal *terminal, enum colour_when when)
{
	*terminal = (struct terminal){.is_terminal = isatty(STDOUT_FILENO)};
	terminal_resize(terminal);
	terminal->colour = when == COLOUR_ALWAYS ||
			   (when == COLOUR_AUTO && terminal->is_terminal && has_colours());
}

const char *terminal_tint(const struct terminal *terminal, enum tint tint)
{
	return terminal->colour ? tints[tint] : "";
}

const char *terminal_plain(const struct terminal *terminal, enum tint tint)
{
	return terminal->colour && tint != TINT_PLAIN ? "\033[0m" : "";
}

static void put_bytes(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		putchar(isprint((unsigned char)text[i]) ? text[i] : '?');
}

void terminal_put(const struct terminal *terminal, enum tint tint, const char *text)
{
	fputs(terminal_tint(terminal, tint), stdout);
	put_bytes(text, strlen(text));
	fputs(terminal_plain(terminal, tint), stdout);
}

unsigned int terminal_wrap(const struct terminal *terminal, enum tint tint, unsigned int column,
			   unsigned int indent, const char *text)
{
	fputs(terminal_tint(terminal, tint), stdout);
	while (*text) {
		const size_t word = strcspn(text, " ");
		const bool first = column <= indent;

		if (terminal->columns > 0 && !first && column + 1 + word > terminal->columns) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			putchar(' ');
			column++;
		}
		put_bytes(text, word);
		column += (unsigned int)word;
		text += word;
		text += strspn(text, " ");
	}
	fputs(terminal_plain(terminal, tint), stdout);
	return column;
}

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
