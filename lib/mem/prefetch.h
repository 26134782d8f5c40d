/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that faults pages in, for who does not want to wait for them. */
#ifndef MEM_PREFETCH_H
#define MEM_PREFETCH_H

#include <stdbool.h>

struct advise_range;
struct mr;

/** Have a range faulted in soon. MT-safe, but for one region at a time. 0 or -ENOMEM. */
int prefetch_post(const struct advise_range *range, bool write);

/** Forget the ranges of a region; waits while one is being faulted in. As above. */
void prefetch_cancel(struct mr *mr);

#endif
