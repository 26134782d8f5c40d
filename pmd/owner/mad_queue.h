/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MADs that wait for a trusted process. In a storm of connections a process gets more MADs than its
 * rx ring has words, and may wait longer for a CPU than senders wait for it. A lost MAD costs its
 * connection seconds, so copies of MADs wait here. The sender and its other packets go on.
 */
#ifndef OWNER_MAD_QUEUE_H
#define OWNER_MAD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct server;
struct waiting_mad;

#define MAD_QUEUE_MAX 8192 /* of a process; 2.9 MB */
/* A process that takes no MAD for so long loses those that wait. Peers retransmit after 4
 * seconds. */
#define MAD_QUEUE_NS UINT64_C(10000000000)

/* All zero: none waits. */
struct mad_queue {
	struct waiting_mad *all; /* MAD_QUEUE_MAX, a ring; NULL while none waits */
	uint32_t first;		 /* index in `all` of the oldest */
	uint32_t count;
	uint64_t moved_ns; /* when the first began to wait, or the process took one */
};

/**
 * Let a MAD wait for a process, and free its buffer.
 *
 * @param flags
 *   As forward_give.
 * @param local
 *   It comes from a process.
 * @return
 *   False, and the packet is still the caller's: the process is isolated or has gone, the queue is
 *   full, or memory is missing.
 */
bool mad_queue_put(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags,
		   bool local);

/** Give a process the MADs that wait for it, as far as there is room. Returns how many. */
uint32_t mad_queue_serve(struct server *server, uint16_t number);

/** Drop the MADs that wait for a process. */
void mad_queue_drop(struct server *server, uint16_t number);

/** Return how long the owner may sleep: `ms`, or less while MADs wait, because a process that
 * makes room does not wake the owner. */
int mad_queue_longest_ms(const struct server *server, int ms);

#endif
