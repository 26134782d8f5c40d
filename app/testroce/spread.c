/* SPDX-License-Identifier: BSD-3-Clause */
/* The median and the range of some values. */
#include "spread.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct spread spread_of(double *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), compare);
	/* With an even count, this is the mean of the two values in the middle. */
	return (struct spread){.median = (values[(count - 1) / 2] + values[count / 2]) / 2,
			       .least = values[0],
			       .most = values[count - 1]};
}
