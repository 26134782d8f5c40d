/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: a ring from the engine to whoever polls, and arming for events. */
#ifndef QUEUE_CQ_H
#define QUEUE_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rte_common.h>
#include <rte_spinlock.h>

#include "queue/channel.h"
#include "queue/moderator.h"

/* Ordered: what arms for any completion also fires for a solicited one. */
enum cq_armed {
	CQ_NOT_ARMED,
	CQ_ARMED_SOLICITED,
	CQ_ARMED_ANY,
};

struct cq {
	/* set at creation */
	struct ibv_wc *ring;
	uint64_t *stamps;	 /* when each entry was added; NULL where nobody asked for it */
	const uint64_t *now_ns;	 /* the engine's clock; with stamps or moderation */
	bool ignores_overrun;	 /* completions that find no room are lost silently */
	uint32_t mask;		 /* ring entries - 1 */
	uint32_t capacity;	 /* entries the user may rely on, at least what was asked for */
	struct channel *channel; /* NULL without one */
	struct channel_source source; /* of completion events */
	void (*overrun)(
		void *user); /* told once when a completion found no room; engine's thread */
	void *user;
	uint32_t users; /* queue pairs that complete here; atomic */

	/* written by the engine */
	uint32_t prod __rte_cache_aligned; /* release-stored behind the entry */
	bool overrun_told;
	struct cq_moderation moderation;

	/* written by who polls, under lock */
	uint32_t cons __rte_cache_aligned; /* release-stored when entries are free again */
	rte_spinlock_t lock;

	/* written by both */
	int armed __rte_cache_aligned; /* enum cq_armed; atomic */
};

/**
 * Create a queue of at least `cqe` entries. MT-safe.
 *
 * @param channel
 *   Where events are raised, or NULL.
 * @return
 *   0, -EINVAL for cqe of 0, -ENOMEM.
 */
int cq_create(uint32_t cqe, struct channel *channel, void *user, void (*overrun)(void *user),
	      struct cq **cq);

/** Remember when each completion was added. Before it is used. 0 or -ENOMEM. */
int cq_enable_stamps(struct cq *cq, const uint64_t *now_ns);

/** Destroy. 0, or -EBUSY while queue pairs use it. The engine is stopped; unread events are
 * forgotten. */
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

/** Take the oldest completion and, with stamps, the engine's time when it was added. MT-safe. Whether
 * there was one. */
bool cq_poll_stamped(struct cq *cq, struct ibv_wc *wc, uint64_t *stamp_ns);

/** Whether a poll would find something. MT-safe; a hint. */
static inline bool cq_empty(const struct cq *cq)
{
	return __atomic_load_n(&cq->prod, __ATOMIC_ACQUIRE) ==
	       __atomic_load_n(&cq->cons, __ATOMIC_RELAXED);
}

/** Raise the event that the queue is armed for; nothing if it is not. Engine's thread or lock. */
void cq_fire(struct cq *cq);

/**
 * Ask for an event for the next completion added. MT-safe. Arming for any overrides arming for
 * solicited until the event; the reverse does not weaken (ibv_req_notify_cq(3)).
 */
void cq_arm(struct cq *cq, bool solicited_only);

/** Drop what a queue pair completed here and nobody has polled. MT-safe against polling; the engine
 * is stopped. */
void cq_forget_qp(struct cq *cq, uint32_t qpn);

/**
 * Change the size, keeping what is in it. MT-safe against polling; the engine is stopped.
 * 0, -EINVAL where more entries wait than fit or cqe is 0, -ENOMEM.
 */
int cq_resize(struct cq *cq, uint32_t cqe);

#endif
