/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues, a queue pair's own or shared by several: posted buffers that the responder
 * consumes in order. */
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
	/* A line that the responder reads for `prod` anyway. Whoever has a queue puts it at the
	 * beginning of one. */
	uint8_t *ring;	 /* slots of `stride` bytes */
	uint32_t max_wr; /* as granted, at least what was asked for: a power of two, or 0 */
	uint32_t max_sge;
	uint32_t stride;
	uint32_t prod; /* poster's, under lock; release-stored */
	struct queue_lock lock;
	struct queue_domain domain; /* where its next ring comes from */
	enum ring_kind kind;
	uint32_t spare[3];

	/* The responder's line, whose rest is free for what the engine writes. */
	uint32_t cons; /* release-stored */
	struct ring_memory memory;
};

static_assert(offsetof(struct rq, cons) == RTE_CACHE_LINE_MIN_SIZE, "the poster's line ends there");

/**
 * Allocate. max_wr of 0 gives a queue that takes nothing.
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
 *   0; ENOMEM (positive, ibv_post_recv(3)) when full, EINVAL for too many entries; *bad as for
 * sq_post.
 */
int rq_post(struct rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/** The oldest posted request, or NULL. Responder only; valid until rq_pop. */
static inline struct recv_wqe *rq_head(const struct rq *rq)
{
	if (rq->cons == __atomic_load_n(&rq->prod, __ATOMIC_ACQUIRE))
		return NULL;
	return (struct recv_wqe *)(rq->ring + (uint64_t)(rq->cons & (rq->max_wr - 1)) * rq->stride);
}

/** How many requests are posted. Responder only. */
static inline uint32_t rq_waiting(const struct rq *rq)
{
	return __atomic_load_n(&rq->prod, __ATOMIC_RELAXED) - rq->cons;
}

/* Free the oldest slot. Responder only. */
static inline void rq_pop(struct rq *rq)
{
	__atomic_store_n(&rq->cons, rq->cons + 1, __ATOMIC_RELEASE);
}

/** Drop everything (queue pair to RESET). The engine is stopped. */
void rq_clear(struct rq *rq);

/* A ring that may take the place of a queue's. */
struct rq_ring {
	struct ring_memory memory;
	uint32_t slots;
};

/** Make a ring of at least max_wr slots for a queue. MT-safe. 0, -EINVAL for max_wr of 0, -ENOMEM.
 */
int rq_make_ring(const struct rq *rq, uint32_t max_wr, struct rq_ring *ring);

/**
 * Change to another ring, keeping what is posted; `ring` is then the old one, for the caller to
 * free. MT-safe against posting; the engine is stopped. 0, or -EINVAL where more requests wait than
 * fit; then nothing has changed.
 */
int rq_change_ring(struct rq *rq, struct rq_ring *ring);

#endif
