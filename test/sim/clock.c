/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time: a binary heap of events. */
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>

static bool earlier(const struct clock_event *a, const struct clock_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(struct clock_event *a, struct clock_event *b)
{
	const struct clock_event saved = *a;

	*a = *b;
	*b = saved;
}

void clock_at(struct clock *clock, uint64_t at_ns, clock_fn fire, void *context, void *argument)
{
	size_t i = clock->count;

	if (clock->count == clock->capacity) {
		clock->capacity = clock->capacity == 0 ? 256 : 2 * clock->capacity;
		clock->heap = realloc(clock->heap, clock->capacity * sizeof(*clock->heap));
		if (clock->heap == NULL) {
			perror("sim: event heap");
			exit(1);
		}
	}
	clock->heap[i] =
		(struct clock_event){.at_ns = at_ns < clock->now_ns ? clock->now_ns : at_ns,
				     .order = clock->order++,
				     .fire = fire,
				     .context = context,
				     .argument = argument};
	clock->count++;
	while (i > 0 && earlier(&clock->heap[i], &clock->heap[(i - 1) / 2])) {
		swap(&clock->heap[i], &clock->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

static void sift_down(struct clock *clock)
{
	size_t i = 0;

	while (2 * i + 1 < clock->count) {
		size_t child = 2 * i + 1;

		if (child + 1 < clock->count &&
		    earlier(&clock->heap[child + 1], &clock->heap[child]))
			child++;
		if (!earlier(&clock->heap[child], &clock->heap[i]))
			break;
		swap(&clock->heap[i], &clock->heap[child]);
		i = child;
	}
}

bool clock_step(struct clock *clock)
{
	struct clock_event event;

	if (clock->count == 0)
		return false;
	event = clock->heap[0];
	clock->heap[0] = clock->heap[--clock->count];
	sift_down(clock);
	clock->now_ns = event.at_ns;
	event.fire(event.context, event.argument);
	return true;
}

void clock_fini(struct clock *clock)
{
	free(clock->heap);
	*clock = (struct clock){0};
}
