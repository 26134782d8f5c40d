/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that runs tests while the prompt waits for commands. */
#ifndef TESTROCE_WORKER_H
#define TESTROCE_WORKER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "measure.h"
#include "plan.h"

enum worker_state { WORKER_IDLE, WORKER_WANTED, WORKER_RUNNING, WORKER_QUIT };

struct worker {
	struct nic *nic;
	struct control *control;
	struct run_options how;
	pthread_t thread;
	pthread_mutex_t lock; /* protects all members below, except stop */
	pthread_cond_t changed;
	enum worker_state state;
	struct plan plan;     /* of the requested test */
	struct result result; /* of the last complete test */
	bool has_result;
	bool failed;		    /* at least one test failed */
	volatile sig_atomic_t stop; /* atomic */
};

/** Start the thread. 0 or -errno. */
int worker_start(struct worker *worker, struct nic *nic, struct control *control,
		 uint64_t period_ns, bool stages);

/** Begin a test. MT-safe. Returns 0, or -EBUSY while another test runs. */
int worker_begin(struct worker *worker, const struct plan *plan);

/** End the test, if there is one, and wait until it has ended. MT-safe. */
void worker_stop(struct worker *worker);

/** Wait until the test has ended by itself. MT-safe. */
void worker_wait(struct worker *worker);

/** Choose if the next tests sample the cycles per stage. MT-safe. */
void worker_set_stages(struct worker *worker, bool on);

/** Return true while a test runs. MT-safe. */
bool worker_is_busy(struct worker *worker);

/** End the thread. */
void worker_end(struct worker *worker);

#endif
