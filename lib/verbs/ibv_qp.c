/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: modify, query, destroy, attach to multicast groups. */
#include "device/limits.h"
#include "device/mcast.h"
#include "device/xrcd.h"
#include "qp/qp.h"
#include "check.h"
#include "verbs_internal.h"

/*
 * Check all that can be checked before the peer is asked for its link address, which may take long.
 * Return the destination queue pair, new or old, which decides the path's flow.
 */
static int check_modify(struct face_context *context, struct face_qp *qp,
			const struct ibv_qp_attr *attr, int mask, uint32_t *dest_qpn)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	rc = qp_check_modify(qp->qp, attr, mask);
	qp_query(qp->qp, &now, &init);
	context_unlock(context);
	*dest_qpn = mask & IBV_QP_DEST_QPN ? attr->dest_qp_num : now.dest_qp_num;
	return rc;
}

/*
 * Settle before the requests are flushed or dropped. A NIC receives and acknowledges by itself what
 * has come until then, and so do we: the acknowledgement of a request may wait in the port when the
 * program hears by other ways that the peer has the message, and has gone. A message that is
 * received here completes, so its sender must get the acknowledgement. Engine's lock.
 */
static void settle_first(const struct face_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_STATE) &&
	    (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_RESET))
		device_engine_settle(qp->home, qp->qp);
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct face_context *context = face_context(ibv->context);
	struct face_qp *qp = face_qp(ibv);
	struct path path;
	uint32_t dest_qpn;
	int rc = 0;

	if (context_is_orphan(ibv->context))
		return face_errno(-ENODEV);
	/* Only its own process can modify it. */
	if (qp->is_away)
		return face_errno(CALL_REASON(
			-EOPNOTSUPP, "the queue pair is of another process of its domain"));
	if (mask & IBV_QP_ACCESS_FLAGS)
		rc = like_check_access((unsigned int)attr->qp_access_flags);
	if (rc == 0 && (mask & IBV_QP_AV)) {
		rc = check_modify(context, qp, attr, mask, &dest_qpn);
		if (rc == 0)
			rc = path_resolve(qp->device, &attr->ah_attr, ibv->qp_num, dest_qpn, &path);
	}
	if (rc == 0)
		rc = context_lock(context);
	if (rc != 0)
		return face_errno(rc);
	settle_first(qp, attr, mask);
	rc = qp_modify(qp->qp, attr, mask, &path);
	ibv->state = qp_state(qp->qp);
	if (rc == 0 && ibv->state == IBV_QPS_RESET && qp->target)
		xrcd_forget_qp(qp->target->xrcd, ibv->qp_num);
	context_unlock(context);
	if (unlikely(qp->check) && ibv->state == IBV_QPS_RESET)
		check_qp_reset(qp);
	if (rc == 0)
		device_engine_kick(qp->home, qp->qp);
	return face_errno(rc);
}

int modify_qp_rate_limit_op(struct ibv_qp *ibv, struct ibv_qp_rate_limit_attr *attr)
{
	struct face_context *context = face_context(ibv->context);
	struct face_qp *qp = face_qp(ibv);
	int rc;

	if (like_most(LIKE_qp_rate_limit_max, DEVICE_MAX_RATE_KBPS) == 0)
		return face_errno(CALL_REASON(-EINVAL, "qp_rate_limit_max is 0"));
	rc = context_lock(context);
	if (rc != 0)
		return face_errno(rc);
	rc = qp_limit_rate(qp->qp, attr);
	context_unlock(context);
	if (rc == 0)
		device_engine_kick(qp->home, qp->qp);
	return face_errno(rc);
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask __rte_unused,
		 struct ibv_qp_init_attr *init)
{
	struct face_context *context = face_context(ibv->context);
	int rc = face_qp(ibv)->is_away ? -EOPNOTSUPP : context_lock(context);

	if (rc != 0)
		return face_errno(rc);
	qp_query(face_qp(ibv)->qp, attr, init);
	ibv->state = attr->qp_state;
	context_unlock(context);
	init->qp_context = ibv->qp_context;
	init->send_cq = ibv->send_cq;
	init->recv_cq = ibv->recv_cq;
	init->srq = ibv->srq;
	init->qp_type = ibv->qp_type;
	qp_limit_cap(ibv->qp_type, &attr->cap);
	init->cap = attr->cap;
	return 0;
}

