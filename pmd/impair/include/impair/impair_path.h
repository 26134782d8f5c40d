/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a bad network: packets and the time go in, packets and the next deadline come
 * out. Everything random comes from a seed. Each kind of damage has a sequence of its own, so the
 * same packets are lost with and without another kind.
 *
 * Only RoCE packets are damaged, so that ARP and neighbour discovery still work. All frames are
 * delayed, and share the rate.
 */
#ifndef IMPAIR_IMPAIR_PATH_H
#define IMPAIR_IMPAIR_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "config/impair.h"
#include "impair/counts.h"

struct rte_mbuf;
struct rte_mempool;

#define IMPAIR_LATE_MAX 128 /* packets that are being overtaken */
#define IMPAIR_NEVER	UINT64_MAX

/* A value of `port` in an mbuf: the port that received the packet has verified its ICRC. If a bit
 * is flipped, the value is removed. */
#define IMPAIR_VERIFIED (UINT16_MAX - 2)

struct impair_random {
	uint64_t state;
};

/* A packet that waits for its time. */
struct impair_held {
	struct rte_mbuf *mbuf;
	uint64_t due_ns;
};

/* A packet that is being overtaken. It leaves after `after` packets have left the queue, or when it
 * is due. */
struct impair_late {
	struct rte_mbuf *mbuf;
	uint64_t due_ns;
	uint64_t after;
};

/* One direction of a bad network. Only one thread at a time may use this struct. */
struct impair_path {
	const struct impair_config *config;
	struct impair_counts *counts;
	struct impair_random loss, corrupt, bit, dup, reorder, depth, ce;
	bool in_burst;	  /* the last packet was lost (only if config->burst_end is set) */
	uint64_t line_ns; /* when the line will have sent the last packet at its rate */
	uint64_t entered; /* packets that ever entered the queue */
	uint64_t left;	  /* and left it */
	uint32_t size;	  /* of the queue, a power of two */
	struct impair_held *queue;
	uint32_t late_count;
	struct impair_late late[IMPAIR_LATE_MAX]; /* in order of arrival */
};

/**
 * Initialise.
 *
 * @param config
 *   Must outlive the path.
 * @param stream
 *   Two paths that have the same seed and different streams have different random numbers.
 * @param counts
 *   What the path does is counted here. Several paths may share the counts.
 * @return
 *   0 or -ENOMEM.
 */
int impair_path_init(struct impair_path *path, const struct impair_config *config, uint64_t stream,
		     struct impair_counts *counts);

/** Free the packets and the memory. */
void impair_path_fini(struct impair_path *path);

/**
 * Put a packet into the path, which owns it from then on.
 *
 * @param pool
 *   The pool for copies. If it is empty, no duplicate is made.
 * @param has_icrc
 *   False: the packet carries no ICRC. Corruption could not be noticed, so the packet is dropped
 *   instead, as a switch drops a frame with a wrong FCS.
 */
void impair_path_put(struct impair_path *path, struct rte_mbuf *mbuf, struct rte_mempool *pool,
		     bool has_icrc, uint64_t now_ns);

/** Take up to `n` packets that have arrived. Returns how many. */
uint16_t impair_path_get(struct impair_path *path, struct rte_mbuf **mbufs, uint16_t n,
			 uint64_t now_ns);

/** Return when the next packet arrives, if no other is put in; 0: it has arrived already;
 * IMPAIR_NEVER: there is none. */
uint64_t impair_path_due_ns(const struct impair_path *path);

/** Return how many packets are in the path. */
static inline uint32_t impair_path_count(const struct impair_path *path)
{
	return (uint32_t)(path->entered - path->left) + path->late_count;
}

#endif
