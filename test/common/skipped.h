/* SPDX-License-Identifier: BSD-3-Clause */
/* The reason why a test is skipped: `make test` prints it beside the test's name. */
#ifndef TEST_SKIPPED_H
#define TEST_SKIPPED_H

#include <stdio.h>

/**
 * Call this before a test or its program skips: it prints what is missing here, and what to do
 * about it.
 */
static inline void skipped_for(const char *reason)
{
	printf("skipped: %s\n", reason);
	fflush(stdout);
}

#endif
