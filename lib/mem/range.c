/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of a range of memory, and the faulting in of its pages. */
#include "range.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "base/reason.h"
#include "base/verbs_later.h"
#include "huge.h"
#include "maps.h"

/* Defined by Linux 5.14; the C library's headers may be older. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Without LATER_ACCESS_FLUSH_PERSISTENT: no memory is known to survive a power failure. */
#define ACCESS_KNOWN                                                                             \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                       \
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | \
			IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |      \
			LATER_ACCESS_FLUSH_GLOBAL))

int range_check_access(unsigned int access)
{
	if (access & ~(ACCESS_KNOWN | (unsigned int)IBV_ACCESS_OPTIONAL_RANGE))
		return CALL_REASON(
			-EINVAL, "the access flags have 0x%x, which uroce does not know",
			access & ~(ACCESS_KNOWN | (unsigned int)IBV_ACCESS_OPTIONAL_RANGE));
	/* ibv_reg_mr(3): remote write and remote atomic need local write. */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return CALL_REASON(-EINVAL,
				   "IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC need "
				   "IBV_ACCESS_LOCAL_WRITE, too (ibv_reg_mr(3))");
	return 0;
}

int range_check(uintptr_t addr, size_t length, uint64_t iova, unsigned int access)
{
	const uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	/* The last page must end within the address space too. */
	const uintptr_t end_max = UINTPTR_MAX - page_mask;

	if (addr > end_max || length > end_max - addr)
		return CALL_REASON(-EINVAL,
				   "the range of %zu bytes at 0x%" PRIxPTR
				   " is longer than the address space",
				   length, addr);
	/* ibv_reg_mr_iova(3): 0 has the same effect as the flag. */
	if (iova == 0)
		return 0;
	if (access & IBV_ACCESS_ZERO_BASED)
		return iova == addr ? 0
				    : CALL_REASON(-EINVAL,
						  "with IBV_ACCESS_ZERO_BASED the iova must "
						  "be 0, and not 0x%" PRIx64,
						  iova);
	if ((length > 0 && length - 1 > UINT64_MAX - iova) || ((addr ^ iova) & page_mask) != 0)
		return CALL_REASON(-EINVAL,
				   "the iova 0x%" PRIx64 " and the address 0x%" PRIxPTR
				   " have different offsets in their pages, or the range wraps",
				   iova, addr);
	return 0;
}

int range_check_mapped(uintptr_t addr, size_t length, bool write)
{
	const int rc = maps_check_mapped(addr, length, write);

	if (rc == 0 || rc == -ENOMEM)
		return rc;
	return CALL_REASON(-EFAULT, "not all of %zu bytes at 0x%" PRIxPTR " are mapped%s", length,
			   addr, write ? " for writing" : "");
}

int range_populate(uintptr_t addr, size_t length, bool write)
{
	const uintptr_t page_mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	const uintptr_t first = addr & ~page_mask;
	const uintptr_t end = (addr + length + page_mask) & ~page_mask;
	int rc;

	if (length == 0)
		return 0;
	do {
		rc = madvise((void *)first, end - first,
			     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	} while (rc != 0 && errno == EINTR);
	if (rc == 0)
		return 0;
	if (errno == EINVAL) /* an older kernel; or pages without a struct page: device memory */
		return range_check_mapped(addr, length, write);
	if (errno == ENOMEM || errno == EAGAIN) /* ENOMEM also means: not mapped */
		return range_check_mapped(addr, length, write) == -EFAULT ? -EFAULT : -ENOMEM;
	return -EFAULT;
}

int range_make_present(uintptr_t addr, size_t length, unsigned int access)
{
	int rc = 0;

	/* Check first, so that no page of a wrong kind is touched. */
	if (access & IBV_ACCESS_HUGETLB)
		rc = huge_check(addr, length);
	if (rc == 0 && !(access & IBV_ACCESS_ON_DEMAND))
		rc = range_populate(addr, length, access & IBV_ACCESS_LOCAL_WRITE);
	return rc;
}
