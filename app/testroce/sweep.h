/* SPDX-License-Identifier: BSD-3-Clause */
/* Series of tests over sizes, depths and numbers of queue pairs, as files and plots. */
#ifndef TESTROCE_SWEEP_H
#define TESTROCE_SWEEP_H

#include <stddef.h>

#include "measure.h"

/**
 * Measure all series, and write results.json, results.csv and a gnuplot script and an SVG a figure
 * into a folder, which is made if need be. Says on stdout where gnuplot is missing. Not MT-safe.
 *
 * @param base
 *   What all tests have in common.
 * @return
 *   0 or -errno with `error`.
 */
int sweep_run(struct nic *nic, struct control *control, const struct plan *base,
	      const struct run_options *options, const char *folder, char *error,
	      size_t error_size);

#endif
