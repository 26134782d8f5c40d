/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: a reference to the key table, and a count of the domain's users. */
#include "mem/pd.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Value of the number of users in a destroyed domain: it has no users, and gets no new ones. */
#define DESTROYED UINT32_MAX

int pd_create(struct key_table *keys, struct pd **pd)
{
	struct pd *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->keys = keys;
	p->holders = 1;
	*pd = p;
	return 0;
}

int pd_destroy(struct pd *pd)
{
	uint32_t users = 0;

	/* Acquire: all that the last user did before its pd_put happens before the domain is
	 * freed. */
	if (!__atomic_compare_exchange_n(&pd->users, &users, DESTROYED, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return users == DESTROYED ? -EINVAL : -EBUSY;
	pd_release_hold(pd);
	return 0;
}

void pd_hold(struct pd *pd)
{
	__atomic_add_fetch(&pd->holders, 1, __ATOMIC_RELAXED);
}

void pd_release_hold(struct pd *pd)
{
	/* Acquire and release: all accesses of other holders happen before the struct is freed. */
	if (__atomic_sub_fetch(&pd->holders, 1, __ATOMIC_ACQ_REL) == 0)
		free(pd);
}

int pd_get(struct pd *pd)
{
	uint32_t users = __atomic_load_n(&pd->users, __ATOMIC_RELAXED);

	do {
		if (users == DESTROYED)
			return -EINVAL;
	} while (!__atomic_compare_exchange_n(&pd->users, &users, users + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return 0;
}

void pd_put(struct pd *pd)
{
	__atomic_fetch_sub(&pd->users, 1, __ATOMIC_RELEASE);
}
