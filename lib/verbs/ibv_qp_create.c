/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation of queue pairs: the attributes that each type needs, the device's limits, and their
 * parts. */
#include <string.h>

#include "base/cachelines.h"
#include "device/limits.h"
#include "device/xrc_share.h"
#include "qp/qp.h"
#include "queue/sq.h"
#include "queue/srq.h"

#include "check.h"
#include "verbs_internal.h"

/* Return the most inline data, in bytes. */
static uint32_t max_inline(enum ibv_qp_type type)
{
	const enum like_figure figure = type == IBV_QPT_UD	   ? LIKE_max_inline_data_ud
					: type == IBV_QPT_XRC_SEND ? LIKE_max_inline_data_xrc
								   : LIKE_max_inline_data;

	return (uint32_t)like_most(figure, DEVICE_MAX_INLINE);
}

/* Check that the device of --like has queue pairs of this type. */
static int check_type(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
		return like_refuses(LIKE_LACKS_uc);
	case IBV_QPT_UD:
		return like_refuses(LIKE_LACKS_ud);
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return like_refuses(LIKE_LACKS_xrc);
	default:
		return 0;
	}
}

/* Check the limits that ibv_query_device reports. With a shared receive queue, those of the own one
 * are ignored. */
static int check_limits(const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;
	const uint32_t max_wr = (uint32_t)like_most(LIKE_max_qp_wr, DEVICE_MAX_QP_WR);
	const uint32_t max_send_sge = (uint32_t)like_most(LIKE_max_send_sge, DEVICE_MAX_SGE);
	const uint32_t max_recv_sge = (uint32_t)like_most(LIKE_max_recv_sge, DEVICE_MAX_SGE);
	const struct {
		const char *name;
		uint32_t value;
		uint32_t max;
	} limited[] = {
		{"max_send_wr", cap->max_send_wr, max_wr},
		{"max_send_sge", cap->max_send_sge, max_send_sge},
		{"max_inline_data", cap->max_inline_data, max_inline(attr->qp_type)},
		{"max_recv_wr", attr->srq ? 0 : cap->max_recv_wr, max_wr},
		{"max_recv_sge", attr->srq ? 0 : cap->max_recv_sge, max_recv_sge},
	};

	for (size_t i = 0; i < RTE_DIM(limited); i++) {
		if (limited[i].value > limited[i].max)
			return CALL_REASON(-EINVAL, "%s is %u; the device has %u", limited[i].name,
					   limited[i].value, limited[i].max);
	}
	return 0;
}

static int check_cq(const struct ibv_context *ibv, const struct ibv_cq *cq, const char *name)
{
	return cq && cq->context == ibv
		       ? 0
		       : CALL_REASON(-EINVAL, "%s is NULL or of another context", name);
}

/* Check that the shared receive queue is of this context, and not of an XRC domain: packets name
 * the queues of those by number. */
static int check_srq(const struct ibv_context *ibv, struct ibv_srq *srq)
{
	if (!srq)
		return 0;
	if (srq->context == ibv && !face_srq(srq)->xrcd)
		return 0;
	return CALL_REASON(-EINVAL, "the shared receive queue is of another context or of an XRC "
				    "domain");
}

static int check_pd(const struct ibv_context *ibv, const struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != ibv)
		return CALL_REASON(-EINVAL, "the protection domain is missing or of another "
					    "context");
	return 0;
}

static int check_objects(const struct ibv_context *ibv, const struct ibv_qp_init_attr_ex *attr)
{
	int rc;

	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		rc = check_pd(ibv, attr);
		if (rc == 0)
			rc = check_cq(ibv, attr->send_cq, "send_cq");
		if (rc == 0)
			rc = check_cq(ibv, attr->recv_cq, "recv_cq");
		return rc == 0 ? check_srq(ibv, attr->srq) : rc;
	case IBV_QPT_XRC_SEND:
		rc = check_pd(ibv, attr);
		return rc == 0 ? check_cq(ibv, attr->send_cq, "send_cq") : rc;
	case IBV_QPT_XRC_RECV:
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd ||
		    attr->xrcd->context != ibv)
			return CALL_REASON(-EINVAL, "the XRC domain is missing or of another "
						    "context");
		return 0;
	default:
		return CALL_REASON(-EOPNOTSUPP,
				   "the device has queue pairs of the types RC, UC, UD and XRC");
	}
}

/* Return -EOPNOTSUPP for extensions that verbs define and we do not support. */
static int check_extensions(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t built = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (attr->comp_mask & ~built)
		return -EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	    ((attr->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) ||
	     (attr->create_flags != 0 && attr->qp_type != IBV_QPT_UD)))
		return -EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return wr_check_flags(attr->qp_type, attr->send_ops_flags);
	return 0;
}