/* Remove the queue pair from the engine. Engine's lock. */
static void stop_locked(struct face_qp *qp)
{
	struct device *device = qp->device;

	if (qp->is_away) {
		qp_retire(qp->qp);
		return;
	}
	qp->home->ops->detach(qp->home->driver, qp->qp);
	device_set_qp(device, qp->ibv.qp_num, NULL);
	if (qp->xrcd)
		xrcd_forget_qp(qp->xrcd->xrcd, qp->ibv.qp_num);
	qp_retire(qp->qp);
}

/* Remove a handle of a queue pair. Return true if it is the last one. Engine's lock. */
static bool leave_locked(struct face_qp *qp)
{
	const bool last = !qp->target || xrc_leave_target(qp);

	if (last)
		stop_locked(qp);
	return last;
}

/* Free a queue pair that the engine does not know any more. The engine runs, because the
 * application's code may free the memory. */
static void give_back(struct face_qp *qp, bool last)
{
	if (unlikely(qp->check))
		check_qp_ended(qp);
	if (last) {
		origin_forget(qp->qp);
		qp_destroy(qp->qp);
		if (!qp->is_away)
			device_free_qpn(qp->device, qp->ibv.qp_num);
	}
	if (qp->xrcd)
		__atomic_sub_fetch(&qp->xrcd->users, 1, __ATOMIC_RELEASE);
}

void qp_end(struct face_object *object)
{
	struct face_qp *qp = container_of(object, struct face_qp, object);
	struct device *device = qp->device;
	bool last;

	if (__atomic_load_n(&qp->groups, __ATOMIC_RELAXED) > 0)
		mcast_detach_all(device, qp->qp);
	device_lock(device);
	last = leave_locked(qp);
	device_unlock(device);
	give_back(qp, last);
	qp_unlist(qp);
	parent_put(qp->parent);
	qp->ibv.state = IBV_QPS_ERR;
}

static int end_qp(void *handle)
{
	struct ibv_qp *ibv = handle;
	struct face_context *context = face_context(ibv->context);
	struct face_qp *qp = face_qp(ibv);
	int rc = context_lock(context);
	bool last;

	if (rc != 0)
		return rc;
	if (__atomic_load_n(&qp->groups, __ATOMIC_RELAXED) > 0) {
		context_unlock(context);
		return -EBUSY;
	}
	last = leave_locked(qp);
	context_unlock(context);
	/* No event is raised any more, but a thread that has read one still uses `ibv`. */
	event_drain_qp(qp);
	give_back(qp, last);
	qp_free(qp);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	return handles_end(ibv, end_qp);
}

/*
 * Promise nothing. Both capabilities are about each byte of a message or of a block, and the bytes
 * of a packet are copied in any order: only its end comes last, and packets come in order
 * (place_strict).
 */
int ibv_query_qp_data_in_order(struct ibv_qp *ibv __rte_unused, enum ibv_wr_opcode op __rte_unused,
			       uint32_t flags __rte_unused)
{
	return 0;
}

/* Enhanced connection establishment negotiates a vendor's own options; we have none. */

int ibv_set_ece(struct ibv_qp *ibv __rte_unused, struct ibv_ece *ece __rte_unused)
{
	return face_errno(-EOPNOTSUPP);
}

int ibv_query_ece(struct ibv_qp *ibv __rte_unused, struct ibv_ece *ece)
{
	*ece = (struct ibv_ece){0};
	return face_errno(-EOPNOTSUPP);
}

/* Attach a queue pair to a group. The LID has a meaning on InfiniBand only; on Ethernet the group's
 * link address follows from the GID. */
int ibv_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid __rte_unused)
{
	struct face_qp *qp = face_qp(ibv);
	int rc;

	if (ibv->qp_type != IBV_QPT_UD)
		return face_errno(-EINVAL);
	if (context_is_orphan(ibv->context))
		return face_errno(-ENODEV);
	rc = like_refuses(LIKE_LACKS_mcast);
	if (rc != 0)
		return face_errno(rc);
	/* Before it waits for the network: nobody may destroy the queue pair meanwhile. */
	__atomic_add_fetch(&qp->groups, 1, __ATOMIC_RELAXED);
	rc = mcast_attach(qp->device, gid, qp->qp, qp->blocks_own_mcast);
	if (rc <= 0)
		__atomic_sub_fetch(&qp->groups, 1, __ATOMIC_RELAXED);
	return face_errno(RTE_MIN(rc, 0));
}

int ibv_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid __rte_unused)
{
	struct face_qp *qp = face_qp(ibv);
	int rc;

	if (context_is_orphan(ibv->context))
		return face_errno(-ENODEV);
	rc = mcast_detach(qp->device, gid, qp->qp);
	if (rc == 0)
		__atomic_sub_fetch(&qp->groups, 1, __ATOMIC_RELAXED);
	return face_errno(rc);
}
