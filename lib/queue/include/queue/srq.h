/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: a receive queue for several queue pairs. */
#ifndef QUEUE_SRQ_H
#define QUEUE_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_spinlock.h>

#include "queue/rq.h"

struct cq;
struct pd;

struct srq {
	struct rq rq __rte_cache_aligned;
	struct pd *pd;	    /* domain of its buffers; with XRC also of the memory that peers name */
	struct cq *cq;	    /* XRC: queue of its completions; else NULL: each queue pair's own */
	const void *domain; /* XRC: domain of the queue pairs that may use it; else NULL */
	uint32_t number;    /* XRC: number by which peers name it */
	bool shared;	    /* queue pairs of several engines receive from it; constant while any
			       runs */
	rte_spinlock_t take_lock; /* taken by these engines */
	uint32_t limit;		  /* the armed limit, or 0; atomic */
	uint32_t users;		  /* queue pairs that receive from it; atomic */
	void (*low)(void *user);  /* called when the limit is reached; engine's thread */
	void *user;
};

/** Return the protection domain of receive buffers: the shared queue's (ibv_create_srq(3)), or
 * `own` if `srq` is NULL. */
static inline const struct pd *srq_buffers_pd(const struct srq *srq, const struct pd *own)
{
	return srq != NULL ? srq->pd : own;
}

/** Create; `domain` may be NULL. MT-safe. 0, -EINVAL for max_wr of 0 or max_sge over
 * PACKET_FRAGS_MAX, -ENOMEM. */
int srq_create_in(const struct queue_domain *domain, uint32_t max_wr, uint32_t max_sge,
		  struct pd *pd, struct srq **srq);

/** Destroy the queue, which nobody can find any more. 0, or -EBUSY while queue pairs use it. */
int srq_destroy(struct srq *srq);

/** Arm an event that is raised once, when fewer than `limit` requests are left (ibv_modify_srq(3));
 * 0 disarms. MT-safe. 0, -EINVAL. */
int srq_set_limit(struct srq *srq, uint32_t limit);

/** Change to a ring that rq_make_ring made for its receive queue, and keep the posted requests. The
 * engine is stopped. 0, and `ring` is the old ring; or -EINVAL if the requests do not fit, or a
 * limit above the new size is armed: nothing has changed. */
int srq_change_ring(struct srq *srq, struct rq_ring *ring);

/** Return the armed limit, or 0. MT-safe. */
uint32_t srq_limit(const struct srq *srq);

/** Note that a request was taken, and raise the limit event if it is due. Responder only. */
void srq_taken(struct srq *srq);

#endif
