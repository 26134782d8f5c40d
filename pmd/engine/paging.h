/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine's side of pages that are not in memory (mem/pager.h). */
#ifndef ENGINE_PAGING_H
#define ENGINE_PAGING_H

struct engine;

/** Have accesses to on-demand regions of the engine's device wait for their pages alone, from its
 * first domain on. Without that the engine waits with them. Not MT-safe. */
void paging_start(struct engine *engine);

/** Pages have come: run the queue pairs that waited. Owner. */
void paging_wake(struct engine *engine);

#endif
