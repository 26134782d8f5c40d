/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains; parent domains are deallocated here too. */
#include <stdlib.h>

#include "device/quota.h"
#include "mem/pd.h"

#include "verbs_internal.h"

static int create(struct face_context *context, struct face_pd *pd)
{
	struct device *device = context->device;
	int rc = quota_take(device, DEVICE_QUOTA_PD);

	if (rc != 0)
		return rc;
	rc = pd_create(device->keys, &pd->pd);
	if (rc != 0)
		goto give;
	pd->pd->pager = device->pager;
	rc = shared_add(context, SHARED_PD, pd->ibv.handle, pd->pd, &pd->shared);
	if (rc == 0) {
		pd->pd->number = objects_add(device, DEVICE_OBJECT_PD, &pd->shared->listed, pd->pd);
		pd_hold(pd->pd);
		return 0;
	}
	pd_destroy(pd->pd);
give:
	quota_give(device, DEVICE_QUOTA_PD);
	return rc;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ibv)
{
	struct face_context *context = face_context(ibv);
	struct face_pd *pd;
	int rc;

	if (context_is_orphan(ibv))
		return face_null(-ENODEV);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return face_null(-ENOMEM);
	pd->ibv.context = ibv;
	pd->ibv.handle = context_handle(context);
	rc = create(context, pd);
	if (rc != 0) {
		free(pd);
		return face_null(rc);
	}
	context_add(context, FACE_PD, &pd->object);
	handles_add(&pd->ibv);
	return &pd->ibv;
}

/* End the handle. shared_end destroys the domain itself. */
void pd_end(struct face_object *object)
{
	struct face_pd *pd = container_of(object, struct face_pd, object);

	shared_release(pd->shared);
	pd_release_hold(pd->pd);
}

static int end_pd(void *handle)
{
	struct ibv_pd *ibv = handle;
	struct face_pd *pd = face_pd(ibv);
	int rc;

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	if (pd->parent)
		return parent_dealloc(pd->parent);
	rc = shared_destroy(pd->shared);
	if (rc != 0)
		return rc;
	pd_release_hold(pd->pd);
	context_remove(face_context(ibv->context), &pd->object);
	free(pd);
	return 0;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	return handles_end(ibv, end_pd);
}
