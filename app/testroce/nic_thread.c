/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that have a handle of the device each. */
#include "nic_thread.h"

#include <errno.h>

#include "lcores.h"

static void *nic_thread_main(void *arg)
{
	struct nic_thread *thread = arg;
	int rc;

	lcores_pin(thread->number);
	rc = nic_share(thread->first, &thread->nic);
	thread->rc = rc;
	sem_post(&thread->ready);
	if (rc != 0)
		return NULL;
	thread->run(thread->arg);
	nic_unshare(&thread->nic);
	return NULL;
}

int nic_thread_start(struct nic_thread *thread, uint32_t number, const struct nic *nic,
		     void (*run)(void *arg), void *arg)
{
	int rc;

	thread->number = number;
	thread->first = nic;
	thread->run = run;
	thread->arg = arg;
	sem_init(&thread->ready, 0, 0);
	rc = -pthread_create(&thread->thread, NULL, nic_thread_main, thread);
	if (rc != 0)
		return rc;
	while (sem_wait(&thread->ready) != 0 && errno == EINTR)
		;
	rc = thread->rc;
	if (rc != 0)
		nic_thread_join(thread);
	return rc;
}

void nic_thread_join(struct nic_thread *thread)
{
	pthread_join(thread->thread, NULL);
}
