/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation and destruction of regions, and registration of memory of this process. */
#include "mem/mr.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "base/guard.h"
#include "mem/advise.h"
#include "mem/key_table.h"
#include "mem/pd.h"
#include "huge.h"
#include "range.h"
#include "region.h"

/* Describe a region of all addresses except the first page: an access to that page is a mistake of
 * the program, and must fail. */
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

/* Check the arguments, and describe the region that they ask for. */
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

int region_open(struct pd *pd, const struct mr *described, struct mr **mr)
{
	struct mr *m = malloc(sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	*m = *described;
	m->pd = pd;
	rc = pd_get(pd);
	if (rc != 0)
		goto free_region;
	/* Do this last: from here on peers can access the region. */
	rc = key_table_insert(pd->keys, m, &m->key);
	if (rc != 0)
		goto put_pd;
	*mr = m;
	return 0;
put_pd:
	pd_put(pd);
free_region:
	free(m);
	return rc == -ENOSPC ? -ENOMEM : rc;
}

int mr_register(struct pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
		struct mr **mr)
{
	struct mr described;
	int rc;

	/* Install the fault handlers again: the program may have set its own since the last
	 * time. */
	guard_install();
	rc = describe(addr, length, iova, access, &described);
	return rc == 0 ? region_open(pd, &described, mr) : rc;
}

/* Create a region that contains every address and has no memory. */
int mr_create_null(struct pd *pd, struct mr **mr)
{
	const struct mr described = {
		.kind = MR_NULL,
		.length = UINT64_MAX,
		/* Grant no remote access, so that a peer that guesses the key gets an error. */
		.access = IBV_ACCESS_LOCAL_WRITE,
	};

	const int rc = region_open(pd, &described, mr);

	/* Keep the struct, because the region outlives the domain's users, but do not use it. */
	if (rc == 0) {
		pd_hold(pd);
		pd_put(pd);
	}
	return rc;
}

int mr_deregister(struct mr *mr)
{
	if (mr->windows > 0)
		return -EBUSY;
	if (!advise_cancel(mr))
		return -EAGAIN;
	key_table_remove(mr->pd->keys, mr->key);
	if (mr->release)
		mr->release(mr);
	if (mr->kind == MR_NULL)
		pd_release_hold(mr->pd);
	else
		pd_put(mr->pd);
	free(mr);
	return 0;
}

bool mr_has_huge_pages(const struct mr *mr)
{
	if (mr->access & IBV_ACCESS_HUGETLB)
		return true;
	return mr->length >= MR_HUGE_MIN && huge_check((uintptr_t)mr->addr, mr->length) == 0;
}

void mr_prepare(void)
{
	huge_prepare();
}
