/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time: a queue of events in the order of their times. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*clock_fn)(void *context, void *argument);

struct clock_event {
	uint64_t at_ns;
	uint64_t order; /* order of scheduling; ties fire in this order */
	clock_fn fire;
	void *context;
	void *argument;
};

struct clock {
	uint64_t now_ns;
	uint64_t order;
	struct clock_event *heap;
	size_t count;
	size_t capacity;
};

/** Call `fire` at a time that is not in the past. */
void clock_at(struct clock *clock, uint64_t at_ns, clock_fn fire, void *context, void *argument);

/** Fire the next event. Return false if there is none. */
bool clock_step(struct clock *clock);

void clock_fini(struct clock *clock);

#endif
