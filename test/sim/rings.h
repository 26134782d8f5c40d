/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a host's queues: of an allocator that is hard on them, changed while they work. */
#ifndef SIM_RINGS_H
#define SIM_RINGS_H

#include <stdint.h>

#include "queue/ring.h"
#include "rng.h"

struct host;

struct rings {
	struct rng rng; /* its own: what happens here draws no number elsewhere */
	struct ring_allocator allocator;
	struct queue_domain domain; /* that all queues of the host are made in */
	uint32_t change_ppm;	    /* chance of a change at each look of the application */
	uint32_t cqe;		    /* no completion queue becomes smaller */
	uint64_t pieces;	    /* that the allocator gave, and nobody freed */
};

/** Before the first queue is made. */
void rings_start(struct host *host, uint32_t cqe);

/** After the last one is gone: everything was given back. */
void rings_stop(struct host *host);

/** The application looks at its queues: now and then one moves to other memory. */
void rings_change(struct host *host);

#endif
