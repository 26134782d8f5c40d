/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: a ring from the engine to whoever polls, and arming for events. */
#ifndef QUEUE_CQ_H
#define QUEUE_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rte_common.h>

#include "queue/channel.h"
#include "queue/lock.h"
#include "queue/moderator.h"
#include "queue/ring.h"

/* Ordered: what arms for any completion also fires for a solicited one. */
enum cq_armed {
	CQ_NOT_ARMED,
	CQ_ARMED_SOLICITED,
	CQ_ARMED_ANY,
};

/* A ring, or one that may take its place. */
struct cq_ring {
	struct ibv_wc *entries;
	uint64_t *stamps;	   /* when each entry was added; NULL where nobody asked for it */
	uint32_t mask;		   /* entries - 1 */
	struct ring_memory memory; /* of both */
};

struct cq {
	/* set at creation */
	struct cq_ring ring;
	struct channel *channel; /* NULL without one */
	const uint64_t *now_ns;	 /* the engine's clock; with stamps or moderation */
	bool has_stamps;
	bool ignores_overrun;	    /* completions that find no room are lost silently */
	uint32_t capacity;	    /* entries the user may rely on, at least what was asked for */
	struct queue_domain domain; /* where its next ring comes from */
	struct channel_source source; /* of completion events */
	void (*overrun)(void *user);  /* told when a completion found no room, once until the queue
					 was  emptied or resized; engine's thread */
	void *user;
	uint32_t users;	 /* queue pairs that complete here; atomic */
	uint32_t number; /* by which it is shown; 0: not yet */

	/* written by the engine */
	uint32_t prod __rte_cache_aligned; /* release-stored behind the entry */
	bool overrun_told;
	struct cq_moderation moderation;

	/* written by who polls, under lock */
	uint32_t cons __rte_cache_aligned; /* release-stored when entries are free again */
	struct queue_lock lock;

	/* Written by both; atomic. The upper half is `cons` when the queue was armed, the lower an
	 * enum cq_armed. */
	uint64_t armed __rte_cache_aligned;
};

/* What a queue is created with. */
struct cq_attr {
	uint32_t cqe;		 /* entries at least */
	struct channel *channel; /* where events are raised, or NULL */
	void *user;
	void (*overrun)(void *user);
	const uint64_t *stamp_ns; /* the clock that tells when each completion was added, or NULL */
	const struct queue_domain *domain; /* read by cq_create_in only; NULL for none */
};

/** Create a queue. MT-safe. 0, -EINVAL for cqe of 0, -ENOMEM. */
int cq_create_in(const struct cq_attr *attr, struct cq **cq);

/** Destroy. 0, or -EBUSY while queue pairs use it. Its events are not moderated any more, or the
 * engine is stopped; unread events are forgotten. */
int cq_destroy(struct cq *cq);

/**
 * Add a completion and raise an event if the queue is armed for it. Engine's thread only.
 *
 * @param solicited
 *   The completion also fires a queue armed for solicited ones (an error completion always does,
 *   ibv_req_notify_cq(3)).
 * @return
 *   0, or -ENOSPC when there is no room; the completion is lost and overrun() told. 0 too where the
 * queue ignores that.
 */
int cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited);

/** Take up to `n` completions, oldest first. MT-safe. Returns how many. */
int cq_poll(struct cq *cq, int n, struct ibv_wc *wc);

/** Take the oldest completion and, with stamps, the engine's time when it was added. MT-safe.
 * Whether there was one. */
bool cq_poll_stamped(struct cq *cq, struct ibv_wc *wc, uint64_t *stamp_ns);

/** Whether a poll would find nothing. MT-safe. Who has armed the queue may sleep if so: see cq_push
 * for the order. */
static inline bool cq_empty(const struct cq *cq)
{
	return __atomic_load_n(&cq->prod, __ATOMIC_SEQ_CST) ==
	       __atomic_load_n(&cq->cons, __ATOMIC_RELAXED);
}

/** Raise the event that the queue is armed for; nothing if it is not. Engine's thread or lock. */
void cq_fire(struct cq *cq);

/**
 * Ask for an event for the next completion added. MT-safe. Arming for any overrides arming for
 * solicited until the event; the reverse does not weaken (ibv_req_notify_cq(3)).
 */
void cq_arm(struct cq *cq, bool solicited_only);

/** Drop what a queue pair completed here and nobody has polled. An event that was raised for it
 * stays raised. MT-safe against polling; the engine is stopped. */
void cq_forget_qp(struct cq *cq, uint32_t qpn);

/** Make a ring of at least `cqe` entries for a queue. MT-safe. 0, -EINVAL for cqe of 0, -ENOMEM. */
int cq_make_ring(const struct cq *cq, uint32_t cqe, struct cq_ring *ring);

/**
 * Change to another ring, keeping what is in it; `ring` is then the old one, for the caller to
 * free. MT-safe against polling; the engine is stopped. 0, or -EINVAL where more entries wait than
 * fit; then nothing has changed.
 */
int cq_change_ring(struct cq *cq, struct cq_ring *ring);

#endif
