/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of an engine's turn (engine.c) that the way in needs as well. */
#ifndef TURN_H
#define TURN_H

#include <stdbool.h>

struct engine;

/** Return true if queue pairs are so many that they are worth fetching ahead. MT-safe. */
bool engine_prefetches(const struct engine *engine);

/** Run each ready queue pair once, as far as the port takes it; with `hold`, all but those that may
 * wait. Returns how many ran. Owner. */
unsigned int engine_run_ready(struct engine *engine, bool hold);

#endif
