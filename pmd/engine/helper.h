/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that runs an engine when the program does not. */
#ifndef HELPER_H
#define HELPER_H

struct engine;

/** Start the thread, if the engine's progress mode has one. Not MT-safe. 0 or -errno. */
int helper_start(struct engine *engine);

/** Take over at once: an application thread is about to sleep. MT-safe. */
void helper_wake(struct engine *engine);

/** End the thread, while the engine goes on. Not MT-safe. */
void helper_stop(struct engine *engine);

/** Wait for its end, for a short time at most. After engine->ended is set. */
void helper_join(struct engine *engine);

#endif
