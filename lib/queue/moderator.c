/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion events that are delayed until more completions come, time passes, or the engine's poll
 * has sent its acknowledgements. */
#include "queue/moderator.h"

#include <stddef.h>

#include "queue/cq.h"

void moderator_init(struct moderator *moderator)
{
	TAILQ_INIT(&moderator->waiting);
	moderator->holds = false;
	moderator->deadline_ns = MODERATOR_NEVER;
}

/* Set the deadline, which threads other than the engine's read to know how long they may sleep. */
static void set_deadline(struct moderator *moderator, uint64_t deadline_ns)
{
	__atomic_store_n(&moderator->deadline_ns, deadline_ns, __ATOMIC_RELAXED);
}

/* Stop the delay of an event that was raised or cancelled, and restart the count. */
static void stop_waiting(struct cq *cq)
{
	struct cq_moderation *moderation = &cq->moderation;

	if (moderation->pending == 0)
		return;
	moderation->pending = 0;
	TAILQ_REMOVE(&moderation->moderator->waiting, cq, moderation.link);
}

void moderator_set(struct cq *cq, struct moderator *moderator, uint32_t count, uint64_t period_ns)
{
	struct cq_moderation *moderation = &cq->moderation;

	if (moderation->pending > 0) {
		stop_waiting(cq);
		cq_fire(cq);
	}
	moderation->moderator = moderator;
	moderation->count = period_ns == 0 ? 0 : count;
	moderation->period_ns = period_ns;
}

bool moderator_due(struct cq *cq)
{
	struct cq_moderation *moderation = &cq->moderation;
	struct moderator *moderator = moderation->moderator;
	const bool complete = moderation->pending + 1 >= moderation->count;

	if (complete && likely(!moderator->holds)) {
		stop_waiting(cq);
		return true;
	}
	if (moderation->pending++ == 0)
		TAILQ_INSERT_TAIL(&moderator->waiting, cq, moderation.link);
	else if (!complete)
		return false;
	/* A complete event is due as soon as events are raised again. */
	moderation->deadline_ns = complete ? 0 : *cq->now_ns + moderation->period_ns;
	if (moderation->deadline_ns < moderator->deadline_ns)
		set_deadline(moderator, moderation->deadline_ns);
	return false;
}

void moderator_forget(struct cq *cq, uint32_t waiting)
{
	struct cq_moderation *moderation = &cq->moderation;

	if (waiting == 0)
		stop_waiting(cq);
	else if (moderation->pending > waiting)
		moderation->pending = waiting;
}

void moderator_expire(struct moderator *moderator, uint64_t now_ns)
{
	uint64_t earliest_ns = MODERATOR_NEVER;
	struct cq *cq, *next;

	for (cq = TAILQ_FIRST(&moderator->waiting); cq; cq = next) {
		const uint64_t deadline_ns = cq->moderation.deadline_ns;

		next = TAILQ_NEXT(cq, moderation.link);
		if (deadline_ns <= now_ns) {
			stop_waiting(cq);
			cq_fire(cq);
		} else if (deadline_ns < earliest_ns) {
			earliest_ns = deadline_ns;
		}
	}
	set_deadline(moderator, earliest_ns);
}
