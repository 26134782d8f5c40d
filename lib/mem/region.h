/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that all kinds of regions share: their creation, and the release of what some of them
 * hold. */
#ifndef MEM_REGION_H
#define MEM_REGION_H

#include "mem/mr.h"

struct pd;

/**
 * Create a region as described, add it to the domain, and give it a key. MT-safe.
 *
 * @param described
 *   All fields except domain and key.
 * @return
 *   0, -ENOMEM, or -EINVAL if the domain is destroyed.
 */
int region_open(struct pd *pd, const struct mr *described, struct mr **mr);

/** Release what a region of device memory (dm.c) or of a dma-buf (dmabuf.c) holds. Nobody uses the
 * region any more. */
void dm_release(const struct mr *mr);
void dmabuf_release(const struct mr *mr);

#endif
