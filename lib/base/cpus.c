/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the CPUs that a thread may use. */
#include "base/cpus.h"

#include <sched.h>
#include <unistd.h>

unsigned int cpus_count(void)
{
	long online;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (unsigned int)CPU_COUNT(&set);
	/* The kernel has more CPUs than the set has bits. */
	online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 1 ? (unsigned int)online : 1;
}
