/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of one figure of a sweep: its points as CSV, and a gnuplot script that plots them. */
#ifndef TESTROCE_SWEEP_PLOT_H
#define TESTROCE_SWEEP_PLOT_H

#include <stdint.h>
#include <stdio.h>

#define SWEEP_SERIES_MAX 4
#define SWEEP_VALUES_MAX 12
#define SWEEP_LABEL_SIZE 32

#define SPREAD_ROUNDS_MAX 25

/* A scale tells what the values of the x axis are. */
enum sweep_scale {
	SWEEP_NUMBER,
	SWEEP_BYTES,
	SWEEP_PPM,   /* parts of a million */
	SWEEP_ONE_IN /* all but one in so many: 100 is the percentile 99 */
};

struct spread {
	double median, least, most;
};

struct sweep_plot {
	const char *name; /* of its files */
	const char *title;
	const char *x_title;
	const char *unit; /* of the points */
	enum sweep_scale scale;
	uint64_t values[SWEEP_VALUES_MAX]; /* ascending, up to the first 0 */
};

struct sweep_line {
	const char *title;
	struct spread points[SWEEP_VALUES_MAX]; /* one for each value */
};

/** Sort the values, at least one, and return their spread. MT-safe. */
struct spread sweep_plot_spread(double *values, size_t count);

/** Return the number of values of a plot. MT-safe. */
size_t sweep_plot_size(const struct sweep_plot *plot);

/** Write a value as a reader says it: 64 KiB, 0.01 %. MT-safe. */
void sweep_plot_label(enum sweep_scale scale, uint64_t value, char text[SWEEP_LABEL_SIZE]);

/** Write the points, a line for each, below a line with the names of the columns. MT-safe. */
void sweep_plot_csv(const struct sweep_plot *plot, const struct sweep_line *lines, size_t count,
		    FILE *file);

/**
 * Write the script, which contains the points. Run in its folder, it makes an SVG there. MT-safe.
 *
 * @param rounds
 *   How often each point was measured.
 */
void sweep_plot_script(const struct sweep_plot *plot, const struct sweep_line *lines, size_t count,
		       unsigned int rounds, FILE *file);

#endif
