/* SPDX-License-Identifier: BSD-3-Clause */
/* The check of programs that the system's library serves. */
#ifndef TEST_PROGRAMS_MUST_H
#define TEST_PROGRAMS_MUST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* End the program with a message unless the condition holds. */
#define MUST(what)                                                                          \
	do {                                                                                \
		if (!(what)) {                                                              \
			fprintf(stderr, "%s:%d: %s: errno %d\n", __func__, __LINE__, #what, \
				errno);                                                     \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

#endif
