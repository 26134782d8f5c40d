/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: a receive queue of several queue pairs, and who owns what it receives. */
#ifndef QUEUE_SRQ_H
#define QUEUE_SRQ_H

#include <stdint.h>

#include "queue/rq.h"

struct cq;
struct pd;

struct srq {
	struct rq rq __rte_cache_aligned;
	struct pd *pd; /* its receive buffers', and with XRC that of the memory that peers name */
	struct cq
		*cq; /* XRC: where its completions go; else NULL, and they go to the queue pair's */
	const void *domain;	 /* XRC: whose queue pairs may use it; else NULL */
	uint32_t number;	 /* XRC: by which peers name it */
	uint32_t limit;		 /* armed, or 0; atomic */
	uint32_t users;		 /* queue pairs that receive from it; atomic */
	void (*low)(void *user); /* the limit was reached; engine's thread */
	void *user;
};

/** The protection domain that receive buffers are of: the shared queue's (ibv_create_srq(3)), or
 * `own` where `srq` is NULL. */
static inline const struct pd *srq_buffers_pd(const struct srq *srq, const struct pd *own)
{
	return srq != NULL ? srq->pd : own;
}

/** Create; `domain` may be NULL. MT-safe. 0, -EINVAL for max_wr of 0 or max_sge over
 * PACKET_FRAGS_MAX, -ENOMEM. */
int srq_create_in(const struct queue_domain *domain, uint32_t max_wr, uint32_t max_sge,
		  struct pd *pd, struct srq **srq);

/** Destroy. Nobody finds it any more. 0, or -EBUSY while queue pairs use it. */
int srq_destroy(struct srq *srq);

/** Raise the event once when fewer than `limit` requests are left (ibv_modify_srq(3)); 0 disarms.
 * MT-safe. 0, -EINVAL. */
int srq_set_limit(struct srq *srq, uint32_t limit);

/** Change to a ring that rq_make_ring made for its receive queue, keeping what is posted. The
 * engine is stopped. 0, and `ring` is the old one; or -EINVAL where more requests wait than fit, or
 * a limit above it is armed; then nothing has changed. */
int srq_change_ring(struct srq *srq, struct rq_ring *ring);

/** The limit that is armed, or 0. MT-safe. */
uint32_t srq_limit(const struct srq *srq);

/** A request was taken: raises the event where that is due. Responder only. */
void srq_taken(struct srq *srq);

#endif
