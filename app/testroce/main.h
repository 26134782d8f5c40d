/* SPDX-License-Identifier: BSD-3-Clause */
/* Declares the functions that main.c starts: both sides, a server, the prompt, and series of tests.
 */
#ifndef TESTROCE_MAIN_H
#define TESTROCE_MAIN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

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

struct control;
struct nic;
struct options;

/* server.c */

/**
 * Serve all clients, several at a time. Not MT-safe.
 *
 * @param threads
 *   The calling thread and others, up to PLAN_THREADS_MAX. A new client goes to the thread that has
 *   the fewest.
 * @param once
 *   End when all clients that connected have disconnected.
 * @param stop
 *   Atomic: ends the server when it becomes nonzero.
 * @return
 *   0 or -errno with `error`.
 */
int server_run(struct nic *nic, const char *where, uint32_t threads, bool once,
	       const volatile sig_atomic_t *stop, char *error, size_t error_size);

/* prompt.c */

/** Take commands from stdin until its end or "quit". Not MT-safe. Returns 0, or 1 if a test failed.
 */
int prompt_run(struct nic *nic, struct control *control, const struct options *options);

/**
 * Print the table. Not MT-safe.
 *
 * @param base
 *   The plan that all tests share, above all its seconds, path MTU and queue pairs.
 * @param rounds
 *   How often each figure is measured, up to SPREAD_ROUNDS_MAX; the table has the medians.
 * @return
 *   0 or -errno with `error`.
 */
int ablation_run(struct nic *nic, struct control *control, const struct plan *base,
		 const struct run_options *options, unsigned int rounds, FILE *file, char *error,
		 size_t error_size);

/* sweep.c */

/**
 * Measure all series. Write results.json with all tests, and for each figure its
 * medians and their range as CSV, a gnuplot script and an SVG, into a folder, which is created if
 * it is missing. Reports a missing gnuplot on stdout. Not MT-safe.
 *
 * @param base
 *   The plan that all tests share.
 * @param rounds
 *   How often each point is measured, up to SPREAD_ROUNDS_MAX.
 * @return
 *   0 or -errno with `error`.
 */
int sweep_run(struct nic *nic, struct control *control, const struct plan *base,
	      const struct run_options *options, unsigned int rounds, const char *folder,
	      char *error, size_t error_size);

#endif
