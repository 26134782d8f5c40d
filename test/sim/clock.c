/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time: a heap of events, in which each has up to FANOUT children. */
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>

#define FANOUT 4 /* half the depth of a binary heap, and the children share cache lines */

static bool earlier(const struct clock_event *a, const struct clock_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void clock_at(struct clock *clock, uint64_t at_ns, clock_fn fire, void *context, void *argument)
{
	struct clock_event event = {.at_ns = at_ns < clock->now_ns ? clock->now_ns : at_ns,
				    .order = clock->order++,
				    .fire = fire,
				    .context = context,
				    .argument = argument};
	size_t i = clock->count;

	if (clock->count == clock->capacity) {
		clock->capacity = clock->capacity == 0 ? 256 : 2 * clock->capacity;
		clock->heap = realloc(clock->heap, clock->capacity * sizeof(*clock->heap));
		if (clock->heap == NULL) {
			perror("sim: event heap");
			exit(1);
		}
	}
	clock->count++;
	while (i > 0 && earlier(&event, &clock->heap[(i - 1) / FANOUT])) {
		clock->heap[i] = clock->heap[(i - 1) / FANOUT];
		i = (i - 1) / FANOUT;
	}
	clock->heap[i] = event;
}

/* Return the earliest child of an event, or clock->count if it has none. */
static size_t first_child(const struct clock *clock, size_t parent)
{
	const size_t begin = FANOUT * parent + 1;
	size_t end = begin + FANOUT, first = begin;

	if (begin >= clock->count)
		return clock->count;
	if (end > clock->count)
		end = clock->count;
	for (size_t i = begin + 1; i < end; i++) {
		if (earlier(&clock->heap[i], &clock->heap[first]))
			first = i;
	}
	return first;
}

/* Move the heap's last event to the free place at the top, and from there down to where it
 * belongs. */
static void fill_top(struct clock *clock)
{
	const struct clock_event last = clock->heap[--clock->count];
	size_t i = 0, child;

	while ((child = first_child(clock, i)) < clock->count &&
	       earlier(&clock->heap[child], &last)) {
		clock->heap[i] = clock->heap[child];
		i = child;
	}
	clock->heap[i] = last;
}

bool clock_step(struct clock *clock)
{
	struct clock_event event;

	if (clock->count == 0)
		return false;
	event = clock->heap[0];
	fill_top(clock);
	/* The argument is usually a frame. If it is not an address, the prefetch does nothing. */
	__builtin_prefetch(clock->heap[0].argument);
	clock->now_ns = event.at_ns;
	event.fire(event.context, event.argument);
	return true;
}

void clock_fini(struct clock *clock)
{
	free(clock->heap);
	*clock = (struct clock){0};
}
