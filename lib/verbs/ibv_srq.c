/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues, basic ones and those of an XRC domain. */
#include <stdlib.h>

#include "device/device_share.h"
#include "device/limits.h"
#include "device/quota.h"
#include "device/xrcd.h"
#include "mem/pd.h"
#include "queue/cq.h"
#include "queue/srq.h"

#include "verbs_internal.h"

static int check_attr(const struct ibv_context *ibv, const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | xrc;
	const bool is_xrc =
		(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type == IBV_SRQT_XRC;
	const uint32_t max_wr = (uint32_t)like_most(LIKE_max_srq_wr, DEVICE_MAX_QP_WR);
	const uint32_t max_sge = (uint32_t)like_most(LIKE_max_srq_sge, DEVICE_MAX_SGE);
	const int lacking = like_refuses(LIKE_LACKS_srq);

	if (lacking != 0)
		return lacking;
	/* Tag matching and newer attributes are not supported. */
	if ((attr->comp_mask & ~known) ||
	    ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type == IBV_SRQT_TM))
		return -EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != ibv)
		return CALL_REASON(-EINVAL, "the protection domain is missing or of another "
					    "context");
	if (attr->attr.max_wr == 0 || attr->attr.max_wr > max_wr || attr->attr.max_sge > max_sge)
		return CALL_REASON(
			-EINVAL,
			"max_wr is %u and max_sge %u; max_wr must be 1 to %u, and max_sge at "
			"most %u",
			attr->attr.max_wr, attr->attr.max_sge, max_wr, max_sge);
	if (!is_xrc && (attr->comp_mask & xrc))
		return CALL_REASON(-EINVAL, "xrcd and cq are for queues of the type IBV_SRQT_XRC");
	if (!is_xrc)
		return 0;
	if ((attr->comp_mask & xrc) != xrc || !attr->xrcd || attr->xrcd->context != ibv ||
	    !attr->cq || attr->cq->context != ibv)
		return CALL_REASON(-EINVAL,
				   "the XRC domain or the completion queue is missing or of "
				   "another context");
	return 0;
}

/* Join a domain: get a number in it, and use the completion queue of the attributes. */
static int join_xrcd(struct face_context *context, struct face_srq *srq,
		     const struct ibv_srq_init_attr_ex *attr)
{
	struct cq *cq = face_cq(attr->cq)->cq;
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	srq->srq->cq = cq;
	device_share_xrc(srq->device, srq->srq);
	home_join_xrc(face_cq(attr->cq));
	rc = xrcd_add_srq(face_xrcd(attr->xrcd)->xrcd, srq->srq);
	context_unlock(context);
	if (rc != 0)
		return -ENOMEM;
	srq->cq = attr->cq;
	srq->xrcd = face_xrcd(attr->xrcd);
	__atomic_add_fetch(&srq->xrcd->users, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&cq->users, 1, __ATOMIC_RELEASE);
	return 0;
}

static int make_srq(struct face_context *context, struct face_srq *srq,
		    const struct ibv_srq_init_attr_ex *attr)
{
	struct pd *pd = face_pd(attr->pd)->pd;
	int rc = pd_get(pd);

	if (rc != 0)
		return rc;
	rc = quota_take(context->device, DEVICE_QUOTA_SRQ);
	if (rc != 0)
		goto put_pd;
	rc = srq_create_in(face_queues(attr->pd), attr->attr.max_wr, attr->attr.max_sge, pd,
			   &srq->srq);
	if (rc != 0)
		goto give_quota;
	srq->srq->low = event_raise_srq_limit;
	srq->srq->user = srq;
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD)
		rc = join_xrcd(context, srq, attr);
	if (rc == 0)
		return 0;
	srq_destroy(srq->srq);
give_quota:
	quota_give(context->device, DEVICE_QUOTA_SRQ);
put_pd:
	pd_put(pd);
	return rc;
}

static void fill_public(struct face_context *context, struct face_srq *srq,
			const struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *ibv = &srq->ibv;

	ibv->context = &context->verbs.context;
	ibv->srq_context = attr->srq_context;
	ibv->pd = attr->pd;
	ibv->handle = context_handle(context);
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	srq->device = context->device;
	event_init_srq(srq);
}

static struct ibv_srq *create_by(struct ibv_context *ibv, struct ibv_srq_init_attr_ex *attr,
				 const char *function)
{
	struct face_context *context = face_context(ibv);
	struct face_srq *srq;
	int rc;

	if (context_is_orphan(ibv))
		return face_null_by(-ENODEV, function);
	rc = check_attr(ibv, attr);
	if (rc != 0)
		return face_null_by(rc, function);
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return face_null_by(-ENOMEM, function);
	fill_public(context, srq, attr);
	rc = make_srq(context, srq, attr);
	if (rc != 0) {
		free(srq);
		return face_null_by(rc, function);
	}
	origin_note(srq->srq);
	objects_add(context->device, DEVICE_OBJECT_SRQ, &srq->listed, srq->srq);
	srq->parent = parent_get(attr->pd);
	context_add(context, FACE_SRQ, &srq->object);
	attr->attr.max_wr = (uint32_t)like_most(LIKE_max_srq_wr, srq->srq->rq.max_wr);
	attr->attr.max_sge = (uint32_t)like_most(LIKE_max_srq_sge, srq->srq->rq.max_sge);
	handles_add(&srq->ibv);
	return &srq->ibv;
}

