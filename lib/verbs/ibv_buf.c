/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers that the library allocates for a program (ibv_alloc_buf(3)), which are ordinary memory,
 * and the registration of all kinds of memory by one call (ibv_reg_mr_ex(3)). */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "later.h"
#include "verbs_internal.h"

struct later_buf {
	struct ibv_pd *pd;
	char *base;
	size_t bytes; /* as the program asked for */
	size_t mapped_bytes;
};

void *later_alloc_buf(struct ibv_pd *pd, size_t size, struct later_buf **buf)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct later_buf *new;

	if (size == 0 || size > SIZE_MAX - page)
		return face_null(-EINVAL);
	new = malloc(sizeof(*new));
	if (!new)
		return face_null(-ENOMEM);
	*new = (struct later_buf){
		.pd = pd, .bytes = size, .mapped_bytes = RTE_ALIGN_CEIL(size, page)};
	new->base = mmap(NULL, new->mapped_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (new->base == MAP_FAILED) {
		free(new);
		return face_null(-ENOMEM);
	}
	*buf = new;
	return new->base;
}

void later_free_buf(struct later_buf *buf)
{
	munmap(buf->base, buf->mapped_bytes);
	free(buf);
}

/* Return true if a range lies in a buffer of this domain. */
static bool is_inside(const struct ibv_pd *pd, const struct later_buf *buf, const void *addr,
		      size_t length)
{
	const size_t offset = (size_t)((uintptr_t)addr - (uintptr_t)buf->base);

	return pd == buf->pd && offset <= buf->bytes && length <= buf->bytes - offset;
}

struct ibv_mr *later_reg_buf_mr(struct ibv_pd *pd, struct later_buf *buf, void *addr, size_t length,
				int access)
{
	if (!is_inside(pd, buf, addr, length))
		return face_null(-EINVAL);
	return mr_reg(pd, addr, length, (uintptr_t)addr, (unsigned int)access, __func__);
}

int later_export_buf_dmabuf_fd(struct later_buf *buf __rte_unused)
{
	return face_minus_one(-ENODATA);
}

static bool has(const struct later_mr_init_attr *attr, uint64_t bits)
{
	return (attr->comp_mask & bits) == bits;
}

/* Register a dma-buf. Without an offset it begins at 0, and without an iova the offset is the iova.
 */
static struct ibv_mr *reg_fd(struct ibv_pd *pd, const struct later_mr_init_attr *attr,
			     const char *function)
{
	const uint64_t offset = has(attr, LATER_REG_MR_FD_OFFSET) ? attr->fd_offset : 0;

	if (attr->comp_mask & (LATER_REG_MR_ADDR | LATER_REG_MR_BUF))
		return face_null_by(-EINVAL, function);
	return ibv_reg_dmabuf_mr(pd, offset, attr->length,
				 has(attr, LATER_REG_MR_IOVA) ? attr->iova : offset, attr->fd,
				 attr->access);
}

struct ibv_mr *later_reg_mr_ex(struct ibv_pd *pd, struct later_mr_init_attr *attr)
{
	const uint64_t known = LATER_REG_MR_IOVA | LATER_REG_MR_ADDR | LATER_REG_MR_FD |
			       LATER_REG_MR_FD_OFFSET | LATER_REG_MR_BUF;

	if (attr->comp_mask & ~known) /* a handle of ibv_alloc_dmah(3) among them */
		return face_null(-EOPNOTSUPP);
	if (has(attr, LATER_REG_MR_FD))
		return reg_fd(pd, attr, __func__);
	if (!has(attr, LATER_REG_MR_ADDR) || has(attr, LATER_REG_MR_FD_OFFSET))
		return face_null(-EINVAL);
	if (has(attr, LATER_REG_MR_BUF) && !is_inside(pd, attr->buf, attr->addr, attr->length))
		return face_null(-EINVAL);
	return mr_reg(pd, attr->addr, attr->length,
		      has(attr, LATER_REG_MR_IOVA) ? attr->iova : (uintptr_t)attr->addr,
		      (unsigned int)attr->access, __func__);
}
