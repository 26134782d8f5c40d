/* SPDX-License-Identifier: BSD-3-Clause */
/* Series of tests over sizes, depths and numbers of queue pairs, as files and plots. */
#ifndef TESTROCE_SWEEP_H
#define TESTROCE_SWEEP_H

#include <stddef.h>

#include "measure.h"

/**
 * Measure all series. Write results.json with all tests, and for each figure its
 * medians and their range as CSV, a gnuplot script and an SVG, into a folder, which is created if
 * it is missing. Reports a missing gnuplot on stdout. Not MT-safe.
 *
 * @param base
 *   The plan that all tests share.
 * @param rounds
 *   How often each point is measured, up to SPREAD_ROUNDS_MAX.
 * @return
 *   0 or -errno with `error`.
 */
int sweep_run(struct nic *nic, struct control *control, const struct plan *base,
	      const struct run_options *options, unsigned int rounds, const char *folder,
	      char *error, size_t error_size);

#endif
