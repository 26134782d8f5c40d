/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory. */
#include "mem/dm.h"

#include <stdlib.h>

#include "verbs_internal.h"

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *host_addr, size_t length)
{
	if (fork_in_child)
		return ENODEV;
	return -dm_write(face_dm(ibv)->dm, offset, host_addr, length);
}

static int copy_from(void *host_addr, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	if (fork_in_child)
		return ENODEV;
	return -dm_read(face_dm(ibv)->dm, offset, host_addr, length);
}

void dm_publish(struct ibv_context *ibv, struct face_dm *dm, uint32_t handle)
{
	context_get(face_context(ibv));
	dm->ibv.context = ibv;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.handle = handle;
}

static int create(struct face_context *context, const struct ibv_alloc_dm_attr *attr,
		  uint32_t handle, struct face_dm *dm)
{
	int rc = dm_create(&context->device->dm_pool, attr->length, attr->log_align_req, &dm->dm);

	if (rc != 0)
		return rc;
	rc = shared_add(context, SHARED_DM, handle, dm->dm, &dm->shared);
	if (rc != 0)
		dm_destroy(dm->dm);
	return rc;
}

struct ibv_dm *dm_alloc_op(struct ibv_context *ibv, struct ibv_alloc_dm_attr *attr)
{
	struct face_context *context = face_context(ibv);
	struct face_dm *dm;
	uint32_t handle;
	int rc;

	if (fork_in_child)
		return face_null(-ENODEV);
	if (!attr || attr->comp_mask != 0)
		return face_null(-EINVAL);
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return face_null(-ENOMEM);
	handle = context_handle(context);
	rc = create(context, attr, handle, dm);
	if (rc != 0) {
		free(dm);
		return face_null(rc);
	}
	dm_publish(ibv, dm, handle);
	return &dm->ibv;
}

int dm_free_op(struct ibv_dm *ibv)
{
	struct face_dm *dm = face_dm(ibv);
	int rc;

	if (fork_in_child)
		return ENODEV;
	rc = shared_destroy(dm->shared);
	if (rc != 0)
		return -rc;
	context_put(face_context(ibv->context));
	free(dm);
	return 0;
}
