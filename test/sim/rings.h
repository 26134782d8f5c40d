/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a host's queues: an allocator that reveals errors, and changes of size while the
 * queues are in use. */
#ifndef SIM_RINGS_H
#define SIM_RINGS_H

#include <stdint.h>

#include "queue/ring.h"
#include "rng.h"

struct host;

struct rings {
	struct rng rng; /* its own random numbers: its use changes no number elsewhere */
	struct ring_allocator allocator;
	struct queue_domain domain; /* the domain of all queues of the host */
	uint32_t change_ppm;	    /* probability of a change when the application polls */
	uint32_t cqe;		    /* no completion queue becomes smaller */
	uint64_t pieces;	    /* pieces that were allocated and not freed */
};

/** Call before the first queue is created. */
void rings_start(struct host *host, uint32_t cqe);

/** Call after the last queue was destroyed: every piece must be free. */
void rings_stop(struct host *host);

/** Call when the application polls its queues: sometimes one moves to other memory. */
void rings_change(struct host *host);

#endif
