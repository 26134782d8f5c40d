/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of an engine's poll that stand in several files. */
#ifndef ENGINE_POLL_H
#define ENGINE_POLL_H

#include <stdbool.h>

struct engine;

/** Return true if there are so many queue pairs that prefetching them pays off. MT-safe. */
bool engine_prefetches(const struct engine *engine);

/** Run each ready queue pair once, until the port is full. With `hold`, skip those that may wait.
 * Returns how many ran. Owner. */
unsigned int engine_run_ready(struct engine *engine, bool hold);

/** Housekeeping: look at the link, and do what the device needs. Owner, when the time is
 * engine.link_due_ns. */
void engine_housekeeping(struct engine *engine);

#endif
