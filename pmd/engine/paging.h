/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine's side of pages that are not in memory (mem/pager.h). */
#ifndef ENGINE_PAGING_H
#define ENGINE_PAGING_H

struct engine;

/** Start the pager: a page of an on-demand region that is not in memory then delays only the
 * accesses that need it, from the device's first domain on. Without a pager the whole engine waits
 * for the page. Not MT-safe. */
void paging_start(struct engine *engine);

/** Run the queue pairs that waited for pages which have arrived. Owner. */
void paging_wake(struct engine *engine);

#endif
