/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a test is skipped: `make test` prints it beside the test's name. */
#ifndef TEST_SKIPPED_H
#define TEST_SKIPPED_H

#include <stdio.h>

/** Before the test, or its program, skips: what is missing here, and what to do about it. */
static inline void skipped_for(const char *reason)
{
	printf("skipped: %s\n", reason);
	fflush(stdout);
}

#endif
