/* SPDX-License-Identifier: BSD-3-Clause */
/* The gain of each optimisation: the same tests with all of them, and without each. */
#ifndef TESTROCE_ABLATION_H
#define TESTROCE_ABLATION_H

#include <stddef.h>
#include <stdio.h>

#include "measure.h"

/**
 * Print the table. Not MT-safe.
 *
 * @param base
 *   The plan that all tests share, above all its seconds, path MTU and queue pairs.
 * @param rounds
 *   How often each figure is measured, up to SPREAD_ROUNDS_MAX; the table has the medians.
 * @return
 *   0 or -errno with `error`.
 */
int ablation_run(struct nic *nic, struct control *control, const struct plan *base,
		 const struct run_options *options, unsigned int rounds, FILE *file, char *error,
		 size_t error_size);

#endif
