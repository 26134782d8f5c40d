/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines in a binary heap. */
#include "timers.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_MIN 64u

int timers_reserve(struct cm_timers *timers, uint32_t count)
{
	struct cm_timer_entry **heap;
	uint32_t room = timers->room ? timers->room : ROOM_MIN;

	while (room < count)
		room *= 2;
	if (room == timers->room)
		return 0;
	heap = reallocarray(timers->heap, room, sizeof(heap[0]));
	if (!heap)
		return -ENOMEM;
	timers->heap = heap;
	timers->room = room;
	return 0;
}

void timers_fini(struct cm_timers *timers)
{
	free(timers->heap);
}

static void put(struct cm_timers *timers, uint32_t at, struct cm_timer_entry *entry)
{
	timers->heap[at] = entry;
	entry->slot = at + 1;
}

/* Move an entry up from a free place while it is earlier than its parent. */
static void sift_up(struct cm_timers *timers, uint32_t at, struct cm_timer_entry *entry)
{
	while (at > 0 && timers->heap[(at - 1) / 2]->at_ns > entry->at_ns) {
		put(timers, at, timers->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(timers, at, entry);
}

/* Move an entry down while it is later than a child. */
static void sift_down(struct cm_timers *timers, uint32_t at, struct cm_timer_entry *entry)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= timers->count)
			break;
		if (child + 1 < timers->count &&
		    timers->heap[child + 1]->at_ns < timers->heap[child]->at_ns)
			child++;
		if (timers->heap[child]->at_ns >= entry->at_ns)
			break;
		put(timers, at, timers->heap[child]);
		at = child;
	}
	put(timers, at, entry);
}

void timers_arm(struct cm_timers *timers, struct cm_timer_entry *entry, uint64_t at_ns)
{
	timers_disarm(timers, entry);
	entry->at_ns = at_ns;
	sift_up(timers, timers->count++, entry);
}

void timers_disarm(struct cm_timers *timers, struct cm_timer_entry *entry)
{
	const uint32_t at = entry->slot - 1;
	struct cm_timer_entry *last;

	if (entry->slot == 0)
		return;
	entry->slot = 0;
	last = timers->heap[--timers->count];
	if (last == entry)
		return;
	if (at > 0 && timers->heap[(at - 1) / 2]->at_ns > last->at_ns)
		sift_up(timers, at, last);
	else
		sift_down(timers, at, last);
}
