/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: create, modify, query, destroy. */
#include <stdlib.h>

#include "qp/qp.h"

#include "verbs_internal.h"

/* What ibv_query_device tells as limits holds. */
static int check_limits(struct face_context *context, const struct ibv_qp_init_attr *attr,
			struct ibv_device_attr_ex *limits)
{
	const struct ibv_device_attr *device = &limits->orig_attr;
	const struct ibv_qp_cap *cap = &attr->cap;

	device_query(context->device, limits);
	if (cap->max_send_wr > (uint32_t)device->max_qp_wr ||
	    cap->max_send_sge > (uint32_t)device->max_sge)
		return -EINVAL;
	if (cap->max_recv_wr > (uint32_t)device->max_qp_wr ||
	    cap->max_recv_sge > (uint32_t)device->max_sge)
		return -EINVAL;
	return 0;
}

static int check_attr(struct ibv_context *ibv, const struct ibv_qp_init_attr *attr)
{
	if (!attr->send_cq || !attr->recv_cq)
		return -EINVAL;
	if (attr->send_cq->context != ibv || attr->recv_cq->context != ibv)
		return -EINVAL;
	if (attr->srq)
		return -EOPNOTSUPP;
	return 0;
}

/* Give the queue pair a number and make it; nobody finds it yet. */
static int qp_make(struct face_qp *qp, struct face_pd *pd, struct ibv_qp_init_attr *attr,
		   const struct ibv_device_attr_ex *limits)
{
	struct device *device = qp->device;
	struct qp_init init = {
		.pd = pd->pd,
		.send_cq = face_cq(attr->send_cq)->cq,
		.recv_cq = face_cq(attr->recv_cq)->cq,
		.cap = attr->cap,
		.type = attr->qp_type,
		.sig_all = attr->sq_sig_all != 0,
		.counters = &device->counters,
		.max_rd_atomic = (uint8_t)limits->orig_attr.max_qp_init_rd_atom,
		.max_dest_rd_atomic = (uint8_t)limits->orig_attr.max_qp_rd_atom,
		.port_mtu = device->mtu,
		.event = event_raise_qp,
		.user = qp,
	};
	struct ibv_qp_cap granted;
	int rc = device_alloc_qpn(device);

	if (rc < 0)
		return rc == -ENOSPC ? -ENOMEM : rc;
	init.qpn = (uint32_t)rc;
	rc = qp_create(&init, &granted, &qp->qp);
	if (rc != 0) {
		device_free_qpn(device, init.qpn);
		return rc;
	}
	qp->ibv.qp_num = init.qpn;
	attr->cap = granted;
	return 0;
}

static void fill_public(struct face_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *ibv = &qp->ibv;

	ibv->context = pd->context;
	ibv->qp_context = attr->qp_context;
	ibv->pd = pd;
	ibv->send_cq = attr->send_cq;
	ibv->recv_cq = attr->recv_cq;
	ibv->handle = context_handle(face_context(pd->context));
	ibv->state = IBV_QPS_RESET;
	ibv->qp_type = attr->qp_type;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
}

static void qp_free(struct face_qp *qp)
{
	pthread_cond_destroy(&qp->ibv.cond);
	pthread_mutex_destroy(&qp->ibv.mutex);
	free(qp);
}

static int qp_open(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct face_qp **created)
{
	struct face_context *context = face_context(pd->context);
	struct device *device = context->device;
	struct ibv_device_attr_ex limits = {0};
	struct face_qp *qp;
	int rc = check_attr(pd->context, attr);

	if (rc == 0)
		rc = check_limits(context, attr, &limits);
	if (rc != 0)
		return rc;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->device = device;
	fill_public(qp, pd, attr);
	event_init_qp(qp);
	rc = context_lock(context);
	if (rc == 0) {
		rc = qp_make(qp, face_pd(pd), attr, &limits);
		if (rc == 0) {
			device_set_qp(device, qp->ibv.qp_num, qp->qp);
			device->ops->attach(device->engine, qp->qp);
		}
		context_unlock(context);
	}
	if (rc != 0) {
		qp_free(qp);
		return rc;
	}
	context_get(context);
	*created = qp;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct face_qp *qp;
	int rc;

	if (!pd)
		return face_null(-EINVAL);
	rc = qp_open(pd, attr, &qp);
	return rc == 0 ? &qp->ibv : face_null(rc);
}

