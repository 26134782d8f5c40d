/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Importing: a second context with the objects of an open one, and second handles of these objects.
 *
 * A context lives in its process, so it can be imported in that process only. Its command
 * descriptor is an empty file in memory that nothing else uses. Duplicates of the descriptor lead
 * to the same file, and so to the context.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "mem/dm.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/pd.h"

#include "verbs_internal.h"

struct search {
	struct stat file;
	struct face_context *found; /* the caller must put it */
};

static void search_device(struct face_device *face, void *arg)
{
	struct search *search = arg;
	struct face_context *context;

	pthread_mutex_lock(&face->lock);
	TAILQ_FOREACH (context, &face->contexts, link) {
		if (search->found || !context->open || context->file_dev != search->file.st_dev ||
		    context->file_ino != search->file.st_ino)
			continue;
		context_get(context);
		search->found = context;
	}
	pthread_mutex_unlock(&face->lock);
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct search search = {.found = NULL};
	struct face_context *context;
	int rc;

	if (fstat(cmd_fd, &search.file) != 0)
		return face_null(-EINVAL);
	device_list_lock();
	device_list_visit(search_device, &search);
	device_list_unlock();
	if (!search.found)
		return face_null(-EINVAL);
	/* From here on the new context owns the descriptor. */
	rc = context_create(search.found->face, cmd_fd, search.found->root, &context);
	context_put(search.found);
	return rc == 0 ? &context->verbs.context : face_null(rc);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *ibv, uint32_t pd_handle)
{
	struct face_context *context = face_context(ibv);
	struct face_pd *pd;
	void *object;

	if (context_is_orphan(ibv))
		return face_null(-ENODEV);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return face_null(-ENOMEM);
	pd->shared = shared_hold(context, SHARED_PD, pd_handle, &object);
	if (!pd->shared) {
		free(pd);
		return face_null(-ENOENT);
	}
	pd->pd = object;
	pd->ibv.context = ibv;
	pd->ibv.handle = pd_handle;
	context_add(context, FACE_PD, &pd->object);
	handles_add(&pd->ibv);
	return &pd->ibv;
}

/* End an imported handle. A parent domain cannot be unimported: only ibv_dealloc_pd ends it. */
static int unimport_pd(void *handle)
{
	struct ibv_pd *ibv = handle;
	struct face_pd *pd = face_pd(ibv);

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	if (pd->parent)
		return -EINVAL;
	shared_release(pd->shared);
	pd_release_hold(pd->pd);
	context_remove(face_context(ibv->context), &pd->object);
	free(pd);
	return 0;
}

void ibv_unimport_pd(struct ibv_pd *ibv)
{
	handles_end(ibv, unimport_pd);
}

/* Find a region by its handle, which is its key. */
static int find_region(struct face_context *context, uint32_t handle, struct face_mr *mr)
{
	struct mr *found;
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	found = key_table_find(context->device->keys, handle);
	if (!found || found->kind == MR_WINDOW || !shared_has_pd(context, found->pd)) {
		context_unlock(context);
		return -ENOENT;
	}
	mr->mr = found;
	mr->key = handle;
	mr->is_null = found->kind == MR_NULL;
	mr->ibv.length = found->length;
	mr->ibv.lkey = handle;
	mr->ibv.rkey = mr->is_null ? 0 : handle;
	context_unlock(context);
	return 0;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *ibv, uint32_t mr_handle)
{
	struct face_context *context = face_context(ibv->context);
	struct face_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return face_null(-ENOMEM);
	rc = find_region(context, mr_handle, mr);
	if (rc != 0) {
		free(mr);
		return face_null(rc);
	}
	mr->imported = true;
	mr->parent = parent_get(ibv);
	mr->ibv.context = ibv->context;
	mr->ibv.pd = ibv;
	mr->ibv.handle = mr_handle;
	context_add(context, FACE_MR, &mr->object);
	handles_add(&mr->ibv);
	return &mr->ibv;
}

static int unimport_mr(void *handle)
{
	struct ibv_mr *ibv = handle;
	struct face_mr *mr = face_mr(ibv);

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	parent_put(mr->parent);
	context_remove(face_context(ibv->context), &mr->object);
	free(mr);
	return 0;
}

void ibv_unimport_mr(struct ibv_mr *ibv)
{
	handles_end(ibv, unimport_mr);
}

struct ibv_dm *ibv_import_dm(struct ibv_context *ibv, uint32_t dm_handle_number)
{
	struct shared *shared;
	struct face_dm *dm;
	void *object;

	if (context_is_orphan(ibv))
		return face_null(-ENODEV);
	shared = shared_hold(face_context(ibv), SHARED_DM, dm_handle_number, &object);
	if (!shared)
		return face_null(-ENOENT);
	dm = dm_handle(ibv, object, dm_handle_number);
	if (!dm) {
		dm_release_hold(object);
		shared_release(shared);
		return face_null(-ENOMEM);
	}
	dm->shared = shared;
	handles_add(&dm->ibv);
	return &dm->ibv;
}

static int unimport_dm(void *handle)
{
	struct ibv_dm *ibv = handle;
	struct face_dm *dm = face_dm(ibv);

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	shared_release(dm->shared);
	dm_free_handle(dm);
	return 0;
}

void ibv_unimport_dm(struct ibv_dm *ibv)
{
	handles_end(ibv, unimport_dm);
}
