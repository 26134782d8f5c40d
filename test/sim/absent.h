/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that are not in memory for a while, simulated by a pager (mem/pager.h). The memory itself
 * is always there. The transport promises not to access absent pages. */
#ifndef SIM_ABSENT_H
#define SIM_ABSENT_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/pager.h"
#include "rng.h"

struct host;

#define ABSENT_PAGES 64 /* pages that are absent at a time */

struct absent_page {
	uintptr_t page; /* its address; 0: none */
	bool came;	/* it is present, and was not asked for since */
};

/* The state of a host's pager. */
struct absence {
	struct pager pager; /* first */
	struct host *host;
	struct rng rng;
	uint32_t ppm; /* probability that a page is absent when it is asked for */
	struct absent_page pages[ABSENT_PAGES];
};

/** Make the host's regions on-demand ones with absent pages, if the program asks for it. */
void absent_start(struct host *host);

#endif
