/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions, and advice about them. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/verbs_later.h"
#include "device/device_map.h"
#include "device/limits.h"
#include "device/quota.h"
#include "mem/advise.h"
#include "mem/dm.h"
#include "mem/dmabuf.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "check.h"
#include "verbs_internal.h"

/* The header defines macros of these names, which choose a version for the caller. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Return the bytes that count as registered memory: none for an on-demand region, which keeps no
 * pages, and for device memory, which is the device's. */
static uint64_t charge(enum mr_kind kind, unsigned int access, uint64_t length)
{
	const bool keeps = kind == MR_MEMORY && !(access & IBV_ACCESS_ON_DEMAND);

	return keeps || kind == MR_DMABUF ? length : 0;
}

/* Allocate the public part of a region; face_end joins it with the region. */
static int face_begin(struct ibv_pd *pd, struct face_mr **mr)
{
	struct device *device = face_context(pd->context)->device;
	int rc;

	if (context_is_orphan(pd->context))
		return -ENODEV;
	rc = quota_take(device, DEVICE_QUOTA_MR);
	if (rc != 0)
		return rc;
	*mr = calloc(1, sizeof(**mr));
	if (*mr)
		return 0;
	quota_give(device, DEVICE_QUOTA_MR);
	return -ENOMEM;
}

/* Return the new region, or the error. `key` is both the local and the remote key. */
static struct ibv_mr *face_end_by(struct face_mr *mr, int rc, struct ibv_pd *pd, void *addr,
				  size_t length, const char *function)
{
	struct face_context *context = face_context(pd->context);

	if (rc != 0) {
		quota_give(context->device, DEVICE_QUOTA_MR);
		free(mr);
		face_fail(rc, function);
		return NULL;
	}
	origin_note(mr->mr);
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	/* As with adapters, a null region keeps nobody from deallocating its domain. */
	mr->parent = mr->mr->kind == MR_NULL ? NULL : parent_get(pd);
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.handle = mr->mr->key;
	mr->key = mr->mr->key;
	mr->ibv.lkey = mr->mr->key;
	mr->ibv.rkey = mr->mr->key;
	check_mr_created(mr);
	context_add(context, FACE_MR, &mr->object);
	handles_add(&mr->ibv);
	return &mr->ibv;
}

#define face_end(mr, rc, pd, addr, length) face_end_by(mr, rc, pd, addr, length, __func__)

/* Map the region for the port. If this fails, packets copy its payload as usual. */
static void map_for_port(struct face_context *context, struct mr *mr)
{
	if (!device_may_map(context->device, mr) || context_lock(context) != 0)
		return;
	device_map(context->device, mr);
	context_unlock(context);
}

/* Check that the device of --like has such a region. */
static int check_like(size_t length, unsigned int access)
{
	const uint64_t most = like_most(LIKE_max_mr_size, DEVICE_MAX_MR_BYTES);
	int rc = access & IBV_ACCESS_ON_DEMAND ? like_refuses(LIKE_LACKS_odp) : 0;

	if (rc == 0)
		rc = like_check_access(access);
	if (rc == 0 && length > most)
		rc = CALL_REASON(-EINVAL, "max_mr_size is 0x%" PRIx64, most);
	return rc;
}

struct ibv_mr *mr_reg(struct ibv_pd *ibv, void *addr, size_t length, uint64_t iova,
		      unsigned int access, const char *function)
{
	struct device *device = face_context(ibv->context)->device;
	struct face_mr *mr;
	int rc = check_like(length, access);

	if (rc == 0)
		rc = face_begin(ibv, &mr);

	if (rc != 0)
		return face_null_by(rc, function);
	rc = quota_take_bytes(device, charge(MR_MEMORY, access, length));
	if (rc == 0) {
		rc = mr_register(face_pd(ibv)->pd, addr, length, iova, access, &mr->mr);
		if (rc == 0)
			map_for_port(face_context(ibv->context), mr->mr);
		else
			quota_give_bytes(device, charge(MR_MEMORY, access, length));
	}
	return face_end_by(mr, rc, ibv, addr, length, function);
}

/* No program calls it by name: the macros of verbs.h do, for ibv_reg_mr and ibv_reg_mr_iova with
 * rights that the compiler does not know. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *ibv, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return mr_reg(ibv, addr, length, iova, access,
		      iova == (uintptr_t)addr ? "ibv_reg_mr" : "ibv_reg_mr_iova");
}

struct ibv_mr *alloc_null_mr_op(struct ibv_pd *ibv)
{
	struct ibv_mr *null;
	struct face_mr *mr;
	int rc = face_begin(ibv, &mr);

	if (rc != 0)
		return face_null(rc);
	rc = mr_create_null(face_pd(ibv)->pd, &mr->mr);
	null = face_end(mr, rc, ibv, NULL, SIZE_MAX);
	if (null) {
		null->rkey = 0; /* no region has this key */
		mr->is_null = true;
	}
	return null;
}

