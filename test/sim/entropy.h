/* SPDX-License-Identifier: BSD-3-Clause */
/* The random numbers that the stack takes from getrandom(2), from a seed. */
#ifndef SIM_ENTROPY_H
#define SIM_ENTROPY_H

#include <stdint.h>

/** Begin the numbers that getrandom(2) returns from here on: keys, queue pair numbers. */
void entropy_seed(uint64_t seed);

/** Return a truly random number, for the first seed. */
uint64_t entropy_true(void);

#endif
