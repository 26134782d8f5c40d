/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that ends: calloc of the program fails after so many allocations. */
#ifndef TEST_TRANSPORT_CALLOC_LIMIT_H
#define TEST_TRANSPORT_CALLOC_LIMIT_H

extern unsigned int allocations; /* that still succeed */

#endif
