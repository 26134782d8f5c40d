/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues: allocation, and the posting side. */
#include "queue/rq.h"

#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/reason.h"

#define RQ_WR_MAX  (1u << 24)
#define RQ_SGE_MAX 1024u

int rq_make_ring(const struct rq *rq, uint32_t max_wr, struct rq_ring *ring)
{
	*ring = (struct rq_ring){.memory.base = NULL};
	if (max_wr == 0 || max_wr > RQ_WR_MAX)
		return -EINVAL;
	ring->slots = rte_align32pow2(max_wr);
	return ring_alloc(&rq->domain, (size_t)ring->slots * rq->stride, rq->kind, &ring->memory);
}

/* Use a new ring. The caller keeps the memory of the old one. */
static void use_ring(struct rq *rq, const struct rq_ring *ring)
{
	rq->memory = ring->memory;
	rq->ring = ring->memory.base;
	rq->max_wr = ring->slots;
}

int rq_init_in(const struct queue_domain *domain, enum ring_kind kind, struct rq *rq,
	       uint32_t max_wr, uint32_t max_sge)
{
	struct rq_ring ring;
	int rc;

	*rq = (struct rq){.kind = kind, .lock = queue_lock_make(domain)};
	if (max_wr > RQ_WR_MAX || max_sge > RQ_SGE_MAX)
		return -EINVAL;
	if (domain)
		rq->domain = *domain;
	rq->max_sge = max_sge;
	if (max_wr == 0)
		return 0;
	rq->stride = RTE_ALIGN((uint32_t)sizeof(struct recv_wqe) +
				       max_sge * (uint32_t)sizeof(struct ibv_sge),
			       RTE_CACHE_LINE_SIZE);
	rc = rq_make_ring(rq, max_wr, &ring);
	if (rc == 0)
		use_ring(rq, &ring);
	return rc;
}

void rq_fini(struct rq *rq)
{
	ring_free(&rq->memory);
	rq->ring = NULL;
}

/* Return the error of a receive request, and say why. */
static __rte_noinline __rte_cold int refuse(const struct rq *rq, const struct ibv_recv_wr *wr,
					    int error)
{
	if (error == ENOMEM)
		return CALL_REASON(ENOMEM, "the queue is full: it has %u receive requests",
				   rq->max_wr);
	if (wr->num_sge > 0 && (uint32_t)wr->num_sge <= rq->max_sge)
		return CALL_REASON(EINVAL, "sg_list is NULL");
	return CALL_REASON(EINVAL, "num_sge is %d; it must be 0 to %u", wr->num_sge, rq->max_sge);
}

static int fill(const struct rq *rq, uint32_t index, const struct ibv_recv_wr *wr)
{
	struct recv_wqe *wqe;

	/* Pairs with the release store in rq_pop: the responder no longer uses the slot. */
	if (index - __atomic_load_n(&rq->cons, __ATOMIC_ACQUIRE) >= rq->max_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge ||
	    (wr->num_sge > 0 && !wr->sg_list))
		return EINVAL;
	wqe = (struct recv_wqe *)(rq->ring + (uint64_t)(index & (rq->max_wr - 1)) * rq->stride);
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

	queue_lock(&rq->lock);
	for (prod = rq->prod; wr; wr = wr->next, prod++) {
		rc = fill(rq, prod, wr);
		if (rc != 0) {
			*bad = wr;
			break;
		}
	}
	/* Pairs with the acquire load in rq_head: one store shows the whole list. */
	__atomic_store_n(&rq->prod, prod, __ATOMIC_RELEASE);
	queue_unlock(&rq->lock);
	return likely(rc == 0) ? 0 : refuse(rq, *bad, rc);
}

void rq_clear(struct rq *rq)
{
	queue_lock(&rq->lock);
	__atomic_store_n(&rq->prod, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&rq->cons, 0, __ATOMIC_RELAXED);
	rq->hidden = 0;
	queue_unlock(&rq->lock);
}

static void copy_posted(const struct rq *rq, const struct rq_ring *ring)
{
	uint8_t *to = ring->memory.base;
	const uint32_t mask = ring->slots - 1;

	for (uint32_t i = rq->cons; i != rq->prod; i++)
		memcpy(to + (uint64_t)(i & mask) * rq->stride,
		       rq->ring + (uint64_t)(i & (rq->max_wr - 1)) * rq->stride, rq->stride);
}

int rq_change_ring(struct rq *rq, struct rq_ring *ring)
{
	const struct rq_ring old = {.memory = rq->memory, .slots = rq->max_wr};
	int rc = -EINVAL;

	queue_lock(&rq->lock);
	if (rq->prod - rq->cons <= ring->slots) {
		copy_posted(rq, ring);
		use_ring(rq, ring);
		*ring = old;
		rc = 0;
	}
	queue_unlock(&rq->lock);
	return rc;
}
