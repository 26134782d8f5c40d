/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/mman.h>
#include <unistd.h>

#include "long_memory.h"
#include "test.h"

void *long_memory(size_t length)
{
	const int fd = memfd_create("long", MFD_CLOEXEC);
	char *memory =
		mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_int_equal(ftruncate(fd, LONG_MEMORY_CHUNK), 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	for (size_t at = 0; at < length; at += LONG_MEMORY_CHUNK)
		assert_ptr_equal(mmap(memory + at, LONG_MEMORY_CHUNK, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_FIXED, fd, 0),
				 memory + at);
	close(fd);
	return memory;
}
