/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables whose columns fit the terminal. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "terminal.h"

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

#endif
