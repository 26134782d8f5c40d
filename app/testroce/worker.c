/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that runs tests while the prompt waits for commands. */
#include "worker.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "nic.h"
#include "testroce_output.h"

#define POLL_NS 1000000 /* longest time between polls of the device while no test runs */

static void worker_test(struct worker *worker)
{
	const struct run_options how = worker->how;
	struct result result;
	char error[256] = "";
	int rc;

	pthread_mutex_unlock(&worker->lock);
	rc = measure_test(worker->nic, worker->control, &worker->plan, &how, &result, error,
			  sizeof(error));
	if (rc == 0)
		output_text(stdout, &result);
	else
		printf("error: %s\n", error);
	fflush(stdout);
	pthread_mutex_lock(&worker->lock);
	worker->failed |= rc != 0 || result.wrong > 0;
	if (rc == 0) {
		worker->result = result;
		worker->has_result = true;
	}
}

static void worker_idle(struct worker *worker)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += POLL_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
	nic_poll(worker->nic);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;

	pthread_mutex_lock(&worker->lock);
	while (worker->state != WORKER_QUIT) {
		if (worker->state != WORKER_WANTED) {
			worker_idle(worker);
			continue;
		}
		worker->state = WORKER_RUNNING;
		worker_test(worker);
		worker->state = WORKER_IDLE;
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

int worker_start(struct worker *worker, struct nic *nic, struct control *control,
		 uint64_t period_ns, bool stages)
{
	memset(worker, 0, sizeof(*worker));
	worker->nic = nic;
	worker->control = control;
	worker->how = (struct run_options){
		.period_ns = period_ns, .stages = stages, .lines = stdout, .stop = &worker->stop};
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	return -pthread_create(&worker->thread, NULL, worker_main, worker);
}

int worker_begin(struct worker *worker, const struct plan *plan)
{
	int rc = -EBUSY;

	pthread_mutex_lock(&worker->lock);
	if (worker->state == WORKER_IDLE) {
		worker->plan = *plan;
		__atomic_store_n(&worker->stop, 0, __ATOMIC_RELAXED);
		worker->state = WORKER_WANTED;
		pthread_cond_broadcast(&worker->changed);
		rc = 0;
	}
	pthread_mutex_unlock(&worker->lock);
	return rc;
}

void worker_set_stages(struct worker *worker, bool on)
{
	pthread_mutex_lock(&worker->lock);
	worker->how.stages = on;
	pthread_mutex_unlock(&worker->lock);
}

bool worker_is_busy(struct worker *worker)
{
	bool busy;

	pthread_mutex_lock(&worker->lock);
	busy = worker->state != WORKER_IDLE;
	pthread_mutex_unlock(&worker->lock);
	return busy;
}

void worker_wait(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	while (worker->state != WORKER_IDLE)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}

void worker_stop(struct worker *worker)
{
	__atomic_store_n(&worker->stop, 1, __ATOMIC_RELAXED);
	worker_wait(worker);
}

void worker_end(struct worker *worker)
{
	worker_stop(worker);
	pthread_mutex_lock(&worker->lock);
	worker->state = WORKER_QUIT;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
}
