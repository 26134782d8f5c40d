/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared receive queue of an id. */
#include <string.h>

#include "id.h"

/* Complete the attributes of an XRC queue, which has a domain and its own completion queue. Use our
 * own objects for those that the program leaves NULL. */
static int fill_xrc(struct cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_xrcd *xrcd = attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD ? attr->xrcd : NULL;
	struct ibv_cq *cq = attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ ? attr->cq : NULL;
	int rc = 0;

	attr->xrcd = qp_choose_xrcd(id, xrcd);
	if (!attr->xrcd)
		return -errno;
	if (!cq && !id->public.recv_cq)
		rc = qp_create_cqs(id, 0, attr->attr.max_wr);
	attr->cq = cq ? cq : id->public.recv_cq;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return rc;
}

static int create_srq(struct cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	const bool xrc =
		(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type == IBV_SRQT_XRC;
	struct rdma_cm_id *public = &id->public;
	struct ibv_pd *pd;
	int rc;

	if (!public->verbs || public->srq)
		return -EINVAL;
	if (id_state(id) == ID_REMOVED)
		return -ENODEV;
	pd = qp_choose_pd(id, attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL);
	if (!pd)
		return -errno;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	attr->pd = pd;
	rc = xrc ? fill_xrc(id, attr) : 0;
	if (rc != 0)
		return rc;
	public->srq = ibv_create_srq_ex(public->verbs, attr);
	if (!public->srq) {
		rc = -errno;
		if (!qp_exists(id))
			qp_destroy_cqs(id);
		return rc;
	}
	public->pd = pd;
	return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	const int rc = id_check(id);

	if (rc != 0 || !attr)
		return id_result(rc != 0 ? rc : -EINVAL);
	return id_result(create_srq(cm_id_of(id), attr));
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
	};
	int rc = id_check(id);

	if (rc != 0 || !attr)
		return id_result(rc != 0 ? rc : -EINVAL);
	if (id->qp_type == IBV_QPT_XRC_RECV)
		ex.srq_type = IBV_SRQT_XRC;
	ex.srq_context = attr->srq_context;
	ex.attr = attr->attr;
	if (pd) {
		ex.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		ex.pd = pd;
	}
	rc = create_srq(cm_id_of(id), &ex);
	if (rc == 0)
		attr->attr = ex.attr;
	return id_result(rc);
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id_check(id) != 0 || !id->srq || ibv_destroy_srq(id->srq) != 0)
		return;
	id->srq = NULL;
	if (!qp_exists(cm_id_of(id)))
		qp_destroy_cqs(cm_id_of(id));
}
