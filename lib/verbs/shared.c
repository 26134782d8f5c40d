/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that contexts share: found by their handle, and destroyed once, by any of their
 * holders. */
#include <stdlib.h>

#include "device/quota.h"
#include "mem/dm.h"
#include "mem/pd.h"

#include "verbs_internal.h"

static int destroy_pd(struct shared *shared)
{
	struct device *device = shared->root->device;
	int rc;

	objects_remove(device, DEVICE_OBJECT_PD, &shared->listed);
	rc = pd_destroy(shared->object);
	if (rc == 0)
		quota_give(device, DEVICE_QUOTA_PD);
	else if (rc == -EBUSY)
		objects_add(device, DEVICE_OBJECT_PD, &shared->listed, shared->object);
	return rc;
}

static int destroy_object(struct shared *shared)
{
	switch (shared->kind) {
	case SHARED_PD:
		return destroy_pd(shared);
	case SHARED_DM:
		return dm_destroy(shared->object);
	}
	return -EINVAL;
}

/* Keep the object's memory, even if another handle destroys the object. */
static void hold_object(const struct shared *shared)
{
	switch (shared->kind) {
	case SHARED_PD:
		pd_hold(shared->object);
		break;
	case SHARED_DM:
		dm_hold(shared->object);
		break;
	}
}

int shared_add(struct face_context *context, enum shared_kind kind, uint32_t handle, void *object,
	       struct shared **added)
{
	struct face_context *root = context->root;
	struct shared *shared = malloc(sizeof(*shared));

	if (!shared)
		return -ENOMEM;
	*shared = (struct shared){
		.root = root, .kind = kind, .handle = handle, .holders = 1, .object = object};
	pthread_mutex_lock(&root->shared_lock);
	LIST_INSERT_HEAD(&root->shared, shared, link);
	pthread_mutex_unlock(&root->shared_lock);
	*added = shared;
	return 0;
}

static struct shared *find_locked(const struct face_context *root, enum shared_kind kind,
				  uint32_t handle)
{
	struct shared *shared;

	LIST_FOREACH (shared, &root->shared, link) {
		if (shared->kind == kind && shared->handle == handle)
			return shared;
	}
	return NULL;
}

struct shared *shared_hold(struct face_context *context, enum shared_kind kind, uint32_t handle,
			   void **object)
{
	struct face_context *root = context->root;
	struct shared *shared;

	pthread_mutex_lock(&root->shared_lock);
	shared = find_locked(root, kind, handle);
	if (shared) {
		shared->holders++;
		*object = shared->object;
		hold_object(shared);
	}
	pthread_mutex_unlock(&root->shared_lock);
	return shared;
}

bool shared_has_pd(struct face_context *context, const struct pd *pd)
{
	struct face_context *root = context->root;
	struct shared *shared;

	pthread_mutex_lock(&root->shared_lock);
	LIST_FOREACH (shared, &root->shared, link) {
		if (shared->kind == SHARED_PD && shared->object == pd)
			break;
	}
	pthread_mutex_unlock(&root->shared_lock);
	return shared != NULL;
}

void shared_release(struct shared *shared)
{
	struct face_context *root = shared->root;
	bool last;

	pthread_mutex_lock(&root->shared_lock);
	/* Keep an object that nobody has destroyed: it can be imported until the last context
	 * ends. */
	last = --shared->holders == 0 && !shared->object;
	pthread_mutex_unlock(&root->shared_lock);
	if (last)
		free(shared);
}

int shared_destroy(struct shared *shared)
{
	struct face_context *root = shared->root;
	int rc = -EINVAL;

	pthread_mutex_lock(&root->shared_lock);
	if (shared->object)
		rc = destroy_object(shared);
	if (rc == 0) {
		LIST_REMOVE(shared, link);
		shared->object = NULL;
	}
	pthread_mutex_unlock(&root->shared_lock);
	if (rc == 0)
		shared_release(shared);
	return rc;
}

void shared_end(struct face_context *root)
{
	struct shared *shared;

	while ((shared = LIST_FIRST(&root->shared)) != NULL) {
		LIST_REMOVE(shared, link);
		/* Keep a domain that still has regions, because their handles were unimported; but
		 * do not list it any more. */
		if (destroy_object(shared) != 0 && shared->kind == SHARED_PD)
			objects_remove(root->device, DEVICE_OBJECT_PD, &shared->listed);
		free(shared);
	}
}
