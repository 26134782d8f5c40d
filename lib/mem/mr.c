/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering and deregistering memory. */
#include "mem/mr.h"

#include <errno.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "base/guard.h"
#include "mem/key_table.h"
#include "mem/pd.h"
#include "range.h"

int mr_register(struct pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
		struct mr **mr)
{
	struct mr *m;
	int rc;

	/* The program may have set handlers of its own since the last time. */
	guard_install();
	rc = range_check_access(access);
	if (rc == 0)
		rc = range_check((uintptr_t)addr, length, iova, access);
	if (rc == 0)
		rc = range_make_present((uintptr_t)addr, length, access);
	if (rc != 0)
		return rc;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->pd = pd;
	m->addr = addr;
	m->length = length;
	m->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	m->access = access;
	/* The last step: from here on the region can be reached. */
	rc = key_table_insert(pd->keys, m, &m->key);
	if (rc != 0) {
		free(m);
		return rc == -ENOSPC ? -ENOMEM : rc;
	}
	pd_get(pd);
	*mr = m;
	return 0;
}

void mr_deregister(struct mr *mr)
{
	key_table_remove(mr->pd->keys, mr->key);
	pd_put(mr->pd);
	free(mr);
}
