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

/* At a moment of the test. */
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
	bool stopping;	/* the session's: post no more, take in what is under way */
	bool measuring; /* the session's: latencies count */
	uint64_t posted;
	uint64_t completed;
	uint64_t wrong;		  /* messages whose bytes are not what they should be */
	struct histogram latency; /* ns */
	void *state;		  /* the mode's */
	struct mark first;	  /* from which on is counted; under the lock of measure_peek */
	int status;		  /* enum ibv_wc_status of the completion that failed */
};

#define RESULT_QUANTILES 4

struct result {
	struct plan plan;
	double seconds;
	uint64_t messages;
	uint64_t packets; /* in and out, of this device */
	uint64_t tsc;
	uint64_t retransmitted;
	uint64_t wrong;
	struct stages stages; /* where the cycles went, if it was asked for */
	bool has_latency;
	double p_us[RESULT_QUANTILES]; /* 50, 90, 99, 99.9 */
	double min_us, max_us;
	uint64_t reads;		    /* of the storage mode's blocks */
	uint64_t qp_least, qp_most; /* messages of the queue pairs that had the fewest and the most;
				       0, 0: not counted */
};

/* How a test is watched while it runs. */
struct run_options {
	uint64_t period_ns;	     /* a line of figures each time; 0: none */
	bool stages;		     /* sample where cycles go */
	FILE *lines;		     /* where to */
	volatile sig_atomic_t *stop; /* ends the test early */
};

/**
 * Run one test from beginning to end. Not MT-safe.
 *
 * @param error
 *   One line that says what went wrong.
 * @return
 *   0, or -errno with `error`.
 */
int measure_test(struct nic *nic, struct control *control, const struct plan *plan,
		 const struct run_options *options, struct result *result, char *error,
		 size_t error_size);

/*
 * A test that runs in another thread, seen from outside. All are MT-safe.
 */

/** Get the results of the running test so far. Returns false if no test runs. */
bool measure_peek(struct result *result);

/** Count from here on. Returns false where none runs. */
bool measure_clear(void);

/** How long the messages of the last test took; until the next. Not MT-safe. */
const struct histogram *measure_last_latency(void);

/** Tell of each queue pair. Returns how many there are; 0 where no test runs. */
uint32_t measure_each_qp(void (*tell)(uint32_t number, const char *state, uint64_t messages,
				      void *arg),
			 void *arg);

/** Take the time of a message that took so many ticks of the time stamp counter. */
void measure_add_latency(struct run *run, uint64_t tsc);

/** Gigabits and million messages a second; cycles of one core a packet and a byte. */
double result_gbps(const struct result *result);
double result_mps(const struct result *result);
double result_cycles_packet(const struct result *result);
double result_cycles_byte(const struct result *result);

#endif
