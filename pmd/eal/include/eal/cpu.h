/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU and scheduler functions for threads that wait for packets. */
#ifndef EAL_CPU_H
#define EAL_CPU_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Ask the scheduler for short time slices for this thread. A thread with a shorter slice gets the
 * CPU as soon as it wakes. It need not wait for the end of the slice of a spinning thread. Kernels
 * before 6.12 ignore the request.
 */
void cpu_shorten_slices(void);

/** Return true if more threads want to run than there are CPUs: a spinning thread then delays
 * others. MT-safe; asks the kernel. */
bool cpu_is_short(void);

/** Return the CPU time of the calling thread. MT-safe. */
uint64_t cpu_own_ns(void);

/** Return the CPU time of a thread of this process in ns, or 0 if there is no such thread. MT-safe.
 */
uint64_t cpu_thread_ns(uint32_t tid);

/** Return true if a thread of this process runs, or waits for a CPU. MT-safe; asks the kernel. */
bool cpu_thread_wants_cpu(uint32_t tid);

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
