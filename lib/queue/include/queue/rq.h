/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues, a queue pair's own or shared by several: posted buffers that the responder
 * consumes in order. */
#ifndef QUEUE_RQ_H
#define QUEUE_RQ_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rte_common.h>
#include <rte_spinlock.h>

struct recv_wqe {
	uint64_t wr_id;
	uint64_t length; /* bytes of all entries */
	uint32_t num_sge;
	struct ibv_sge sge[];
};

struct rq {
	uint8_t *ring; /* slots of `stride` bytes */
	uint32_t mask;
	uint32_t stride;
	uint32_t max_wr; /* as granted, at least what was asked for */
	uint32_t max_sge;

	uint32_t prod __rte_cache_aligned; /* poster's, under lock; release-stored */
	rte_spinlock_t lock;

	uint32_t cons __rte_cache_aligned; /* responder's; release-stored */
};

/** Allocate. max_wr of 0 gives a queue that takes nothing. 0, -EINVAL, -ENOMEM. */
int rq_init(struct rq *rq, uint32_t max_wr, uint32_t max_sge);
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
	return (struct recv_wqe *)(rq->ring + (uint64_t)(rq->cons & rq->mask) * rq->stride);
}

/* Free the oldest slot. Responder only. */
static inline void rq_pop(struct rq *rq)
{
	__atomic_store_n(&rq->cons, rq->cons + 1, __ATOMIC_RELEASE);
}

/** Drop everything (queue pair to RESET). The engine is stopped. */
void rq_clear(struct rq *rq);

/**
 * Change the size, keeping what is posted. MT-safe against posting; the engine is stopped.
 * 0, -EINVAL where more requests wait than fit or max_wr is 0, -ENOMEM; then nothing has changed.
 */
int rq_resize(struct rq *rq, uint32_t max_wr);

#endif
