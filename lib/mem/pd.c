/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: a key table to look in, and a count of what was made in the domain. */
#include "mem/pd.h"

#include <errno.h>
#include <stdlib.h>

int pd_create(struct key_table *keys, struct pd **pd)
{
	struct pd *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->keys = keys;
	*pd = p;
	return 0;
}

int pd_destroy(struct pd *pd)
{
	/* Acquire: what the last user did before its pd_put happened before the free. */
	if (__atomic_load_n(&pd->users, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	free(pd);
	return 0;
}

void pd_get(struct pd *pd)
{
	__atomic_fetch_add(&pd->users, 1, __ATOMIC_RELAXED);
}

void pd_put(struct pd *pd)
{
	__atomic_fetch_sub(&pd->users, 1, __ATOMIC_RELEASE);
}
