/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread that waits for packets has to know of its CPU, and asks of the scheduler. */
#ifndef EAL_CPU_H
#define EAL_CPU_H

#include <stdbool.h>

/**
 * Ask the scheduler for short slices for this thread. One with a shorter slice takes the CPU as
 * soon as it wakes, and does not wait for the end of a slice that another one spends spinning.
 * Kernels before 6.12 take no notice.
 */
void cpu_shorten_slices(void);

/** Whether more threads want to run than there are CPUs, so that who spins keeps another from its
 * work. MT-safe; asks the kernel. */
bool cpu_is_short(void);

/**
 * Run a function that starts threads of other libraries, and waits for them. Where this thread is
 * of real-time priority it runs in one of ordinary priority: threads take over the priority of the
 * thread that starts them, and a library that waits for its threads by looking over and over would
 * leave them no time on the only CPU. Not MT-safe.
 *
 * @return
 *   what the function returns, or -errno: there can be no thread.
 */
int cpu_run_ordinary(int (*run)(void *arg), void *arg);

#endif
