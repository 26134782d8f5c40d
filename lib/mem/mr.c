/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering memory, and the check of key, domain, access and range before every access. */
#include "mem/mr.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "maps.h"
#include "mem/key_table.h"
#include "mem/pd.h"

/* Linux 5.14; the C library's headers may be older. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* On-demand regions are not built. */
#define ACCESS_KNOWN                                                                             \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                       \
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | \
			IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB))

static int check_access(unsigned int access)
{
	if (access & ~(ACCESS_KNOWN | (unsigned int)IBV_ACCESS_OPTIONAL_RANGE))
		return -EINVAL;
	/* ibv_reg_mr(3): what may be written from afar may be written locally. */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

static int check_range(uintptr_t addr, size_t length, uint64_t iova, unsigned int access)
{
	const uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;

	/* The last page must end within the address space too. */
	if (length > UINTPTR_MAX - addr || addr + length > UINTPTR_MAX - page_mask)
		return -EINVAL;
	if (access & IBV_ACCESS_ZERO_BASED)
		return iova == 0 || iova == addr ? 0 : -EINVAL;
	if (length > UINT64_MAX - iova || ((addr ^ iova) & page_mask) != 0)
		return -EINVAL;
	return 0;
}

/* Fault every page in, writable where the region will be written: no copy then meets a hole. */
static int populate(uintptr_t addr, size_t length, unsigned int access)
{
	const uintptr_t page_mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	const uintptr_t first = addr & ~page_mask;
	const uintptr_t end = (addr + length + page_mask) & ~page_mask;
	const bool write = access & IBV_ACCESS_LOCAL_WRITE;
	int rc;

	if (length == 0)
		return 0;
	do {
		rc = madvise((void *)first, end - first,
			     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	} while (rc != 0 && errno == EINTR);
	if (rc == 0)
		return 0;
	if (errno == EINVAL) /* an older kernel, or pages that have no struct page: device memory */
		return maps_check_mapped(addr, length, write);
	if (errno == ENOMEM || errno == EAGAIN) /* ENOMEM also says: not mapped */
		return maps_check_mapped(addr, length, write) == 0 ? -ENOMEM : -EFAULT;
	return -EFAULT;
}

int mr_register(struct pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
		struct mr **mr)
{
	struct mr *m;
	int rc;

	rc = check_access(access);
	if (rc == 0)
		rc = check_range((uintptr_t)addr, length, iova, access);
	if (rc == 0)
		rc = populate((uintptr_t)addr, length, access);
	if (rc == 0 && (access & IBV_ACCESS_HUGETLB))
		rc = maps_check_huge((uintptr_t)addr, length);
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

enum mr_status mr_resolve(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
			  unsigned int need, uint8_t **addr)
{
	const struct mr *mr;
	uint64_t offset;

	*addr = NULL;
	if (length == 0)
		return MR_OK;
	mr = key_table_find(pd->keys, key);
	if (!mr)
		return MR_BAD_KEY;
	if (mr->pd != pd)
		return MR_WRONG_PD;
	if ((mr->access & need) != need)
		return MR_NO_ACCESS;
	/* Below the region the difference wraps to more than any length, as iova + length does not
	 * wrap. */
	offset = iova - mr->iova;
	if (offset > mr->length || length > mr->length - offset)
		return MR_OUT_OF_RANGE;
	*addr = mr->addr + offset;
	return MR_OK;
}
