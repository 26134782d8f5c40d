/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs of a thread. */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

/** Return how many CPUs the calling thread may use, at least 1. MT-safe; asks the kernel. */
unsigned int cpus_count(void);

#endif
