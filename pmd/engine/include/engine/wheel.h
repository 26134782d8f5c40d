/* SPDX-License-Identifier: BSD-3-Clause */
/* A timing wheel of queue pairs. Deadlines move with every packet, so entries are corrected only
 * when they fire. */
#ifndef ENGINE_WHEEL_H
#define ENGINE_WHEEL_H

#include <stdint.h>

#include "engine/qp_list.h"

#define WHEEL_SLOT_SHIFT 14   /* 16.4 us, of the order of the shortest RNR timer */
#define WHEEL_SLOTS	 2048 /* 33 ms; what is further away goes round more than once */
#define WHEEL_NEVER	 UINT64_MAX

/* Engine's thread. */
struct wheel {
	struct qp_list slots[WHEEL_SLOTS];
	uint64_t now_slot;     /* the next to be looked at; those before it have fired */
	uint64_t watched_slot; /* the first that an entry was put into since wheel_watch */
	uint32_t entries;
};

void wheel_init(struct wheel *wheel, uint64_t now_ns);

/** See that the queue pair fires soon after its deadline (UINT64_MAX: it need not), and not much
 * too early. */
void wheel_set(struct wheel *wheel, struct qp *qp, uint64_t deadline_ns);

void wheel_remove(struct wheel *wheel, struct qp *qp);

/** A queue pair whose slot has passed, taken out; NULL when there are no more. Its deadline may
 * have moved. */
struct qp *wheel_fire(struct wheel *wheel, uint64_t now_ns);

/** Nanoseconds until a slot with entries passes, at most `limit_ns`. */
uint64_t wheel_next_ns(const struct wheel *wheel, uint64_t now_ns, uint64_t limit_ns);

/** From here on wheel_watched_ns tells of entries. */
static inline void wheel_watch(struct wheel *wheel)
{
	wheel->watched_slot = WHEEL_NEVER;
}

/** When the first slot passes that an entry was put into since wheel_watch; UINT64_MAX: none was.
 */
static inline uint64_t wheel_watched_ns(const struct wheel *wheel)
{
	return wheel->watched_slot == WHEEL_NEVER ? UINT64_MAX
						  : (wheel->watched_slot + 1) << WHEEL_SLOT_SHIFT;
}

#endif
