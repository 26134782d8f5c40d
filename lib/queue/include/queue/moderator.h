/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moderation of completion events (ibv_modify_cq(3)): an event waits until so many completions have
 * come since the first that it would be for, or so much time has passed.
 */
#ifndef QUEUE_MODERATOR_H
#define QUEUE_MODERATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>

#define MODERATOR_NEVER UINT64_MAX

struct cq;

/* Of a completion queue. Engine's thread or lock. */
struct cq_moderation {
	struct moderator *moderator; /* NULL: every event is raised at once */
	uint32_t count;		     /* completions an event */
	uint64_t period_ns;
	uint32_t pending; /* completions since the first that the next event is for */
	uint64_t deadline_ns;
	TAILQ_ENTRY(cq) link; /* while pending > 0 */
};

/* The events of one engine that wait. Engine's thread or lock. */
struct moderator {
	TAILQ_HEAD(, cq) waiting;
	uint64_t deadline_ns; /* of none earlier; MODERATOR_NEVER where none waits; atomic */
};

/** Nanoseconds until an event is to be raised, at most `limit_ns`. MT-safe. */
static inline uint64_t moderator_next_ns(const struct moderator *moderator, uint64_t now_ns,
					 uint64_t limit_ns)
{
	const uint64_t deadline_ns = __atomic_load_n(&moderator->deadline_ns, __ATOMIC_RELAXED);

	if (deadline_ns <= now_ns)
		return 0;
	return deadline_ns - now_ns < limit_ns ? deadline_ns - now_ns : limit_ns;
}

void moderator_init(struct moderator *moderator);

/** Moderate a queue's events; `moderator` NULL, or a count or period of 0, ends it, and raises an
 * event that waits. */
void moderator_set(struct cq *cq, struct moderator *moderator, uint32_t count, uint64_t period_ns);

/** A completion came that an event is due for: whether to raise it now. */
bool moderator_due(struct cq *cq);

/** Completions were dropped, and only `waiting` are left in the queue: an event does not count, nor
 * wait for, others. It stays armed. */
void moderator_forget(struct cq *cq, uint32_t waiting);

/** Raise the events whose time has come. */
void moderator_expire(struct moderator *moderator, uint64_t now_ns);

/** The same, at no cost where there are none. */
static inline void moderator_run(struct moderator *moderator, uint64_t now_ns)
{
	if (unlikely(now_ns >= moderator->deadline_ns))
		moderator_expire(moderator, now_ns);
}

#endif
