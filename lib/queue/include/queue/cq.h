/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: a ring from the engine to the polling threads, and arming for events. */
#ifndef QUEUE_CQ_H
#define QUEUE_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rte_common.h>
#include <rte_spinlock.h>

#include "queue/channel.h"
#include "queue/lock.h"
#include "queue/moderator.h"
#include "queue/ring.h"

/* Order matters: a queue armed for any completion also fires for a solicited one. */
enum cq_armed {
	CQ_NOT_ARMED,
	CQ_ARMED_SOLICITED,
	CQ_ARMED_ANY,
};

/* The ring of a queue, or a new one that replaces it. */
struct cq_ring {
	struct ibv_wc *entries;
	uint64_t *stamps; /* time at which each entry was added; NULL if the queue has no stamps */
	uint32_t mask;	  /* entries - 1 */
	struct ring_memory memory; /* memory of both */
};

struct cq {
	/* set at creation */
	struct cq_ring ring;
	struct channel *channel; /* NULL without one */
	const uint64_t *now_ns;	 /* the engine's clock; needed for stamps and moderation */
	/* the same of a shared queue: none of its engines may be in an engine poll */
	uint64_t (*clock)(void *arg);
	void *clock_arg;
	bool has_stamps;
	bool ignores_overrun; /* drop completions without room silently */
	uint32_t capacity;    /* entries the user may rely on, at least as many as asked for */
	struct queue_domain domain;   /* source of memory for its next ring */
	struct channel_source source; /* of completion events */
	void (*overrun)(void *user);  /* called for a completion without room, once until the queue
					 was emptied or resized; engine's thread */
	void *user;
	uint32_t users;		  /* queue pairs that complete here; atomic */
	uint32_t number;	  /* number that is shown to users; 0: not assigned yet */
	struct queue_watch watch; /* cq_watch */
	uint32_t watch_cons;	  /* `cons` at the last look */

	/* written by the engine */
	uint32_t prod __rte_cache_aligned; /* release-stored behind the entry */
	/* One past the newest completion that is solicited or an error; an index that was polled
	 * before counts as none. Only with a channel; atomic, stored before `prod`. */
	uint32_t solicited;
	bool overrun_told;
	bool shared;		  /* several engines add completions; constant while any runs */
	rte_spinlock_t push_lock; /* taken by these engines */
	struct cq_moderation moderation;

	/* written by polling threads, under lock */
	uint32_t cons __rte_cache_aligned; /* release-stored when entries are free again */
	struct queue_lock lock;

	/* Written by both sides; atomic. The upper half is `cons` at the time of arming, the lower
	 * half an enum cq_armed. */
	uint64_t armed __rte_cache_aligned;
	/* One past the newest completion that the queue held when its last event was raised; an
	 * index that was polled before counts as none. Written by who raises the event; push moves
	 * it along. Atomic. */
	uint32_t reported;
};

/* Attributes of a new queue. */
struct cq_attr {
	uint32_t cqe;		     /* minimal number of entries */
	struct channel *channel;     /* channel of its events, or NULL */
	struct moderator *moderator; /* delays its events; NULL: they are raised at once */
	void *user;
	void (*overrun)(void *user);
	const uint64_t *stamp_ns; /* clock for the stamps of completions, or NULL: no stamps */
	const struct queue_domain *domain; /* used by cq_create_in only; NULL for none */
};

/** Create a queue. MT-safe. 0, -EINVAL for cqe of 0, -ENOMEM. */
int cq_create_in(const struct cq_attr *attr, struct cq **cq);

/** Let several engines add completions from now on. Its events are not moderated any more. `clock`
 * tells the time of its stamps. The engines are stopped. */
void cq_share(struct cq *cq, uint64_t (*clock)(void *arg), void *clock_arg);

/** Destroy the queue. 0, or -EBUSY while queue pairs use it. Moderation of its events has ended, or
 * the engine is stopped. Unread events are forgotten. */
int cq_destroy(struct cq *cq);

/**
 * Add a completion, and raise an event if the queue is armed for it. Thread of its engine, or of
 * one of those that share it.
 *
 * @param solicited
 *   The completion also fires a queue that is armed for solicited ones. An error completion always
 *   does (ibv_req_notify_cq(3)).
 * @return
 *   0, or -ENOSPC if there is no room: the completion is lost, and overrun() is called. A queue
 *   that ignores overruns returns 0.
 */
int cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited);

/** Take up to `n` completions, oldest first. MT-safe. Returns how many. */
int cq_poll(struct cq *cq, int n, struct ibv_wc *wc);

/** Take the oldest completion and, with stamps, the engine's time at which it was added. MT-safe.
 * Returns true if there was one. */
bool cq_poll_stamped(struct cq *cq, struct ibv_wc *wc, uint64_t *stamp_ns);

/** Return true if a poll would find nothing. MT-safe. */
static inline bool cq_empty(const struct cq *cq)
{
	return __atomic_load_n(&cq->prod, __ATOMIC_SEQ_CST) ==
	       __atomic_load_n(&cq->cons, __ATOMIC_RELAXED);
}

/** Return true if a completion would raise an event. MT-safe. */
static inline bool cq_is_armed(const struct cq *cq)
{
	return (uint32_t)__atomic_load_n(&cq->armed, __ATOMIC_SEQ_CST) != CQ_NOT_ARMED;
}

/** Raise the event that the queue is armed for, if it is armed and completions came since then.
 * Engine's thread or lock. */
void cq_fire(struct cq *cq);

/**
 * Ask for one event for a completion that no event has reported: the next one that is added, or
 * one that the queue holds already. MT-safe.
 *
 * As adapters do, raise the event at once if the queue holds a completion that is asked for and
 * that came after the last event: programs poll, arm and sleep, and a completion may come after
 * their last poll. What the last event has reported raises no second one: other programs take an
 * event, arm, and then poll, and take an event after which they find nothing for an error.
 * Moderation does not delay this event. A queue that is armed already, for the same or for more,
 * stays as it is. Arming for any completion overrides arming for solicited ones
 * until the event; the reverse has no effect (ibv_req_notify_cq(3)).
 *
 * @param solicited_only
 *   Ask only for a completion that is solicited or an error.
 */
void cq_arm(struct cq *cq, bool solicited_only);

/**
 * While reasons are wanted (base/reason.h), look from time to time if a program waits for an event
 * that does not come. Tell the user if it has lasted for `ns`: the queue is armed, and holds
 * completions that no event announces; or a thread sleeps on a channel of which no queue is armed.
 * First call cq_watch_first for all queues with the time, then cq_watch. First engine's thread.
 */
void cq_watch_first(const struct cq *cq, uint64_t now_ns);
void cq_watch(struct cq *cq, uint64_t ns, uint64_t now_ns);

/** Drop a queue pair's completions that nobody has polled. An event that was raised for one of them
 * stays raised. MT-safe against polling; the engine is stopped. */
void cq_forget_qp(struct cq *cq, uint32_t qpn);

/** Allocate a ring of at least `cqe` entries for a queue. MT-safe. 0, -EINVAL for cqe of 0,
 * -ENOMEM. */
int cq_make_ring(const struct cq *cq, uint32_t cqe, struct cq_ring *ring);

/**
 * Change to another ring and keep the completions. `ring` is then the old ring, which the caller
 * frees. MT-safe against polling; the engine is stopped. 0; or -EINVAL if the completions do not
 * fit: nothing has changed.
 */
int cq_change_ring(struct cq *cq, struct cq_ring *ring);

#endif
