/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that the port has taken for a process which has no room for them. They wait here, and
 * packets to others pass them. The engine builds no more packets of connections to the process
 * meanwhile (port_ops.waits), so few have to wait here: the queue pairs keep the rest.
 */
#ifndef HELD_H
#define HELD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "port/port.h"

/* The burst for which there was no room, and the burst that was built before the engine asks. */
#define HELD_MAX 64

/* Longer than a process waits for a CPU. A process that has not taken all that is held after so
 * long has stopped, or is hostile: the rest is dropped, and the timers of queue pairs run, until it
 * has room. */
#define HELD_NS UINT64_C(1000000000)

/* Time in which this process was stopped itself, and did not try to send, does not count. */
#define HELD_PAUSE_NS UINT64_C(100000000)

/* Engine's thread. */
struct held {
	bool given_up;	   /* the process has stopped; nothing is held */
	uint64_t since_ns; /* time since which some are held; valid if tried_ns is not 0 */
	uint64_t tried_ns; /* time of the last try to send them; 0: none yet */
	uint16_t count;
	struct rte_mbuf *mbufs[HELD_MAX];
};

/** Hold packets behind those that are held. Returns for how many there was room. */
static inline uint16_t held_add(struct held *held, struct port *port, struct rte_mbuf **mbufs,
				uint16_t n)
{
	n = RTE_MIN(n, (uint16_t)(HELD_MAX - held->count));
	memcpy(&held->mbufs[held->count], mbufs, n * sizeof(mbufs[0]));
	held->count = (uint16_t)(held->count + n);
	port->tx_held += n;
	return n;
}

/** Remove the first `n`, which were sent or dropped. */
static inline void held_remove(struct held *held, struct port *port, uint16_t n)
{
	held->count = (uint16_t)(held->count - n);
	memmove(held->mbufs, &held->mbufs[n], held->count * sizeof(held->mbufs[0]));
	port->tx_held -= n;
}

#endif
