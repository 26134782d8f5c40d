/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "long_memory.h"
#include "test.h"

/* Return a file of the chunk's length: a huge page, with which the processor translates addresses
 * faster, if there is one. */
static int make_file(void)
{
	const int huge = memfd_create("long", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	int fd;

	if (huge >= 0 && fallocate(huge, 0, 0, LONG_MEMORY_CHUNK) == 0)
		return huge;
	if (huge >= 0)
		close(huge);
	fd = memfd_create("long", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, LONG_MEMORY_CHUNK), 0);
	return fd;
}

void *long_memory(size_t length)
{
	const int fd = make_file();
	char *memory = mmap(NULL, length + LONG_MEMORY_CHUNK, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	memory += LONG_MEMORY_CHUNK - (uintptr_t)memory % LONG_MEMORY_CHUNK;
	for (size_t at = 0; at < length; at += LONG_MEMORY_CHUNK)
		assert_ptr_equal(mmap(memory + at, LONG_MEMORY_CHUNK, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_FIXED, fd, 0),
				 memory + at);
	close(fd);
	return memory;
}
