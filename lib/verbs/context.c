/* SPDX-License-Identifier: BSD-3-Clause */
/* Open devices: the operations that inline verbs call through, and the life of a context. */
#include <stdlib.h>

#include "verbs_internal.h"

int context_lock(struct face_context *context)
{
	if (unlikely(fork_in_child))
		return -ENODEV;
	context->device->ops->lock(context->device->engine);
	return 0;
}

void context_unlock(struct face_context *context)
{
	context->device->ops->unlock(context->device->engine);
}

uint32_t context_handle(struct face_context *context)
{
	return __atomic_fetch_add(&context->next_handle, 1, __ATOMIC_RELAXED);
}

void context_get(struct face_context *context)
{
	__atomic_add_fetch(&context->users, 1, __ATOMIC_RELAXED);
}

/*
 * The last to leave frees it. An application that closes a device before its objects keeps them
 * working until it destroys them, or forever, but nothing points to freed memory.
 */
void context_put(struct face_context *context)
{
	struct face_device *face = context->face;

	/* Everything that others did with the context comes before the freeing. */
	if (__atomic_sub_fetch(&context->users, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	pthread_mutex_lock(&face->lock);
	TAILQ_REMOVE(&face->contexts, context, link);
	pthread_mutex_unlock(&face->lock);
	event_drop_context(context);
	channel_fini(&context->async);
	pthread_mutex_destroy(&context->verbs.context.mutex);
	free(context);
}

/* What is built; everything else stays as unsupported.c has it. */
static void fill_operations(struct verbs_context *verbs)
{
	struct ibv_context_ops *ops = &verbs->context.ops;

	*verbs = unsupported_verbs;
	verbs->query_port = query_port_sized;
	verbs->query_device_ex = query_device_sized;
	verbs->alloc_td = td_alloc_op;
	verbs->dealloc_td = td_dealloc_op;
	verbs->alloc_parent_domain = parent_alloc_op;
	verbs->alloc_null_mr = mr_alloc_null_op;
	verbs->advise_mr = mr_advise_op;
	verbs->alloc_dm = dm_alloc_op;
	verbs->free_dm = dm_free_op;
	verbs->reg_dm_mr = mr_reg_dm_op;
	verbs->create_cq_ex = cq_ex_create_op;
	verbs->modify_cq = cq_modify_op;
	verbs->query_rt_values = query_clock_op;
	verbs->create_qp_ex = qp_ex_create_op;
	verbs->open_qp = qp_open_op;
	verbs->create_srq_ex = srq_ex_create_op;
	verbs->get_srq_num = srq_number_op;
	verbs->open_xrcd = xrcd_open_op;
	verbs->close_xrcd = xrcd_close_op;
	ops->_compat_query_device = ibv_query_device;
	ops->_compat_query_port = query_port_legacy;
	ops->alloc_mw = mw_alloc_op;
	ops->bind_mw = mw_bind_op;
	ops->dealloc_mw = mw_dealloc_op;
	ops->poll_cq = cq_poll_op;
	ops->req_notify_cq = cq_arm_op;
	ops->post_send = post_send_op;
	ops->post_recv = post_recv_op;
	ops->post_srq_recv = post_srq_recv_op;
}

struct ibv_context *ibv_open_device(struct ibv_device *ibv)
{
	struct face_device *face = face_device(ibv);
	struct face_context *context;
	struct ibv_context *public;
	int rc;

	if (fork_in_child)
		return face_null(-ENODEV);
	context = calloc(1, sizeof(*context));
	if (!context)
		return face_null(-ENOMEM);
	rc = channel_init(&context->async);
	if (rc != 0) {
		free(context);
		return face_null(rc);
	}
	fill_operations(&context->verbs);
	context->verbs.priv = (struct verbs_ex_private *)context;
	context->verbs.sz = sizeof(context->verbs);
	public = &context->verbs.context;
	public->device = ibv;
	public->cmd_fd = -1; /* there is no kernel device behind it */
	public->async_fd = context->async.fd;
	public->num_comp_vectors = FACE_COMP_VECTORS;
	public->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&public->mutex, NULL);
	context->face = face;
	context->device = face->device;
	context->users = 1;
	event_init_context(context);
	pthread_mutex_lock(&face->lock);
	context->open = true;
	TAILQ_INSERT_TAIL(&face->contexts, context, link);
	pthread_mutex_unlock(&face->lock);
	return public;
}

int ibv_close_device(struct ibv_context *ibv)
{
	struct face_context *context = face_context(ibv);
	struct face_device *face = context->face;

	if (fork_in_child)
		return face_minus_one(-ENODEV);
	pthread_mutex_lock(&face->lock);
	context->open = false;
	pthread_mutex_unlock(&face->lock);
	context_put(context);
	return 0;
}
