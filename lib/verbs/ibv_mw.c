/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. */
#include "mem/mw.h"

#include <stdlib.h>

#include "device/quota.h"

#include "verbs_internal.h"

static int mw_open(struct face_context *context, struct ibv_pd *pd, enum ibv_mw_type type,
		   struct face_mw **created)
{
	struct face_mw *mw = calloc(1, sizeof(*mw));
	int rc;

	if (!mw)
		return -ENOMEM;
	rc = mw_create(face_pd(pd)->pd, type, &mw->mw);
	if (rc != 0) {
		free(mw);
		return rc;
	}
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->parent = parent_get(pd);
	mw->ibv.rkey = mw->mw->view.key;
	mw->ibv.handle = context_handle(context);
	mw->ibv.type = type;
	context_add(context, FACE_MW, &mw->object);
	handles_add(&mw->ibv);
	*created = mw;
	return 0;
}

struct ibv_mw *alloc_mw_op(struct ibv_pd *ibv, enum ibv_mw_type type)
{
	struct face_context *context = face_context(ibv->context);
	struct face_mw *mw;
	int rc;

	if (context_is_orphan(ibv->context))
		return face_null(-ENODEV);
	rc = quota_take(context->device, DEVICE_QUOTA_MW);
	if (rc != 0)
		return face_null(rc);
	rc = mw_open(context, ibv, type, &mw);
	if (rc == 0)
		return &mw->ibv;
	quota_give(context->device, DEVICE_QUOTA_MW);
	return face_null(rc);
}

static int end_window(struct face_context *context, struct face_mw *mw)
{
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	mw_destroy(mw->mw);
	context_unlock(context);
	quota_give(context->device, DEVICE_QUOTA_MW);
	parent_put(mw->parent);
	return 0;
}

void mw_end(struct face_object *object)
{
	struct face_mw *mw = container_of(object, struct face_mw, object);

	end_window(face_context(mw->ibv.context), mw);
}

static int end_mw(void *handle)
{
	struct ibv_mw *ibv = handle;
	struct face_context *context = face_context(ibv->context);
	struct face_mw *mw = face_mw(ibv);
	const int rc = end_window(context, mw);

	if (rc != 0)
		return rc;
	context_remove(context, &mw->object);
	free(mw);
	return 0;
}

int dealloc_mw_op(struct ibv_mw *ibv)
{
	return handles_end(ibv, end_mw);
}

/* Check what can be checked before the binding is executed. All other errors become a completion,
 * also a queue pair and a window of different domains (verbs.h itself compares region and
 * window). */
static int check_bind(struct ibv_qp *ibv_qp, struct ibv_mw *ibv_mw, const struct ibv_mw_bind *bind)
{
	const struct ibv_mw_bind_info *info = &bind->bind_info;

	if (bind->send_flags & ~(unsigned int)(IBV_SEND_FENCE | IBV_SEND_SIGNALED))
		return -EINVAL;
	if (info->mw_access_flags & ~MW_ACCESS)
		return -EINVAL;
	/* ibv_alloc_null_mr(3): ibv_bind_mw is invalid for a null region. */
	if (info->mr && face_mr(info->mr)->is_null)
		return -EINVAL;
	return ibv_qp->context == ibv_mw->context ? 0 : -EINVAL;
}

/* Post a binding. A failure is that of ibv_bind_mw. */
static int post_bind(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int rc;

	if (likely(!reason_wanted))
		return ibv_post_send(qp, wr, &bad);
	reason_enter("ibv_bind_mw");
	rc = ibv_post_send(qp, wr, &bad);
	if (rc != 0)
		face_explain_call(rc);
	reason_leave();
	return rc;
}

/* Bind a window of type 1: its next key is chosen here, and is valid once the request is posted
 * (ibv_bind_mw(3)). */
int bind_mw_op(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info},
	};
	const int rc = context_is_orphan(qp->context) ? -ENODEV : check_bind(qp, mw, bind);

	return rc == 0 ? post_bind(qp, &wr) : face_errno(rc);
}
