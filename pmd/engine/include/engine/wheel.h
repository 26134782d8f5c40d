/* SPDX-License-Identifier: BSD-3-Clause */
/* A timing wheel of queue pairs. Deadlines move with every packet, so entries are corrected only
 * when they fire. */
#ifndef ENGINE_WHEEL_H
#define ENGINE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/qp_list.h"

#define WHEEL_SLOT_SHIFT 14   /* 16.4 us, of the order of the shortest RNR timer */
#define WHEEL_SLOTS	 2048 /* 33 ms; a later deadline takes more than one round */
#define WHEEL_NEVER	 UINT64_MAX

/* Engine's thread. */
struct wheel {
	struct qp_list slots[WHEEL_SLOTS];
	uint64_t now_slot;     /* the next slot to check; all earlier slots have fired */
	uint64_t watched_slot; /* the first slot that got an entry since wheel_watch */
	uint32_t entries;
};

void wheel_init(struct wheel *wheel, uint64_t now_ns);

/** Make the queue pair fire soon after its deadline, and not much too early. UINT64_MAX: it need
 * not fire. */
void wheel_set(struct wheel *wheel, struct qp *qp, uint64_t deadline_ns);

void wheel_remove(struct wheel *wheel, struct qp *qp);

/** Return true if a slot has passed since the last one that was checked. */
static inline bool wheel_has_passed(const struct wheel *wheel, uint64_t now_ns)
{
	return wheel->now_slot < now_ns >> WHEEL_SLOT_SHIFT;
}

/** Remove and return a queue pair whose slot has passed; NULL if there are no more. Its deadline
 * may have moved. */
struct qp *wheel_fire(struct wheel *wheel, uint64_t now_ns);

/** Return the nanoseconds until a slot with entries passes, at most `limit_ns`. */
uint64_t wheel_next_ns(const struct wheel *wheel, uint64_t now_ns, uint64_t limit_ns);

/** Begin to watch: wheel_watched_ns reports entries added after this call. */
static inline void wheel_watch(struct wheel *wheel)
{
	wheel->watched_slot = WHEEL_NEVER;
}

/** Return when the first slot passes that got an entry since wheel_watch; UINT64_MAX: there is
 * none. */
static inline uint64_t wheel_watched_ns(const struct wheel *wheel)
{
	return wheel->watched_slot == WHEEL_NEVER ? UINT64_MAX
						  : (wheel->watched_slot + 1) << WHEEL_SLOT_SHIFT;
}

#endif
