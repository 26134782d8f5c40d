/* SPDX-License-Identifier: BSD-3-Clause */
/* Results for people, and for programs. */
#ifndef TESTROCE_OUTPUT_H
#define TESTROCE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct result;

/** What a test gave, in some lines. */
void output_text(FILE *file, const struct result *result);

/** Where the cycles went: a line a stage. */
void output_stages(FILE *file, const struct result *result);

/** The same as one JSON object on one line. false: there was no memory for it, and nothing is
 * written. */
bool output_json(FILE *file, const struct result *result);

/** The same as a line of CSV; output_csv_head has the names of the columns. */
void output_csv_head(FILE *file);
void output_csv(FILE *file, const struct result *result);

#endif
