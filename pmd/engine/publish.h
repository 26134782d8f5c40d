/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes a device to the view of its process (view/table.h). Private to this room. */
#ifndef ENGINE_PUBLISH_H
#define ENGINE_PUBLISH_H

#include <stdint.h>

struct engine;

/** Take a slot in the view, publish the device, and wait until files show it. Does nothing in a
 * process without a view. Not MT-safe. */
void publish_begin(struct engine *engine, uint32_t number);

/** Publish counters, and facts that have changed. Engine's thread. */
void publish_update(struct engine *engine);

struct device;
struct engine;
struct link;

/** Set the GID table to the link's addresses. Caller holds the engine's lock, or the engine has not
 * started. */
void gids_sync(struct device *device, const struct link *link);

/** Do the same if the kernel reports that the addresses have changed. First engine's thread. */
void gids_follow(struct engine *engine);

#endif
