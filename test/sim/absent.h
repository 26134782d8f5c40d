/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that are not in memory for a while: a pager (mem/pager.h) that makes it up. The memory
 * itself is there all the time; that nobody touches what is absent, the transport promises. */
#ifndef SIM_ABSENT_H
#define SIM_ABSENT_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/pager.h"
#include "rng.h"

struct host;

#define ABSENT_PAGES 64 /* that are away at a time */

struct absent_page {
	uintptr_t page; /* its address; 0: none */
	bool came;	/* it is there, and was not asked for since */
};

/* What a host's pager knows. */
struct absence {
	struct pager pager; /* first */
	struct host *host;
	struct rng rng;
	uint32_t ppm; /* how often a page is absent when it is asked for */
	struct absent_page pages[ABSENT_PAGES];
};

/** Have the host's regions be on-demand ones, and their pages go, if the program is to be so. */
void absent_start(struct host *host);

#endif
