/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload into a program. It simulates a machine whose huge pages run out after
 * HUGE_PAGE_MAPPINGS mappings. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

static int left = -1;

static bool ran_out(bool take)
{
	const char *text = getenv("HUGE_PAGE_MAPPINGS");

	if (left < 0)
		left = text ? atoi(text) : 0;
	if (left == 0)
		return true;
	left -= take;
	return false;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if ((flags & MAP_HUGETLB) && ran_out(true)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return mmap(addr, len, prot, flags, fd, offset);
}

/* EAL gets the pages for its files by this call. */
int fallocate(int fd, int mode, off_t offset, off_t len)
{
	if (ran_out(false)) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

int fallocate64(int fd, int mode, off_t offset, off_t len)
{
	return fallocate(fd, mode, offset, len);
}
