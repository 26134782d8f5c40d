/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that faults pages in for callers that do not wait for it. */
#ifndef MEM_PREFETCH_H
#define MEM_PREFETCH_H

#include <stdbool.h>

struct advise_range;
struct mr;

/** Let the thread fault a range in soon. MT-safe, except for calls about the same region. 0 or
 * -ENOMEM. */
int prefetch_post(const struct advise_range *range, bool write);

/** Cancel the ranges of a region. Return false if one is being faulted in: the thread stops after
 * the pages that it waits for. Otherwise as above. */
bool prefetch_cancel(struct mr *mr);

/** Wait until no range of the region is being faulted in. The region may have ended meanwhile.
 * MT-safe. */
void prefetch_wait(const struct mr *mr);

#endif
