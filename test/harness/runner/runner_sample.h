/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of the sample program look at each other by this. */
#ifndef RUNNER_SAMPLE_H
#define RUNNER_SAMPLE_H

#include <stdbool.h>

extern int sample_left_behind; /* by a file that has run */

bool sample_other_file_runs(void);

#endif
