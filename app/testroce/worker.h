/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that runs tests while the prompt is read. */
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
	pthread_mutex_t lock; /* below it: all but stop */
	pthread_cond_t changed;
	enum worker_state state;
	struct plan plan;     /* of the test that is wanted */
	struct result result; /* of the last one that was whole */
	bool has_result;
	bool failed; /* some test did */
	volatile sig_atomic_t stop;
};

/** Start the thread. 0 or -errno. */
int worker_start(struct worker *worker, struct nic *nic, struct control *control,
		 uint64_t period_ns, bool stages);

/** Begin a test. MT-safe. 0, or -EBUSY while there is one. */
int worker_begin(struct worker *worker, const struct plan *plan);

/** End the test, if there is one, and wait until it has ended. MT-safe. */
void worker_stop(struct worker *worker);

/** Wait until the test has ended by itself. MT-safe. */
void worker_wait(struct worker *worker);

/** Choose whether the next tests tell where cycles go. MT-safe. */
void worker_set_stages(struct worker *worker, bool on);

/** Return true while a test runs. MT-safe. */
bool worker_is_busy(struct worker *worker);

/** End the thread. */
void worker_end(struct worker *worker);

#endif
