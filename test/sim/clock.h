/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time: what happens next, in order. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*clock_fn)(void *context, void *argument);

struct clock_event {
	uint64_t at_ns;
	uint64_t order; /* of scheduling: ties fire in it */
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

/** Let the next thing happen. false where nothing is left. */
bool clock_step(struct clock *clock);

void clock_fini(struct clock *clock);

#endif
