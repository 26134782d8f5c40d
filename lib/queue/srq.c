/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: a receive queue for several queue pairs. */
#include "queue/srq.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/build.h"

int srq_create_in(const struct queue_domain *domain, uint32_t max_wr, uint32_t max_sge,
		  struct pd *pd, struct srq **out)
{
	struct srq *srq;
	int err;

	/* struct receive has no room for a list longer than a packet's. */
	if (max_wr == 0 || max_sge > PACKET_FRAGS_MAX)
		return -EINVAL;
	srq = aligned_alloc(_Alignof(struct srq), sizeof(*srq));
	if (srq == NULL)
		return -ENOMEM;
	*srq = (struct srq){.pd = pd};
	err = rq_init_in(domain, RING_SHARED_RECV, &srq->rq, max_wr, max_sge);
	if (err != 0) {
		free(srq);
		return err;
	}
	*out = srq;
	return 0;
}

int srq_destroy(struct srq *srq)
{
	if (__atomic_load_n(&srq->users, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	rq_fini(&srq->rq);
	free(srq);
	return 0;
}

int srq_set_limit(struct srq *srq, uint32_t limit)
{
	if (limit > srq->rq.max_wr)
		return -EINVAL;
	__atomic_store_n(&srq->limit, limit, __ATOMIC_RELAXED);
	return 0;
}

int srq_change_ring(struct srq *srq, struct rq_ring *ring)
{
	if (ring->slots < srq_limit(srq))
		return -EINVAL;
	return rq_change_ring(&srq->rq, ring);
}

uint32_t srq_limit(const struct srq *srq)
{
	return __atomic_load_n(&srq->limit, __ATOMIC_RELAXED);
}

void srq_taken(struct srq *srq)
{
	struct rq *rq = &srq->rq;
	uint32_t limit = __atomic_load_n(&srq->limit, __ATOMIC_RELAXED);

	if (limit == 0 || __atomic_load_n(&rq->prod, __ATOMIC_ACQUIRE) - rq->cons >= limit)
		return;
	/* Raise one event for each arming; if another thread arms at this moment, its limit stays
	 * armed. */
	if (__atomic_compare_exchange_n(&srq->limit, &limit, 0, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED) &&
	    srq->low != NULL)
		srq->low(srq->user);
}
