/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcores of EAL, if options of the user have chosen them. */
#include "lcores.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include <rte_lcore.h>

static bool used;

static void keep_to(const cpu_set_t *cpus)
{
	pthread_setaffinity_np(pthread_self(), sizeof(*cpus), cpus);
}

void lcores_use(void)
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
	used = true;
}

void lcores_pin(uint32_t number)
{
	unsigned int lcore;
	cpu_set_t cpus;

	if (!used)
		return;
	lcore = rte_get_main_lcore();
	if (number % rte_lcore_count() > 0)
		lcore = rte_get_next_lcore(UINT_MAX, 1, 0);
	for (uint32_t i = number % rte_lcore_count(); i > 1; i--)
		lcore = rte_get_next_lcore(lcore, 1, 0);
	cpus = rte_lcore_cpuset(lcore);
	keep_to(&cpus);
}
