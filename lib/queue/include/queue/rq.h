/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues of one queue pair or shared by several: posted buffers that the responder consumes
 * in order. */
#ifndef QUEUE_RQ_H
#define QUEUE_RQ_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rte_common.h>

#include "queue/lock.h"
#include "queue/ring.h"

struct recv_wqe {
	uint64_t wr_id;
	uint64_t length; /* bytes of all entries */
	uint32_t num_sge;
	struct ibv_sge sge[];
};

struct rq {
	/* The cache line that the responder reads for `prod` anyway. A struct that embeds a queue
	 * aligns it to a cache line. */
	uint8_t *ring;	 /* slots of `stride` bytes */
	uint32_t max_wr; /* as granted, at least as many as asked for: a power of two, or 0 */
	uint32_t max_sge;
	uint32_t stride;
	uint32_t prod; /* written by posting threads, under lock; release-stored */
	struct queue_lock lock;
	struct queue_domain domain; /* source of memory for its next ring */
	enum ring_kind kind;
	uint32_t hidden; /* requests behind `prod` that are not there yet (queue/unfold.h) */
	uint32_t spare[2];

	/* The responder's cache line. The remaining bytes of the line are free for other data that
	 * the engine writes. */
	uint32_t cons; /* release-stored */
	struct ring_memory memory;
};

static_assert(offsetof(struct rq, cons) == RTE_CACHE_LINE_MIN_SIZE, "the poster's line ends there");

/**
 * Initialise a queue. With max_wr of 0 nothing can be posted to it.
 *
 * @param domain
 *   NULL for none.
 * @param kind
 *   RING_RECV or RING_SHARED_RECV.
 * @return
 *   0, -EINVAL, -ENOMEM.
 */
int rq_init_in(const struct queue_domain *domain, enum ring_kind kind, struct rq *rq,
	       uint32_t max_wr, uint32_t max_sge);

void rq_fini(struct rq *rq);

/**
 * Post a list of receive requests. MT-safe.
 *
 * @return
 *   0; ENOMEM (positive, ibv_post_recv(3)) if the queue is full, EINVAL for too many entries. *bad
 *   is set as by sq_post.
 */
int rq_post(struct rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/** Return the oldest posted request, or NULL. Responder only; valid until rq_pop. */
static inline struct recv_wqe *rq_head(const struct rq *rq)
{
	if (rq->cons == __atomic_load_n(&rq->prod, __ATOMIC_ACQUIRE))
		return NULL;
	return (struct recv_wqe *)(rq->ring + (uint64_t)(rq->cons & (rq->max_wr - 1)) * rq->stride);
}

/** Return the number of posted requests. Responder only. */
static inline uint32_t rq_waiting(const struct rq *rq)
{
	return __atomic_load_n(&rq->prod, __ATOMIC_RELAXED) - rq->cons;
}

/* Free the oldest slot. Responder only. */
static inline void rq_pop(struct rq *rq)
{
	__atomic_store_n(&rq->cons, rq->cons + 1, __ATOMIC_RELEASE);
}

/** Drop all requests (the queue pair goes to RESET). The engine is stopped. */
void rq_clear(struct rq *rq);

/* A new ring that may replace a queue's. */
struct rq_ring {
	struct ring_memory memory;
	uint32_t slots;
};

/** Allocate a ring of at least max_wr slots for a queue. MT-safe. 0, -EINVAL for max_wr of 0,
 * -ENOMEM. */
int rq_make_ring(const struct rq *rq, uint32_t max_wr, struct rq_ring *ring);

/**
 * Change to another ring and keep the posted requests. `ring` is then the old ring, which the
 * caller frees. MT-safe against posting; the engine is stopped. 0; or -EINVAL if the requests do
 * not fit: nothing has changed.
 */
int rq_change_ring(struct rq *rq, struct rq_ring *ring);

#endif
