/* SPDX-License-Identifier: BSD-3-Clause */
/* Series of tests over sizes, depths and numbers of queue pairs. Each of several rounds measures
 * all points of a figure in turn, so other load on the machine hits every series alike. */
#include "main.h"

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
#include "sweep_plot.h"

#define LOSS_FIGURE "loss"
#define VALUE_TEXT  24
#define MILLION	    1000000u

extern char **environ;

enum measured { MEASURED_GBPS, MEASURED_MPS, MEASURED_LATENCY };

static const struct figure {
	struct sweep_plot plot;
	enum measured measured;
	const char *vary; /* name of a plan's value; NULL: the values are percentiles of one test */
	struct {
		const char *name;
		uint64_t mode, op;
	} series[SWEEP_SERIES_MAX]; /* up to the first without a name */
	struct {
		const char *name, *value;
	} fixed[4];
} figures[] = {
	{.plot = {.name = "bandwidth",
		  .title = "Bandwidth against message size",
		  .x_title = "message",
		  .unit = "Gb/s",
		  .scale = SWEEP_BYTES,
		  .values = {64, 256, 1024, 4096, 16384, 65536, 262144, 1048576}},
	 .measured = MEASURED_GBPS,
	 .vary = "size",
	 .series = {{"WRITE", MODE_WRITE, 0}, {"READ", MODE_READ, 0}, {"SEND", MODE_SEND, 0}}},
	{.plot = {.name = "rate-qps",
		  .title = "Rate of 8-byte messages against queue pairs",
		  .x_title = "queue pairs",
		  .unit = "million messages a second",
		  .values = {1, 4, 16, 64, 256, 1024}},
	 .measured = MEASURED_MPS,
	 .vary = "qps",
	 .series = {{"WRITE", MODE_WRITE, 0}, {"SEND, shared queue", MODE_INCAST, 0}},
	 .fixed = {{"size", "8"}, {"depth", "16"}, {"batch", "8"}}},
	{.plot = {.name = "rate-depth",
		  .title = "Rate of 8-byte messages against depth",
		  .x_title = "messages in flight",
		  .unit = "million messages a second",
		  .values = {1, 2, 4, 8, 16, 32, 64, 128, 256}},
	 .measured = MEASURED_MPS,
	 .vary = "depth",
	 .series = {{"WRITE", MODE_WRITE, 0}, {"READ", MODE_READ, 0}, {"SEND", MODE_SEND, 0}},
	 .fixed = {{"size", "8"}}},
	{.plot = {.name = LOSS_FIGURE,
		  .title = "Goodput of 64 KiB messages against loss",
		  .x_title = "packets lost, in each direction",
		  .unit = "Gb/s",
		  .scale = SWEEP_PPM,
		  .values = {1, 10, 100, 1000, 10000, 30000}},
	 .measured = MEASURED_GBPS,
	 .vary = "loss",
	 .series = {{"WRITE", MODE_WRITE, 0}, {"READ", MODE_READ, 0}, {"SEND", MODE_SEND, 0}},
	 .fixed = {{"size", "65536"}}},
	{.plot = {.name = "latency",
		  .title = "Latency of 8-byte messages",
		  .x_title = "messages that take no longer",
		  .unit = "us",
		  .scale = SWEEP_ONE_IN,
		  .values = {2, 4, 10, 20, 100, 1000, 10000}},
	 .measured = MEASURED_LATENCY,
	 .series = {{"WRITE, half round trip", MODE_LATENCY, PLAN_OP_WRITE},
		    {"SEND, half round trip", MODE_LATENCY, PLAN_OP_SEND},
		    {"READ", MODE_LATENCY, PLAN_OP_READ},
		    {"fetch-and-add", MODE_LATENCY, PLAN_OP_ATOMIC}},
	 .fixed = {{"size", "8"}}},
};

struct sweep {
	struct nic *nic;
	struct control *control;
	const struct run_options *options;
	const char *folder;
	unsigned int rounds;
	FILE *json; /* the results of all tests */
	/* of the figure that is being measured */
	double values[SWEEP_SERIES_MAX][SWEEP_VALUES_MAX][SPREAD_ROUNDS_MAX];
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
	result_text(stdout, result);
	return result_json(sweep->json, result) ? 0 : -ENOMEM;
}

/* Store the percentiles of the last test. */
static void sweep_take_latency(struct sweep *sweep, const struct figure *figure, size_t series,
			       unsigned int round)
{
	const struct histogram *latency = measure_last_latency();
	const size_t size = sweep_plot_size(&figure->plot);

	for (size_t i = 0; i < size; i++) {
		const uint32_t longer = MILLION / (uint32_t)figure->plot.values[i];

		sweep->values[series][i][round] =
			(double)histogram_quantile(latency, MILLION - longer) / 1e3;
	}
}

