/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of results, as text, JSON and CSV. */
#ifndef TESTROCE_OUTPUT_H
#define TESTROCE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct result;

/** Print a result in some lines. */
void output_text(FILE *file, const struct result *result);

/** Print the share of each stage in the cycles, a line a stage. */
void output_stages(FILE *file, const struct result *result);

/** Print a result as one JSON object on one line. Returns false if there was no memory for it; then
 * nothing is printed. */
bool output_json(FILE *file, const struct result *result);

/** Print a result as a line of CSV; output_csv_head prints the names of the columns. */
void output_csv_head(FILE *file);
void output_csv(FILE *file, const struct result *result);

#endif
