/* SPDX-License-Identifier: BSD-3-Clause */
/* Series of tests over sizes, depths and numbers of queue pairs. */
#include "sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "control_conn.h"
#include "mode.h"
#include "nic.h"
#include "testroce_output.h"

#define LOSS_FIGURE "loss"
#define SERIES_MAX  4
#define VALUES_MAX  12
#define VALUE_TEXT  24

extern char **environ;

enum axis { AXIS_GBPS, AXIS_MPS, AXIS_SHARE };

static const struct figure {
	const char *name; /* of its files */
	const char *title;
	const char *x_title, *y_title;
	enum axis axis;
	const char *vary; /* name of a plan's value; NULL: the latency of one test is the series */
	uint64_t values[VALUES_MAX]; /* up to the first 0 */
	struct {
		const char *name;
		uint64_t mode, op;
	} series[SERIES_MAX]; /* up to the first without a name */
	struct {
		const char *name, *value;
	} fixed[4];
} figures[] = {
	{.name = "bandwidth",
	 .title = "Bandwidth against message size",
	 .x_title = "bytes",
	 .y_title = "Gb/s",
	 .axis = AXIS_GBPS,
	 .vary = "size",
	 .values = {64, 256, 1024, 4096, 16384, 65536, 262144, 1048576},
	 .series = {{"WRITE", MODE_WRITE, 0}, {"READ", MODE_READ, 0}, {"SEND", MODE_SEND, 0}}},
	{.name = "rate-qps",
	 .title = "Rate of 8-byte messages against queue pairs",
	 .x_title = "queue pairs",
	 .y_title = "million a second",
	 .axis = AXIS_MPS,
	 .vary = "qps",
	 .values = {1, 4, 16, 64, 256, 1024},
	 .series = {{"WRITE", MODE_WRITE, 0}, {"SEND, shared queue", MODE_INCAST, 0}},
	 .fixed = {{"size", "8"}, {"depth", "16"}, {"batch", "8"}}},
	{.name = "rate-depth",
	 .title = "Rate of 8-byte messages against depth",
	 .x_title = "messages under way",
	 .y_title = "million a second",
	 .axis = AXIS_MPS,
	 .vary = "depth",
	 .values = {1, 2, 4, 8, 16, 32, 64, 128, 256},
	 .series = {{"WRITE", MODE_WRITE, 0}, {"READ", MODE_READ, 0}, {"SEND", MODE_SEND, 0}},
	 .fixed = {{"size", "8"}}},
	{.name = LOSS_FIGURE,
	 .title = "Goodput of 64 KiB messages against loss",
	 .x_title = "packets lost of a million",
	 .y_title = "Gb/s",
	 .axis = AXIS_GBPS,
	 .vary = "loss",
	 .values = {1, 10, 100, 1000, 10000, 30000},
	 .series = {{"WRITE", MODE_WRITE, 0}, {"READ", MODE_READ, 0}, {"SEND", MODE_SEND, 0}},
	 .fixed = {{"size", "65536"}}},
	{.name = "latency",
	 .title = "Latency of 8 bytes",
	 .x_title = "us",
	 .y_title = "share of messages",
	 .axis = AXIS_SHARE,
	 .series = {{"WRITE, half way round", MODE_LATENCY, PLAN_OP_WRITE},
		    {"SEND, half way round", MODE_LATENCY, PLAN_OP_SEND},
		    {"READ", MODE_LATENCY, PLAN_OP_READ},
		    {"fetch-and-add", MODE_LATENCY, PLAN_OP_ATOMIC}},
	 .fixed = {{"size", "8"}}},
};

struct sweep {
	struct nic *nic;
	struct control *control;
	const struct run_options *options;
	const char *folder;
	FILE *json, *csv, *script;
	char *error;
	size_t error_size;
};

static FILE *sweep_open(const struct sweep *sweep, const char *name, const char *suffix)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s%s", sweep->folder, name, suffix);
	file = fopen(path, "w");
	if (!file)
		snprintf(sweep->error, sweep->error_size, "%s: %s", path, strerror(errno));
	return file;
}

static int sweep_test(const struct sweep *sweep, const struct plan *plan, struct result *result)
{
	int rc = measure_test(sweep->nic, sweep->control, plan, sweep->options, result,
			      sweep->error, sweep->error_size);

	if (rc != 0)
		return rc;
	if (sweep->options->stop && __atomic_load_n(sweep->options->stop, __ATOMIC_RELAXED)) {
		snprintf(sweep->error, sweep->error_size, "stopped");
		return -EINTR;
	}
	output_text(stdout, result);
	output_csv(sweep->csv, result);
	return output_json(sweep->json, result) ? 0 : -ENOMEM;
}

/* Write the cumulative distribution: for each latency, the share of messages that took no longer.
 */
static void sweep_write_distribution(const struct sweep *sweep)
{
	const struct histogram *latency = measure_last_latency();
	uint64_t seen = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS && latency->count > 0; i++) {
		if (latency->buckets[i] == 0)
			continue;
		seen += latency->buckets[i];
		fprintf(sweep->script, "%.3f %.6f\n",
			(double)RTE_MIN(histogram_high(i), latency->max) / 1e3,
			(double)seen / (double)latency->count);
	}
}

