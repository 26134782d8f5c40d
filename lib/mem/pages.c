/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries which pages of this process are in memory, and brings pages in. */
#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/guard.h"
#include "base/own.h"

/* Defined by Linux 5.14; the C library's headers may be older. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Bits of an entry of /proc/self/pagemap, one entry for each page (proc_pid_pagemap(5)). */
#define PAGEMAP_PRESENT	  (UINT64_C(1) << 63)
#define PAGEMAP_PROTECTED (UINT64_C(1) << 57) /* a write waits for the userfaultfd's server */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void pages_close(int fd)
{
	if (own_is(fd))
		close(fd);
}

static bool ask_pagemap(int fd, uintptr_t first, unsigned int count, bool write, bool *there)
{
	uint64_t words[PAGES_ASK_MAX];
	const size_t bytes = count * sizeof(words[0]);

	if (!own_is(fd) ||
	    pread(fd, words, bytes, (off_t)(first / page_bytes() * sizeof(words[0]))) !=
		    (ssize_t)bytes)
		return false;
	for (unsigned int i = 0; i < count; i++)
		there[i] =
			(words[i] & PAGEMAP_PRESENT) && !(write && (words[i] & PAGEMAP_PROTECTED));
	return true;
}

/* Ask mincore. It fails if one of the pages is not mapped; then ask for each page alone. A page
 * that is not mapped is not present; the access finds out why. */
static void ask_mincore(uintptr_t first, unsigned int count, bool *there)
{
	const size_t size = page_bytes();
	unsigned char words[PAGES_ASK_MAX];

	if (mincore((void *)first, count * size, words) == 0) {
		for (unsigned int i = 0; i < count; i++)
			there[i] = words[i] & 1;
		return;
	}
	for (unsigned int i = 0; i < count; i++)
		there[i] = mincore((void *)(first + i * size), size, words) == 0 && (words[0] & 1);
}

void pages_ask(int fd, uintptr_t first, unsigned int count, bool write, bool *there)
{
	const int saved_errno = errno;

	count = RTE_MIN(count, (unsigned int)PAGES_ASK_MAX);
	if (!ask_pagemap(fd, first, count, write, there))
		ask_mincore(first, count, there);
	errno = saved_errno;
}

bool pages_is_mapped(uintptr_t page)
{
	const int saved_errno = errno;
	unsigned char word;
	const bool is_mapped = mincore((void *)page, page_bytes(), &word) == 0 || errno != ENOMEM;

	errno = saved_errno;
	return is_mapped;
}

/* Check that a page that is in use is reported as present: otherwise the kernel's answers cannot be
 * trusted. */
bool pages_are_reported(int fd)
{
	volatile bool there = false;
	bool told;

	pages_ask(fd, (uintptr_t)&there & ~((uintptr_t)page_bytes() - 1), 1, true, &told);
	there = told;
	return there;
}

int pages_open(void)
{
	const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	own_mark(fd);
	if (fd < 0 || pages_are_reported(fd))
		return fd;
	pages_close(fd);
	return -1;
}

struct touch {
	uintptr_t addr;
	bool write;
};

/* Write no bit: the contents stay, even if another thread writes there. ThreadSanitizer would hold
 * a lock of its own around the access. */
__attribute__((no_sanitize("thread", "address"))) static void touch_byte(void *arg)
{
	const struct touch *touch = arg;
	uint8_t byte = *(const volatile uint8_t *)touch->addr;

	/* Write the byte back, unless another thread has just written it. (clang makes a mere load
	 * of an atomic OR with 0.) */
	if (touch->write)
		__atomic_compare_exchange_n((uint8_t *)touch->addr, &byte, byte, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/*
 * Ask the kernel first, because this takes one call for all pages. The call fails before
 * Linux 5.14, for device memory, and for a page of an unprivileged program's userfaultfd, which
 * handles only faults of user code, not of the kernel. If the call fails, access each page here.
 */
int pages_touch(uintptr_t addr, size_t length, bool write, uintptr_t *failed)
{
	const size_t size = page_bytes();
	const uintptr_t first = addr & ~(size - 1);
	const uintptr_t end = (addr + length + size - 1) & ~(size - 1);

	if (madvise((void *)first, end - first, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ==
	    0)
		return 0;
	for (struct touch touch = {.addr = first, .write = write}; touch.addr != end;
	     touch.addr += size) {
		if (guard_run(touch_byte, &touch) != 0) {
			*failed = touch.addr;
			return -EFAULT;
		}
	}
	return 0;
}
