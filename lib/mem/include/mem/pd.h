/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: what a key may be used with. */
#ifndef MEM_PD_H
#define MEM_PD_H

#include <stdint.h>

struct key_table;
struct pager;

struct pd {
	struct key_table *keys; /* of the device; not owned */
	struct pager *pager;	/* of the device; not owned; NULL: accesses wait for their pages */
	uint32_t users;		/* objects made in this domain, or that it is destroyed; atomic */
	uint32_t holders; /* who keeps this struct: 1, until it is destroyed, and pd_hold; atomic */
	uint32_t number;  /* by which it is shown; 0: not yet */
};

/** Create a domain whose keys are in `keys`. MT-safe. 0 or -ENOMEM. */
int pd_create(struct key_table *keys, struct pd **pd);

/** Destroy a domain. MT-safe. 0, -EBUSY while objects use it (ibv_dealloc_pd(3)), or -EINVAL where
 * it is destroyed already. */
int pd_destroy(struct pd *pd);

/** Keep what the pointer leads to, also when the domain is destroyed, until pd_release_hold: for
 * who has a handle of it. Its users need no hold. MT-safe. */
void pd_hold(struct pd *pd);
void pd_release_hold(struct pd *pd);

/** Count a user (queue pair, region, address handle): until pd_put the domain is not destroyed.
 * MT-safe. 0, or -EINVAL where it is. */
int pd_get(struct pd *pd);

/** Discount a user. MT-safe. */
void pd_put(struct pd *pd);

#endif
