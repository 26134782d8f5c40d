/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: a resolved path that datagrams name. */
#include <stdlib.h>

#include "device/quota.h"
#include "mem/pd.h"

#include "verbs_internal.h"

struct ibv_ah *ibv_create_ah(struct ibv_pd *ibv, struct ibv_ah_attr *attr)
{
	struct face_context *context = face_context(ibv->context);
	struct face_ah *ah;
	int rc;

	if (context_is_orphan(ibv->context))
		return face_null(-ENODEV);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return face_null(-ENOMEM);
	ah->pd = face_pd(ibv)->pd;
	rc = pd_get(ah->pd);
	if (rc != 0)
		goto free_handle;
	rc = quota_take(context->device, DEVICE_QUOTA_AH);
	if (rc != 0)
		goto put_pd;
	/* Any queue pairs may use a handle, so its flow label depends on its address only. */
	rc = path_resolve(context->device, attr, 0, 0, &ah->ah.path);
	if (rc != 0)
		goto give_quota;
	ah->attr = *attr;
	ah->ah.ibv.context = ibv->context;
	ah->ah.ibv.pd = ibv;
	ah->ah.ibv.handle = context_handle(context);
	ah->parent = parent_get(ibv);
	context_add(context, FACE_AH, &ah->object);
	handles_add(&ah->ah.ibv);
	return &ah->ah.ibv;
give_quota:
	quota_give(context->device, DEVICE_QUOTA_AH);
put_pd:
	pd_put(ah->pd);
free_handle:
	free(ah);
	return face_null(rc);
}

static void give_back(struct face_ah *ah)
{
	quota_give(face_context(ah->ah.ibv.context)->device, DEVICE_QUOTA_AH);
	pd_put(ah->pd);
	parent_put(ah->parent);
}

void ah_end(struct face_object *object)
{
	give_back(container_of(object, struct face_ah, object));
}

static int end_ah(void *handle)
{
	struct ibv_ah *ibv = handle;
	struct face_ah *ah = face_ah(ibv);

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	give_back(ah);
	context_remove(face_context(ibv->context), &ah->object);
	free(ah);
	return 0;
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
	return handles_end(ibv, end_ah);
}
