/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory. It is memory of the process and needs no engine, so a child of fork() has it as
 * well. */
#include "mem/dm.h"

#include <stdlib.h>

#include "verbs_internal.h"

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
