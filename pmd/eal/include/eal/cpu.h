/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU and scheduler functions for threads that wait for packets. */
#ifndef EAL_CPU_H
#define EAL_CPU_H

#include <stdbool.h>

/**
 * Ask the scheduler for short time slices for this thread. A thread with a shorter slice gets the
 * CPU as soon as it wakes. It need not wait for the end of the slice of a spinning thread. Kernels
 * before 6.12 ignore the request.
 */
void cpu_shorten_slices(void);

#define CPU_DEMAND_ALL	   100 /* all CPUs are wanted, by one thread each */
#define CPU_DEMAND_UNKNOWN 101 /* assume that threads wait */

/** Return how many threads want to run, for 100 CPUs: if there are more than CPU_DEMAND_ALL, a
 * spinning thread delays others. MT-safe; asks the kernel. */
unsigned int cpu_demand(void);

/**
 * Call a function that starts threads of other libraries, and wait for it. If this thread has
 * real-time priority, the function runs in a thread of ordinary priority. New threads inherit the
 * priority of the thread that starts them, and a library that polls until its threads are ready
 * would leave them no time on a single CPU. Not MT-safe.
 *
 * @return
 *   The function's result, or -errno if no thread can be made.
 */
int cpu_run_ordinary(int (*run)(void *arg), void *arg);

#endif