static int sweep_series(const struct sweep *sweep, const struct figure *figure, struct plan plan)
{
	struct result result;
	const uint64_t threads = plan.threads;
	char text[VALUE_TEXT];
	int rc = 0;

	if (!figure->vary) {
		rc = sweep_test(sweep, &plan, &result);
		if (rc == 0)
			sweep_write_distribution(sweep);
		return rc;
	}
	for (size_t i = 0; rc == 0 && i < VALUES_MAX && figure->values[i] > 0; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, figure->values[i]);
		rc = plan_set(&plan, figure->vary, text, sweep->error, sweep->error_size);
		/* A series may begin with fewer queue pairs than there are threads. */
		plan.threads = RTE_MIN(threads, plan.qps);
		if (rc == 0)
			rc = sweep_test(sweep, &plan, &result);
		if (rc == 0)
			fprintf(sweep->script, "%s %.6f\n", text,
				figure->axis == AXIS_GBPS ? result_gbps(&result)
							  : result_mps(&result));
	}
	return rc;
}

static void sweep_write_plot(const struct sweep *sweep, const struct figure *figure)
{
	fprintf(sweep->script,
		"set terminal svg size 800,500 background rgb 'white'\nset output '%s.svg'\n"
		"set title '%s'\nset xlabel '%s'\nset ylabel '%s'\nset grid\n",
		figure->name, figure->title, figure->x_title, figure->y_title);
	fprintf(sweep->script,
		figure->vary ? "set key left top\nset logscale x 2\nset yrange [0:]\n"
			     : "set key right bottom\nset logscale x\nset yrange [0:1]\n");
	fprintf(sweep->script, "plot ");
	for (size_t i = 0; i < SERIES_MAX && figure->series[i].name; i++)
		fprintf(sweep->script, "%s$series%zu with %s title '%s'", i ? ", " : "", i,
			figure->vary ? "linespoints" : "lines", figure->series[i].name);
	fprintf(sweep->script, "\n");
}

static int sweep_figure(struct sweep *sweep, const struct figure *figure, const struct plan *base)
{
	int rc = 0;

	sweep->script = sweep_open(sweep, figure->name, ".gnuplot");
	if (!sweep->script)
		return -EIO;
	for (size_t i = 0; rc == 0 && i < SERIES_MAX && figure->series[i].name; i++) {
		struct plan plan = *base;

		plan.mode = figure->series[i].mode;
		plan.op = figure->series[i].op;
		for (size_t j = 0; rc == 0 && j < RTE_DIM(figure->fixed) && figure->fixed[j].name;
		     j++)
			rc = plan_set(&plan, figure->fixed[j].name, figure->fixed[j].value,
				      sweep->error, sweep->error_size);
		fprintf(sweep->script, "$series%zu << EOD\n", i);
		if (rc == 0)
			rc = sweep_series(sweep, figure, plan);
		fprintf(sweep->script, "EOD\n");
	}
	sweep_write_plot(sweep, figure);
	fclose(sweep->script);
	return rc;
}

/* Run gnuplot. Returns false if gnuplot is missing or fails. */
static bool sweep_plot(const struct figure *figure)
{
	char script[64];
	char *argv[] = {(char[]){"gnuplot"}, script, NULL};
	int status = -1;
	pid_t pid;

	snprintf(script, sizeof(script), "%s.gnuplot", figure->name);
	if (posix_spawnp(&pid, "gnuplot", NULL, NULL, argv, environ) != 0)
		return false;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Return true if loss on request is possible. Packets within one process pass no port, and an
 * attached process has no port of its own. */
static bool sweep_can_lose(const struct sweep *sweep)
{
	const bool loses = sweep->control->where && nic_set_loss(sweep->nic, 1, 1) == 0;

	nic_set_loss(sweep->nic, 0, 0);
	return loses;
}

static bool sweep_has(const struct sweep *sweep, const struct figure *figure)
{
	return strcmp(figure->name, LOSS_FIGURE) != 0 || sweep_can_lose(sweep);
}

static void sweep_plot_all(const struct sweep *sweep)
{
	bool plotted = chdir(sweep->folder) == 0;

	for (size_t i = 0; plotted && i < RTE_DIM(figures); i++)
		plotted = !sweep_has(sweep, &figures[i]) || sweep_plot(&figures[i]);
	printf("%s/: results.json, results.csv%s\n", sweep->folder,
	       plotted ? " and plots (*.svg)" : "");
	if (!plotted)
		printf("no plots: gnuplot cannot be run (package gnuplot-nox); later: cd %s && "
		       "gnuplot *.gnuplot\n",
		       sweep->folder);
	if (!sweep_can_lose(sweep))
		printf("goodput against loss is not among them: that takes two processes, and a "
		       "port that is "
		       "this one's own\n");
}

int sweep_run(struct nic *nic, struct control *control, const struct plan *base,
	      const struct run_options *options, const char *folder, char *error, size_t error_size)
{
	struct sweep sweep = {nic, control, options, folder, NULL, NULL, NULL, error, error_size};
	int rc = -EIO;

	if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
		snprintf(error, error_size, "%s: %s", folder, strerror(errno));
		return -errno;
	}
	sweep.json = sweep_open(&sweep, "results", ".json");
	sweep.csv = sweep_open(&sweep, "results", ".csv");
	if (sweep.json && sweep.csv) {
		output_csv_head(sweep.csv);
		rc = 0;
	}
	for (size_t i = 0; rc == 0 && i < RTE_DIM(figures); i++)
		if (sweep_has(&sweep, &figures[i]))
			rc = sweep_figure(&sweep, &figures[i], base);
	if (sweep.json)
		fclose(sweep.json);
	if (sweep.csv)
		fclose(sweep.csv);
	if (rc == 0)
		sweep_plot_all(&sweep);
	return rc;
}
