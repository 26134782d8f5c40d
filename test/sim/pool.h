/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared receive queue of a host: whichever of its queue pairs gets a message takes the next
 * request. */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct host;
struct receive;
struct region;
struct sim;
struct span;
struct srq;

#define POOL_FLOW 0xff00 /* a pool's number where flows have theirs: plus POOLS * host + kind */

enum pool_kind {
	POOL_SHARED, /* of all queue pairs that receive for themselves */
	POOL_XRC,
	POOLS,
};

struct pool {
	struct host *host;
	enum pool_kind kind;
	bool in_use;
	struct srq *srq;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t limit; /* below which an event is raised, 0 for none */
	bool low;	/* it was */
	struct region *inbox;
	struct receive *receives; /* each for any message that may come */
	struct span *spans;	  /* max_sge of each */
	bool *taken;
	uint32_t count;
	uint32_t posted;
	uint32_t complete;
	uint64_t gap_ns; /* requests are posted so late; 0: at once */
	uint64_t next_ns;
};

/** Make up the receive requests, when all flows are made up. */
void pool_make(struct pool *pool);
void pool_free(struct pool *pool);

/** Create the queue, and post what may be posted. */
void pool_start(struct pool *pool);
void pool_stop(struct pool *pool);

/** Post what is due. Whether anything was. */
bool pool_post(struct pool *pool);

/** A receive request of the pool is complete. Whether its message was solicited. */
bool pool_complete(struct pool *pool, uint32_t index, const struct ibv_wc *wc);

/** The event of the limit came if, and only if, it was due. */
void pool_check(struct pool *pool);

/** The program has ended: what a message that was never whole may have left is right. */
void pool_forgive(struct pool *pool);

#endif
