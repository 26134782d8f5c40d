/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory: its pool, copies from and to it, and regions of it. */
#include "mem/dm.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rte_common.h>

#include "mem/mr.h"
#include "range.h"
#include "region.h"

#define DM_ACCESS                                                           \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |  \
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
			IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE))

static int pool_take(struct dm_pool *pool, uint64_t bytes)
{
	uint64_t used = __atomic_load_n(&pool->used_bytes, __ATOMIC_RELAXED);

	do {
		if (bytes > pool->total_bytes - used)
			return -ENOMEM;
	} while (!__atomic_compare_exchange_n(&pool->used_bytes, &used, used + bytes, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 0;
}

static void pool_give(struct dm_pool *pool, uint64_t bytes)
{
	__atomic_sub_fetch(&pool->used_bytes, bytes, __ATOMIC_RELAXED);
}

int dm_create(struct dm_pool *pool, uint64_t length, uint32_t log_align, struct dm **dm)
{
	struct dm *d;
	size_t align;
	void *bytes;
	int rc;

	if (length == 0 || length > pool->total_bytes)
		return -EINVAL;
	if (log_align >= 64 || (UINT64_C(1) << log_align) > pool->total_bytes)
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->pool = pool;
	d->holders = 1;
	d->length = length;
	d->pool_bytes = RTE_ALIGN_CEIL(length, (uint64_t)DM_BLOCK_BYTES);
	rc = pool_take(pool, d->pool_bytes);
	if (rc != 0) {
		free(d);
		return rc;
	}
	align = RTE_MAX((size_t)1 << log_align, (size_t)DM_BLOCK_BYTES);
	if (posix_memalign(&bytes, align, d->pool_bytes) != 0) {
		pool_give(pool, d->pool_bytes);
		free(d);
		return -ENOMEM;
	}
	/* Clear it: its former contents are not for the new user. */
	d->bytes = memset(bytes, 0, d->pool_bytes);
	*dm = d;
	return 0;
}

int dm_destroy(struct dm *dm)
{
	/* Acquire: every access of the last region's users happens before the memory is freed. */
	if (__atomic_load_n(&dm->users, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	dm_release_hold(dm);
	return 0;
}

void dm_hold(struct dm *dm)
{
	__atomic_add_fetch(&dm->holders, 1, __ATOMIC_RELAXED);
}

void dm_release_hold(struct dm *dm)
{
	/* Acquire and release: every access of other holders happens before the memory is freed. */
	if (__atomic_sub_fetch(&dm->holders, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	pool_give(dm->pool, dm->pool_bytes);
	free(dm->bytes);
	free(dm);
}

static bool is_in(const struct dm *dm, uint64_t offset, uint64_t length)
{
	return length <= dm->length && offset <= dm->length - length;
}

/* Return true if a copy is possible. Only whole words can be copied, as on adapters: a program that
 * does not keep to this rule fails there too. */
static bool can_copy(const struct dm *dm, uint64_t offset, size_t length)
{
	return is_in(dm, offset, length) && ((offset | length) & (DM_COPY_BYTES - 1)) == 0;
}

int dm_write(struct dm *dm, uint64_t offset, const void *from, size_t length)
{
	if (!can_copy(dm, offset, length))
		return -EINVAL;
	if (length > 0)
		memcpy(dm->bytes + offset, from, length);
	return 0;
}

int dm_read(const struct dm *dm, uint64_t offset, void *to, size_t length)
{
	if (!can_copy(dm, offset, length))
		return -EINVAL;
	if (length > 0)
		memcpy(to, dm->bytes + offset, length);
	return 0;
}

static void release(const struct mr *mr)
{
	__atomic_sub_fetch(&mr->dm->users, 1, __ATOMIC_RELEASE);
	dm_release_hold(mr->dm);
}

int dm_register(struct pd *pd, struct dm *dm, uint64_t offset, size_t length, unsigned int access,
		struct mr **mr)
{
	struct mr described = {
		.kind = MR_DEVICE,
		.length = length,
		.access = access,
		.release = release,
		.dm = dm,
	};
	int rc;

	/* ibv_alloc_dm(3): such a region is zero-based, and the flag must say so. */
	if ((access & ~DM_ACCESS) || !(access & IBV_ACCESS_ZERO_BASED))
		return -EINVAL;
	rc = range_check_access(access);
	if (rc != 0)
		return rc;
	if (!is_in(dm, offset, length))
		return -EINVAL;
	described.addr = dm->bytes + offset;
	/* Hold the memory: a program may register it by a handle after it was destroyed
	 * elsewhere. */
	dm_hold(dm);
	__atomic_add_fetch(&dm->users, 1, __ATOMIC_RELAXED);
	rc = region_open(pd, &described, mr);
	if (rc != 0) {
		__atomic_sub_fetch(&dm->users, 1, __ATOMIC_RELEASE);
		dm_release_hold(dm);
	}
	return rc;
}
