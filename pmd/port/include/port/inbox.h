/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received packets on their way from several threads to one. Any thread puts a packet in by one
 * compare-and-swap, so a thread that loses its CPU there delays no other thread (the producers of
 * an rte_ring wait for each other). The packets are linked through `tx_offload`, which a received
 * packet does not use. There is no limit but the number of packet buffers.
 */
#ifndef PORT_INBOX_H
#define PORT_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct inbox {
	struct rte_mbuf *newest __rte_cache_aligned; /* atomic: packets put in, newest first */
	struct rte_mbuf *oldest __rte_cache_aligned; /* receiver's: packets taken, oldest first */
};

static inline struct rte_mbuf *inbox_next(const struct rte_mbuf *mbuf)
{
	return (struct rte_mbuf *)(uintptr_t)mbuf->tx_offload;
}

static inline void inbox_link(struct rte_mbuf *mbuf, const struct rte_mbuf *next)
{
	mbuf->tx_offload = (uintptr_t)next;
}

/** Put a packet in. MT-safe. */
static inline void inbox_put(struct inbox *inbox, struct rte_mbuf *mbuf)
{
	struct rte_mbuf *newest = __atomic_load_n(&inbox->newest, __ATOMIC_RELAXED);

	do
		inbox_link(mbuf, newest);
	while (!__atomic_compare_exchange_n(&inbox->newest, &newest, mbuf, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED));
}

/* Take all packets that were put in, and link them in the order in which they came. */
static inline void inbox_collect(struct inbox *inbox)
{
	struct rte_mbuf *mbuf = __atomic_exchange_n(&inbox->newest, NULL, __ATOMIC_ACQUIRE);

	while (mbuf) {
		struct rte_mbuf *before = inbox_next(mbuf);

		inbox_link(mbuf, inbox->oldest);
		inbox->oldest = mbuf;
		mbuf = before;
	}
}

/** Take up to `n` packets, oldest first. Receiver's thread. Returns how many. */
static inline uint16_t inbox_take(struct inbox *inbox, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t taken = 0;

	while (taken < n) {
		if (!inbox->oldest && __atomic_load_n(&inbox->newest, __ATOMIC_RELAXED))
			inbox_collect(inbox);
		if (!inbox->oldest)
			break;
		mbufs[taken] = inbox->oldest;
		inbox->oldest = inbox_next(mbufs[taken]);
		mbufs[taken]->tx_offload = 0;
		taken++;
	}
	return taken;
}

/** Return true if a packet waits. Receiver's thread. */
static inline bool inbox_has_more(const struct inbox *inbox)
{
	return inbox->oldest || __atomic_load_n(&inbox->newest, __ATOMIC_SEQ_CST);
}

#endif
