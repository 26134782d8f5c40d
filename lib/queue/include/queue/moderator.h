/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delayed completion events. Moderation (ibv_modify_cq(3)) delays an event until a number of
 * completions have come, or a time has passed, since the first completion that it reports. An
 * engine delays all events of an engine poll until it has acknowledged what they report.
 */
#ifndef QUEUE_MODERATOR_H
#define QUEUE_MODERATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>

#define MODERATOR_NEVER UINT64_MAX

struct cq;

/* Moderation of one completion queue. Engine's thread or lock. */
struct cq_moderation {
	struct moderator *moderator; /* NULL: every event is raised at once */
	uint32_t count;		     /* completions for each event; 0: no moderation */
	uint64_t period_ns;
	uint32_t pending; /* completions since the first one that the next event reports */
	uint64_t deadline_ns;
	TAILQ_ENTRY(cq) link; /* while pending > 0 */
};

/* The delayed events of one engine. Engine's thread or lock. */
struct moderator {
	TAILQ_HEAD(, cq) waiting;
	bool holds;	      /* no event is raised now, except by moderator_expire */
	uint64_t deadline_ns; /* no event is due before it; MODERATOR_NEVER if none is delayed;
				 atomic */
};

/** Return the nanoseconds until an event must be raised, at most `limit_ns`. MT-safe. */
static inline uint64_t moderator_next_ns(const struct moderator *moderator, uint64_t now_ns,
					 uint64_t limit_ns)
{
	const uint64_t deadline_ns = __atomic_load_n(&moderator->deadline_ns, __ATOMIC_RELAXED);

	if (deadline_ns <= now_ns)
		return 0;
	return deadline_ns - now_ns < limit_ns ? deadline_ns - now_ns : limit_ns;
}

void moderator_init(struct moderator *moderator);

/** Moderate a queue's events. 0 for a count or period ends the moderation and raises a delayed
 * event. NULL for `moderator` does the same, and the engine delays no event any more. */
void moderator_set(struct cq *cq, struct moderator *moderator, uint32_t count, uint64_t period_ns);

/** Note a completion that an event is due for. Return true if the event is to be raised now. */
bool moderator_due(struct cq *cq);

/** Note that completions were dropped, and `waiting` are left in the queue. A delayed event counts
 * only these, and is cancelled if there are none. The queue stays armed. */
void moderator_forget(struct cq *cq, uint32_t waiting);

/** Return true if moderator_expire has something to do. It costs nothing if no event is delayed. */
static inline bool moderator_has_due(const struct moderator *moderator, uint64_t now_ns)
{
	return now_ns >= moderator->deadline_ns;
}

/** Raise the events whose time has come. */
void moderator_expire(struct moderator *moderator, uint64_t now_ns);

#endif
