/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that ends: calloc of the program fails after so many allocations. */
#include "calloc_limit.h"

#include <limits.h>
#include <stddef.h>

unsigned int allocations = UINT_MAX;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	if (allocations == 0)
		return NULL;
	if (allocations != UINT_MAX)
		allocations--;
	return __real_calloc(count, size);
}
