/* SPDX-License-Identifier: BSD-3-Clause */
/* What the checks of the program inside have in common. */
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

/* Memory whose pages come from afar (inside_pages.c). */
void check_pages(void);

#endif
