/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread that waits for packets has to know of its CPU, and asks of the scheduler. */
#ifndef LINK_CPU_H
#define LINK_CPU_H

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

#endif
