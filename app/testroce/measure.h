/* SPDX-License-Identifier: BSD-3-Clause */
/* The active side of a test, from its first queue pair to its result. */
#ifndef TESTROCE_MEASURE_H
#define TESTROCE_MEASURE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "histogram.h"
#include "plan.h"
#include "result.h"

struct control;
struct nic;

/* Options to observe a test while it runs. */
struct run_options {
	uint64_t period_ns;	     /* time between two lines of figures; 0: no lines */
	bool stages;		     /* sample where cycles go */
	FILE *lines;		     /* the lines go here */
	volatile sig_atomic_t *stop; /* atomic: ends the test early */
};

/**
 * Run one test from beginning to end, with the calling thread and as many others as the plan says.
 * All tests of a process must have the same calling thread, device and connection. Not MT-safe.
 *
 * @param error
 *   One line that describes the failure.
 * @return
 *   0, or -errno with `error`.
 */
int measure_test(struct nic *nic, struct control *control, const struct plan *plan,
		 const struct run_options *options, struct result *result, char *error,
		 size_t error_size);

/** End the threads and connections that tests have made. Not MT-safe. */
void measure_end(void);

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

#endif
