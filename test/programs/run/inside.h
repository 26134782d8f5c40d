/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the checks of the program `inside` share. */
#ifndef INSIDE_H
#define INSIDE_H

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define EXPECT(what)                                            \
	do {                                                    \
		if (!(what)) {                                  \
			fprintf(stderr, "not so: %s\n", #what); \
			_exit(1);                               \
		}                                               \
	} while (0)

/* Open the first device. */
struct ibv_context *open_device(void);

/* Memory whose pages come from another place (inside_pages.c). */
void check_pages(void);

#endif
