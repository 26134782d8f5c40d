/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines in a binary heap, the earliest first. Private to the room. */
#ifndef CM_TIMERS_H
#define CM_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

struct cm_timer_entry {
	uint64_t at_ns;
	uint32_t slot; /* place in the heap, counted from 1; 0: not armed */
};

struct cm_timers {
	struct cm_timer_entry **heap;
	uint32_t count;
	uint32_t room;
};

/** Reserve memory for `count` timers, so that arming them cannot fail. 0, -ENOMEM. */
int timers_reserve(struct cm_timers *timers, uint32_t count);

void timers_fini(struct cm_timers *timers);

/** Arm a timer, or move an armed one. Memory for it is reserved. */
void timers_arm(struct cm_timers *timers, struct cm_timer_entry *entry, uint64_t at_ns);

/** Disarm a timer, which need not be armed. */
void timers_disarm(struct cm_timers *timers, struct cm_timer_entry *entry);

/** Return the timer that is due first, or NULL. */
static inline struct cm_timer_entry *timers_first(const struct cm_timers *timers)
{
	return timers->count > 0 ? timers->heap[0] : (struct cm_timer_entry *)0;
}

#endif