/* Register device memory. The program has no address of it, so the region is zero-based. */
struct ibv_mr *reg_dm_mr_op(struct ibv_pd *ibv, struct ibv_dm *dm, uint64_t dm_offset,
			    size_t length, unsigned int access)
{
	struct face_mr *mr;
	int rc = face_begin(ibv, &mr);

	if (rc != 0)
		return face_null(rc);
	if (dm->context == ibv->context)
		rc = dm_register(face_pd(ibv)->pd, face_dm(dm)->dm, dm_offset, length, access,
				 &mr->mr);
	else
		rc = -EINVAL;
	return face_end(mr, rc, ibv, NULL, length);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *ibv, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	struct device *device = face_context(ibv->context)->device;
	struct face_mr *mr;
	int rc = like_refuses(LIKE_LACKS_dmabuf);

	if (rc == 0)
		rc = face_begin(ibv, &mr);
	if (rc != 0)
		return face_null(rc);
	rc = quota_take_bytes(device, length);
	if (rc == 0) {
		rc = dmabuf_register(face_pd(ibv)->pd, offset, length, iova, fd,
				     (unsigned int)access, &mr->mr);
		if (rc != 0)
			quota_give_bytes(device, length);
	}
	/* Return the address that rdma-core returns. */
	return face_end(mr, rc, ibv, (void *)(uintptr_t)offset, length);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *ibv, void *addr, size_t length, int access)
{
	return mr_reg(ibv, addr, length, (uintptr_t)addr, (unsigned int)access, __func__);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *ibv, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return mr_reg(ibv, addr, length, iova, (unsigned int)access, __func__);
}

/* Set the public fields of a changed region. */
static void fill_change(struct face_mr *mr, const struct mr_change *change, struct ibv_pd *pd)
{
	if (change->flags & IBV_REREG_MR_CHANGE_PD) {
		parent_put(mr->parent);
		mr->parent = parent_get(pd);
		mr->ibv.pd = pd;
	}
	if (change->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->ibv.addr = change->addr;
		mr->ibv.length = change->length;
	}
}

/* Return true if no other handle has ended the region (ibv_import_mr(3)). */
static bool is_live(const struct face_mr *mr)
{
	return key_table_find(face_context(mr->ibv.context)->device->keys, mr->key) == mr->mr;
}

/* Check a change on a copy of the region: the engine runs while pages are faulted in, and another
 * handle may end the region meanwhile. */
static int check_change(struct face_mr *mr, const struct mr_change *change)
{
	struct face_context *context = face_context(mr->ibv.context);
	struct mr now;
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	if (mr->imported || !is_live(mr)) {
		context_unlock(context);
		return -EINVAL;
	}
	now = *mr->mr;
	pd_hold(now.pd);
	context_unlock(context);
	rc = mr_check_change(&now, change);
	pd_release_hold(now.pd);
	return rc;
}

/* Map a region whose mapping was removed. It may have other memory now. */
static void map_again(struct device *device, struct mr *mr)
{
	if (device_may_map(device, mr))
		device_map(device, mr);
}

static int change_region(struct device *device, struct mr *mr, const struct mr_change *change)
{
	int rc;

	device_unmap(device, mr);
	rc = mr_apply_change(mr, change);
	map_again(device, mr);
	return rc;
}

/* Add the memory that the region will have before removing what it had. */
static int apply_change_locked(struct device *device, struct mr *mr, const struct mr_change *change)
{
	const uint64_t before = charge(mr->kind, mr->access, mr->length);
	uint64_t after = charge(
		mr->kind, change->flags & IBV_REREG_MR_CHANGE_ACCESS ? change->access : mr->access,
		change->flags & IBV_REREG_MR_CHANGE_TRANSLATION ? change->length : mr->length);
	int rc = quota_take_bytes(device, after > before ? after - before : 0);

	if (rc != 0)
		return rc;
	rc = change_region(device, mr, change);
	if (rc != 0)
		quota_give_bytes(device, after > before ? after - before : 0);
	else
		quota_give_bytes(device, before > after ? before - after : 0);
	return rc;
}

/* Unmap the region from the port first: after mr_deregister it does not exist any more. */
static int deregister(struct device *device, struct mr *mr)
{
	struct origin *origin = origin_take(mr);
	int rc;

	device_unmap(device, mr);
	rc = mr_deregister(mr);
	origin_settle(origin, rc != 0);
	if (rc != 0)
		map_again(device, mr);
	return rc;
}

/* Do the change as soon as no thread waits for a page of the region. The engine runs in this
 * wait. */
