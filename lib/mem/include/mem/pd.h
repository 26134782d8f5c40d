/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: objects and keys work together only within one domain. */
#ifndef MEM_PD_H
#define MEM_PD_H

#include <stdint.h>

struct key_table;
struct pager;

struct pd {
	struct key_table *keys; /* the device's; not owned */
	struct pager *pager;	/* the device's; not owned; NULL: accesses wait for their pages */
	uint32_t users;		/* objects in this domain, or a mark that it is destroyed; atomic */
	uint32_t holders; /* references to this struct: 1 until it is destroyed, and one for each
			     pd_hold; atomic */
	uint32_t number;  /* number that is shown to users; 0: not assigned yet */
};

/** Create a domain whose keys are in `keys`. MT-safe. 0 or -ENOMEM. */
int pd_create(struct key_table *keys, struct pd **pd);

/** Destroy a domain. MT-safe. 0, -EBUSY while objects use it (ibv_dealloc_pd(3)), or -EINVAL if it
 * is already destroyed. */
int pd_destroy(struct pd *pd);

/** Keep the struct until pd_release_hold, even if the domain is destroyed: for those that have a
 * handle of it. Users of the domain (pd_get) need no hold. MT-safe. */
void pd_hold(struct pd *pd);
void pd_release_hold(struct pd *pd);

/** Add a user (queue pair, region, address handle): the domain cannot be destroyed until pd_put.
 * MT-safe. 0, or -EINVAL if the domain is destroyed. */
int pd_get(struct pd *pd);

/** Remove a user. MT-safe. */
void pd_put(struct pd *pd);

#endif
