/* SPDX-License-Identifier: BSD-3-Clause */
/* The wheel's slots: lists threaded through the queue pairs themselves. */
#include "engine/wheel.h"

#define SLOT_NS	  (UINT64_C(1) << WHEEL_SLOT_SHIFT)
#define SLOT_MASK (WHEEL_SLOTS - 1)

void wheel_init(struct wheel *wheel, uint64_t now_ns)
{
	for (size_t i = 0; i < WHEEL_SLOTS; i++)
		TAILQ_INIT(&wheel->slots[i]);
	wheel->now_slot = now_ns >> WHEEL_SLOT_SHIFT;
	wheel->entries = 0;
	wheel_watch(wheel);
}

void wheel_remove(struct wheel *wheel, struct qp *qp)
{
	struct qp_sched *sched = qp_sched(qp);

	if (!sched->is_timed)
		return;
	QP_LIST_REMOVE(&wheel->slots[sched->timer_slot & SLOT_MASK], qp, timer_link);
	sched->is_timed = false;
	wheel->entries--;
}

void wheel_set(struct wheel *wheel, struct qp *qp, uint64_t deadline_ns)
{
	struct qp_sched *sched = qp_sched(qp);
	uint64_t slot;

	if (deadline_ns == UINT64_MAX)
		return;
	slot = deadline_ns >> WHEEL_SLOT_SHIFT;
	if (slot < wheel->now_slot)
		slot = wheel->now_slot;
	/* Too early costs one check; too late would be wrong. */
	if (sched->is_timed && sched->timer_slot <= slot)
		return;
	wheel_remove(wheel, qp);
	/* More than one round away: fire at the end of this round, and be set again. */
	if (slot - wheel->now_slot >= WHEEL_SLOTS)
		slot = wheel->now_slot + WHEEL_SLOTS - 1;
	sched->timer_slot = slot;
	sched->is_timed = true;
	QP_LIST_INSERT_TAIL(&wheel->slots[slot & SLOT_MASK], qp, timer_link);
	wheel->entries++;
	if (slot < wheel->watched_slot)
		wheel->watched_slot = slot;
}

struct qp *wheel_fire(struct wheel *wheel, uint64_t now_ns)
{
	const uint64_t slot = now_ns >> WHEEL_SLOT_SHIFT;

	/* Slot `now_slot` passes when the time is in a later slot: no queue pair fires before its
	 * deadline. */
	while (wheel->now_slot < slot) {
		struct qp *qp = TAILQ_FIRST(&wheel->slots[wheel->now_slot & SLOT_MASK]);

		if (qp) {
			wheel_remove(wheel, qp);
			return qp;
		}
		if (wheel->entries == 0)
			wheel->now_slot = slot;
		else
			wheel->now_slot++;
	}
	return NULL;
}

uint64_t wheel_next_ns(const struct wheel *wheel, uint64_t now_ns, uint64_t limit_ns)
{
	if (wheel->entries == 0)
		return limit_ns;
	for (uint64_t slot = wheel->now_slot; slot < wheel->now_slot + WHEEL_SLOTS; slot++) {
		const uint64_t passes_ns = (slot + 1) * SLOT_NS;

		if (passes_ns > now_ns && passes_ns - now_ns >= limit_ns)
			break;
		if (!TAILQ_EMPTY(&wheel->slots[slot & SLOT_MASK]))
			return passes_ns > now_ns ? passes_ns - now_ns : 0;
	}
	return limit_ns;
}