int qp_alloc(struct face_context *context, struct ibv_qp_init_attr_ex *attr,
	     struct face_qp **allocated)
{
	const bool is_ex = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct face_qp *qp = cachelines_alloc(face_qp_bytes(is_ex));
	struct ibv_qp *ibv;

	if (!qp)
		return -ENOMEM;
	memset(qp, 0, face_qp_bytes(is_ex));
	ibv = &qp->ibv;
	ibv->context = &context->verbs.context;
	ibv->qp_context = attr->qp_context;
	ibv->qp_type = attr->qp_type;
	ibv->state = IBV_QPS_RESET;
	if (attr->qp_type != IBV_QPT_XRC_RECV) {
		ibv->pd = attr->pd;
		qp->pd = face_pd(attr->pd)->pd;
		qp->parent = parent_get(attr->pd);
		ibv->send_cq = attr->send_cq;
	}
	if (attr->qp_type != IBV_QPT_XRC_RECV && attr->qp_type != IBV_QPT_XRC_SEND) {
		ibv->recv_cq = attr->recv_cq;
		ibv->srq = attr->srq;
	}
	ibv->handle = context_handle(context);
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	qp->device = context->device;
	qp->home = ibv->send_cq ? face_home(face_cq(ibv->send_cq)) : device_first(qp->device);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		qp->blocks_own_mcast = attr->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	if (is_ex) {
		wr_fill(qp, attr->send_ops_flags);
		pthread_mutex_lock(&context->face->lock);
		LIST_INSERT_HEAD(&context->ex_qps, qp, ex_link);
		pthread_mutex_unlock(&context->face->lock);
	}
	event_init_qp(qp);
	context_add(context, FACE_QP, &qp->object);
	*allocated = qp;
	return 0;
}

void qp_unlist(struct face_qp *qp)
{
	struct face_context *context = face_context(qp->ibv.context);

	if (!qp->is_ex)
		return;
	pthread_mutex_lock(&context->face->lock);
	LIST_REMOVE(qp, ex_link);
	pthread_mutex_unlock(&context->face->lock);
}

void qp_free(struct face_qp *qp)
{
	struct face_context *context = face_context(qp->ibv.context);

	qp_unlist(qp);
	comp_cntr_detach(qp);
	pthread_cond_destroy(&qp->ibv.cond);
	pthread_mutex_destroy(&qp->ibv.mutex);
	parent_put(qp->parent);
	context_remove(context, &qp->object);
	cachelines_free(qp, face_qp_bytes(qp->is_ex));
}

static void fill_init(const struct face_qp *qp, const struct ibv_qp_init_attr_ex *attr,
		      struct qp_init *init)
{
	const struct ibv_qp *ibv = &qp->ibv;

	*init = (struct qp_init){
		.send_cq = ibv->send_cq ? face_cq(ibv->send_cq)->cq : NULL,
		.recv_cq = ibv->recv_cq ? face_cq(ibv->recv_cq)->cq : NULL,
		.srq = ibv->srq ? face_srq(ibv->srq)->srq : NULL,
		.cap = attr->cap,
		.type = attr->qp_type,
		.sig_all = attr->sq_sig_all != 0,
		.home = qp->home,
		.counters = &qp->home->counters,
		.ooo = qp->home->ooo,
		.sack = qp->device->config.sack,
		.waiting = &qp->home->waiting,
		.max_rd_atomic = (uint8_t)like_most(LIKE_max_qp_init_rd_atom, DEVICE_MAX_RD_ATOMIC),
		.max_dest_rd_atomic = (uint8_t)like_most(LIKE_max_qp_rd_atom, DEVICE_MAX_RD_ATOMIC),
		.max_rate_kbps = (uint32_t)like_most(LIKE_qp_rate_limit_max, DEVICE_MAX_RATE_KBPS),
		.cc = device_engine_cc(qp->home),
		.port_mtu = qp->device->mtu,
	};
	if (qp->target) {
		init->pd = xrcd_pd(qp->target->xrcd);
		init->find_srq = xrcd_find_srq;
		init->domain = qp->target->xrcd;
		/* `user` begins with the member. */
		if (qp->device->xrc_share)
			init->find_link = xrc_share_find;
		init->event = event_raise_target;
		init->user = qp->target;
	} else {
		init->pd = qp->pd;
		init->queues = face_queues(ibv->pd);
		init->event = event_raise_qp;
		init->user = (void *)(uintptr_t)qp;
	}
}

/* Allocate a number. If its engine has too few, the queue pair belongs to another one; but a queue
 * pair that receives for an XRC domain stays with the first engine. */
