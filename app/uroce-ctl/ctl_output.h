/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of items with fields, printed as lines of words or as JSON. */
#ifndef CTL_OUTPUT_H
#define CTL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "report/devices.h"

struct json_object;

struct output {
	bool json;
	const struct terminal *terminal;
	unsigned int column;	     /* of the line, for terminals */
	const char *prefix;	     /* of lines; "": none */
	bool in_item;		     /* the current item has fields already */
	bool failed;		     /* memory was short */
	struct json_object *items;   /* all finished items, for JSON */
	struct json_object *item;    /* the current item, for JSON */
	struct report_fields fields; /* callbacks that add fields to the current item */
};

/** Begin a list of items. Lines are broken between fields if they do not fit the terminal. */
void output_begin(struct output *output, bool json, const struct terminal *terminal);

/** Begin an item of JSON only; the caller prints lines. */
void output_item(struct output *output);

/** Begin an item of a device with its name and network. A line begins with "0: uroce0: " for
 * output_dev, and with "link uroce0/1 " for output_link. */
void output_dev(struct output *output, const struct report_device *device);
void output_link(struct output *output, const struct report_device *device);

/** Add a field to the item. */
void output_text(struct output *output, const char *name, const char *value);
void output_number(struct output *output, const char *name, uint64_t value);

/** End the item. */
void output_item_end(struct output *output);

/** End the list. Returns false if there was no memory for JSON; then nothing was printed. */
bool output_end(struct output *output);

enum colour_when {
	COLOUR_AUTO, /* if the output is a terminal that has colours, unless $NO_COLOR is set */
	COLOUR_ALWAYS,
	COLOUR_NEVER,
};

enum tint {
	TINT_PLAIN,
	TINT_NAME,
	TINT_GOOD,
	TINT_WARN,
	TINT_BAD,
	TINT_HEAD,
};

struct terminal {
	bool is_terminal;
	bool colour;
	unsigned int columns; /* 0: lines may have any length */
	unsigned int rows;    /* 0: any number of lines */
};

/** Look at stdout. Its size is that of $COLUMNS and $LINES, or what the kernel says. Both count
 * only if it is a terminal. */
void terminal_look(struct terminal *terminal, enum colour_when when);

/** Look at the size again. */
void terminal_resize(struct terminal *terminal);

/** Return what to print before and after coloured text; "" without colours. MT-safe. */
const char *terminal_tint(const struct terminal *terminal, enum tint tint);
const char *terminal_plain(const struct terminal *terminal, enum tint tint);

/** Print a text, with '?' in place of each byte that is not printable: it may be a command to the
 * terminal. */
void terminal_put(const struct terminal *terminal, enum tint tint, const char *text);

/**
 * Print a text of several words behind `column` columns of the line, and begin a new line with
 * `indent` spaces in front of each word that does not fit. Returns the column after the text.
 */
unsigned int terminal_wrap(const struct terminal *terminal, enum tint tint, unsigned int column,
			   unsigned int indent, const char *text);

/* Tables whose columns fit. */

#define TABLE_COLUMNS_MAX 16
#define TABLE_CELL	  32

struct table_column {
	const char *title;
	int width;	   /* negative: to the left */
	unsigned int keep; /* of two columns, the one with the lower number is left out first */
};

struct table {
	const struct terminal *terminal;
	const struct table_column *columns;
	size_t count;
	bool shown[TABLE_COLUMNS_MAX];
	char cells[TABLE_COLUMNS_MAX][TABLE_CELL]; /* of the next row */
};

/** Choose the columns that fit. */
void table_begin(struct table *table, const struct terminal *terminal,
		 const struct table_column *columns, size_t count);

/** Print the titles. */
void table_head(const struct table *table);

/** Fill a cell of the next row. A cell to the left is cut to its column's width. */
void table_cell(struct table *table, size_t column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Print the row in one colour. */
void table_row(const struct table *table, enum tint tint);

/** Read the first line of a file, without its end. Return false, and an empty line, if there is
 * none. MT-safe. */
static inline bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool read = false;

	line[0] = '\0';
	if (file) {
		read = fgets(line, (int)size, file) != NULL;
		fclose(file);
	}
	line[strcspn(line, "\n")] = '\0';
	return read;
}

#endif
