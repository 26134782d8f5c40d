/* SPDX-License-Identifier: BSD-3-Clause */
/* A link's addresses as its device's GIDs. */
#ifndef ENGINE_GIDS_H
#define ENGINE_GIDS_H

struct device;
struct engine;
struct link;

/** Set the GID table to the link's addresses. Caller holds the engine's lock, or the engine has not
 * started. */
void gids_sync(struct device *device, const struct link *link);

/** Do the same if the kernel reports that the addresses have changed. First engine's thread. */
void gids_follow(struct engine *engine);

#endif
