/* SPDX-License-Identifier: BSD-3-Clause */
/* The active side of a test, from its first queue pair to its result. */
#ifndef TESTROCE_MEASURE_H
#define TESTROCE_MEASURE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "endpoint.h"
#include "histogram.h"
#include "plan.h"
#include "stages.h"
#include "telemetry/counters.h"

struct control;
struct control_message;
struct mode;

/* A snapshot of time and counts at one moment of the test. */
struct mark {
	uint64_t tsc;
	uint64_t completed;
	struct counters counters;
};

struct run {
	struct nic *nic;
	struct control *control;
	struct plan plan;
	const struct mode *mode;
	struct endpoint endpoint;
	struct endpoint_facts peer;
	struct slots slots; /* of this side's messages */

	/* modes write these */
	bool stopping;	/* set by the session: post no more, but drain messages in flight */
	bool measuring; /* set by the session: latencies count */
	uint64_t posted;
	uint64_t completed;
	uint64_t wrong;		  /* messages whose bytes are not what they should be */
	struct histogram latency; /* ns */
	void *state;		  /* the mode's */
	struct mark first; /* the results count from here; protected by the lock of measure_peek */
	int status;	   /* enum ibv_wc_status of the completion that failed */
};

#define RESULT_QUANTILES 4
#define RESULT_DAMAGES	 (COUNTER_impair_overflowed - COUNTER_impair_lost + 1)

struct result {
	struct plan plan;
	double seconds;
	uint64_t messages;
	uint64_t packets; /* in and out, of this device */
	uint64_t tsc;
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

/* Options to observe a test while it runs. */
struct run_options {
	uint64_t period_ns;	     /* time between two lines of figures; 0: no lines */
	bool stages;		     /* sample where cycles go */
	FILE *lines;		     /* the lines go here */
	volatile sig_atomic_t *stop; /* ends the test early */
};

/**
 * Run one test from beginning to end. Not MT-safe.
 *
 * @param error
 *   One line that describes the failure.
 * @return
 *   0, or -errno with `error`.
 */
int measure_test(struct nic *nic, struct control *control, const struct plan *plan,
		 const struct run_options *options, struct result *result, char *error,
		 size_t error_size);

/* Functions that observe a test in another thread. All are MT-safe. */

/** Get the results of the running test so far. Returns false if no test runs. */
bool measure_peek(struct result *result);

/** Restart the counts of the running test. Returns false if no test runs. */
bool measure_clear(void);

/** Return the message latencies of the last test, valid until the next test begins. Not MT-safe. */
const struct histogram *measure_last_latency(void);

/** Call `tell` for each queue pair. Returns the number of queue pairs, 0 if no test runs. */
uint32_t measure_each_qp(void (*tell)(uint32_t number, const char *state, uint64_t messages,
				      void *arg),
			 void *arg);

/** Record the latency of a message, in ticks of the time stamp counter. */
void measure_add_latency(struct run *run, uint64_t tsc);

/** Return gigabits per second, million messages per second, cycles of one core per packet, and
 * cycles of one core per byte. */
double result_gbps(const struct result *result);
double result_mps(const struct result *result);
double result_cycles_packet(const struct result *result);
double result_cycles_byte(const struct result *result);

#endif
