/* SPDX-License-Identifier: BSD-3-Clause */
/* The creation of a region, which all kinds share. */
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

#endif
