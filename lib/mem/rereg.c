/* SPDX-License-Identifier: BSD-3-Clause */
/* Changing a region in place: first all checks, then a change that cannot fail. */
#include <errno.h>

#include <infiniband/verbs.h>

#include "mem/advise.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "range.h"

/* Access flags that decide whether a region can be implicit. */
#define IMPLICIT_ACCESS \
	((unsigned int)(IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_ZERO_BASED))

static unsigned int access_after(const struct mr *mr, const struct mr_change *change)
{
	return change->flags & IBV_REREG_MR_CHANGE_ACCESS ? change->access : mr->access;
}

static int check_arguments(const struct mr *mr, const struct mr_change *change)
{
	const unsigned int flags = change->flags;

	/* Other kinds have no memory of this process that could be replaced. */
	if (mr->kind != MR_MEMORY && mr->kind != MR_IMPLICIT)
		return -EINVAL;
	/* An implicit region has no range of its own, and no pages to fault in. */
	if (mr->kind == MR_IMPLICIT &&
	    ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) ||
	     (access_after(mr, change) & IMPLICIT_ACCESS) != IBV_ACCESS_ON_DEMAND))
		return -EINVAL;
	if (flags == 0 || (flags & ~(unsigned int)IBV_REREG_MR_FLAGS_SUPPORTED))
		return -EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!change->addr || change->length == 0))
		return -EINVAL;
	/* Access flags without the flag that changes them are a mistake of the caller. */
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS) && change->access != 0)
		return -EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_PD) && (!change->pd || change->pd->keys != mr->pd->keys))
		return -EINVAL;
	return 0;
}

int mr_check_change(const struct mr *mr, const struct mr_change *change)
{
	const unsigned int access = access_after(mr, change);
	const uint8_t *addr = mr->addr;
	uint64_t length = mr->length;
	int rc;

	rc = check_arguments(mr, change);
	if (rc == 0)
		rc = range_check_access(access);
	if (rc != 0)
		return rc;
	if (change->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		addr = change->addr;
		length = change->length;
		rc = range_check((uintptr_t)addr, length, (uintptr_t)addr, access);
	}
	/* New access flags may need the old pages in another way: writable, huge, or present at
	 * all. */
	if (rc == 0 && mr->kind != MR_IMPLICIT &&
	    (change->flags & (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS)))
		rc = range_make_present((uintptr_t)addr, length, access);
	return rc;
}

int mr_apply_change(struct mr *mr, const struct mr_change *change)
{
	const unsigned int before = mr->access;

	if (mr->windows > 0)
		return -EBUSY;
	if (!advise_cancel(mr))
		return -EAGAIN;
	/* Another holder of a handle may have destroyed that domain meanwhile. */
	if ((change->flags & IBV_REREG_MR_CHANGE_PD) && pd_get(change->pd) != 0)
		return -EINVAL;
	mr->access = access_after(mr, change);
	if (change->flags & IBV_REREG_MR_CHANGE_PD) {
		pd_put(mr->pd);
		mr->pd = change->pd;
	}
	if (change->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = change->addr;
		mr->length = change->length;
		mr->iova = (uintptr_t)change->addr;
	} else if (before & IBV_ACCESS_ZERO_BASED) {
		/* The region is no longer zero-based, unless the check below restores that. A
		 * region with an iova of its own (ibv_reg_mr_iova) keeps it. */
		mr->iova = (uintptr_t)mr->addr;
	}
	if (mr->access & IBV_ACCESS_ZERO_BASED)
		mr->iova = 0;
	return 0;
}