/* Nothing beyond ibv_create_qp is built, but who asks for it in this form gets it. */
struct ibv_qp *qp_ex_create_op(struct ibv_context *ibv, struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != ibv)
		return face_null(-EINVAL);
	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return face_null(-EOPNOTSUPP);
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags != 0)
		return face_null(-EOPNOTSUPP);
	/* The extended struct begins as the plain one. */
	return ibv_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv __rte_unused)
{
	return NULL; /* no queue pair has IBV_QP_INIT_ATTR_SEND_OPS_FLAGS */
}

/* The destination that the path's flow belongs to: as it will be, or as it is. */
static int destination(struct face_context *context, struct face_qp *qp,
		       const struct ibv_qp_attr *attr, int mask, uint32_t *dest_qpn)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;
	int rc;

	if (mask & IBV_QP_DEST_QPN) {
		*dest_qpn = attr->dest_qp_num;
		return 0;
	}
	rc = context_lock(context);
	if (rc != 0)
		return rc;
	qp_query(qp->qp, &now, &init);
	context_unlock(context);
	*dest_qpn = now.dest_qp_num;
	return 0;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct face_context *context = face_context(ibv->context);
	struct face_qp *qp = face_qp(ibv);
	struct path path;
	uint32_t dest_qpn;
	int rc = 0;

	if (fork_in_child)
		return ENODEV;
	if (mask & IBV_QP_AV) {
		rc = destination(context, qp, attr, mask, &dest_qpn);
		if (rc == 0)
			rc = path_resolve(qp->device, &attr->ah_attr, ibv->qp_num, dest_qpn, &path);
	}
	if (rc == 0)
		rc = context_lock(context);
	if (rc != 0)
		return -rc;
	rc = qp_modify(qp->qp, attr, mask, &path);
	ibv->state = qp_state(qp->qp);
	context_unlock(context);
	if (rc == 0)
		qp->device->ops->kick(qp->device->engine, qp->qp);
	return -rc;
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask __rte_unused,
		 struct ibv_qp_init_attr *init)
{
	struct face_context *context = face_context(ibv->context);
	int rc = context_lock(context);

	if (rc != 0)
		return -rc;
	qp_query(face_qp(ibv)->qp, attr, init);
	ibv->state = attr->qp_state;
	context_unlock(context);
	init->qp_context = ibv->qp_context;
	init->send_cq = ibv->send_cq;
	init->recv_cq = ibv->recv_cq;
	init->srq = ibv->srq;
	init->qp_type = ibv->qp_type;
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct face_context *context = face_context(ibv->context);
	struct face_qp *qp = face_qp(ibv);
	struct device *device = qp->device;
	int rc = context_lock(context);

	if (rc != 0)
		return -rc;
	device->ops->detach(device->engine, qp->qp);
	device_set_qp(device, ibv->qp_num, NULL);
	context_unlock(context);
	/* The engine knows it no more and raises no event; who has read one still holds `ibv`. */
	event_drain_qp(qp);
	rc = context_lock(context);
	if (rc != 0)
		return -rc;
	qp_destroy(qp->qp);
	context_unlock(context);
	device_free_qpn(device, ibv->qp_num);
	qp_free(qp);
	context_put(context);
	return 0;
}

/* Bytes of a message need not be seen in order: an application may look at its completion only. */
int ibv_query_qp_data_in_order(struct ibv_qp *ibv __rte_unused, enum ibv_wr_opcode op __rte_unused,
			       uint32_t flags __rte_unused)
{
	return 0;
}

/* Enhanced connection establishment negotiates a vendor's own options; there are none of ours. */

int ibv_set_ece(struct ibv_qp *ibv __rte_unused, struct ibv_ece *ece __rte_unused)
{
	return EOPNOTSUPP;
}

int ibv_query_ece(struct ibv_qp *ibv __rte_unused, struct ibv_ece *ece)
{
	*ece = (struct ibv_ece){0};
	return EOPNOTSUPP;
}