struct ibv_srq *create_srq_ex_op(struct ibv_context *ibv, struct ibv_srq_init_attr_ex *attr)
{
	return create_by(ibv, attr, __func__);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq;

	if (!pd)
		return face_null(-EINVAL);
	srq = create_by(pd->context, &ex, __func__);
	if (srq)
		attr->attr = ex.attr;
	return srq;
}

int get_srq_num_op(struct ibv_srq *ibv, uint32_t *number)
{
	const struct face_srq *srq = face_srq(ibv);

	if (context_is_orphan(ibv->context))
		return face_errno(-ENODEV);
	if (!srq->xrcd)
		return face_errno(-EINVAL);
	*number = srq->srq->number;
	return 0;
}

/* Change both or none: a limit is checked against the new size, that of `ring`. */
static int modify_locked(struct srq *srq, const struct ibv_srq_attr *attr, int mask,
			 struct rq_ring *ring)
{
	const uint32_t before = srq_limit(srq);
	int rc;

	if (!(mask & IBV_SRQ_MAX_WR))
		return mask & IBV_SRQ_LIMIT ? srq_set_limit(srq, attr->srq_limit) : 0;
	if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > attr->max_wr)
		return -EINVAL;
	if (mask & IBV_SRQ_LIMIT)
		srq_set_limit(srq, 0);
	rc = srq_change_ring(srq, ring);
	if (mask & IBV_SRQ_LIMIT)
		srq_set_limit(srq, rc == 0 ? attr->srq_limit : before);
	return rc;
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct face_context *context = face_context(ibv->context);
	struct srq *srq = face_srq(ibv)->srq;
	struct rq_ring ring = {.slots = 0};
	int rc = 0;

	if (context_is_orphan(ibv->context))
		return face_errno(-ENODEV);
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return face_errno(-EINVAL);
	/* Allocate while the engine runs: the allocator may be the application's code. */
	if (mask & IBV_SRQ_MAX_WR)
		rc = like_refuses(LIKE_LACKS_srq_resize);
	if (rc == 0 && (mask & IBV_SRQ_MAX_WR))
		rc = attr->max_wr > like_most(LIKE_max_srq_wr, DEVICE_MAX_QP_WR)
			     ? -EINVAL
			     : rq_make_ring(&srq->rq, attr->max_wr, &ring);
	if (rc == 0)
		rc = context_lock(context);
	if (rc == 0) {
		rc = modify_locked(srq, attr, mask, &ring);
		context_unlock(context);
	}
	ring_free(&ring.memory);
	return face_errno(rc);
}

/* Query under the lock: another thread may be changing the size. */
int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct face_context *context = face_context(ibv->context);
	const struct srq *srq = face_srq(ibv)->srq;
	int rc = context_lock(context);

	if (rc != 0)
		return face_errno(rc);
	*attr = (struct ibv_srq_attr){
		.max_wr = (uint32_t)like_most(LIKE_max_srq_wr, srq->rq.max_wr),
		.max_sge = (uint32_t)like_most(LIKE_max_srq_sge, srq->rq.max_sge),
		.srq_limit = srq_limit(srq),
	};
	context_unlock(context);
	return 0;
}

/* Remove the queue from the engine. -EBUSY while queue pairs use it. */
static int leave(struct face_context *context, struct face_srq *srq)
{
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	if (__atomic_load_n(&srq->srq->users, __ATOMIC_ACQUIRE) != 0)
		rc = -EBUSY;
	else if (srq->xrcd)
		xrcd_remove_srq(srq->xrcd->xrcd, srq->srq);
	context_unlock(context);
	return rc;
}

/* Free everything except the handle. */
static void give_back(struct face_srq *srq)
{
	struct pd *pd = srq->srq->pd;

	objects_remove(srq->device, DEVICE_OBJECT_SRQ, &srq->listed);
	if (srq->xrcd) {
		__atomic_sub_fetch(&srq->srq->cq->users, 1, __ATOMIC_RELEASE);
		__atomic_sub_fetch(&srq->xrcd->users, 1, __ATOMIC_RELEASE);
	}
	origin_forget(srq->srq);
	srq_destroy(srq->srq);
	quota_give(srq->device, DEVICE_QUOTA_SRQ);
	pd_put(pd);
	parent_put(srq->parent);
}

/* End a shared receive queue. Its queue pairs have ended before. */
void srq_end(struct face_object *object)
{
	struct face_srq *srq = container_of(object, struct face_srq, object);

	leave(face_context(srq->ibv.context), srq);
	give_back(srq);
}

static int end_srq(void *handle)
{
	struct ibv_srq *ibv = handle;
	struct face_context *context = face_context(ibv->context);
	struct face_srq *srq = face_srq(ibv);
	int rc = leave(context, srq);

	if (rc != 0)
		return rc;
	event_drain_srq(srq);
	give_back(srq);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	context_remove(context, &srq->object);
	free(srq);
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	return handles_end(ibv, end_srq);
}
