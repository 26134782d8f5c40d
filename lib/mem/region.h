/* SPDX-License-Identifier: BSD-3-Clause */
/* What all kinds of regions have in common: how they begin, and what some give back at their end.
 */
#ifndef MEM_REGION_H
#define MEM_REGION_H

#include "mem/mr.h"

struct pd;

/**
 * Make a region as described, which belongs to the domain, has a key, and can be found by it.
 * MT-safe.
 *
 * @param described
 *   All but domain and key.
 * @return
 *   0, -ENOMEM, or -EINVAL where the domain is destroyed.
 */
int region_open(struct pd *pd, const struct mr *described, struct mr **mr);

/** The end of a region of device memory (dm.c), of a dma-buf (dmabuf.c). Nobody uses it any more.
 */
void dm_release(const struct mr *mr);
void dmabuf_release(const struct mr *mr);

#endif
