/* SPDX-License-Identifier: BSD-3-Clause */
/* A heap of timers: finds the entry that is due next. */
#include "net/due.h"

#include <errno.h>
#include <stdlib.h>

int due_reserve(struct due_heap *heap, size_t count)
{
	const size_t room = heap->room == 0 ? 16 : 2 * heap->room;
	struct due **entries;

	if (count <= heap->room)
		return 0;
	entries = reallocarray(heap->entries, room, sizeof(entries[0]));
	if (!entries)
		return -ENOMEM;
	heap->entries = entries;
	heap->room = room;
	return due_reserve(heap, count);
}

void due_fini(struct due_heap *heap)
{
	free(heap->entries);
	*heap = (struct due_heap){.count = 0};
}

static void put(struct due_heap *heap, size_t place, struct due *due)
{
	heap->entries[place] = due;
	due->place = place;
}

static void move_up(struct due_heap *heap, struct due *due)
{
	size_t place = due->place;

	while (place > 0 && heap->entries[(place - 1) / 2]->at_ns > due->at_ns) {
		put(heap, place, heap->entries[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put(heap, place, due);
}

static void move_down(struct due_heap *heap, struct due *due)
{
	size_t place = due->place;

	for (;;) {
		size_t child = 2 * place + 1;

		if (child + 1 < heap->count &&
		    heap->entries[child + 1]->at_ns < heap->entries[child]->at_ns)
			child++;
		if (child >= heap->count || heap->entries[child]->at_ns >= due->at_ns)
			break;
		put(heap, place, heap->entries[child]);
		place = child;
	}
	put(heap, place, due);
}

static void take_out(struct due_heap *heap, const struct due *due)
{
	struct due *last = heap->entries[--heap->count];

	if (last == due)
		return;
	put(heap, due->place, last);
	move_up(heap, last);
	move_down(heap, last);
}

void due_set(struct due_heap *heap, struct due *due, uint64_t at_ns)
{
	if (due->at_ns != DUE_NEVER && at_ns == DUE_NEVER)
		take_out(heap, due);
	else if (due->at_ns == DUE_NEVER && at_ns != DUE_NEVER)
		put(heap, heap->count++, due);
	due->at_ns = at_ns;
	if (at_ns == DUE_NEVER)
		return;
	move_up(heap, due);
	move_down(heap, due);
}