static int apply_change(struct face_context *context, const struct face_mr *mr,
			const struct mr_change *change)
{
	int rc;

	do {
		rc = context_lock(context);
		if (rc != 0)
			return rc;
		rc = is_live(mr) ? apply_change_locked(context->device, mr->mr, change) : -EINVAL;
		context_unlock(context);
		if (rc == -EAGAIN)
			advise_wait(mr->mr);
	} while (rc == -EAGAIN);
	return rc;
}

/*
 * Everything that can fail comes before the change. So after an error of arguments or memory the
 * old region is still valid, which the code IBV_REREG_MR_ERR_INPUT says; errno has the cause. The
 * codes about fork never occur, because registered memory needs no care there (fork.c).
 */
int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct face_context *context = face_context(ibv->context);
	struct face_mr *mr = face_mr(ibv);
	const struct mr_change change = {.flags = (unsigned int)flags,
					 .pd = pd ? face_pd(pd)->pd : NULL,
					 .addr = addr,
					 .length = length,
					 .access = (unsigned int)access};
	int rc;

	if (context_is_orphan(ibv->context)) {
		errno = ENODEV;
		return IBV_REREG_MR_ERR_CMD;
	}
	rc = like_refuses(LIKE_LACKS_rereg);
	if (rc == 0)
		rc = check_like(flags & IBV_REREG_MR_CHANGE_TRANSLATION ? length : 0,
				flags & IBV_REREG_MR_CHANGE_ACCESS ? change.access : 0);
	if (rc == 0)
		rc = check_change(mr, &change);
	if (rc == 0 && (flags & IBV_REREG_MR_CHANGE_PD) && pd->context != ibv->context)
		rc = -EINVAL;
	if (rc != 0) {
		face_errno(rc);
		return IBV_REREG_MR_ERR_INPUT;
	}
	rc = apply_change(context, mr, &change);
	if (rc != 0) {
		face_errno(rc);
		return rc == -ENODEV ? IBV_REREG_MR_ERR_CMD : IBV_REREG_MR_ERR_INPUT;
	}
	check_mr_ended(mr, flags & (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD));
	fill_change(mr, &change, pd);
	check_mr_created(mr);
	return 0;
}

/* End the region itself, unless a thread waits for a page of it. `bytes` is what it counted as. */
static int end_region_now(struct face_context *context, const struct face_mr *mr, uint64_t *bytes)
{
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	if (is_live(mr)) {
		*bytes = charge(mr->mr->kind, mr->mr->access, mr->mr->length);
		rc = deregister(context->device, mr->mr);
	} else {
		rc = -EINVAL;
	}
	context_unlock(context);
	return rc;
}

/* End the region itself. The engine runs while this waits. -EINVAL if another handle has ended
 * it. */
static int end_region(struct face_context *context, const struct face_mr *mr)
{
	uint64_t bytes = 0;
	int rc;

	while ((rc = end_region_now(context, mr, &bytes)) == -EAGAIN)
		advise_wait(mr->mr);
	if (rc != 0)
		return rc;
	check_mr_ended(mr, true);
	quota_give_bytes(context->device, bytes);
	quota_give(context->device, DEVICE_QUOTA_MR);
	return 0;
}

/* End a region. Its windows have ended before, so this can only fail if another handle has ended
 * it. */
void mr_end(struct face_object *object)
{
	struct face_mr *mr = container_of(object, struct face_mr, object);

	end_region(face_context(mr->ibv.context), mr);
	parent_put(mr->parent);
}

static int end_mr(void *handle)
{
	struct ibv_mr *ibv = handle;
	struct face_context *context = face_context(ibv->context);
	struct face_mr *mr = face_mr(ibv);
	const int rc = end_region(context, mr);

	if (rc != 0)
		return rc;
	parent_put(mr->parent);
	context_remove(context, &mr->object);
	free(mr);
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	return handles_end(ibv, end_mr);
}

static int advise(struct face_context *context, struct ibv_pd *ibv,
		  enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sge,
		  uint32_t num_sge, struct advise_range *ranges)
{
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	rc = advise_check(face_pd(ibv)->pd, advice, flags, sge, num_sge, ranges);
	if (rc == 0 && !(flags & IBV_ADVISE_MR_FLAG_FLUSH))
		rc = advise_follow_later(advice, ranges, num_sge);
	context_unlock(context);
	/* This may take long, so the engine runs. A region that is deregistered meanwhile needs no
	 * advice. */
	if (rc == 0 && (flags & IBV_ADVISE_MR_FLAG_FLUSH))
		rc = advise_follow(advice, ranges, num_sge);
	return rc;
}

int advise_mr_op(struct ibv_pd *ibv, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sge, uint32_t num_sge)
{
	struct advise_range *ranges = calloc((size_t)num_sge + 1, sizeof(*ranges));
	int rc;

	if (!ranges)
		return face_errno(-ENOMEM);
	rc = advise(face_context(ibv->context), ibv, advice, flags, sge, num_sge, ranges);
	free(ranges);
	return face_errno(rc);
}
