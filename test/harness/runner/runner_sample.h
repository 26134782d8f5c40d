/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the sample program know of each other. */
#ifndef RUNNER_SAMPLE_H
#define RUNNER_SAMPLE_H

#include <stdbool.h>

extern int sample_left_behind; /* by a file that has run */

bool sample_other_file_runs(void);

#endif
