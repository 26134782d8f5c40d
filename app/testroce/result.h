/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a test: what the runs of its threads give together. */
#ifndef TESTROCE_RESULT_H
#define TESTROCE_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "histogram.h"
#include "plan.h"
#include "run.h"
#include "stages.h"
#include "telemetry/counters.h"

#define RESULT_QUANTILES 4
#define RESULT_DAMAGES	 (COUNTER_impair_overflowed - COUNTER_impair_lost + 1)

struct result {
	struct plan plan;
	double seconds; /* from the earliest begin of a thread to the latest end */
	uint64_t messages;
	uint64_t packets; /* in and out, of this device */
	uint64_t tsc;	  /* of all threads */
	uint64_t retransmitted;
	uint64_t damage[RESULT_DAMAGES]; /* that this side's port did on purpose, in the order of
					    the counters from COUNTER_impair_lost on */
	uint64_t wrong;
	struct stages stages; /* the cycles of each stage, if run_options.stages was set */
	bool has_latency;
	double p_us[RESULT_QUANTILES]; /* 50, 90, 99, 99.9 */
	double min_us, max_us;
	uint64_t reads;		    /* blocks that the storage mode has read */
	uint64_t qp_least, qp_most; /* messages of the queue pairs that had the fewest and the most;
				       0, 0: not counted */
};

/* A result to which runs are added. */
struct result_sum {
	struct result *result;
	struct histogram latency;
	struct mark first, last; /* the earliest and the latest of the runs */
};

/** Begin with no run. Not MT-safe. */
void result_begin(struct result_sum *sum, struct result *result, const struct plan *plan);

/** Add a run up to `last`. Its thread may still measure, if the caller is called by run_each_live.
 */
void result_add(struct result_sum *sum, const struct run *run, const struct mark *last);

/** Compute what depends on all runs. At least one must have been added. */
void result_end(struct result_sum *sum, const struct nic *nic);

/** Return gigabits per second, million messages per second, cycles of the threads' cores per
 * packet, and cycles of these cores per byte. */
double result_gbps(const struct result *result);
double result_mps(const struct result *result);

/** Print a result in some lines. */
void result_text(FILE *file, const struct result *result);

/** Print the share of each stage in the cycles, a line a stage. */
void result_stages(FILE *file, const struct result *result);

/** Print a result as one JSON object on one line. Returns false if there was no memory for it; then
 * nothing is printed. */
bool result_json(FILE *file, const struct result *result);

#endif
