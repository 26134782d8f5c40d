/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, and thread domains and parent domains. A parent domain is a protection domain
 * whose queues may be for one thread only, and whose rings the application may allocate. */
#include <stdlib.h>

#include "device/quota.h"
#include "mem/pd.h"
#include "uroce/verbs.h"
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

struct ibv_td *alloc_td_op(struct ibv_context *ibv, struct ibv_td_init_attr *attr)
{
	struct face_td *td;

	if (context_is_orphan(ibv))
		return face_null(-ENODEV);
	if (!attr || attr->comp_mask != 0)
		return face_null(-EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return face_null(-ENOMEM);
	td->ibv.context = ibv;
	td->number = home_next_number();
	context_add(face_context(ibv), FACE_TD, &td->object);
	handles_add(&td->ibv);
	return &td->ibv;
}

static int end_td(void *handle)
{
	struct ibv_td *ibv = handle;
	struct face_td *td = (struct face_td *)ibv;

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	if (__atomic_load_n(&td->users, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	context_remove(face_context(ibv->context), &td->object);
	free(td);
	return 0;
}

int dealloc_td_op(struct ibv_td *ibv)
{
	return handles_end(ibv, end_td);
}

static uint64_t resource_type(enum ring_kind kind)
{
	static const enum uroce_resource resources[] = {
		[RING_SEND] = UROCE_RESOURCE_SEND_QUEUE,
		[RING_RECV] = UROCE_RESOURCE_RECV_QUEUE,
		[RING_SHARED_RECV] = UROCE_RESOURCE_SHARED_RECV_QUEUE,
		[RING_COMPLETION] = UROCE_RESOURCE_COMPLETION_QUEUE,
	};

	return uroce_resource_type(resources[kind]);
}

static int ask_alloc(void *user, size_t bytes, size_t alignment, enum ring_kind kind, void **memory)
{
	struct face_parent *parent = user;
	void *got = parent->alloc(&parent->domain.ibv, parent->pd_context, bytes, alignment,
				  resource_type(kind));

	if (!got)
		return -ENOMEM;
	*memory = got == IBV_ALLOCATOR_USE_DEFAULT ? NULL : got;
	return 0;
}

static void ask_free(void *user, void *memory, enum ring_kind kind)
{
	struct face_parent *parent = user;

	parent->free(&parent->domain.ibv, parent->pd_context, memory, resource_type(kind));
}

static int check_attr(const struct ibv_context *ibv, const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

	if (!attr || (attr->comp_mask & ~known))
		return -EINVAL;
	if (!attr->pd || attr->pd->context != ibv)
		return -EINVAL;
	if (attr->td && attr->td->context != ibv)
		return -EINVAL;
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free))
		return -EINVAL;
	return 0;
}

static void fill(struct face_parent *parent, const struct ibv_parent_domain_init_attr *attr)
{
	parent->td = (struct face_td *)attr->td;
	parent->queues.single_threaded = attr->td != NULL;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		parent->pd_context = attr->pd_context;
	if (!(attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS))
		return;
	parent->alloc = attr->alloc;
	parent->free = attr->free;
	parent->allocator =
		(struct ring_allocator){.alloc = ask_alloc, .free = ask_free, .user = parent};
	parent->queues.allocator = &parent->allocator;
}

struct ibv_pd *alloc_parent_domain_op(struct ibv_context *ibv,
				      struct ibv_parent_domain_init_attr *attr)
{
	struct face_parent *parent;
	int rc;

	if (context_is_orphan(ibv))
		return face_null(-ENODEV);
	rc = check_attr(ibv, attr);
	if (rc != 0)
		return face_null(rc);
	parent = calloc(1, sizeof(*parent));
	if (!parent)
		return face_null(-ENOMEM);
	rc = pd_get(face_pd(attr->pd)->pd);
	if (rc != 0) {
		free(parent);
		return face_null(rc);
	}
	fill(parent, attr);
	parent->domain = (struct face_pd){
		.ibv = {.context = ibv, .handle = attr->pd->handle},
		.pd = face_pd(attr->pd)->pd,
		.parent = parent,
	};
	parent->outer = parent_get(attr->pd);
	if (parent->td)
		__atomic_add_fetch(&parent->td->users, 1, __ATOMIC_RELAXED);
	context_add(face_context(ibv), FACE_PARENT, &parent->domain.object);
	handles_add(&parent->domain.ibv);
	return &parent->domain.ibv;
}

void parent_end(struct face_object *object)
{
	pd_put(container_of(object, struct face_pd, object)->pd);
}

int parent_dealloc(struct face_parent *parent)
{
	if (__atomic_load_n(&parent->users, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	if (parent->td)
		__atomic_sub_fetch(&parent->td->users, 1, __ATOMIC_RELEASE);
	pd_put(parent->domain.pd);
	parent_put(parent->outer);
	context_remove(face_context(parent->domain.ibv.context), &parent->domain.object);
	free(parent);
	return 0;
}

struct face_parent *parent_get(struct ibv_pd *ibv)
{
	struct face_parent *parent = face_pd(ibv)->parent;

	if (parent)
		__atomic_add_fetch(&parent->users, 1, __ATOMIC_RELAXED);
	return parent;
}

void parent_put(struct face_parent *parent)
{
	if (parent)
		__atomic_sub_fetch(&parent->users, 1, __ATOMIC_RELEASE);
}
