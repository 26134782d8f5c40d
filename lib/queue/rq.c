/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues: allocation, and the posting side. */
#include "queue/rq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RQ_WR_MAX  (1u << 24)
#define RQ_SGE_MAX 1024u

static uint8_t *ring_alloc(const struct rq *rq, uint32_t slots)
{
	return aligned_alloc(RTE_CACHE_LINE_SIZE, (size_t)slots * rq->stride);
}

int rq_init(struct rq *rq, uint32_t max_wr, uint32_t max_sge)
{
	*rq = (struct rq){.lock = RTE_SPINLOCK_INITIALIZER};
	if (max_wr > RQ_WR_MAX || max_sge > RQ_SGE_MAX)
		return -EINVAL;
	rq->max_sge = max_sge;
	if (max_wr == 0)
		return 0;
	rq->max_wr = rte_align32pow2(max_wr);
	rq->mask = rq->max_wr - 1;
	rq->stride = RTE_ALIGN((uint32_t)sizeof(struct recv_wqe) +
				       max_sge * (uint32_t)sizeof(struct ibv_sge),
			       RTE_CACHE_LINE_SIZE);
	rq->ring = ring_alloc(rq, rq->max_wr);
	return rq->ring ? 0 : -ENOMEM;
}

void rq_fini(struct rq *rq)
{
	free(rq->ring);
	rq->ring = NULL;
}

static int fill(const struct rq *rq, uint32_t index, const struct ibv_recv_wr *wr)
{
	struct recv_wqe *wqe;

	/* Pairs with the release store in rq_pop: the responder is done with the slot. */
	if (index - __atomic_load_n(&rq->cons, __ATOMIC_ACQUIRE) >= rq->max_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge ||
	    (wr->num_sge > 0 && !wr->sg_list))
		return EINVAL;
	wqe = (struct recv_wqe *)(rq->ring + (uint64_t)(index & rq->mask) * rq->stride);
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = (uint32_t)wr->num_sge;
	wqe->length = 0;
	for (uint32_t i = 0; i < wqe->num_sge; i++) {
		wqe->sge[i] = wr->sg_list[i];
		wqe->length += wr->sg_list[i].length;
	}
	return 0;
}

int rq_post(struct rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	uint32_t prod;
	int rc = 0;

	rte_spinlock_lock(&rq->lock);
	for (prod = rq->prod; wr; wr = wr->next, prod++) {
		rc = fill(rq, prod, wr);
		if (rc != 0) {
			*bad = wr;
			break;
		}
	}
	/* Pairs with the acquire load in rq_head: one store shows the whole list. */
	__atomic_store_n(&rq->prod, prod, __ATOMIC_RELEASE);
	rte_spinlock_unlock(&rq->lock);
	return rc;
}

void rq_clear(struct rq *rq)
{
	rte_spinlock_lock(&rq->lock);
	__atomic_store_n(&rq->prod, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&rq->cons, 0, __ATOMIC_RELAXED);
	rte_spinlock_unlock(&rq->lock);
}

int rq_resize(struct rq *rq, uint32_t max_wr)
{
	uint32_t slots, mask;
	uint8_t *ring, *old;

	if (max_wr == 0 || max_wr > RQ_WR_MAX)
		return -EINVAL;
	slots = rte_align32pow2(max_wr);
	mask = slots - 1;
	ring = ring_alloc(rq, slots);
	if (!ring)
		return -ENOMEM;
	rte_spinlock_lock(&rq->lock);
	if (rq->prod - rq->cons > slots) {
		rte_spinlock_unlock(&rq->lock);
		free(ring);
		return -EINVAL;
	}
	for (uint32_t i = rq->cons; i != rq->prod; i++)
		memcpy(ring + (uint64_t)(i & mask) * rq->stride,
		       rq->ring + (uint64_t)(i & rq->mask) * rq->stride, rq->stride);
	old = rq->ring;
	rq->ring = ring;
	rq->mask = mask;
	rq->max_wr = slots;
	rte_spinlock_unlock(&rq->lock);
	free(old);
	return 0;
}
