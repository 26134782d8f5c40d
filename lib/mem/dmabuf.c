/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of dma-bufs: check the descriptor and the range, and map the buffer while the region
 * lives. */
#include "mem/dmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <linux/dma-buf.h>
#include <linux/magic.h>

#include "base/guard.h"
#include "mem/mr.h"
#include "range.h"
#include "region.h"

#define DMABUF_ACCESS                                                       \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |  \
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
			IBV_ACCESS_OPTIONAL_RANGE))

static uint64_t page_mask(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE) - 1;
}

/* Check the descriptor and the range. Every dma-buf is a file of the kernel's own dma-buf file
 * system. */
static int check_buffer(int fd, uint64_t offset, uint64_t length)
{
	struct statfs fs;
	off_t size;

	if (fstatfs(fd, &fs) != 0)
		return -errno;
	if (fs.f_type != DMA_BUF_MAGIC)
		return -EINVAL;
	size = lseek(fd, 0, SEEK_END);
	if (size < 0)
		return -errno;
	return length <= (uint64_t)size && offset <= (uint64_t)size - length ? 0 : -EINVAL;
}

static int check_arguments(uint64_t offset, size_t length, uint64_t iova, unsigned int access)
{
	if (access & ~DMABUF_ACCESS)
		return -EINVAL;
	if (length == 0 || length - 1 > UINT64_MAX - iova || ((offset ^ iova) & page_mask()) != 0)
		return -EINVAL;
	return range_check_access(access);
}

/* Tell the exporter that the CPU begins or ends to access it; not every exporter supports this. */
static int sync_buffer(int fd, uint64_t flags)
{
	const struct dma_buf_sync sync = {.flags = flags | DMA_BUF_SYNC_RW};
	int rc;

	do {
		rc = ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
	} while (rc != 0 && (errno == EINTR || errno == EAGAIN));
	return rc == 0 || errno == ENOTTY ? 0 : -errno;
}

/*
 * Map the buffer. The mapping starts at the buffer's beginning, whichever part is wanted: the
 * kernel's helpers for graphics memory ignore the offset and map the beginning.
 */
static int map_buffer(struct mr *mr)
{
	const int protection =
		PROT_READ | (mr->access & IBV_ACCESS_LOCAL_WRITE ? PROT_WRITE : PROT_NONE);
	void *map =
		mmap(NULL, mr->dmabuf.skip + mr->length, protection, MAP_SHARED, mr->dmabuf.fd, 0);

	if (map != MAP_FAILED) {
		mr->addr = (uint8_t *)map + mr->dmabuf.skip;
		return 0;
	}
	/* The arguments were checked before, so these errors mean that the exporter offers no
	 * mapping. */
	return errno == EINVAL || errno == ENODEV ? -EOPNOTSUPP : -errno;
}

static void unmap_buffer(const struct mr *mr)
{
	munmap(mr->addr - mr->dmabuf.skip, mr->dmabuf.skip + mr->length);
}

static void release(const struct mr *mr)
{
	sync_buffer(mr->dmabuf.fd, DMA_BUF_SYNC_END);
	unmap_buffer(mr);
	close(mr->dmabuf.fd);
}

int dmabuf_register(struct pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
		    unsigned int access, struct mr **mr)
{
	struct mr described = {
		.kind = MR_DMABUF,
		.length = length,
		.iova = iova,
		.access = access,
		.release = release,
		.dmabuf.skip = offset,
	};
	int rc = check_arguments(offset, length, iova, access);

	if (rc == 0)
		rc = check_buffer(fd, offset, length);
	if (rc != 0)
		return rc;
	guard_install();
	described.dmabuf.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (described.dmabuf.fd < 0)
		return errno == EBADF ? -EBADF : -ENOMEM;
	rc = map_buffer(&described);
	if (rc != 0)
		goto close_fd;
	rc = sync_buffer(described.dmabuf.fd, DMA_BUF_SYNC_START);
	if (rc != 0)
		goto unmap;
	rc = region_open(pd, &described, mr);
	if (rc == 0)
		return 0;
	sync_buffer(described.dmabuf.fd, DMA_BUF_SYNC_END);
unmap:
	unmap_buffer(&described);
close_fd:
	close(described.dmabuf.fd);
	return rc;
}