/* Measure the points of one series once. */
static int sweep_series(struct sweep *sweep, const struct figure *figure, struct plan plan,
			size_t series, unsigned int round)
{
	const size_t size = sweep_plot_size(&figure->plot);
	const uint64_t threads = plan.threads;
	struct result result;
	char text[VALUE_TEXT];
	int rc = 0;

	if (!figure->vary) {
		rc = sweep_test(sweep, &plan, &result);
		if (rc == 0)
			sweep_take_latency(sweep, figure, series, round);
		return rc;
	}
	for (size_t i = 0; rc == 0 && i < size; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, figure->plot.values[i]);
		rc = plan_set(&plan, figure->vary, text, sweep->error, sweep->error_size);
		/* A series may begin with fewer queue pairs than there are threads. */
		plan.threads = RTE_MIN(threads, plan.qps);
		if (rc == 0)
			rc = sweep_test(sweep, &plan, &result);
		if (rc == 0)
			sweep->values[series][i][round] = figure->measured == MEASURED_GBPS
								  ? result_gbps(&result)
								  : result_mps(&result);
	}
	return rc;
}

static size_t figure_series(const struct figure *figure)
{
	size_t count = 0;

	while (count < SWEEP_SERIES_MAX && figure->series[count].name)
		count++;
	return count;
}

static int sweep_round(struct sweep *sweep, const struct figure *figure, const struct plan *base,
		       unsigned int round)
{
	const size_t count = figure_series(figure);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++) {
		struct plan plan = *base;

		plan.mode = figure->series[i].mode;
		plan.op = figure->series[i].op;
		for (size_t j = 0; rc == 0 && j < RTE_DIM(figure->fixed) && figure->fixed[j].name;
		     j++)
			rc = plan_set(&plan, figure->fixed[j].name, figure->fixed[j].value,
				      sweep->error, sweep->error_size);
		if (rc == 0)
			rc = sweep_series(sweep, figure, plan, i, round);
	}
	return rc;
}

static int sweep_write_figure(struct sweep *sweep, const struct figure *figure)
{
	const size_t count = figure_series(figure), size = sweep_plot_size(&figure->plot);
	struct sweep_line lines[SWEEP_SERIES_MAX];
	FILE *csv, *script;

	for (size_t i = 0; i < count; i++) {
		lines[i].title = figure->series[i].name;
		for (size_t j = 0; j < size; j++)
			lines[i].points[j] = sweep_plot_spread(sweep->values[i][j], sweep->rounds);
	}
	csv = sweep_open(sweep, figure->plot.name, ".csv");
	if (!csv)
		return -EIO;
	sweep_plot_csv(&figure->plot, lines, count, csv);
	fclose(csv);
	script = sweep_open(sweep, figure->plot.name, ".gnuplot");
	if (!script)
		return -EIO;
	sweep_plot_script(&figure->plot, lines, count, sweep->rounds, script);
	fclose(script);
	return 0;
}

static int sweep_figure(struct sweep *sweep, const struct figure *figure, const struct plan *base)
{
	int rc = 0;

	for (unsigned int round = 0; rc == 0 && round < sweep->rounds; round++)
		rc = sweep_round(sweep, figure, base, round);
	return rc == 0 ? sweep_write_figure(sweep, figure) : rc;
}

/* Run gnuplot. Returns false if gnuplot is missing or fails. */
static bool sweep_plot(const struct figure *figure)
{
	char script[64];
	char *argv[] = {(char[]){"gnuplot"}, script, NULL};
	int status = -1;
	pid_t pid;

	snprintf(script, sizeof(script), "%s.gnuplot", figure->plot.name);
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
	return strcmp(figure->plot.name, LOSS_FIGURE) != 0 || sweep_can_lose(sweep);
}

static void sweep_plot_all(const struct sweep *sweep)
{
	bool plotted = chdir(sweep->folder) == 0;

	for (size_t i = 0; plotted && i < RTE_DIM(figures); i++)
		plotted = !sweep_has(sweep, &figures[i]) || sweep_plot(&figures[i]);
	printf("%s/: results.json of all tests; medians of %u and their range as "
	       "*.csv%s\n",
	       sweep->folder, sweep->rounds, plotted ? ", and as plots, *.svg" : "");
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
	      const struct run_options *options, unsigned int rounds, const char *folder,
	      char *error, size_t error_size)
{
	struct sweep sweep = {.nic = nic,
			      .control = control,
			      .options = options,
			      .folder = folder,
			      .rounds = rounds,
			      .error = error,
			      .error_size = error_size};
	int rc = 0;

	if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
		snprintf(error, error_size, "%s: %s", folder, strerror(errno));
		return -errno;
	}
	sweep.json = sweep_open(&sweep, "results", ".json");
	if (!sweep.json)
		return -EIO;
	for (size_t i = 0; rc == 0 && i < RTE_DIM(figures); i++)
		if (sweep_has(&sweep, &figures[i]))
			rc = sweep_figure(&sweep, &figures[i], base);
	fclose(sweep.json);
	if (rc == 0)
		sweep_plot_all(&sweep);
	return rc;
}
