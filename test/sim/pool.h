/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared receive queue of a host. The first of its queue pairs that gets a message takes the next
 * request. */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct device_engine;
struct host;
struct receive;
struct region;
struct sim;
struct span;
struct srq;

#define POOL_FLOW 0xff00 /* stands for a flow's number: plus POOLS * host + kind */

enum pool_kind {
	POOL_SHARED, /* the common queue of all queue pairs that receive for themselves */
	POOL_XRC,
	POOLS,
};

struct pool {
	struct host *host;
	enum pool_kind kind;
	bool in_use;
	struct srq *srq;
	struct device_engine *home; /* of the queue pair that was created last */
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t limit; /* limit below which an event is raised; 0: none */
	bool low;	/* the event was raised */
	struct region *inbox;
	struct receive *receives; /* requests, each for any message that may come */
	struct span *spans;	  /* max_sge of each */
	bool *taken;
	uint32_t count;
	uint32_t posted;
	uint32_t complete;
	uint64_t gap_ns; /* delay of posts; 0: none */
	uint64_t next_ns;
};

/** Generate the receive requests, after all flows. */
void pool_make(struct pool *pool);
void pool_free(struct pool *pool);

/** Create the queue, and post the requests that may be posted. */
void pool_start(struct pool *pool);
void pool_stop(struct pool *pool);

/** Post the requests that are due. Return true if there were any. */
bool pool_post(struct pool *pool);

/**
 * Record that a receive request of the pool is complete. Return true if its message was solicited.
 */
bool pool_complete(struct pool *pool, uint32_t index, const struct ibv_wc *wc);

/** Check that the limit's event came if, and only if, it was due. */
void pool_check(struct pool *pool);

/** The program has ended: accept the bytes that an incomplete message may have left. */
void pool_forgive(struct pool *pool);

#endif
