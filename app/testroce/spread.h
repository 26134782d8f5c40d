/* SPDX-License-Identifier: BSD-3-Clause */
/* The median and the range of what several rounds have measured. */
#ifndef TESTROCE_SPREAD_H
#define TESTROCE_SPREAD_H

#include <stddef.h>

#define SPREAD_ROUNDS_MAX 25

struct spread {
	double median, least, most;
};

/** Sort the values, at least one, and return their spread. MT-safe. */
struct spread spread_of(double *values, size_t count);

#endif
