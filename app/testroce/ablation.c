/* SPDX-License-Identifier: BSD-3-Clause */
/* Measure the gain of each optimisation. Each of several rounds measures all rows in turn, so other
 * load on the machine hits every row alike, and the median of the rounds removes it. */
#include "main.h"

#include <errno.h>

#include <rte_common.h>

#include "base/tuning.h"
#include "mode.h"
#include "sweep_plot.h"

#define FIGURES	   5
#define LIST_BYTES 128

#define TUNING_NAME(field, name, meaning) name,
static const char *const tunings[] = {TUNINGS(TUNING_NAME)};
#define ROWS (RTE_DIM(tunings) + 2) /* with all, without each, without any */

static const struct figure {
	const char *title;
	uint64_t mode, size_bytes, batch, qps; /* qps 0: as many as all tests have */
	bool is_latency, is_rate;
} figures[FIGURES] = {
	{"WRITE 64K Gb/s", MODE_WRITE, 65536, 1, 0, false, false},
	{"SEND 64K Gb/s", MODE_SEND, 65536, 1, 0, false, false},
	{"WRITE 8 M/s", MODE_WRITE, 8, 16, 0, false, true},
	{"1,000 QPs M/s", MODE_WRITE, 8, 1, 1000, false, true},
	{"WRITE 8 p50 us", MODE_LATENCY, 8, 1, 0, true, false},
};

struct table {
	unsigned int rounds;
	double values[ROWS][FIGURES][SPREAD_ROUNDS_MAX];
};

static uint64_t without_of(size_t row)
{
	if (row == 0)
		return 0;
	return row <= RTE_DIM(tunings) ? UINT64_C(1) << (row - 1)
				       : (UINT64_C(1) << RTE_DIM(tunings)) - 1;
}

static double value_of(const struct figure *figure, const struct result *result)
{
	if (figure->is_latency)
		return result->p_us[0];
	return figure->is_rate ? result_mps(result) : result_gbps(result);
}

static int ablation_measure(struct nic *nic, struct control *control, const struct plan *base,
			    const struct run_options *options, struct table *table, char *error,
			    size_t error_size)
{
	struct result result;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < table->rounds * ROWS * FIGURES; i++) {
		const size_t round = i / (ROWS * FIGURES), row = i / FIGURES % ROWS;
		const struct figure *figure = &figures[i % FIGURES];
		struct plan plan = *base;

		plan.mode = figure->mode;
		plan.op = PLAN_OP_WRITE;
		plan.size_bytes = figure->size_bytes;
		plan.batch = RTE_MIN(figure->batch, plan.depth);
		if (figure->qps > 0)
			plan.qps = figure->qps;
		plan.without = without_of(row);
		rc = measure_test(nic, control, &plan, options, &result, error, error_size);
		if (rc == 0)
			table->values[row][i % FIGURES][round] = value_of(figure, &result);
		if (rc == 0 && options->stop && __atomic_load_n(options->stop, __ATOMIC_RELAXED)) {
			snprintf(error, error_size, "stopped");
			rc = -EINTR;
		}
	}
	return rc;
}

static void name_of(size_t row, char name[LIST_BYTES])
{
	if (row == 0)
		snprintf(name, LIST_BYTES, "with all");
	else if (row <= RTE_DIM(tunings))
		snprintf(name, LIST_BYTES, "without %s", tunings[row - 1]);
	else
		snprintf(name, LIST_BYTES, "without any");
}

static void ablation_print(struct table *table, FILE *file)
{
	double all[FIGURES];
	char name[LIST_BYTES];

	fprintf(file, "| |");
	for (size_t i = 0; i < FIGURES; i++)
		fprintf(file, " %s |", figures[i].title);
	fprintf(file, "\n|---|---|---|---|---|---|\n");
	for (size_t row = 0; row < ROWS; row++) {
		name_of(row, name);
		fprintf(file, "| %-22s |", name);
		for (size_t i = 0; i < FIGURES; i++) {
			const double value =
				sweep_plot_spread(table->values[row][i], table->rounds).median;

			if (row == 0)
				all[i] = value;
			fprintf(file, " %6.2f", value);
			if (row > 0 && all[i] > 0)
				fprintf(file, " (%+.0f%%)", (value / all[i] - 1) * 100);
			fprintf(file, " |");
		}
		fprintf(file, "\n");
	}
	fflush(file);
}

int ablation_run(struct nic *nic, struct control *control, const struct plan *base,
		 const struct run_options *options, unsigned int rounds, FILE *file, char *error,
		 size_t error_size)
{
	struct table table = {.rounds = rounds};
	const int rc = ablation_measure(nic, control, base, options, &table, error, error_size);

	if (rc == 0)
		ablation_print(&table, file);
	return rc;
}
