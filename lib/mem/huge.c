/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Check that memory is made of huge pages. A mapping is huge as a whole or not at all, so one query
 * for each mapping covers every page. Kernels from 6.11 on answer it in a microsecond. Older ones
 * only have a report about all memory of the process.
 */
#include "huge.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/own.h"
#include "maps.h"

/* Linux 6.11's PROCMAP_QUERY (linux/fs.h), which the installed headers may not have yet. */
struct mapping_query {
	uint64_t size; /* of this struct */
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t start;
	uint64_t end;
	uint64_t flags;
	uint64_t page_size; /* bytes */
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t name_size; /* 0: no name wanted */
	uint32_t build_id_size;
	uint64_t name_addr;
	uint64_t build_id_addr;
};
static_assert(sizeof(struct mapping_query) == 104, "as the kernel has it");

#define MAPPING_QUERY _IOWR('f', 17, struct mapping_query)

/* Query one mapping. Return 0, -EINVAL, -EFAULT, or -ENOTTY if the kernel does not know this
 * ioctl. */
static int query(int fd, uint64_t next, uint64_t last)
{
	const uint64_t small = (uint64_t)sysconf(_SC_PAGESIZE);

	for (;;) {
		struct mapping_query mapping = {.size = sizeof(mapping), .query_addr = next};

		if (ioctl(fd, MAPPING_QUERY, &mapping) != 0)
			return errno == ENOENT ? -EFAULT : -errno;
		if (mapping.page_size <= small)
			return -EINVAL;
		if (mapping.end > last)
			return 0;
		next = mapping.end;
	}
}

/* A descriptor that is opened before the program may change its root directory. A child of fork()
 * must open its own: this one describes the parent's memory. */
static int kept_fd = -1;   /* atomic */
static pid_t kept_process; /* atomic */

void huge_prepare(void)
{
	int fd, none = -1;

	if (__atomic_load_n(&kept_process, __ATOMIC_ACQUIRE) == getpid())
		return;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	own_mark(fd);
	if (__atomic_load_n(&kept_process, __ATOMIC_RELAXED) != 0) {
		/* This descriptor is the parent's: close it. */
		none = __atomic_exchange_n(&kept_fd, -1, __ATOMIC_RELAXED);
		if (own_is(none))
			close(none);
		none = -1;
	}
	/* Another thread may have stored its descriptor first. */
	if (fd >= 0 && !__atomic_compare_exchange_n(&kept_fd, &none, fd, false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
		close(fd);
	__atomic_store_n(&kept_process, getpid(), __ATOMIC_RELEASE);
}

/* Query by the kept descriptor, because there is no /proc. */
static int query_kept(uintptr_t addr, size_t length)
{
	const int fd = __atomic_load_n(&kept_fd, __ATOMIC_RELAXED);

	if (__atomic_load_n(&kept_process, __ATOMIC_ACQUIRE) != getpid() || !own_is(fd))
		return -EINVAL;
	return query(fd, addr, addr + (length - 1)) == 0 ? 0 : -EINVAL;
}

int huge_check(uintptr_t addr, size_t length)
{
	int fd, rc;

	if (length == 0)
		return 0;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return maps_no_answer(errno) == -ENOMEM ? -ENOMEM : query_kept(addr, length);
	rc = query(fd, addr, addr + (length - 1));
	close(fd);
	if (rc == 0 || rc == -EINVAL || rc == -EFAULT || rc == -ENOMEM)
		return rc;
	rc = maps_check_huge(addr, length);
	return rc == -ENOSYS ? -EINVAL : rc;
}
