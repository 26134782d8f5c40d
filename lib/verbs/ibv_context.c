/* SPDX-License-Identifier: BSD-3-Clause */
/* Open devices: the operations that inline verbs call, and the lifetime of a context. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mem/mr.h"

#include "check.h"
#include "inject.h"
#include "unfold.h"
#include "verbs_internal.h"

int context_lock(struct face_context *context)
{
	if (context_is_orphan(&context->verbs.context))
		return -ENODEV;
	device_lock(context->device);
	return 0;
}

void context_unlock(struct face_context *context)
{
	device_unlock(context->device);
}

uint32_t context_handle(struct face_context *context)
{
	return __atomic_fetch_add(&context->root->next_handle, 1, __ATOMIC_RELAXED);
}

void context_get(struct face_context *context)
{
	__atomic_add_fetch(&context->users, 1, __ATOMIC_RELAXED);
}

void context_add(struct face_context *context, enum face_kind kind, struct face_object *object)
{
	context_get(context);
	check_keep_origin(object);
	pthread_mutex_lock(&context->face->lock);
	LIST_INSERT_HEAD(&context->objects[kind], object, link);
	pthread_mutex_unlock(&context->face->lock);
}

void context_remove(struct face_context *context, struct face_object *object)
{
	pthread_mutex_lock(&context->face->lock);
	LIST_REMOVE(object, link);
	pthread_mutex_unlock(&context->face->lock);
	check_drop_origin(object);
	context_put(context);
}

/* Remove a user; the last one frees the context. It is either the thread that closes the context,
 * or another one that is importing it. */
