/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, and the queue pairs that receive for a domain. Such a queue pair may have several
 * handles. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/device.h"
#include "device/xrcd.h"
#include "qp/qp.h"

#include "verbs_internal.h"

struct ibv_xrcd *open_xrcd_op(struct ibv_context *ibv, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct face_context *context = face_context(ibv);
	struct face_xrcd *xrcd;
	int rc;

	if (context_is_orphan(ibv))
		return face_null(-ENODEV);
	if (attr->comp_mask != needed)
		return face_null(-EINVAL);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return face_null(-ENOMEM);
	rc = xrcd_open(context->device, attr->fd, attr->oflags, &xrcd->xrcd);
	if (rc == -EAGAIN && attr->fd != -1 && !context->device->xrc_share)
		log_warn("this process has no XRC domain of that file; without a common port it "
			 "cannot use one of another process");
	if (rc != 0) {
		free(xrcd);
		return face_null(rc);
	}
	xrcd->ibv.context = ibv;
	context_add(context, FACE_XRCD, &xrcd->object);
	handles_add(&xrcd->ibv);
	return &xrcd->ibv;
}

/* End an XRC domain. Objects that were opened with it have ended before. */
void xrcd_end(struct face_object *object)
{
	xrcd_close(container_of(object, struct face_xrcd, object)->xrcd);
}

static int end_xrcd(void *handle)
{
	struct ibv_xrcd *ibv = handle;
	struct face_xrcd *xrcd = face_xrcd(ibv);

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	if (__atomic_load_n(&xrcd->users, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	xrcd_close(xrcd->xrcd);
	context_remove(face_context(ibv->context), &xrcd->object);
	free(xrcd);
	return 0;
}

int close_xrcd_op(struct ibv_xrcd *ibv)
{
	return handles_end(ibv, end_xrcd);
}

/* Add a handle to a target. Engine's lock. */
static void join_target(struct face_qp *qp, struct face_target *target)
{
	qp->target = target;
	TAILQ_INSERT_TAIL(&target->handles, qp, target_link);
}

void xrc_start_target(struct face_qp *qp)
{
	qp->target->member.qp = qp->qp;
	xrcd_add_qp(qp->target->xrcd, &qp->target->member);
}

bool xrc_leave_target(struct face_qp *qp)
{
	struct face_target *target = qp->target;

	TAILQ_REMOVE(&target->handles, qp, target_link);
	if (!TAILQ_EMPTY(&target->handles))
		return false;
	xrcd_remove_qp(&target->member);
	free(target);
	return true;
}

static void use_xrcd(struct face_qp *qp, struct ibv_xrcd *xrcd)
{
	qp->xrcd = face_xrcd(xrcd);
	__atomic_add_fetch(&qp->xrcd->users, 1, __ATOMIC_RELAXED);
}

int xrc_create_target(struct face_context *context, struct ibv_qp_init_attr_ex *attr,
		      struct face_qp **created)
{
	struct face_target *target = calloc(1, sizeof(*target));
	struct face_qp *qp;
	int rc;

	if (!target)
		return -ENOMEM;
	rc = qp_alloc(context, attr, &qp);
	if (rc != 0) {
		free(target);
		return rc;
	}
	target->xrcd = face_xrcd(attr->xrcd)->xrcd;
	TAILQ_INIT(&target->handles);
	/* No other thread knows the target yet, so the lock is not needed. */
	join_target(qp, target);
	rc = qp_start(qp, attr);
	if (rc != 0) {
		qp_free(qp);
		free(target);
		return rc;
	}
	use_xrcd(qp, attr->xrcd);
	rc = xrcd_announce(target->xrcd, qp->ibv.qp_num);
	if (rc != 0)
		log_warn("no other process can open queue pair %#x: %s", qp->ibv.qp_num,
			 strerror(-rc));
	*created = qp;
	return 0;
}

static int join_locked(struct face_qp *qp, const struct ibv_qp_open_attr *attr)
{
	struct qp *found = device_find_qp(qp->device, attr->qp_num);
	struct face_target *target;

	/* It may also be a number at which a target gets answers of other processes, or a queue
	 * pair that stands in for another process's target (device/xrc_share.h). */
	if (!found || qp_type(found) != IBV_QPT_XRC_RECV || qp_number(found) != attr->qp_num)
		return -EINVAL;
	target = qp_user(found);
	if (!target || target->xrcd != face_xrcd(attr->xrcd)->xrcd)
		return -EINVAL;
	join_target(qp, target);
	qp->qp = found;
	qp->ibv.qp_num = attr->qp_num;
	qp->ibv.state = qp_state(found);
	return 0;
}

/* Open the target of another process. The handle has a queue pair of its own that is in no table,
 * and in which nothing happens. 0, -EINVAL, -ENOMEM. */
static int open_away(struct face_qp *qp, const struct ibv_qp_open_attr *attr)
{
	struct xrcd *xrcd = face_xrcd(attr->xrcd)->xrcd;
	const struct qp_init init = {
		.pd = xrcd_pd(xrcd),
		.type = IBV_QPT_XRC_RECV,
		.qpn = attr->qp_num,
		.home = qp->home,
		.counters = &qp->home->counters,
	};
	struct ibv_qp_cap cap;
	int rc = device_has_qpn(qp->device, attr->qp_num) ? -EINVAL
							  : xrcd_find_target(xrcd, attr->qp_num);

	if (rc == 0)
		rc = qp_create(&init, &cap, &qp->qp);
	if (rc != 0)
		return rc;
	qp->ibv.qp_num = attr->qp_num;
	qp->is_away = true;
	return 0;
}

struct ibv_qp *open_qp_op(struct ibv_context *ibv, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct face_context *context = face_context(ibv);
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV};
	struct face_qp *qp;
	int rc;

	if ((attr->comp_mask & ~(uint32_t)IBV_QP_OPEN_ATTR_CONTEXT) != needed || !attr->xrcd ||
	    attr->xrcd->context != ibv || attr->qp_type != IBV_QPT_XRC_RECV)
		return face_null(-EINVAL);
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		init.qp_context = attr->qp_context;
	rc = qp_alloc(context, &init, &qp);
	if (rc != 0)
		return face_null(rc);
	rc = context_lock(context);
	if (rc == 0) {
		rc = join_locked(qp, attr);
		context_unlock(context);
	}
	if (rc == -EINVAL)
		rc = open_away(qp, attr);
	if (rc != 0) {
		qp_free(qp);
		return face_null(rc);
	}
	use_xrcd(qp, attr->xrcd);
	handles_add(&qp->ibv);
	return &qp->ibv;
}