static int alloc_qpn(struct face_qp *qp)
{
	struct device *device = qp->device;
	int qpn;

	if (qp->target)
		return device_alloc_qpn(qp->home);
	qpn = device_alloc_qpn_near(qp->home);
	if (qpn >= 0)
		qp->home = device->engines[device_engine_of_qpn(device, (uint32_t)qpn)];
	return qpn;
}

void qp_limit_cap(enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
	*cap = (struct ibv_qp_cap){
		.max_send_wr = (uint32_t)like_most(LIKE_max_qp_wr, cap->max_send_wr),
		.max_recv_wr = (uint32_t)like_most(LIKE_max_qp_wr, cap->max_recv_wr),
		.max_send_sge = (uint32_t)like_most(LIKE_max_send_sge, cap->max_send_sge),
		.max_recv_sge = (uint32_t)like_most(LIKE_max_recv_sge, cap->max_recv_sge),
		.max_inline_data = RTE_MIN(cap->max_inline_data, max_inline(type)),
	};
}

/* Tell the program what it has. A queue has more than was asked for, but no more than the device of
 * --like grants. */
static void grant(const struct face_qp *qp, struct ibv_qp_init_attr_ex *attr,
		  const struct ibv_qp_cap *granted)
{
	if (like_column() != LIKE_NONE) {
		struct sq_attr *sq = &qp_sq(qp->qp)->attr;

		sq->max_inline = RTE_MIN(sq->max_inline, max_inline(attr->qp_type));
	}
	attr->cap = *granted;
	qp_limit_cap(attr->qp_type, &attr->cap);
}

/* Create it while the engine runs: the memory of queues may come from the application's code. */
static int make(struct face_qp *qp, struct ibv_qp_init_attr_ex *attr)
{
	struct device *device = qp->device;
	struct ibv_qp_cap granted;
	struct qp_init init;
	int rc = alloc_qpn(qp);

	if (rc < 0)
		return rc == -ENOSPC ? -ENOMEM : rc;
	fill_init(qp, attr, &init);
	init.qpn = (uint32_t)rc;
	rc = qp_create(&init, &granted, &qp->qp);
	if (rc != 0) {
		device_free_qpn(device, init.qpn);
		return rc;
	}
	origin_note(qp->qp);
	qp->ibv.qp_num = init.qpn;
	if (qp->is_ex)
		qp->build_sq = qp_sq(qp->qp);
	grant(qp, attr, &granted);
	return 0;
}

int qp_start(struct face_qp *qp, struct ibv_qp_init_attr_ex *attr)
{
	struct device *device = qp->device;
	const enum cc_kind kind = device_cc_kind(device);
	int rc;

	if (context_is_orphan(qp->ibv.context))
		return -ENODEV;
	rc = make(qp, attr);
	if (rc != 0)
		return rc;
	device_lock(device);
	/* An order may have changed it since `make` has read it. */
	if (device_cc_kind(device) != kind) {
		const struct cc_attr cc = device_engine_cc(qp->home);

		/* On failure it keeps what it has, as older queue pairs do. */
		(void)qp_change_cc(qp->qp, &cc);
	}
	home_join(qp);
	if (qp->target)
		xrc_start_target(qp);
	device_set_qp(device, qp->ibv.qp_num, qp->qp);
	qp->home->ops->attach(qp->home->driver, qp->qp);
	device_unlock(device);
	return 0;
}

static int create(struct face_context *context, struct ibv_qp_init_attr_ex *attr,
		  struct face_qp **created)
{
	struct face_qp *qp;
	int rc;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return xrc_create_target(context, attr, created);
	rc = qp_alloc(context, attr, &qp);
	if (rc != 0)
		return rc;
	rc = qp_start(qp, attr);
	if (rc != 0) {
		qp_free(qp);
		return rc;
	}
	*created = qp;
	return 0;
}

static struct ibv_qp *create_by(struct ibv_context *ibv, struct ibv_qp_init_attr_ex *attr,
				const char *function)
{
	struct face_qp *qp;
	int rc = check_type(attr->qp_type);

	if (rc == 0)
		rc = check_objects(ibv, attr);
	if (rc == 0)
		rc = check_extensions(attr);
	if (rc == 0)
		rc = check_limits(attr);
	if (rc == 0)
		rc = create(face_context(ibv), attr, &qp);
	if (rc != 0)
		return face_null_by(rc, function);
	check_qp_created(qp);
	handles_add(&qp->ibv);
	return &qp->ibv;
}

struct ibv_qp *create_qp_ex_op(struct ibv_context *ibv, struct ibv_qp_init_attr_ex *attr)
{
	return create_by(ibv, attr, __func__);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex;
	struct ibv_qp *qp;

	if (!pd)
		return face_null(-EINVAL);
	ex = (struct ibv_qp_init_attr_ex){
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	qp = create_by(pd->context, &ex, __func__);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}