void context_put(struct face_context *context)
{
	struct face_device *face = context->face;
	struct face_context *root = context->root;

	/* Acquire and release: all accesses of other users happen before the context is freed. */
	if (__atomic_sub_fetch(&context->users, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	pthread_mutex_lock(&face->lock);
	TAILQ_REMOVE(&face->contexts, context, link);
	pthread_mutex_unlock(&face->lock);
	if (root == context)
		shared_end(root);
	event_drop_context(context);
	channel_fini(&context->async);
	pthread_mutex_destroy(&context->verbs.context.mutex);
	pthread_mutex_destroy(&context->shared_lock);
	check_drop_origin(context);
	free(context);
	if (root != context)
		context_put(root);
}

/* Set the supported operations; unsupported.c has set all others. */
static void fill_operations(struct verbs_context *verbs)
{
	struct ibv_context_ops *ops = &verbs->context.ops;

	*verbs = unsupported_verbs;
	verbs->query_port = query_port_op;
	verbs->query_device_ex = query_device_ex_op;
	verbs->alloc_td = alloc_td_op;
	verbs->dealloc_td = dealloc_td_op;
	verbs->alloc_parent_domain = alloc_parent_domain_op;
	verbs->alloc_null_mr = alloc_null_mr_op;
	verbs->advise_mr = advise_mr_op;
	verbs->alloc_dm = alloc_dm_op;
	verbs->free_dm = free_dm_op;
	verbs->reg_dm_mr = reg_dm_mr_op;
	verbs->create_cq_ex = create_cq_ex_op;
	verbs->modify_cq = modify_cq_op;
	verbs->query_rt_values = query_rt_values_ex_op;
	verbs->create_qp_ex = create_qp_ex_op;
	verbs->open_qp = open_qp_op;
	verbs->modify_qp_rate_limit = modify_qp_rate_limit_op;
	verbs->create_srq_ex = create_srq_ex_op;
	verbs->get_srq_num = get_srq_num_op;
	verbs->open_xrcd = open_xrcd_op;
	verbs->close_xrcd = close_xrcd_op;
	ops->_compat_query_device = ibv_query_device;
	ops->_compat_query_port = query_port_legacy;
	ops->alloc_mw = alloc_mw_op;
	ops->bind_mw = bind_mw_op;
	ops->dealloc_mw = dealloc_mw_op;
	ops->poll_cq = poll_cq_op;
	ops->req_notify_cq = req_notify_cq_op;
	ops->post_send = post_send_op;
	ops->post_recv = post_recv_op;
	ops->post_srq_recv = post_srq_recv_op;
	like_operations(verbs);
	unfold_operations(verbs);
	inject_operations(verbs);
	check_operations(verbs);
}

/* Open an empty file of our own, so that duplicates of its descriptor can be recognised. */
static int open_file(struct face_context *context, int cmd_fd)
{
	const int fd = cmd_fd < 0 ? memfd_create("uroce", MFD_CLOEXEC) : cmd_fd;
	struct stat file;

	if (fd < 0 || fstat(fd, &file) != 0)
		return -errno;
	context->file_dev = file.st_dev;
	context->file_ino = file.st_ino;
	context->verbs.context.cmd_fd = fd;
	return 0;
}

static void fill_public(struct face_context *context)
{
	struct ibv_context *public = &context->verbs.context;

	context->verbs.priv = (struct verbs_ex_private *)context;
	context->verbs.sz = sizeof(context->verbs);
	public->device = &context->face->ibv;
	public->async_fd = context->async.fd;
	public->num_comp_vectors = (int)context->device->engine_count;
	public->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&public->mutex, NULL);
}

int context_create(struct face_device *face, int cmd_fd, struct face_context *root,
		   struct face_context **created)
{
	struct face_context *context = calloc(1, sizeof(*context));
	int rc;

	if (!context)
		return -ENOMEM;
	fill_operations(&context->verbs);
	rc = channel_init(&context->async);
	if (rc != 0) {
		free(context);
		return rc;
	}
	rc = open_file(context, cmd_fd);
	if (rc != 0) {
		channel_fini(&context->async);
		free(context);
		return rc;
	}
	context->face = face;
	context->device = face->device;
	context->generation = face->generation;
	context->users = 1;
	context->root = root ? root : context;
	if (root)
		context_get(root);
	pthread_mutex_init(&context->shared_lock, NULL);
	fill_public(context);
	event_init_context(context);
	check_keep_origin(context);
	pthread_mutex_lock(&face->lock);
	context->open = true;
	TAILQ_INSERT_TAIL(&face->contexts, context, link);
	pthread_mutex_unlock(&face->lock);
	objects_add(face->device, DEVICE_OBJECT_CTX, &context->listed, context);
	handles_add(&context->verbs.context);
	*created = context;
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *ibv)
{
	struct face_device *face = device_list_present(face_device(ibv));
	struct face_context *context;
	int rc;

	if (!face)
		return face_null(-ENODEV);
	mr_prepare();
	rc = context_create(face, -1, NULL, &context);
	return rc == 0 ? &context->verbs.context : face_null(rc);
}

/* Close one of the contexts that share a file. Return true if it was the last open one. */
static bool close_one(struct face_context *context)
{
	struct face_device *face = context->face;
	const struct face_context *other;

	objects_remove(face->device, DEVICE_OBJECT_CTX, &context->listed);
	pthread_mutex_lock(&face->lock);
	context->open = false;
	TAILQ_FOREACH (other, &face->contexts, link) {
		if (other->open && other->root == context->root)
			break;
	}
	pthread_mutex_unlock(&face->lock);
	return other == NULL;
}

static int close_context(void *handle)
{
	struct ibv_context *ibv = handle;
	struct face_context *context = face_context(ibv);
	struct face_context *root = context->root;
	const int cmd_fd = ibv->cmd_fd;
	struct stat file;
	bool last, is_file;

	if (context_is_orphan(ibv))
		return -ENODEV;
	context_get(root);
	/* The program may have closed the descriptor, and use its number for a file of its own. */
	is_file = fstat(cmd_fd, &file) == 0 && file.st_dev == context->file_dev &&
		  file.st_ino == context->file_ino;
	last = close_one(context);
	if (last)
		close_contexts(root);
	if (is_file)
		close(cmd_fd);
	context_put(context);
	context_put(root);
	return 0;
}

int ibv_close_device(struct ibv_context *ibv)
{
	return handles_end(ibv, close_context) == 0 ? 0 : -1;
}
