/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a figure's points as CSV and as a gnuplot script. The x axes are logarithmic. */
#include "sweep_plot.h"

#include <inttypes.h>
#include <stdlib.h>

#define KIB 1024u
#define MIB (1024u * 1024u)

/* gnuplot's own tics of a logarithmic axis may be further apart than the points. */
#define LATENCY_TICS                                                                          \
	"0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, " \
	"50000, 100000"

size_t sweep_plot_size(const struct sweep_plot *plot)
{
	size_t size = 0;

	while (size < SWEEP_VALUES_MAX && plot->values[size] > 0)
		size++;
	return size;
}

void sweep_plot_label(enum sweep_scale scale, uint64_t value, char text[SWEEP_LABEL_SIZE])
{
	switch (scale) {
	case SWEEP_BYTES:
		if (value % MIB == 0)
			snprintf(text, SWEEP_LABEL_SIZE, "%" PRIu64 " MiB", value / MIB);
		else if (value % KIB == 0)
			snprintf(text, SWEEP_LABEL_SIZE, "%" PRIu64 " KiB", value / KIB);
		else
			snprintf(text, SWEEP_LABEL_SIZE, "%" PRIu64 " B", value);
		break;
	case SWEEP_PPM:
		snprintf(text, SWEEP_LABEL_SIZE, "%g %%", (double)value / 1e4);
		break;
	case SWEEP_ONE_IN:
		snprintf(text, SWEEP_LABEL_SIZE, "%g %%", 100 - 100 / (double)value);
		break;
	default:
		snprintf(text, SWEEP_LABEL_SIZE, "%" PRIu64, value);
	}
}

void sweep_plot_csv(const struct sweep_plot *plot, const struct sweep_line *lines, size_t count,
		    FILE *file)
{
	const size_t size = sweep_plot_size(plot);
	char label[SWEEP_LABEL_SIZE];

	fprintf(file, "series,x,label,unit,median,least,most\n");
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < size; j++) {
			const struct spread *point = &lines[i].points[j];

			sweep_plot_label(plot->scale, plot->values[j], label);
			fprintf(file, "\"%s\",%" PRIu64 ",%s,%s,%.6f,%.6f,%.6f\n", lines[i].title,
				plot->values[j], label, plot->unit, point->median, point->least,
				point->most);
		}
	}
}

static void write_points(const struct sweep_plot *plot, const struct sweep_line *line,
			 size_t number, FILE *file)
{
	const size_t size = sweep_plot_size(plot);

	fprintf(file, "$series%zu << EOD\n", number);
	for (size_t i = 0; i < size; i++)
		fprintf(file, "%" PRIu64 " %.6f %.6f %.6f\n", plot->values[i],
			line->points[i].median, line->points[i].least, line->points[i].most);
	fprintf(file, "EOD\n");
}

/* Write a label at each value. gnuplot takes a label for a format, so a % must be doubled. */
static void write_tics(const struct sweep_plot *plot, FILE *file)
{
	const size_t size = sweep_plot_size(plot);
	char label[SWEEP_LABEL_SIZE];

	fprintf(file, "set xtics (");
	for (size_t i = 0; i < size; i++) {
		sweep_plot_label(plot->scale, plot->values[i], label);
		fprintf(file, "%s'", i ? ", " : "");
		for (const char *at = label; *at; at++) {
			if (*at == '%')
				fputc('%', file);
			fputc(*at, file);
		}
		fprintf(file, "' %" PRIu64, plot->values[i]);
	}
	fprintf(file, ")\n");
}

/* Write the axes. Percentiles have a logarithmic y axis: the tail is many times the median. */
static void write_axes(const struct sweep_plot *plot, FILE *file)
{
	const size_t size = sweep_plot_size(plot);

	fprintf(file, "set xlabel '%s'\nset ylabel '%s'\nset logscale x 2\n", plot->x_title,
		plot->unit);
	if (size > 0)
		fprintf(file, "set xrange [%" PRIu64 "/1.3:%" PRIu64 "*1.3]\n", plot->values[0],
			plot->values[size - 1]);
	write_tics(plot, file);
	fprintf(file, plot->scale == SWEEP_ONE_IN ? "set logscale y\nset ytics (" LATENCY_TICS ")\n"
						  : "set yrange [0:]\n");
}

void sweep_plot_script(const struct sweep_plot *plot, const struct sweep_line *lines, size_t count,
		       unsigned int rounds, FILE *file)
{
	for (size_t i = 0; i < count; i++)
		write_points(plot, &lines[i], i, file);
	fprintf(file,
		"set terminal svg size 800,500 background rgb 'white'\nset output '%s.svg'\n"
		"set title \"%s\\n",
		plot->name, plot->title);
	if (rounds > 1)
		fprintf(file, "medians of %u; bars from the least to the most\"\n", rounds);
	else
		fprintf(file, "one measurement of each point\"\n");
	fprintf(file, "set grid\nset key outside bottom center horizontal Left reverse height 1\n");
	write_axes(plot, file);
	fprintf(file, "plot ");
	for (size_t i = 0; i < count; i++)
		fprintf(file, "%s$series%zu using 1:2:3:4 with yerrorlines title '%s'",
			i ? ", " : "", i, lines[i].title);
	fprintf(file, "\n");
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct spread sweep_plot_spread(double *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), compare);
	/* With an even count, this is the mean of the two values in the middle. */
	return (struct spread){.median = (values[(count - 1) / 2] + values[count / 2]) / 2,
			       .least = values[0],
			       .most = values[count - 1]};
}
