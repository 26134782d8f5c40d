/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory, and buffers of ibv_alloc_buf. Device memory is memory of the process and needs no
 * engine, so a child of fork() has it as well. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "later.h"
#include "mem/dm.h"
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

static int memcpy_to_dm_op(struct ibv_dm *ibv, uint64_t offset, const void *host_addr,
			   size_t length)
{
	return face_errno(dm_write(face_dm(ibv)->dm, offset, host_addr, length));
}

static int memcpy_from_dm_op(void *host_addr, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	return face_errno(dm_read(face_dm(ibv)->dm, offset, host_addr, length));
}

struct face_dm *dm_handle(struct ibv_context *ibv, struct dm *dm, uint32_t handle)
{
	struct face_dm *face = calloc(1, sizeof(*face));

	if (!face)
		return NULL;
	face->dm = dm;
	face->ibv.context = ibv;
	face->ibv.memcpy_to_dm = memcpy_to_dm_op;
	face->ibv.memcpy_from_dm = memcpy_from_dm_op;
	face->ibv.handle = handle;
	context_add(face_context(ibv), FACE_DM, &face->object);
	return face;
}

void dm_free_handle(struct face_dm *face)
{
	dm_release_hold(face->dm);
	context_remove(face_context(face->ibv.context), &face->object);
	free(face);
}

static int closed_memcpy_to_dm(struct ibv_dm *ibv __rte_unused, uint64_t offset __rte_unused,
			       const void *host_addr __rte_unused, size_t length __rte_unused)
{
	return face_errno(-ENODEV);
}

static int closed_memcpy_from_dm(void *host_addr __rte_unused, struct ibv_dm *ibv __rte_unused,
				 uint64_t offset __rte_unused, size_t length __rte_unused)
{
	return face_errno(-ENODEV);
}

/* End the handle. shared_end frees the memory itself. */
void dm_end(struct face_object *object)
{
	struct face_dm *face = container_of(object, struct face_dm, object);

	face->ibv.memcpy_to_dm = closed_memcpy_to_dm;
	face->ibv.memcpy_from_dm = closed_memcpy_from_dm;
	if (face->shared)
		shared_release(face->shared);
	dm_release_hold(face->dm);
}

/* Share device memory with imported contexts. A context of the parent process cannot share: another
 * thread may have held the lock at fork(). */
static int share(struct face_context *context, struct face_dm *face)
{
	return context_is_orphan(&context->verbs.context)
		       ? 0
		       : shared_add(context, SHARED_DM, face->ibv.handle, face->dm, &face->shared);
}

struct ibv_dm *alloc_dm_op(struct ibv_context *ibv, struct ibv_alloc_dm_attr *attr)
{
	struct face_context *context = face_context(ibv);
	struct face_dm *face;
	struct dm *dm;
	int rc;

	if (context->generation == FACE_CLOSED)
		return face_null(-ENODEV);
	if (!attr || attr->comp_mask != 0)
		return face_null(-EINVAL);
	rc = dm_create(&context->device->dm_pool, attr->length, attr->log_align_req, &dm);
	if (rc != 0)
		return face_null(rc);
	dm_hold(dm);
	face = dm_handle(ibv, dm, context_handle(context));
	rc = face ? share(context, face) : -ENOMEM;
	if (rc == 0) {
		handles_add(&face->ibv);
		return &face->ibv;
	}
	dm_destroy(dm);
	if (face)
		dm_free_handle(face);
	else
		dm_release_hold(dm);
	return face_null(rc);
}

static int end_dm(void *handle)
{
	struct ibv_dm *ibv = handle;
	struct face_dm *face = face_dm(ibv);
	int rc;

	if (face_context(ibv->context)->generation == FACE_CLOSED)
		return -ENODEV;
	rc = context_is_orphan(ibv->context) || !face->shared ? dm_destroy(face->dm)
							      : shared_destroy(face->shared);
	if (rc != 0)
		return rc;
	dm_free_handle(face);
	return 0;
}

int free_dm_op(struct ibv_dm *ibv)
{
	return handles_end(ibv, end_dm);
}
