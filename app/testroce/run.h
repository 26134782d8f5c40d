/* SPDX-License-Identifier: BSD-3-Clause */
/* The run of one thread of the active side: its queue pairs, and its part of a test's messages. */
#ifndef TESTROCE_RUN_H
#define TESTROCE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "endpoint.h"
#include "histogram.h"
#include "plan.h"
#include "telemetry/counters.h"

struct control;
struct mode;

/* A snapshot of time and counts at one moment of the test. */
struct mark {
	uint64_t tsc;
	uint64_t completed;
	struct counters counters; /* of the device */
};

/* The thread of the run owns all of it. The modes change completed, wrong and latency by functions
 * that let other threads read them meanwhile (histogram.h). */
struct run {
	struct nic *nic;
	struct control *control;
	uint32_t number;	  /* of the thread */
	const struct plan *whole; /* of all threads */
	struct plan plan;	  /* the part of this thread */
	const struct mode *mode;
	struct endpoint endpoint;
	struct endpoint_facts peer;
	struct slots slots; /* of this side's messages */
	uint64_t begin_tsc;
	bool stopping;	   /* post no more, but drain messages in flight */
	bool measuring;	   /* latencies count */
	bool clear_wanted; /* atomic, set by any thread: restart the counts */

	/* modes write these */
	uint64_t posted;
	uint64_t completed;
	uint64_t wrong;		  /* messages whose bytes are not what they should be */
	struct histogram latency; /* ns */
	void *state;		  /* the mode's */
	int status;		  /* enum ibv_wc_status of the completion that failed */

	/* The lock of run_each_live protects these, and the clearing of `latency`. */
	struct mark first; /* the results count from here */
	struct mark last;  /* and to here */
	bool ended;	   /* `last` is set, and `latency` does not change any more */

	uint64_t wrong_at_peer; /* set at CLOSE; run_each_live does not find the run any more */
};

/** Prepare the run of a thread. `whole` must outlive it. */
void run_init(struct run *run, struct nic *nic, struct control *control, uint32_t number,
	      const struct plan *whole);

/** Free what the run has. */
void run_fini(struct run *run);

/** Make the endpoint, open the session at the passive side, and connect the queue pairs. Returns 0,
 * or -errno with `error`. */
int run_open(struct run *run, char *error, size_t error_size);

/** Post the first messages; from then on run_each_live finds the run. Returns 0 or -errno. */
int run_start(struct run *run);

/** Post and poll once, without waiting. Returns 0 or -errno. */
int run_poll(struct run *run);

/** Return the time since run_start. */
uint64_t run_ns(const struct run *run);

/** Return true if the run has lasted as long as planned, or has sent all its messages. */
bool run_is_over(const struct run *run, uint64_t ns);

/** Restart the counts if the warm-up ends now, or if another thread asked for it. Returns true if
 * they were restarted. */
bool run_look(struct run *run, uint64_t ns);

/** Restart the counts: the thread of the run does it, or the caller if the run has ended. The
 * caller holds the lock of run_each_live. */
void run_clear(struct run *run);

/** Post no more, and set `last`. The messages in flight still have to be drained. */
void run_end(struct run *run);

/** Close the session at the passive side. Returns 0, or -errno with `error`. */
int run_close(struct run *run, char *error, size_t error_size);

/** Describe why a call for the mode has failed. */
void run_explain(const struct run *run, int rc, char *error, size_t error_size);

/** Take a snapshot. MT-safe. */
void run_mark(const struct run *run, struct mark *mark);

/** Record the latency of a message, in ticks of the time stamp counter. */
void run_add_latency(struct run *run, uint64_t tsc);

/**
 * Call a function for each run between run_start and run_close, in the order of the threads. The
 * runs do not end meanwhile. MT-safe.
 *
 * @return
 *   The number of runs.
 */
uint32_t run_each_live(void (*each)(struct run *run, void *arg), void *arg);

#endif
