/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: what a key may be used with. */
#ifndef MEM_PD_H
#define MEM_PD_H

#include <stdint.h>

struct key_table;

struct pd {
	struct key_table *keys; /* of the device; not owned */
	uint32_t users;		/* objects made in this domain; atomic */
};

/** Create a domain whose keys are in `keys`. MT-safe. 0 or -ENOMEM. */
int pd_create(struct key_table *keys, struct pd **pd);

/** Destroy a domain. MT-safe. 0, or -EBUSY while objects use it (ibv_dealloc_pd(3)). */
int pd_destroy(struct pd *pd);

/** Count a user (queue pair, region, address handle). MT-safe. */
void pd_get(struct pd *pd);

/** Discount a user. MT-safe. */
void pd_put(struct pd *pd);

#endif
