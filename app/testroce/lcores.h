/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcores of EAL, if options of the user have chosen them. */
#ifndef TESTROCE_LCORES_H
#define TESTROCE_LCORES_H

#include <stdint.h>

/**
 * Use the lcores of the running EAL. EAL has pinned the calling thread to the main lcore, and all
 * threads that it starts would be there, too: allow it the CPUs of all lcores. Not MT-safe.
 */
void lcores_use(void);

/** Pin the calling thread to the CPUs of an lcore: number 0 is the main lcore. If there are fewer
 * lcores, several threads share one. No effect before lcores_use. MT-safe. */
void lcores_pin(uint32_t number);

#endif
