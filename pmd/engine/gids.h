/* SPDX-License-Identifier: BSD-3-Clause */
/* A link's addresses as its device's GIDs. */
#ifndef ENGINE_GIDS_H
#define ENGINE_GIDS_H

struct device;
struct link;

/** Make the GID table say what the link's addresses are. Engine's lock, or before its start. */
void gids_sync(struct device *device, const struct link *link);

/** The same, where the kernel says that the addresses have changed. Engine's thread. */
void gids_follow(struct device *device, struct link *link);

#endif
