/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering and deregistering memory. */
#include "mem/mr.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "base/guard.h"
#include "mem/advise.h"
#include "mem/key_table.h"
#include "mem/pd.h"
#include "range.h"

/* The first page is left out: an address in it is a mistake, and is found as one. */
static struct mr implicit_region(unsigned int access)
{
	const uintptr_t first = (uintptr_t)sysconf(_SC_PAGESIZE);

	return (struct mr){
		.kind = MR_IMPLICIT,
		.addr = (uint8_t *)first,
		.length = UINT64_MAX - first,
		.iova = first,
		.access = access,
	};
}

/* Check what is asked for, and describe the region that comes of it. */
static int describe(void *addr, size_t length, uint64_t iova, unsigned int access, struct mr *mr)
{
	int rc = range_check_access(access);

	if (rc != 0)
		return rc;
	if (!addr && length == SIZE_MAX) {
		if (!(access & IBV_ACCESS_ON_DEMAND) || iova != 0 ||
		    (access & (IBV_ACCESS_HUGETLB | IBV_ACCESS_ZERO_BASED)))
			return -EINVAL;
		*mr = implicit_region(access);
		return 0;
	}
	rc = range_check((uintptr_t)addr, length, iova, access);
	if (rc != 0)
		return rc;
	*mr = (struct mr){
		.kind = MR_MEMORY,
		.addr = addr,
		.length = length,
		.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.access = access,
	};
	return range_make_present((uintptr_t)addr, length, access);
}

int mr_register(struct pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
		struct mr **mr)
{
	struct mr described, *m;
	int rc;

	/* The program may have set handlers of its own since the last time. */
	guard_install();
	rc = describe(addr, length, iova, access, &described);
	if (rc != 0)
		return rc;
	m = malloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	*m = described;
	m->pd = pd;
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

int mr_deregister(struct mr *mr)
{
	if (mr->windows > 0)
		return -EBUSY;
	advise_cancel(mr);
	key_table_remove(mr->pd->keys, mr->key);
	pd_put(mr->pd);
	free(mr);
	return 0;
}
