/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that have a handle of the device each, and the CPUs of the lcores on which they run, if
 * options of the user have chosen lcores. */
#include "nic_thread.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include <rte_lcore.h>

static bool lcores_used;

static void keep_to(const cpu_set_t *cpus)
{
	pthread_setaffinity_np(pthread_self(), sizeof(*cpus), cpus);
}

void nic_thread_use_lcores(void)
{
	unsigned int lcore;
	cpu_set_t all;

	CPU_ZERO(&all);
	RTE_LCORE_FOREACH(lcore)
	{
		const cpu_set_t cpus = rte_lcore_cpuset(lcore);

		CPU_OR(&all, &all, &cpus);
	}
	keep_to(&all);
	lcores_used = true;
}

void nic_thread_pin(uint32_t number)
{
	unsigned int lcore;
	cpu_set_t cpus;

	if (!lcores_used)
		return;
	lcore = rte_get_main_lcore();
	if (number % rte_lcore_count() > 0)
		lcore = rte_get_next_lcore(UINT_MAX, 1, 0);
	for (uint32_t i = number % rte_lcore_count(); i > 1; i--)
		lcore = rte_get_next_lcore(lcore, 1, 0);
	cpus = rte_lcore_cpuset(lcore);
	keep_to(&cpus);
}

static void *nic_thread_main(void *arg)
{
	struct nic_thread *thread = arg;
	int rc;

	nic_thread_pin(thread->number);
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
