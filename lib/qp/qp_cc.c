/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair's congestion control: which one it may have, and its change. */
#include <errno.h>

#include "qp_internal.h"
#include "wire/headers.h"

/* Datagrams go to many peers. Without acknowledgements, as in UC, no round trip can be measured. */
bool qp_may_have_cc(enum ibv_qp_type type, const struct cc_attr *attr)
{
	if (type == IBV_QPT_UD)
		return attr->kind == CC_NONE;
	return type != IBV_QPT_UC || !cc_ops_of(attr)->times;
}

void qp_connect_cc(struct qp *qp)
{
	const struct ibv_global_route *grh = &qp->attr.ah_attr.grh;
	struct cc *cc = qp->pacer.cc;
	const uint8_t ecn =
		cc != NULL && cc->ops->marks ? ECN_CAPABLE : grh->traffic_class & ECN_MASK;

	path_set_ecn(&qp->peer.path, (enum ecn)ecn);
	if (cc != NULL)
		cc_connect(cc, grh->dgid.raw);
}

int qp_change_cc(struct qp *qp, const struct cc_attr *attr)
{
	int err;

	if (!qp_may_have_cc(qp->init.type, attr))
		return -EOPNOTSUPP;
	err = cc_change(attr, &qp->pacer, &qp->loss);
	if (err != 0)
		return err;
	qp->kind = qp_kind(qp->init.type, attr->kind);
	/* Responses that were held are sent in the next engine poll. */
	qp->unusual &= (uint8_t) ~(QP_OWES_CNP | QP_SLOWED);
	qp->responses_ns = UINT64_MAX;
	if (qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT && qp->peer.path.len > 0)
		qp_connect_cc(qp);
	return 0;
}
