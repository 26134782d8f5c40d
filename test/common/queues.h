/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues without a domain, as most tests need them, and the state of their events. */
#ifndef QUEUES_H
#define QUEUES_H

#include "queue/cq.h"
#include "queue/rq.h"
#include "queue/sq.h"
#include "queue/srq.h"

/** Call cq_create_in, without timestamps. */
static inline int cq_create(uint32_t cqe, struct channel *channel, void *user,
			    void (*overrun)(void *user), struct cq **cq)
{
	const struct cq_attr attr = {
		.cqe = cqe, .channel = channel, .user = user, .overrun = overrun};

	return cq_create_in(&attr, cq);
}

static inline enum cq_armed cq_armed_for(const struct cq *cq)
{
	return (enum cq_armed)(uint32_t)__atomic_load_n(&cq->armed, __ATOMIC_SEQ_CST);
}

static inline int rq_init(struct rq *rq, uint32_t max_wr, uint32_t max_sge)
{
	return rq_init_in(NULL, RING_RECV, rq, max_wr, max_sge);
}

static inline int sq_init(struct sq *sq, const struct sq_attr *attr)
{
	return sq_init_in(NULL, sq, attr);
}

static inline int srq_create(uint32_t max_wr, uint32_t max_sge, struct pd *pd, struct srq **srq)
{
	return srq_create_in(NULL, max_wr, max_sge, pd, srq);
}

#endif
